//! Values of Avro's types, as those of a table's columns.

use std::path::Path;
use std::sync::Arc;

use alluvium::{Portion, SourceRequest};
use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, RecordBatch, StringBuilder, new_null_array,
};
use arrow::datatypes::{DataType, Field, FieldRef};
use arrow::error::ArrowError;
use arrow::json::writer::{EncoderOptions, make_encoder};

use crate::fit::{Fit, becomes, type_name};

/// A UUID has so many bytes.
const UUID: i32 = 16;

/// Fits rows to those columns of a table that are `wanted`; a row that does not fit is refused.
pub(super) fn fit(
    rows: &RecordBatch,
    (request, wanted): (&SourceRequest, &[usize]),
    topic: &Path,
) -> Result<Portion, ArrowError> {
    let line = |row: usize| row as u64;
    let mut fit = Fit::new(topic, rows.num_rows(), &line);
    for &column in wanted {
        let field = request.schema.field(column);
        match place(rows, field.name()) {
            Some(place) => {
                let schema = rows.schema();
                let values = values(&schema.fields()[place], rows.column(place), field)?;
                fit.column(field, &values, None)?;
            }
            None => {
                let nulls = new_null_array(field.data_type(), rows.num_rows());
                let is_absent = request.has_default.get(column).is_some_and(|has| *has);
                let absent = is_absent.then(|| BooleanArray::from(vec![true; rows.num_rows()]));
                fit.column(field, &nulls, absent)?;
            }
        }
    }
    fit.finish()
}

/// Why the values of a writer cannot become those of a table's columns, if they cannot.
pub(super) fn problem(
    rows: &RecordBatch,
    (request, wanted): (&SourceRequest, &[usize]),
) -> Option<String> {
    wanted.iter().find_map(|&column| {
        let field = request.schema.field(column);
        let from = rows.schema().field(place(rows, field.name())?).data_type().clone();
        let to = field.data_type();
        // An array of nothing may have any length in no bytes.
        let fits = !has_null(&from) && (from == *to || is_text(&from, to) || becomes(&from, to));
        (!fits).then(|| {
            let kind = type_name(to);
            format!("column {} is {from} in the message, which cannot become {kind}", field.name())
        })
    })
}

/// The column of rows that has a name, as in files: in the same case, or else in any.
fn place(rows: &RecordBatch, name: &str) -> Option<usize> {
    let schema = rows.schema();
    schema.index_of(name).ok().or_else(|| {
        schema.fields().iter().position(|field| field.name().eq_ignore_ascii_case(name))
    })
}

/// Whether values become texts here: those of nested types as JSON, and UUIDs.
fn is_text(from: &DataType, to: &DataType) -> bool {
    *to == DataType::Utf8 && (from.is_nested() || *from == DataType::FixedSizeBinary(UUID))
}

/// Whether a type has one inside of which all values are NULL.
fn has_null(kind: &DataType) -> bool {
    match kind {
        DataType::List(element) | DataType::Map(element, _) => {
            *element.data_type() == DataType::Null || has_null(element.data_type())
        }
        DataType::Struct(fields) => fields.iter().any(|field| has_null(field.data_type())),
        _ => false,
    }
}

/// The values of a column, as what is cast to its type.
fn values(from: &FieldRef, given: &ArrayRef, to: &Field) -> Result<ArrayRef, ArrowError> {
    let kind = given.data_type();
    if !is_text(kind, to.data_type()) {
        return Ok(given.clone());
    }
    let mut texts = StringBuilder::with_capacity(given.len(), 0);
    if *kind == DataType::FixedSizeBinary(UUID) {
        for value in given.as_fixed_size_binary() {
            texts.append_option(value.map(uuid));
        }
        return Ok(Arc::new(texts.finish()));
    }
    let options = EncoderOptions::default().with_explicit_nulls(true);
    let (mut encoder, mut text) = (make_encoder(from, given, &options)?, Vec::new());
    for row in 0..given.len() {
        if given.is_null(row) {
            texts.append_null();
            continue;
        }
        text.clear();
        encoder.encode(row, &mut text);
        // JSON is UTF-8.
        texts.append_value(String::from_utf8_lossy(&text));
    }
    Ok(Arc::new(texts.finish()))
}

fn uuid(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(36);
    for (index, byte) in bytes.iter().enumerate() {
        if [4, 6, 8, 10].contains(&index) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}
