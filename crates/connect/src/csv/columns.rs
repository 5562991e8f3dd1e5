//! Columns under construction: text goes in, typed arrays come out.

use std::path::Path;
use std::sync::Arc;

use alluvium::{Portion, SourceRequest};
use arrow::array::{ArrayRef, RecordBatch, StringBuilder};
use arrow::datatypes::{DataType, FieldRef, SchemaRef};
use arrow::error::ArrowError;

use super::record::{Field, Record};
use crate::fit::Fit;

/// The columns of a table, filled from records.
pub struct Columns {
    schema: SchemaRef,
    /// One row.
    defaults: RecordBatch,
    columns: Vec<Column>,
    /// What an unquoted field says for NULL.
    null_value: String,
    /// The line of each row.
    lines: Vec<u64>,
}

struct Column {
    /// The field of the record that holds its values; without one it has the default.
    field: Option<usize>,
    /// Whether an empty field is a value; of all other types it is NULL.
    is_text: bool,
    values: StringBuilder,
}

impl Columns {
    /// The columns that are requested, each from the field of a record that `fields` says, or else its
    /// default.
    pub fn new(
        request: &SourceRequest,
        fields: &[Option<usize>],
        null_value: Option<&str>,
    ) -> Self {
        let schema = request.schema.clone();
        let column = |(field, &index): (&FieldRef, &Option<usize>)| Column {
            field: index,
            is_text: is_text(field.data_type()),
            values: StringBuilder::new(),
        };
        let columns = schema.fields().iter().zip(fields).map(column).collect();
        Self {
            schema,
            defaults: request.defaults.clone(),
            columns,
            null_value: null_value.unwrap_or_default().into(),
            lines: Vec::new(),
        }
    }

    /// Takes in a row. The record must have every field that a column is filled from.
    pub fn push(&mut self, record: &Record) {
        for column in &mut self.columns {
            let Some(index) = column.field else { continue };
            let field = record.field(index);
            if column.is_null(field, &self.null_value) {
                column.values.append_null();
            } else {
                column.values.append_value(field.text);
            }
        }
        self.lines.push(record.line());
    }

    /// Gives out the rows taken in, and is empty again. A row with text that is not a value of its
    /// column's type, or with a NULL in a column that takes none, is refused instead.
    pub fn finish(&mut self, file: &Path) -> Result<Portion, ArrowError> {
        let lines = std::mem::take(&mut self.lines);
        let line = |row: usize| lines[row];
        let mut fit = Fit::new(file, lines.len(), &line);
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(self.columns.len());
        let defaults = self.defaults.columns();
        let columns = self.columns.iter_mut().zip(self.schema.fields()).zip(defaults);
        for (number, ((column, field), default)) in columns.enumerate() {
            arrays.push(match column.field {
                None => fit.default(number, default)?,
                Some(_) => {
                    let text: ArrayRef = Arc::new(column.values.finish());
                    fit.column(field, &text)?
                }
            });
        }
        fit.finish(&self.schema, arrays)
    }
}

impl Column {
    fn is_null(&self, field: Field<'_>, null_value: &str) -> bool {
        (!field.quoted && field.text == null_value) || (field.text.is_empty() && !self.is_text)
    }
}

fn is_text(kind: &DataType) -> bool {
    use DataType::{Binary, BinaryView, LargeBinary, LargeUtf8, Utf8, Utf8View};
    matches!(kind, Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView)
}
