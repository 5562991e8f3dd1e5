//! Rows for COPY, in binary.

use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::{CastOptions, cast_with_options};
use bytes::{BufMut, BytesMut};

use super::kind::{Kind, leaf_of};
use super::written::Written;
use crate::error::{Error, Result};

/// The bytes before the rows.
pub(crate) const HEAD: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// The bytes after the rows.
pub(crate) const END: &[u8] = &[0xff, 0xff];

/// Writes rows for a table.
pub(crate) struct Writer {
    /// The names and the types of the table's columns.
    columns: Vec<(String, Kind)>,
}

impl Writer {
    /// A writer of rows with these columns.
    pub(crate) fn new(columns: Vec<(String, Kind)>) -> Self {
        Self { columns }
    }

    /// Writes the rows of a batch. Values of other types than the table's are cast to them.
    ///
    /// # Errors
    ///
    /// If the batch has other columns, or a value cannot be one of the column's type.
    pub(crate) fn write(&self, batch: &RecordBatch, out: &mut BytesMut) -> Result<()> {
        if batch.num_columns() != self.columns.len() {
            let (given, wanted) = (batch.num_columns(), self.columns.len());
            return Err(Error::value(format!("a batch has {given} columns instead of {wanted}")));
        }
        let pairs = batch.columns().iter().zip(&self.columns);
        let arrays = pairs.map(|(array, (name, kind))| {
            plain(array, *kind).map_err(|error| Error::value(format!("column \"{name}\": {error}")))
        });
        let arrays = arrays.collect::<Result<Vec<_>>>()?;
        let pairs = arrays.iter().zip(&self.columns);
        let columns: Vec<_> = pairs.map(|(array, (_, kind))| Written::of(array, *kind)).collect();
        let width = i16::try_from(columns.len()).map_err(|_| Error::value("too many columns"))?;
        for row in 0..batch.num_rows() {
            out.put_i16(width);
            for column in &columns {
                column.put_field(row, out)?;
            }
        }
        Ok(())
    }
}

/// An array as one of what goes over the wire for a kind.
pub(super) fn plain(array: &ArrayRef, kind: Kind) -> Result<ArrayRef> {
    let (_, dimensions) = leaf_of(array.data_type());
    let wanted = kind.wire_type(dimensions);
    if *array.data_type() == wanted {
        return Ok(array.clone());
    }
    if kind.is_list != (dimensions > 0) && !array.data_type().is_null() {
        return Err(Error::value("a list and a single value are not the same"));
    }
    let options = CastOptions { safe: false, ..CastOptions::default() };
    Ok(cast_with_options(array, &wanted, &options)?)
}
