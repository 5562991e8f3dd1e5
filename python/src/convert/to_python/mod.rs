//! Python's values of columns.
//!
//! A [`reader`] makes the value of a row, and is made once for a column: [`scalars`] has those of plain types, [`times`] of what Python's
//! `datetime` is for, [`nested`] of lists, structs and maps, whose values they make with readers of the columns within.

mod nested;
mod scalars;
mod times;
mod zone;

use alluvium::arrow::array::{Array, RecordBatch};
use alluvium::arrow::datatypes::DataType;
use alluvium::arrow::util::display::{ArrayFormatter, FormatOptions};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::sql_type;
use crate::error;

/// What makes the value of a row of a column.
type Reader<'a, 'py> = Box<dyn Fn(usize) -> PyResult<Bound<'py, PyAny>> + 'a>;

/// The values of a column, row by row.
///
/// # Errors
///
/// Raises `DataError` if a class of Python cannot hold a value: `datetime` has the years 1 to 9999 only.
pub(crate) fn column<'py>(py: Python<'py>, array: &dyn Array) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let value = reader(py, array)?;
    (0..array.len()).map(value).collect()
}

/// A tuple of each of so many rows of a batch, from this row on, or of as many as there are.
///
/// # Errors
///
/// Those of [`column`].
pub(crate) fn rows<'py>(
    py: Python<'py>,
    batch: &RecordBatch,
    from: usize,
    count: usize,
) -> PyResult<Vec<Bound<'py, PyTuple>>> {
    let readers = batch.columns().iter().map(|column| reader(py, column));
    let readers = readers.collect::<PyResult<Vec<_>>>()?;
    let end = from.saturating_add(count).min(batch.num_rows());
    let mut values = Vec::with_capacity(readers.len());
    let row = |row| {
        for value in &readers {
            values.push(value(row)?);
        }
        PyTuple::new(py, values.drain(..))
    };
    (from.min(end)..end).map(row).collect()
}

/// The reader of a column.
fn reader<'a, 'py: 'a>(py: Python<'py>, array: &'a dyn Array) -> PyResult<Reader<'a, 'py>> {
    match array.data_type() {
        DataType::Date32
        | DataType::Date64
        | DataType::Time32(_)
        | DataType::Time64(_)
        | DataType::Timestamp(..)
        | DataType::Interval(_)
        | DataType::Duration(_) => times::reader(py, array),
        DataType::List(_)
        | DataType::LargeList(_)
        | DataType::ListView(_)
        | DataType::LargeListView(_)
        | DataType::FixedSizeList(..)
        | DataType::Struct(_)
        | DataType::Map(..)
        | DataType::Dictionary(..)
        | DataType::RunEndEncoded(..) => nested::reader(py, array),
        _ => scalars::reader(py, array),
    }
}

/// A reader that has NULL as `None`, and other values from this.
fn nullable<'a, 'py: 'a>(
    py: Python<'py>,
    array: &'a dyn Array,
    value: impl Fn(usize) -> PyResult<Bound<'py, PyAny>> + 'a,
) -> Reader<'a, 'py> {
    match array.nulls() {
        Some(nulls) if nulls.null_count() > 0 => Box::new(move |row| match nulls.is_null(row) {
            true => Ok(py.None().into_bound(py)),
            false => value(row),
        }),
        _ => Box::new(value),
    }
}

/// The error of a value that the class cannot hold.
fn beyond(py: Python<'_>, array: &dyn Array, row: usize, class: &str) -> PyErr {
    let formatter = ArrayFormatter::try_new(array, &FormatOptions::new());
    let text = formatter.and_then(|formatter| formatter.value(row).try_to_string());
    let value = text.unwrap_or_else(|_| format!("a value of {}", sql_type(array.data_type())));
    let message =
        format!("{value} is beyond what {class} can hold: read it as Arrow, or CAST it to VARCHAR");
    error::data(py, &message)
}
