//! Rows that are Arrow data.

use alluvium::arrow::array::{ArrayRef, MutableArrayData, RecordBatchReader, make_array};
use alluvium::arrow::compute::{CastOptions, can_cast_types, cast_with_options};
use alluvium::arrow::datatypes::FieldRef;
use alluvium::arrow::error::ArrowError;
use alluvium::arrow::util::display::FormatOptions;
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
    Ok(object.hasattr("__arrow_c_stream__")? || object.hasattr("__arrow_c_array__")?)
}

/// The record batches of an object that has Arrow data; `None` if it has none.
pub(crate) fn arrow_reader(
    object: &Bound<'_, PyAny>,
) -> PyResult<Option<Box<dyn RecordBatchReader + Send>>> {
    match arrow_reader_is(object)? {
        false => Ok(None),
        true => object.extract::<AnyRecordBatch>()?.into_reader().map(Some),
    }
}

/// A copy of a column, as one of this type.
fn fitted(field: &FieldRef, column: &ArrayRef) -> Result<ArrayRef, String> {
    let wanted = field.data_type();
    let named = |error: ArrowError| format!("column \"{}\": {error}", field.name());
    if column.data_type() == wanted {
        return copied(column).map_err(named);
    }
    if !can_cast_types(column.data_type(), wanted) {
        return Err(format!(
            "column \"{}\" takes {}, and is given {}",
            field.name(),
            convert::sql_type(wanted),
            convert::sql_type(column.data_type())
        ));
    }
    let options = CastOptions { safe: false, format_options: FormatOptions::default() };
    let cast = cast_with_options(column, wanted, &options).map_err(named)?;
    // A cast may share buffers.
    copied(&cast).map_err(named)
}

/// The same values in buffers of their own.
fn copied(column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let data = column.to_data();
    let mut copy = MutableArrayData::new(vec![&data], false, data.len());
    copy.try_extend(0, 0, data.len())?;
    Ok(make_array(copy.freeze()))
}
