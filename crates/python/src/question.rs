//! What can be asked.

#![expect(clippy::needless_pass_by_value, reason = "Python hands on what it owns")]

use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use tcpwhy_cli::ask::{self, Asked};
use tcpwhy_cli::exit::{Exit, Refused};

use crate::report::Report;

/// Between two looks at whether Ctrl-C was pressed. Ours: nobody notices it.
const LOOK: Duration = Duration::from_millis(50);

/// A text, and what is to be said beside it.
type Told = (String, Vec<String>);

/// `tcpwhy explain` with these words.
#[pyfunction]
pub(crate) fn explain(
    py: Python<'_>,
    words: Vec<OsString>,
    graphs: bool,
) -> PyResult<(Report, Vec<String>)> {
    let asked = heard(py, |stop| ask::explain(&words, graphs, stop, &mut |_| {}))?;
    Ok((Report::of(asked.answer), asked.remarks))
}

/// `tcpwhy predict --json` with these words.
#[pyfunction]
pub(crate) fn predict(py: Python<'_>, words: Vec<OsString>) -> PyResult<Told> {
    heard(py, |_| ask::predict(&words)).map(told)
}

/// `tcpwhy whatif --json` with these words.
#[pyfunction]
pub(crate) fn whatif(py: Python<'_>, words: Vec<OsString>) -> PyResult<Told> {
    heard(py, |stop| ask::whatif(&words, stop)).map(told)
}

/// `tcpwhy check --json` with these words; an answer for each host.
#[pyfunction]
pub(crate) fn check(py: Python<'_>, words: Vec<OsString>) -> PyResult<Vec<String>> {
    heard(py, |_| ask::check(&words))
}

fn told(asked: Asked<String>) -> Told {
    (asked.answer, asked.remarks)
}

/// Works in a thread of its own while this one hears Ctrl-C.
fn heard<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&AtomicBool) -> Result<T, Refused> + Send,
) -> PyResult<T> {
    let stop = AtomicBool::new(false);
    let (send, mut receive) = mpsc::channel();
    let mut interrupted = None;
    let ended = thread::scope(|scope| {
        let stop = &stop;
        // Nobody is left to take it where this thread panics.
        scope.spawn(move || drop(send.send(work(stop))));
        loop {
            let receive = &mut receive;
            match py.detach(move || receive.recv_timeout(LOOK)) {
                Err(RecvTimeoutError::Timeout) => {}
                ended => return ended,
            }
            if let Err(signal) = py.check_signals() {
                stop.store(true, Ordering::Relaxed);
                interrupted = Some(signal);
            }
        }
    });
    if let Some(signal) = interrupted {
        return Err(signal);
    }
    match ended {
        Ok(answer) => answer.map_err(|refused| raised(py, &refused)),
        Err(_) => Err(PyRuntimeError::new_err("this is a mistake in tcpwhy; please report it")),
    }
}

/// What Python raises.
fn raised(py: Python<'_>, refused: &Refused) -> PyErr {
    let damage = refused.at.as_ref().and_then(|at| at.damage);
    let file = refused.at.as_ref().map(|at| at.file.as_str());
    let is_usage = refused.exit == Exit::Usage;
    let make = || {
        let name = if is_usage { "UsageError" } else { "ReadError" };
        let kind = py.import("tcpwhy._errors")?.getattr(name)?;
        let place = (damage.map(|damage| damage.packet), damage.map(|damage| damage.offset));
        kind.call1((refused.why.as_str(), file, place.0, place.1))
    };
    make().map_or_else(|error| error, PyErr::from_value)
}
