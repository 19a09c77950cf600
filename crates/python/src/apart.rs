//! Captures that are cut in one process and joined in another, for `tcpwhy.fleet`.

#![expect(clippy::needless_pass_by_value, reason = "Python hands on what it owns")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tcpwhy::session::{Cut, Joined};
use tcpwhy_cli::ask;

/// Pieces that wait for Python. Ours: some megabytes.
const AHEAD: usize = 4;

/// The places of captures in their order, or else which of them holds the packets of another one, and what is to be said.
#[pyfunction]
pub(crate) fn in_order(
    py: Python<'_>,
    paths: Vec<PathBuf>,
) -> (Vec<usize>, Option<(String, String)>) {
    py.detach(|| match ask::in_order(&paths) {
        Ok(order) => (order, None),
        Err(same) => (Vec::new(), Some((same.second.clone(), same.to_string()))),
    })
}

/// Reads a capture in a thread of its own, and gives its pieces one by one.
#[pyclass(frozen, module = "tcpwhy._native")]
pub(crate) struct Cutting {
    pieces: Mutex<Option<Receiver<Piece>>>,
    reader: Mutex<Option<JoinHandle<Cut>>>,
    stop: Arc<AtomicBool>,
}

/// Begins to cut a capture.
#[pyfunction]
pub(crate) fn cut(path: PathBuf) -> Cutting {
    let (send, receive) = mpsc::sync_channel(AHEAD);
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let reader = thread::spawn(move || {
        ask::cut(&path, &stopped, &mut |shard, piece| {
            // Nobody is left to take it where Python gave up.
            let _ = send.send((shard, piece));
        })
    });
    let (pieces, reader) = (Mutex::new(Some(receive)), Mutex::new(Some(reader)));
    Cutting { pieces, reader, stop }
}

#[pymethods]
impl Cutting {
    const fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    /// The next piece, with its shard.
    fn __next__<'py>(&self, py: Python<'py>) -> Option<(usize, Bound<'py, PyBytes>)> {
        let next = py.detach(|| {
            let pieces = self.pieces.lock().unwrap_or_else(PoisonError::into_inner);
            pieces.as_ref().and_then(|pieces| pieces.recv().ok())
        });
        next.map(|(shard, piece)| (shard, PyBytes::new(py, &piece)))
    }

    /// What the capture holds beside its pieces, which were all taken: as JSON, and what was heard.
    fn beside<'py>(&self, py: Python<'py>) -> PyResult<(String, Bound<'py, PyBytes>)> {
        let reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner).take();
        let reader = reader.ok_or_else(|| PyRuntimeError::new_err("it was asked for before"))?;
        let cut = py.detach(|| reader.join()).map_err(|_| mistake())?;
        let json = serde_json::to_string(&cut)
            .map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        Ok((json, PyBytes::new(py, &cut.heard)))
    }
}

impl Drop for Cutting {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Whoever sends sees that.
        drop(self.pieces.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

/// Analyses captures that were cut.
#[pyclass(frozen, module = "tcpwhy._native")]
pub(crate) struct Joining(Mutex<Option<Box<Joined>>>);

/// What was written: the files, and how many rows each table got.
type Told = (Vec<PathBuf>, BTreeMap<&'static str, usize>);

#[pymethods]
impl Joining {
    #[new]
    fn new() -> Self {
        // Python gives 16 bytes of alignment, and a run needs more: it has memory of its own.
        Self(Mutex::new(Some(Box::new(ask::joined()))))
    }

    /// The next capture, in their order: what [`Cutting::beside`] told.
    fn begin(&self, json: &str, heard: &[u8]) -> PyResult<()> {
        let cut: Cut = serde_json::from_str(json).map_err(odd)?;
        self.with(|joined| joined.begin(Cut { heard: heard.to_vec(), ..cut }).map_err(odd))
    }

    /// The next piece of its shard, of the capture of this number.
    fn push(&self, py: Python<'_>, capture: usize, piece: &[u8]) -> PyResult<()> {
        py.detach(|| self.with(|joined| joined.push(capture, piece).map_err(odd)))
    }

    /// Writes the tables, which ends it.
    #[pyo3(signature = (folder, run, host=None))]
    fn write(
        &self,
        py: Python<'_>,
        folder: PathBuf,
        run: &str,
        host: Option<&str>,
    ) -> PyResult<Told> {
        let joined = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let joined = joined.ok_or_else(ended)?;
        let written = py.detach(|| ask::write_joined(*joined, &folder, run, host));
        let written = written.map_err(|error| PyOSError::new_err(error.to_string()))?;
        let rows = written.rows.iter().map(|(table, rows)| (table.name(), *rows));
        Ok((written.files, rows.collect()))
    }
}

impl Joining {
    fn with(&self, work: impl FnOnce(&mut Joined) -> PyResult<()>) -> PyResult<()> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        work(held.as_mut().ok_or_else(ended)?)
    }
}

fn odd(error: impl ToString) -> PyErr {
    PyValueError::new_err(error.to_string())
}

fn ended() -> PyErr {
    PyRuntimeError::new_err("its tables were written")
}

fn mistake() -> PyErr {
    PyRuntimeError::new_err("this is a mistake in tcpwhy; please report it")
}

/// A piece, by its shard.
type Piece = (usize, Vec<u8>);
