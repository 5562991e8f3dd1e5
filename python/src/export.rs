//! Rows for other libraries, through Arrow's PyCapsule interface.

use std::sync::Arc;

use alluvium::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, StructArray};
use alluvium::arrow::compute::cast;
use alluvium::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit};
use alluvium::arrow::error::ArrowError;
use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use pyo3_arrow::ffi::{ArrayIterator, to_schema_pycapsule, to_stream_pycapsule};

/// The zone of instants, by the name that every library knows.
const UTC: &str = "UTC";

/// The type that other libraries get: an instant is one of UTC by that name, and a time of day has microseconds, which is what SQL has of it.
fn data_type(of: &DataType) -> DataType {
    match of {
        DataType::Timestamp(unit, Some(_)) => DataType::Timestamp(*unit, Some(UTC.into())),
        DataType::Time64(TimeUnit::Nanosecond) => DataType::Time64(TimeUnit::Microsecond),
        DataType::List(item) => DataType::List(field(item)),
        DataType::LargeList(item) => DataType::LargeList(field(item)),
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(field(item), *size),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(field).collect()),
        DataType::Map(entries, sorted) => DataType::Map(field(entries), *sorted),
        of => of.clone(),
    }
}

/// A field with the [type](data_type) that other libraries get.
pub(crate) fn field(of: &FieldRef) -> FieldRef {
    match data_type(of.data_type()) {
        same if same == *of.data_type() => of.clone(),
        other => Arc::new(of.as_ref().clone().with_data_type(other)),
    }
}

/// The values for a field that other libraries get. Instants keep their memory.
pub(crate) fn values(of: &ArrayRef, field: &Field) -> Result<ArrayRef, ArrowError> {
    match of.data_type() == field.data_type() {
        true => Ok(of.clone()),
        false => cast(of, field.data_type()),
    }
}

/// The columns that other libraries get.
fn columns(schema: &SchemaRef) -> SchemaRef {
    let fields: Vec<FieldRef> = schema.fields().iter().map(field).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// Rows with the columns that other libraries get.
fn rows(batch: RecordBatch, columns: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let arrays = batch.columns().iter().zip(columns.fields());
    let arrays = arrays.map(|(array, field)| values(array, field)).collect::<Result<_, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(columns.clone(), arrays, &options)
}

/// Columns as a PyCapsule.
pub(crate) fn schema<'py>(py: Python<'py>, schema: &SchemaRef) -> PyResult<Bound<'py, PyCapsule>> {
    Ok(to_schema_pycapsule(py, columns(schema).as_ref())?)
}

/// Rows as a PyCapsule, pulled as they are asked for.
pub(crate) fn stream<'py>(
    py: Python<'py>,
    schema: &SchemaRef,
    batches: impl Iterator<Item = Result<RecordBatch, ArrowError>> + Send + 'static,
    requested: Option<Bound<'py, PyCapsule>>,
) -> PyResult<Bound<'py, PyCapsule>> {
    let columns = columns(schema);
    let row: FieldRef = Arc::new(
        Field::new("", DataType::Struct(columns.fields().clone()), false)
            .with_metadata(columns.metadata().clone()),
    );
    let arrays = batches.map(move |batch| {
        let batch = batch.and_then(|batch| rows(batch, &columns))?;
        Ok(Arc::new(StructArray::from(batch)) as ArrayRef)
    });
    Ok(to_stream_pycapsule(py, Box::new(ArrayIterator::new(arrays, row)), requested)?)
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
