//! Values of a file, fitted to the columns of a table.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use alluvium::unstable::texts;
use alluvium::{Absent, Portion, Refusal};
use arrow::array::{
    Array, ArrayRef, AsArray, BinaryBuilder, BooleanArray, RecordBatch, RecordBatchOptions,
    UInt32Array,
};
use arrow::compute::{CastOptions, can_cast_types, cast, cast_with_options, filter, take};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};

use crate::json::{Text, values};
use crate::parts::in_parts;

/// Some rows of one file, column by column. A row that does not fit the table is refused, for its first problem.
pub struct Fit<'a> {
    file: &'a Path,
    /// The line of each row.
    lines: &'a dyn Fn(usize) -> u64,
    kept: Vec<bool>,
    refused: Vec<Refusal>,
    fields: Vec<Field>,
    columns: Vec<ArrayRef>,
    absent: Vec<Absent>,
}

impl<'a> Fit<'a> {
    /// `rows` rows, and the line that each is on.
    pub fn new(file: &'a Path, rows: usize, lines: &'a dyn Fn(usize) -> u64) -> Self {
        Self {
            file,
            lines,
            kept: vec![true; rows],
            refused: Vec::new(),
            fields: Vec::new(),
            columns: Vec::new(),
            absent: Vec::new(),
        }
    }

    /// A row does not fit.
    pub fn refuse(&mut self, row: usize, message: String) {
        if std::mem::replace(&mut self.kept[row], false) {
            self.refused.push(Refusal::new(self.file, (self.lines)(row), message));
        }
    }

    /// Adds a column, given its values as any type. NOT NULL columns need a value in every row but those where it is
    /// `absent`.
    pub fn column(
        &mut self,
        field: &Field,
        given: &ArrayRef,
        absent: Option<BooleanArray>,
    ) -> Result<(), ArrowError> {
        self.cast_column(field, given, given, absent)
    }

    /// Adds a column, given its values as texts and what is cast in place of these.
    pub fn spelt_column(
        &mut self,
        field: &Field,
        given: &ArrayRef,
        usual: &ArrayRef,
    ) -> Result<(), ArrowError> {
        self.cast_column(field, given, usual, None)
    }

    fn cast_column(
        &mut self,
        field: &Field,
        given: &ArrayRef,
        usual: &ArrayRef,
        absent: Option<BooleanArray>,
    ) -> Result<(), ArrowError> {
        let values = self.cast(field, usual)?;
        if values.null_count() > given.logical_null_count() {
            let options = FormatOptions::default();
            let found = ArrayFormatter::try_new(given, &options)?;
            for row in nulls(&values).filter(|&row| !given.is_null(row)) {
                if self.kept[row] {
                    let (found, kind) =
                        (quote(given, &found.value(row).to_string()), type_name(field.data_type()));
                    self.refuse(row, format!("{found} is not {kind} (column {})", field.name()));
                }
            }
        }
        if !field.is_nullable() && given.logical_null_count() > 0 {
            let is_absent = |row| absent.as_ref().is_some_and(|absent| absent.value(row));
            for row in nulls(given).filter(|&row| !is_absent(row)) {
                self.refuse(
                    row,
                    format!("there is no value (column {} is NOT NULL)", field.name()),
                );
            }
        }
        let column = self.columns.len();
        self.absent.extend(absent.map(|rows| Absent::new(column, rows)));
        self.fields.push(field.clone().with_nullable(true));
        self.columns.push(values);
        Ok(())
    }

    /// The rows that fit, with the columns that were added, and those that were refused. The reader counts the bytes.
    pub fn finish(self) -> Result<Portion, ArrowError> {
        let Self { refused, fields, mut columns, mut absent, .. } = self;
        let count = self.kept.iter().filter(|kept| **kept).count();
        if self.kept.contains(&false) {
            let kept = BooleanArray::from(self.kept);
            for column in &mut columns {
                *column = filter(column, &kept)?;
            }
            for Absent { rows, .. } in &mut absent {
                *rows = filter(rows, &kept)?.as_boolean().clone();
            }
        }
        // There may be no columns at all.
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        let schema = Arc::new(Schema::new(fields));
        let rows = RecordBatch::try_new_with_options(schema, columns, &options)?;
        let mut portion = Portion::new(rows);
        (portion.refused, portion.absent) = (refused, absent);
        Ok(portion)
    }

    /// The values cast to the type of `field`; those that cannot be cast become NULL.
    fn cast(&mut self, field: &Field, given: &ArrayRef) -> Result<ArrayRef, ArrowError> {
        match (given.data_type(), field.data_type()) {
            (from, to) if from == to => Ok(given.clone()),
            (DataType::Utf8, DataType::Binary) => Ok(bytes(given)),
            (DataType::Utf8, to) if to.is_nested() => nested(field, given),
            (from, to) if texts::are_read(from, to) => cast(&texts::read(given, to, true)?, to),
            (_, to) => cast_with_options(given, to, &CastOptions::default()),
        }
    }
}

fn nulls(array: &dyn Array) -> impl Iterator<Item = usize> {
    let nulls = array.logical_nulls();
    (0..array.len()).filter(move |&row| nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)))
}

/// Text as bytes: hexadecimal digits after `\x`, anything else as it stands.
fn bytes(text: &ArrayRef) -> ArrayRef {
    let mut bytes = BinaryBuilder::with_capacity(text.len(), 0);
    for text in text.as_string::<i32>() {
        match (text, text.and_then(|text| text.strip_prefix("\\x"))) {
            (Some(_), Some(digits)) => bytes.append_option(unhex(digits)),
            (text, _) => bytes.append_option(text),
        }
    }
    Arc::new(bytes.finish())
}

fn unhex(digits: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let (pairs, []) = digits.as_bytes().as_chunks::<2>() else { return None };
    pairs.iter().map(|&[high, low]| Some((digit(high)? * 16 + digit(low)?) as u8)).collect()
}

/// Text as lists, structs and maps: each value is JSON. Other text becomes NULL.
fn nested(field: &Field, text: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let opening = match field.data_type() {
        DataType::Struct(_) | DataType::Map(..) => '{',
        _ => '[',
    };
    let texts = text.as_string::<i32>();
    let may_be_json = |&row: &usize| {
        texts.is_valid(row) && texts.value(row).trim_ascii_start().starts_with(opening)
    };
    let rows: Vec<usize> = (0..texts.len()).filter(may_be_json).collect();
    let field = field.clone().with_nullable(true);
    let mut decode = |range: Range<usize>| {
        let text = |&row: &usize| Text { text: texts.value(row).as_bytes(), values: 1 };
        values(&field, rows[range].iter().map(text))
    };
    // The decoded values, after one that is NULL, and where the value of each row is among them.
    let mut decoded = vec![arrow::array::new_null_array(field.data_type(), 1)];
    let mut places = vec![0; texts.len()];
    let mut place = 0;
    in_parts(0..rows.len(), &mut decode, &mut |range, values| {
        if let Ok(values) = values {
            decoded.push(values);
            for &row in &rows[range] {
                place += 1;
                places[row] = place;
            }
        }
    });
    let decoded: Vec<&dyn Array> = decoded.iter().map(|values| values.as_ref()).collect();
    take(&arrow::compute::concat(&decoded)?, &UInt32Array::from(places), None)
}

/// A value as messages show it, shortened to what fits one; text in quotes.
fn quote(given: &ArrayRef, text: &str) -> String {
    const LONGEST: usize = 40;
    let (shown, rest) = match text.char_indices().nth(LONGEST) {
        Some((end, _)) => (&text[..end], "…"),
        None => (text, ""),
    };
    match given.data_type() {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => format!("{shown:?}{rest}"),
        _ => format!("{shown}{rest}"),
    }
}

/// Texts as values of a type; what is none becomes NULL.
pub fn cast_texts(texts: &ArrayRef, kind: &DataType) -> Result<ArrayRef, ArrowError> {
    match texts::are_read(texts.data_type(), kind) {
        true => texts::read(texts, kind, true),
        false => cast_with_options(texts, kind, &CastOptions::default()),
    }
}

/// Whether values of a file's type can be values of a column's. A number is no date, time or bytes, though arrow
/// would make it one.
pub fn becomes(from: &DataType, to: &DataType) -> bool {
    let is_other = to.is_temporal() || matches!(to, DataType::Binary);
    // The library reads intervals without their months.
    let is_cut = matches!(from, DataType::Interval(_));
    can_cast_types(from, to) && !(from.is_numeric() && is_other) && !is_cut
}

/// A type as SQL calls it, with its article.
pub fn type_name(kind: &DataType) -> String {
    let name = sql_name(kind);
    let article = if name.starts_with('I') { "an" } else { "a" };
    format!("{article} {name}")
}

fn sql_name(kind: &DataType) -> String {
    match kind {
        DataType::Boolean => "BOOLEAN".into(),
        DataType::Int8 => "TINYINT".into(),
        DataType::Int16 => "SMALLINT".into(),
        DataType::Int32 => "INTEGER".into(),
        DataType::Int64 => "BIGINT".into(),
        DataType::UInt8 => "TINYINT UNSIGNED".into(),
        DataType::UInt16 => "SMALLINT UNSIGNED".into(),
        DataType::UInt32 => "INTEGER UNSIGNED".into(),
        DataType::UInt64 => "BIGINT UNSIGNED".into(),
        DataType::Float32 => "REAL".into(),
        DataType::Float64 => "DOUBLE".into(),
        DataType::Utf8 => "VARCHAR".into(),
        DataType::Binary => "BYTEA".into(),
        DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale) => {
            format!("DECIMAL({precision}, {scale})")
        }
        DataType::Date32 => "DATE".into(),
        DataType::Time32(_) | DataType::Time64(_) => "TIME".into(),
        DataType::Timestamp(_, None) => "TIMESTAMP".into(),
        DataType::Timestamp(_, Some(_)) => "TIMESTAMP WITH TIME ZONE".into(),
        DataType::List(element) => format!("{}[]", sql_name(element.data_type())),
        DataType::Struct(fields) => {
            let fields = fields.iter().map(|field| {
                let (name, kind) = (field.name(), sql_name(field.data_type()));
                format!("{name} {kind}")
            });
            format!("STRUCT({})", fields.collect::<Vec<_>>().join(", "))
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(entry) => {
                let parts = entry.iter().map(|part| sql_name(part.data_type()));
                format!("MAP({})", parts.collect::<Vec<_>>().join(", "))
            }
            other => other.to_string(),
        },
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::Fields;

    use super::*;

    #[test]
    fn types_have_their_names_in_sql() {
        let field = |name, kind| Field::new(name, kind, true);
        let fields = vec![field("a", DataType::Int32), field("b", DataType::Utf8)];
        let record = DataType::Struct(Fields::from(fields));
        let list = DataType::List(Arc::new(field("item", record.clone())));
        let entries = Field::new_struct(
            "entries",
            vec![field("key", DataType::Utf8), field("value", DataType::Date32)],
            false,
        );
        for (kind, expected) in [
            (DataType::Int32, "an INTEGER"),
            (DataType::UInt16, "a SMALLINT UNSIGNED"),
            (record, "a STRUCT(a INTEGER, b VARCHAR)"),
            (list, "a STRUCT(a INTEGER, b VARCHAR)[]"),
            (DataType::Map(Arc::new(entries), false), "a MAP(VARCHAR, DATE)"),
        ] {
            assert_eq!(type_name(&kind), expected);
        }
    }
}
