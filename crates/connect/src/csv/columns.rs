//! Columns under construction: text goes in, typed arrays come out.

use std::path::Path;
use std::sync::Arc;

use alluvium::{Portion, SourceRequest};
use arrow::array::{ArrayRef, StringBuilder};
use arrow::datatypes::{DataType, FieldRef};
use arrow::error::ArrowError;

use super::options::Options;
use super::record::{Field, Record};
use super::spelling::Spelling;
use crate::fit::Fit;

/// The columns of a table, filled from records.
pub struct Columns {
    columns: Vec<Column>,
    /// The texts of unquoted fields that are NULL.
    null_values: Vec<String>,
    spelling: Spelling,
    /// The line of each row.
    lines: Vec<u64>,
}

struct Column {
    definition: FieldRef,
    /// The field of the record that holds its values.
    field: usize,
    /// Whether an empty field is a value; in columns of other types it is NULL.
    is_text: bool,
    values: StringBuilder,
}

impl Columns {
    /// The columns that are requested and that a record has: each from the field that `fields` says.
    pub fn new(request: &SourceRequest, fields: &[Option<usize>], options: &Options) -> Self {
        let column = |(definition, &field): (&FieldRef, &Option<usize>)| {
            Some(Column {
                definition: definition.clone(),
                field: field?,
                is_text: is_text(definition.data_type()),
                values: StringBuilder::new(),
            })
        };
        Self {
            columns: request.schema.fields().iter().zip(fields).filter_map(column).collect(),
            null_values: options.null_values(),
            spelling: options.spelling.clone(),
            lines: Vec::new(),
        }
    }

    /// Takes in a row. A field that the record does not have is NULL.
    pub fn push(&mut self, record: &Record) {
        for column in &mut self.columns {
            if column.field >= record.len() {
                column.values.append_null();
                continue;
            }
            let field = record.field(column.field);
            if column.is_null(field, &self.null_values) {
                column.values.append_null();
            } else {
                column.values.append_value(field.text);
            }
        }
        self.lines.push(record.line());
    }

    /// Returns the rows taken in, and is empty again. A row with text that is not a value of its column's type, or with a
    /// NULL in a NOT NULL column, is refused instead.
    pub fn finish(&mut self, file: &Path) -> Result<Portion, ArrowError> {
        let lines = std::mem::take(&mut self.lines);
        let line = |row: usize| lines[row];
        let mut fit = Fit::new(file, lines.len(), &line);
        for column in &mut self.columns {
            let text: ArrayRef = Arc::new(column.values.finish());
            match self.spelling.usual(&text, column.definition.data_type())? {
                Some(usual) => fit.spelt_column(&column.definition, &text, &usual)?,
                None => fit.column(&column.definition, &text, None)?,
            }
        }
        fit.finish()
    }
}

impl Column {
    fn is_null(&self, field: Field<'_>, null_values: &[String]) -> bool {
        (!field.quoted && null_values.iter().any(|null| null == field.text))
            || (field.text.is_empty() && !self.is_text)
    }
}

fn is_text(kind: &DataType) -> bool {
    use DataType::{Binary, BinaryView, LargeBinary, LargeUtf8, Utf8, Utf8View};
    matches!(kind, Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView)
}
