//! Tables of a report, as Arrow hands them on.

#![expect(clippy::needless_pass_by_value, reason = "Python hands on what it owns")]

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::exceptions::{PyKeyError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use tcpwhy::report;
use tcpwhy_tables::Table as Kind;

/// Connections whose rows are made at once; as `tcpwhy_tables` writes them.
const AT_ONCE: usize = 256;

/// A table whose rows are made when they are asked for.
#[pyclass(frozen, module = "tcpwhy._native")]
pub(crate) struct Table {
    kind: Kind,
    report: Arc<report::Report>,
}

/// Name, meaning, and of each column name, type and meaning.
type Described = (&'static str, &'static str, Vec<(String, String, String)>);

/// The tables there are.
#[pyfunction]
pub(crate) fn tables() -> Vec<Described> {
    let of = |kind: Kind| {
        let schema = kind.schema();
        let columns = schema.fields().iter().map(|field| {
            let doc = field.metadata().get("description").cloned().unwrap_or_default();
            (field.name().clone(), field.data_type().to_string(), doc)
        });
        (kind.name(), kind.doc(), columns.collect())
    };
    Kind::ALL.into_iter().map(of).collect()
}

impl Table {
    pub(crate) fn of(report: &Arc<report::Report>, name: &str) -> PyResult<Self> {
        let kind = Kind::ALL.into_iter().find(|kind| kind.name() == name);
        let kind = kind.ok_or_else(|| PyKeyError::new_err(format!("there is no table {name}")))?;
        Ok(Self { kind, report: Arc::clone(report) })
    }
}

#[pymethods]
impl Table {
    /// Its name.
    #[getter]
    const fn name(&self) -> &'static str {
        self.kind.name()
    }

    /// What its rows are.
    #[getter]
    const fn about(&self) -> &'static str {
        self.kind.doc()
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(&*self.kind.schema()).map_err(no_arrow)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface lets who answers leave a wish aside.
        drop(requested_schema);
        let schema = self.kind.schema();
        let rows = Rows { kind: self.kind, schema, report: Arc::clone(&self.report), at: 0 };
        let stream = FFI_ArrowArrayStream::new(Box::new(rows));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}

/// The rows of some connections after the other.
struct Rows {
    kind: Kind,
    schema: SchemaRef,
    report: Arc<report::Report>,
    at: usize,
}

impl Iterator for Rows {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.report.connections.get(self.at..).filter(|rest| !rest.is_empty())?;
        let some = &rest[..rest.len().min(AT_ONCE)];
        self.at += some.len();
        Some(self.kind.batch(some))
    }
}

impl RecordBatchReader for Rows {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

fn no_arrow(error: ArrowError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}
