//! Rows for other libraries, through Arrow's PyCapsule interface.

use std::sync::Arc;

use alluvium::arrow::array::{ArrayRef, RecordBatch, StructArray};
use alluvium::arrow::datatypes::{DataType, Field, FieldRef, SchemaRef};
use alluvium::arrow::error::ArrowError;
use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use pyo3_arrow::ffi::{ArrayIterator, to_schema_pycapsule, to_stream_pycapsule};

/// Columns as a PyCapsule.
pub(crate) fn schema<'py>(py: Python<'py>, schema: &SchemaRef) -> PyResult<Bound<'py, PyCapsule>> {
    Ok(to_schema_pycapsule(py, schema.as_ref())?)
}

/// Rows as a PyCapsule, pulled as they are asked for.
pub(crate) fn stream<'py>(
    py: Python<'py>,
    schema: &SchemaRef,
    batches: impl Iterator<Item = Result<RecordBatch, ArrowError>> + Send + 'static,
    requested: Option<Bound<'py, PyCapsule>>,
) -> PyResult<Bound<'py, PyCapsule>> {
    let rows: FieldRef = Arc::new(
        Field::new("", DataType::Struct(schema.fields().clone()), false)
            .with_metadata(schema.metadata().clone()),
    );
    let arrays = batches.map(|batch| Ok(Arc::new(StructArray::from(batch?)) as ArrayRef));
    Ok(to_stream_pycapsule(py, Box::new(ArrayIterator::new(arrays, rows)), requested)?)
}

/// A table of pyarrow.
pub(crate) fn pyarrow<'py>(rows: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    module(rows.py(), "pyarrow", "arrow()")?.call_method1("table", (rows,))
}

/// A reader of pyarrow, which pulls.
pub(crate) fn reader<'py>(rows: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let readers = module(rows.py(), "pyarrow", "reader()")?.getattr("RecordBatchReader")?;
    readers.call_method1("from_stream", (rows,))
}

/// A frame of polars.
pub(crate) fn polars<'py>(rows: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    module(rows.py(), "polars", "pl()")?.call_method1("DataFrame", (rows,))
}

/// A frame of pandas.
pub(crate) fn pandas<'py>(rows: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = rows.py();
    module(py, "pandas", "df()")?;
    let table = module(py, "pyarrow", "df()")?.call_method1("table", (rows,))?;
    let options = pyo3::types::PyDict::new(py);
    options.set_item("date_as_object", false)?;
    table.call_method("to_pandas", (), Some(&options))
}

fn module<'py>(py: Python<'py>, name: &str, needed_by: &str) -> PyResult<Bound<'py, PyModule>> {
    py.import(name).map_err(|error| {
        let missing = PyImportError::new_err(format!(
            "{needed_by} needs {name}, which cannot be imported: pip install {name}"
        ));
        missing.set_cause(py, Some(error));
        missing
    })
}
