//! Rows that are Arrow data.

use alluvium::arrow::array::{
    Array, ArrayRef, AsArray, MutableArrayData, RecordBatchReader, make_array, new_null_array,
};
use alluvium::arrow::compute::kernels::cmp::not_distinct;
use alluvium::arrow::compute::{CastOptions, can_cast_types, cast_with_options};
use alluvium::arrow::datatypes::{DataType, FieldRef, Float32Type, Float64Type};
use alluvium::arrow::error::ArrowError;
use alluvium::arrow::util::display::{FormatOptions, array_value_to_string};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3_arrow::input::AnyRecordBatch;

use super::{Columns, ROWS, Target};
use crate::convert;
use crate::error;

impl Target {
    /// The batches of a reader, in parts.
    pub(super) fn each_batch(
        &self,
        py: Python<'_>,
        mut reader: Box<dyn RecordBatchReader + Send>,
        take: &mut dyn FnMut(Columns) -> PyResult<()>,
    ) -> PyResult<()> {
        loop {
            let batch = match py.detach(|| reader.next()) {
                None => return Ok(()),
                Some(Ok(batch)) => batch,
                Some(Err(error)) => return Err(error::arrow(py, &error)),
            };
            let places =
                self.places(py, batch.schema().fields().iter().map(|field| field.name()))?;
            for start in (0..batch.num_rows()).step_by(ROWS) {
                let part = batch.slice(start, ROWS.min(batch.num_rows() - start));
                let columns = py.detach(|| self.fit(&places, part.columns()));
                let columns = columns.map_err(|message| error::data(py, &message))?;
                take(self.complete(py, &places, columns, part.num_rows())?)?;
            }
        }
    }

    /// Copies of columns, with the types of the table.
    fn fit(&self, places: &[usize], columns: &[ArrayRef]) -> Result<Vec<ArrayRef>, String> {
        let fields = places.iter().map(|place| &self.schema.fields()[*place]);
        fields.zip(columns).map(|(field, column)| fitted(field, column)).collect()
    }
}

/// Whether an object has Arrow data.
pub(crate) fn arrow_reader_is(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(object.hasattr("__arrow_c_stream__")?
        || object.hasattr("__arrow_c_array__")?
        || is_lazy(object)?)
}

/// Whether it is a frame of polars that is not computed yet.
fn is_lazy(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let class = object.get_type();
    Ok(class.name()? == "LazyFrame" && class.module()?.to_string().starts_with("polars"))
}

/// The record batches of an object that has Arrow data; `None` if it has none.
pub(crate) fn arrow_reader(
    object: &Bound<'_, PyAny>,
) -> PyResult<Option<Box<dyn RecordBatchReader + Send>>> {
    if !arrow_reader_is(object)? {
        return Ok(None);
    }
    let py = object.py();
    let readable = py.import("alluvium._frames")?.call_method1("readable", (object,))?;
    let reader = readable.extract::<AnyRecordBatch>().and_then(AnyRecordBatch::into_reader);
    reader.map(Some).map_err(|error| match error.is_instance_of::<PyValueError>(py) {
        false => error,
        true => {
            let kind =
                object.get_type().name().map_or_else(|_| String::new(), |name| name.to_string());
            let message = format!("the Arrow data of this {kind} is no table: {}", error.value(py));
            let raised = error::interface(py, &message);
            raised.set_cause(py, Some(error));
            raised
        }
    })
}

/// Marks the rows of an object that can be read once as taken. Fails if they are.
pub(crate) fn take_rows(object: &Bound<'_, PyAny>) -> PyResult<()> {
    object.py().import("alluvium._frames")?.call_method1("take", (object,)).map(drop)
}

/// A copy of a column, as one of this type.
fn fitted(field: &FieldRef, column: &ArrayRef) -> Result<ArrayRef, String> {
    let wanted = field.data_type();
    let named = |error: ArrowError| format!("column \"{}\": {error}", field.name());
    if column.data_type() == wanted {
        return copied(column).map_err(named);
    }
    if column.logical_null_count() == column.len() {
        return Ok(new_null_array(wanted, column.len()));
    }
    if !can_cast_types(column.data_type(), wanted) || is_other(column.data_type(), wanted) {
        return Err(format!(
            "column \"{}\" takes {}, and is given {}",
            field.name(),
            convert::sql_type(wanted),
            convert::sql_type(column.data_type())
        ));
    }
    let options = CastOptions { safe: false, format_options: FormatOptions::default() };
    let cast = cast_with_options(column, wanted, &options).map_err(named)?;
    if let Some(row) = lost(column, &cast).map_err(named)? {
        let value = array_value_to_string(column, row).map_err(named)?;
        return Err(format!(
            "column \"{}\": {value} is no {}, and would lose something",
            field.name(),
            convert::sql_type(wanted)
        ));
    }
    // A cast may share buffers.
    copied(&cast).map_err(named)
}

/// Whether values of a type are no values of another, though Arrow has a cast: numbers are no dates, and fields have names.
fn is_other(given: &DataType, wanted: &DataType) -> bool {
    let is_time = |data_type: &DataType| data_type.is_temporal();
    let is_number = |data_type: &DataType| data_type.is_numeric();
    let is_bool = |data_type: &DataType| matches!(data_type, DataType::Boolean);
    match (given, wanted) {
        (DataType::Dictionary(_, given), _) => is_other(given, wanted),
        (DataType::Struct(given), DataType::Struct(wanted)) => given.iter().any(|field| {
            let found = wanted.find(field.name());
            found.is_none_or(|(_, wanted)| is_other(field.data_type(), wanted.data_type()))
        }),
        (
            DataType::List(given) | DataType::LargeList(given) | DataType::FixedSizeList(given, _),
            DataType::List(wanted),
        ) => is_other(given.data_type(), wanted.data_type()),
        // Arrow makes a list of a value.
        (given, wanted) if wanted.is_nested() && !given.is_nested() => true,
        _ => {
            is_time(given) && (is_number(wanted) || is_bool(wanted))
                || is_time(wanted) && (is_number(given) || is_bool(given))
                || is_bool(given) && is_number(wanted)
                || is_bool(wanted) && is_number(given)
        }
    }
}

/// The first row whose value the cast has changed by more than digits behind a point: no fraction, and no time of day gets lost.
fn lost(column: &ArrayRef, cast: &ArrayRef) -> Result<Option<usize>, ArrowError> {
    let (given, wanted) = (column.data_type(), cast.data_type());
    let is_exact = match (given, wanted) {
        (DataType::Float64, DataType::Float32) => {
            let (given, cast) =
                (column.as_primitive::<Float64Type>(), cast.as_primitive::<Float32Type>());
            let is_lost =
                |row: &usize| cast.value(*row).is_infinite() && given.value(*row).is_finite();
            return Ok((0..column.len()).filter(|row| column.is_valid(*row)).find(is_lost));
        }
        (DataType::Timestamp(..), DataType::Date32) => true,
        _ => (given.is_floating() || given.is_decimal()) && wanted.is_integer(),
    };
    if !is_exact {
        return Ok(None);
    }
    let back = cast_with_options(cast, given, &CastOptions::default())?;
    let same = not_distinct(&back, column)?;
    Ok((0..same.len()).find(|row| !same.value(*row)))
}

/// The same values in buffers of their own.
fn copied(column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let data = column.to_data();
    let mut copy = MutableArrayData::new(vec![&data], false, data.len());
    copy.try_extend(0, 0, data.len())?;
    Ok(make_array(copy.freeze()))
}
