//! Columns under construction: text goes in, typed arrays come out.

use std::path::Path;

use alluvium::{Refusal, SourceRequest};
use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch, StringBuilder, UInt32Array};
use arrow::compute::{CastOptions, cast_with_options, filter, take};
use arrow::datatypes::{DataType, FieldRef, SchemaRef};
use arrow::error::ArrowError;

use super::record::{Field, Record};

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
    /// column's type, or with a NULL in a column that takes none, is put into `refused` instead.
    pub fn finish(
        &mut self,
        file: &Path,
        refused: &mut Vec<Refusal>,
    ) -> Result<RecordBatch, ArrowError> {
        let rows = self.lines.len();
        let mut kept = vec![true; rows];
        let mut refuse = |row: usize, message: String| {
            if std::mem::replace(&mut kept[row], false) {
                let file = file.to_path_buf();
                refused.push(Refusal { file, line: self.lines[row], message });
            }
        };
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(self.columns.len());
        let defaults = self.defaults.columns();
        let columns = self.columns.iter_mut().zip(self.schema.fields()).zip(defaults);
        for ((column, field), default) in columns {
            if column.field.is_none() {
                arrays.push(take(default, &UInt32Array::from(vec![0; rows]), None)?);
                continue;
            }
            let text = column.values.finish();
            // Safe: what is not a value becomes NULL.
            let values = cast_with_options(&text, field.data_type(), &CastOptions::default())?;
            if values.null_count() > text.null_count() {
                for row in null_rows(&values).filter(|&row| text.is_valid(row)) {
                    let (found, kind) = (quote(text.value(row)), type_name(field.data_type()));
                    refuse(row, format!("{found} is not {kind} (column {})", field.name()));
                }
            }
            if !field.is_nullable() && text.null_count() > 0 {
                for row in null_rows(&text) {
                    refuse(row, format!("there is no value (column {} is NOT NULL)", field.name()));
                }
            }
            arrays.push(values);
        }
        self.lines.clear();
        if !kept.contains(&false) {
            return RecordBatch::try_new(self.schema.clone(), arrays);
        }
        let kept = BooleanArray::from(kept);
        for array in &mut arrays {
            *array = filter(array, &kept)?;
        }
        RecordBatch::try_new(self.schema.clone(), arrays)
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

fn null_rows(array: &dyn Array) -> impl Iterator<Item = usize> {
    (0..array.len()).filter(|&row| array.is_null(row))
}

/// The text in quotes, shortened to what fits a message.
fn quote(text: &str) -> String {
    const LONGEST: usize = 40;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}

/// A type as SQL calls it, with its article.
fn type_name(kind: &DataType) -> String {
    match kind {
        DataType::Boolean => "a BOOLEAN".into(),
        DataType::Int8 => "a TINYINT".into(),
        DataType::Int16 => "a SMALLINT".into(),
        DataType::Int32 => "an INTEGER".into(),
        DataType::Int64 => "a BIGINT".into(),
        DataType::UInt8 => "a TINYINT UNSIGNED".into(),
        DataType::UInt16 => "a SMALLINT UNSIGNED".into(),
        DataType::UInt32 => "an INTEGER UNSIGNED".into(),
        DataType::UInt64 => "a BIGINT UNSIGNED".into(),
        DataType::Float32 => "a REAL".into(),
        DataType::Float64 => "a DOUBLE".into(),
        DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale) => {
            format!("a DECIMAL({precision}, {scale})")
        }
        DataType::Date32 => "a DATE".into(),
        DataType::Time32(_) | DataType::Time64(_) => "a TIME".into(),
        DataType::Timestamp(_, None) => "a TIMESTAMP".into(),
        DataType::Timestamp(_, Some(_)) => "a TIMESTAMP WITH TIME ZONE".into(),
        other => format!("of type {other}"),
    }
}
