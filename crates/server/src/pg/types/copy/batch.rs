//! Batches that are made of rows.

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;

use super::super::builder::{ColumnBuilder, builder_type};
use super::super::field::Field;
use super::super::plain::read_as;
use super::super::rejected::{Rejected, Result, code};
use super::super::time::zone::Zone;
use super::options::malformed;

/// The most rows, values and bytes of a batch, which may have one row more.
const MOST_ROWS: usize = 8_192;
const MOST_VALUES: usize = 1 << 20;
const MOST_BYTES: usize = 8 << 20;

/// The rows of a batch that is not full.
pub(super) struct BatchBuilder {
    schema: SchemaRef,
    columns: Vec<ColumnBuilder>,
    /// The column of the next field.
    next: usize,
    bytes: usize,
    /// The line of each row.
    lines: Vec<u64>,
}

impl BatchBuilder {
    /// A batch without rows.
    pub(super) fn new(schema: SchemaRef) -> Result<Self> {
        let column = |field: &arrow::datatypes::FieldRef| {
            ColumnBuilder::new(&builder_type(field.data_type()), Zone::UTC)
        };
        let columns = schema.fields().iter().map(column).collect::<Result<_>>()?;
        Ok(Self { schema, columns, next: 0, bytes: 0, lines: Vec::new() })
    }

    /// The names of the columns.
    pub(super) fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.schema.fields().iter().map(|field| field.name().as_str())
    }

    /// How many rows have been added since it was taken last.
    pub(super) fn rows(&self) -> usize {
        self.lines.len()
    }

    /// Adds the next field of the row of a line; `None` is NULL.
    pub(super) fn append(&mut self, line: u64, field: Option<Field<'_>>) -> Result<()> {
        let Some(column) = self.columns.get_mut(self.next) else {
            return Err(malformed("extra data after last expected column").at(line, None));
        };
        let described = self.schema.field(self.next);
        self.next += 1;
        match field {
            Some(field) => {
                self.bytes += field.bytes.len();
                column.append(field).map_err(|rejected| rejected.at(line, Some(described.name())))
            }
            None if !described.is_nullable() => {
                let message = "a NOT NULL column cannot be NULL";
                Err(Rejected::new(code::NOT_NULL, message).at(line, Some(described.name())))
            }
            None => {
                column.append_null();
                Ok(())
            }
        }
    }

    /// Ends a row.
    pub(super) fn end_row(&mut self, line: u64) -> Result<()> {
        if self.next < self.columns.len() {
            let name = self.schema.field(self.next).name();
            return Err(malformed(format!("missing data for column \"{name}\"")).at(line, None));
        }
        self.next = 0;
        self.lines.push(line);
        Ok(())
    }

    /// Whether it should be taken.
    pub(super) fn is_full(&self) -> bool {
        let rows = self.lines.len();
        rows >= MOST_ROWS || rows * self.columns.len() >= MOST_VALUES || self.bytes >= MOST_BYTES
    }

    /// Takes the rows, if there are any.
    pub(super) fn take(&mut self) -> Result<Option<RecordBatch>> {
        if self.lines.is_empty() {
            return Ok(None);
        }
        let lines = std::mem::take(&mut self.lines);
        self.bytes = 0;
        let fields = self.schema.fields().iter();
        let arrays: Result<Vec<ArrayRef>> = fields
            .zip(&mut self.columns)
            .map(|(field, column)| {
                let array = column.finish()?;
                if array.data_type() == field.data_type() {
                    return Ok(array);
                }
                read_as(&array, field.data_type()).map_err(|rejected| {
                    let is_wrong =
                        |row: &usize| read_as(&array.slice(*row, 1), field.data_type()).is_err();
                    let line = (0..array.len()).find(is_wrong).and_then(|row| lines.get(row));
                    rejected.at(line.copied().unwrap_or(0), Some(field.name()))
                })
            })
            .collect();
        // A table without columns has rows all the same.
        let options = RecordBatchOptions::new().with_row_count(Some(lines.len()));
        let batch = RecordBatch::try_new_with_options(self.schema.clone(), arrays?, &options)?;
        Ok(Some(batch))
    }
}
