//! Rows as messages.

use std::ops::Range;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::Schema;
use bytes::BytesMut;

use super::catalog_type::Kind;
use super::column::Column;
use super::format::Format;
use super::pg_type::{PgType, TEXT};
use super::plain::plain;
use super::rejected::{Rejected, Result, code};
use super::time::zone::Zone;

/// The kind of a message that is a row.
const DATA_ROW: u8 = b'D';

/// Writes rows of a result as messages `DataRow`.
pub(crate) struct RowEncoder {
    formats: Vec<Format>,
    kinds: Vec<Kind>,
    zone: Zone,
    /// The most bytes of a message, without its kind.
    most: usize,
}

impl RowEncoder {
    /// An encoder of rows with these columns, in these formats: none is text, and one stands for all.
    ///
    /// # Errors
    ///
    /// If there are more columns than a message has, or if the formats are not as many.
    pub(crate) fn new(schema: &Schema, formats: &[Format]) -> Result<Self> {
        let columns = column_count(schema)?;
        let mut formats = match formats {
            [] => vec![Format::Text; columns],
            [one] => vec![*one; columns],
            formats if formats.len() == columns => formats.to_vec(),
            formats => {
                let message = format!("{} formats were given for {columns} columns", formats.len());
                return Err(Rejected::new(code::PROTOCOL, message));
            }
        };
        // What is described as text for want of a type, as a parameter that stands alone, has values of any: as text they are what they are
        // described as.
        for (format, field) in formats.iter_mut().zip(schema.fields()) {
            if PgType::of_field(field).oid() == TEXT {
                *format = Format::Text;
            }
        }
        Ok(Self { formats, kinds: Kind::all(schema), zone: Zone::UTC, most: i32::MAX as usize })
    }

    /// The same, which shows instants by the clocks of a zone instead of in UTC.
    #[cfg_attr(not(test), expect(dead_code, reason = "sessions are in UTC"))]
    pub(crate) fn in_zone(self, zone: Zone) -> Self {
        Self { zone, ..self }
    }

    /// Writes rows of a batch, which has the columns of the result. If it fails, `out` has the rows before the one that failed.
    ///
    /// # Errors
    ///
    /// If a value is none that Postgres has, or a row is larger than a message.
    pub(crate) fn encode(
        &mut self,
        batch: &RecordBatch,
        rows: Range<usize>,
        out: &mut BytesMut,
    ) -> Result<()> {
        let count = rows.len();
        let arrays = plain_arrays(batch, rows, &self.kinds)?;
        let columns = columns(&arrays, &self.kinds, self.zone)?;
        for row in 0..count {
            let start = out.len();
            if let Err(rejected) = self.put_row(&columns, row, out) {
                out.truncate(start);
                return Err(rejected);
            }
        }
        Ok(())
    }

    fn put_row(&self, columns: &[Column<'_>], row: usize, out: &mut BytesMut) -> Result<()> {
        let [high, low] = (columns.len() as i16).to_be_bytes();
        let start = out.len() + 1;
        out.extend_from_slice(&[DATA_ROW, 0, 0, 0, 0, high, low]);
        for (column, format) in columns.iter().zip(&self.formats) {
            column.put_field(row, *format, out)?;
            if out.len() - start > self.most {
                return Err(Rejected::too_large());
            }
        }
        end_message(start, out)
    }
}

/// Writes the length of a message, which began at `start` with room for it.
pub(super) fn end_message(start: usize, out: &mut BytesMut) -> Result<()> {
    let length = i32::try_from(out.len() - start).map_err(|_| Rejected::too_large())?;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

/// The columns of a schema, which are counted in 16 bits.
pub(super) fn column_count(schema: &Schema) -> Result<usize> {
    let columns = schema.fields().len();
    if i16::try_from(columns).is_err() {
        let message =
            format!("a row of {columns} columns cannot be sent: select at most {}", i16::MAX);
        return Err(Rejected::new(code::TOO_LARGE, message));
    }
    Ok(columns)
}

/// The arrays of some rows of a batch, in types that are written.
pub(super) fn plain_arrays(
    batch: &RecordBatch,
    rows: Range<usize>,
    kinds: &[Kind],
) -> Result<Vec<ArrayRef>> {
    if batch.num_columns() != kinds.len() || rows.start > rows.end || rows.end > batch.num_rows() {
        return Err(Rejected::new(
            code::INTERNAL,
            "a batch does not have the columns or rows of its result",
        ));
    }
    let batch = batch.slice(rows.start, rows.len());
    batch.columns().iter().zip(kinds).map(|(array, kind)| plain(array, *kind)).collect()
}

/// The columns of arrays.
pub(super) fn columns<'a>(
    arrays: &'a [ArrayRef],
    kinds: &[Kind],
    zone: Zone,
) -> Result<Vec<Column<'a>>> {
    let column = |(array, kind): (&'a ArrayRef, &Kind)| match kind {
        Kind::Vector => Column::vector(array, zone),
        Kind::Plain | Kind::Oid => Column::of(array, zone),
    };
    arrays.iter().zip(kinds).map(column).collect()
}

#[cfg(test)]
impl RowEncoder {
    /// The same for messages of at most so many bytes.
    pub(super) fn with_most(self, most: usize) -> Self {
        Self { most, ..self }
    }
}
