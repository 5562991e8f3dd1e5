//! Infers the columns of a CSV file.

use std::path::Path;
use std::sync::Arc;

use alluvium::unstable::texts as read_texts;
use alluvium::{Error, Inferred, Result};
use arrow::array::{Array, ArrayRef, StringBuilder};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, Schema, TimeUnit};

use super::options::Options;
use super::record::{Reading, Record, Records};
use crate::input::{self, SAMPLE, SAMPLE_BYTES, check_columns, failed};

/// The columns of the (first) file that a path names: named by its first line, unless `HEADERS false` is said.
///
/// A column is of the first of BOOLEAN, BIGINT, DOUBLE, DATE and TIMESTAMP that all its values in the first
/// records are values of, or else VARCHAR.
pub fn infer(path: &Path, options: &[(String, String)]) -> Result<Inferred> {
    let read = Options::read(options)?;
    let has_header = read.headers.unwrap_or(true);
    let path = &input::paths(path)?.remove(0);
    let failed = |error| failed("open", path, &error);
    let mut records =
        Records::new(input::open(path, read.compression, None).map_err(failed)?.bytes, &read)
            .map_err(failed)?;
    let mut record = Record::default();
    let mut names: Option<Vec<String>> = None;
    let mut columns: Vec<StringBuilder> = Vec::new();
    let null_value = read.null_value.unwrap_or_default();
    let mut bytes = 0;
    for _ in 0..SAMPLE {
        if bytes >= SAMPLE_BYTES {
            break;
        }
        match records.read(&mut record).map_err(failed)? {
            Reading::End => break,
            Reading::Malformed(problem) if names.is_none() && has_header => {
                return Err(Error::source(format!("{}:1: {problem}", path.display())));
            }
            Reading::Malformed(_) => continue,
            Reading::Record => bytes += record.bytes(),
        }
        let Some(names) = &names else {
            let name_bytes = if has_header { record.bytes() } else { 0 };
            check_columns(path, record.len(), name_bytes)?;
            let fields = 0..record.len();
            names = Some(match has_header {
                true => fields.map(|index| record.field(index).text.trim().to_owned()).collect(),
                false => fields.map(|index| format!("column{index}")).collect(),
            });
            columns.resize_with(record.len(), StringBuilder::new);
            if !has_header {
                push(&mut columns, &record, &null_value);
            }
            continue;
        };
        if record.len() == names.len() && (names.len() == 1 || !record.is_blank()) {
            push(&mut columns, &record, &null_value);
        }
    }
    let Some(names) = names else {
        return Err(Error::source(format!("\"{}\" is empty: it has no columns", path.display())));
    };
    let field = |(name, mut values): (String, StringBuilder)| {
        let values: ArrayRef = Arc::new(values.finish());
        Field::new(name, kind(&values), true)
    };
    let schema =
        Arc::new(Schema::new(names.into_iter().zip(columns).map(field).collect::<Vec<_>>()));
    let mut options = options.to_vec();
    options.push(("HEADERS".to_owned(), has_header.to_string()));
    Ok(Inferred::new(schema, options))
}

fn push(columns: &mut [StringBuilder], record: &Record, null_value: &str) {
    for (index, column) in columns.iter_mut().enumerate() {
        let field = record.field(index);
        match !field.quoted && (field.text == null_value || field.text.is_empty()) {
            true => column.append_null(),
            false => column.append_value(field.text),
        }
    }
}

/// The type of some texts.
fn kind(texts: &ArrayRef) -> DataType {
    use arrow::array::AsArray;
    if texts.null_count() == texts.len() {
        return DataType::Utf8;
    }
    let all = |is: fn(&str) -> bool| texts.as_string::<i32>().iter().flatten().all(is);
    let is = |kind: &DataType| {
        let values = match read_texts::are_read(texts.data_type(), kind) {
            true => read_texts::read(texts, kind, true),
            false => cast_with_options(texts, kind, &CastOptions::default()),
        };
        values.is_ok_and(|values| values.null_count() == texts.null_count())
    };
    // Casts take more for a value than a file would have: 1 for true, a time for its date.
    if all(|text| text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false")) {
        return DataType::Boolean;
    }
    let timestamp = DataType::Timestamp(TimeUnit::Microsecond, None);
    let dates = all(|text| text.len() <= 10);
    for (candidate, fits) in [
        (DataType::Int64, true),
        (DataType::Float64, true),
        (DataType::Date32, dates),
        (timestamp, !dates),
    ] {
        if fits && is(&candidate) {
            return candidate;
        }
    }
    DataType::Utf8
}
