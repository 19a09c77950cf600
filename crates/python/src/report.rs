//! A report that Python holds.

#![expect(clippy::needless_pass_by_value, reason = "Python hands on what it owns")]

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::{PyIndexError, PyOSError, PyRuntimeError};
use pyo3::prelude::*;
use tcpwhy::report::{self, Connection};
use tcpwhy::view::web::svg;
use tcpwhy::view::{self, Options, Sort};
use tcpwhy_cli::ask;

use crate::table::Table;

/// What was found in captures.
#[pyclass(frozen, module = "tcpwhy._native")]
pub(crate) struct Report {
    report: Arc<report::Report>,
}

impl Report {
    pub(crate) fn of(report: report::Report) -> Self {
        Self { report: Arc::new(report) }
    }

    /// What belongs to no connection, with these.
    fn with_only(&self, connections: Vec<Connection>) -> report::Report {
        let report::Report { format, captures, with, command, totals, findings, .. } =
            &*self.report;
        report::Report {
            format: format.clone(),
            captures: captures.clone(),
            with: with.clone(),
            command: command.clone(),
            totals: totals.clone(),
            findings: findings.clone(),
            connections,
            ..report::Report::default()
        }
    }

    fn connection(&self, at: usize) -> PyResult<&Connection> {
        self.report
            .connections
            .get(at)
            .ok_or_else(|| PyIndexError::new_err("there is no connection of that index"))
    }
}

#[pymethods]
impl Report {
    fn __len__(&self) -> usize {
        self.report.connections.len()
    }

    /// A table by its name.
    fn table(&self, name: &str) -> PyResult<Table> {
        Table::of(&self.report, name)
    }

    /// The whole report as JSON.
    fn json(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| serde_json::to_string(&*self.report)).map_err(no_json)
    }

    /// All but the connections, as JSON.
    fn head_json(&self) -> PyResult<String> {
        serde_json::to_string(&self.with_only(Vec::new())).map_err(no_json)
    }

    /// One connection as JSON, by its place.
    fn connection_json(&self, at: usize) -> PyResult<String> {
        serde_json::to_string(self.connection(at)?).map_err(no_json)
    }

    /// The text that the command prints.
    #[pyo3(signature = (width, full, at=None))]
    fn text(
        &self,
        py: Python<'_>,
        width: usize,
        full: bool,
        at: Option<usize>,
    ) -> PyResult<String> {
        let (color, rounds, plot) = (false, false, false);
        let (top, sort) = (TABLE_ROWS, Sort::Worst);
        let options = Options { width, color, full, rounds, plot, top, sort, connection: None };
        let Some(at) = at else { return Ok(py.detach(|| view::render(&self.report, &options))) };
        let only = self.connection(at)?.clone();
        let options = Options { connection: Some(only.id), ..options };
        Ok(view::render(&self.with_only(vec![only]), &options))
    }

    /// What held the sender of a direction (0: the client, 1: the server) of a connection, as SVG.
    fn strip(&self, at: usize, side: usize) -> PyResult<Option<String>> {
        Ok(svg::strip(self.connection(at)?, side))
    }

    /// Its graphs, each with its name, as SVG; none where what is drawn was not kept.
    fn graphs(&self, at: usize, side: usize) -> PyResult<Vec<(&'static str, String)>> {
        Ok(svg::graphs(self.connection(at)?, side))
    }

    /// Writes the page for the browser.
    fn write_page(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| ask::write_page(&self.report, &path))
            .map_err(|error| PyOSError::new_err(error.to_string()))
    }

    /// Writes the tables as Parquet files; a sentence about what was written.
    #[pyo3(signature = (folder, host=None))]
    fn write_parquet(
        &self,
        py: Python<'_>,
        folder: PathBuf,
        host: Option<String>,
    ) -> PyResult<String> {
        let written = py.detach(|| ask::write_tables(&self.report, folder, host));
        written.map_err(|error| PyOSError::new_err(error.to_string()))
    }
}

/// Lines of a table of connections; as the command shows them.
const TABLE_ROWS: usize = 10;

fn no_json(error: serde_json::Error) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}
