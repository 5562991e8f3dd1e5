//! Infers the columns of a CSV file.

use std::path::Path;
use std::sync::Arc;

use alluvium::{Error, Inferred, Result};
use arrow::array::{Array, ArrayRef, AsArray, StringArray, StringBuilder};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit};
use arrow::error::ArrowError;

use super::dialect::Dialect;
use super::header;
use super::options::{Options, usual};
use super::record::{Reading, Record, Records};
use super::spelling::Spelling;
use super::{dialect, sniff};
use crate::fit::{cast_texts, type_name};
use crate::input::{self, check_columns, failed};

/// The columns of a file: named by its first line, unless `HEADERS false` is said, or the first
/// line has values of the others' types.
///
/// A column is of the first of BOOLEAN, BIGINT, DOUBLE, DATE and TIMESTAMP that all its values in the first
/// records are values of, or else VARCHAR.
pub fn infer(path: &Path, options: &[(String, String)]) -> Result<Inferred> {
    let read = Options::read(options)?;
    let found = Found::read(path, &read)?;
    let (schema, has_header, remarks) = match read.schema() {
        Some(given) => {
            let has_header = found.has_given_header(path, &given, &read)?;
            (given, has_header, Vec::new())
        }
        None => found.columns(&read),
    };
    let mut options = options.to_vec();
    options.push(("HEADERS".to_owned(), has_header.to_string()));
    let dialect = found.dialect.options();
    options.extend(dialect.into_iter().map(|(name, value)| (name.to_owned(), value)));
    let mut inferred = Inferred::new(schema, options);
    inferred.remarks = remarks;
    Ok(inferred)
}

/// What is known of a file's columns if these are given.
fn known(given: Option<&SchemaRef>) -> sniff::Columns<'_> {
    given.map_or(sniff::Columns::Unknown, sniff::Columns::Known)
}

/// Why a column is of texts, if less than half of its values are of no other type.
fn remark(kind: &DataType, texts: &ArrayRef, spelling: &Spelling) -> Option<String> {
    let count = texts.len() - texts.null_count();
    if *kind != DataType::Utf8 || count == 0 {
        return (count == 0).then(|| "there is no value".to_owned());
    }
    let candidates = candidates(texts, spelling).into_iter().filter_map(|candidate| {
        let values = values(texts, &candidate, spelling).ok()?;
        Some((values.null_count() - texts.null_count(), candidate, values))
    });
    let (wrong, kind, values) = candidates.min_by_key(|(wrong, ..)| *wrong)?;
    let first = (0..texts.len()).find(|row| texts.is_valid(*row) && values.is_null(*row))?;
    let text: String = texts.as_string::<i32>().value(first).chars().take(40).collect();
    let kind = type_name(&kind);
    let are = if wrong == 1 { "is" } else { "are" };
    (wrong * 2 < count)
        .then(|| format!("{wrong} of {count} values {are} not {kind}, the first {text:?}"))
}

/// The first records of a file.
struct Found {
    dialect: Dialect,
    /// The fields of the first record, and the names that they are if it is a header.
    first: Vec<Option<String>>,
    names: Vec<String>,
    /// The fields of the others that have as many.
    columns: Vec<ArrayRef>,
}

impl Found {
    fn read(path: &Path, options: &Options) -> Result<Self> {
        let failed = |error| failed("open", path, &error);
        let given = options.schema();
        let input = input::open(path, options.compression, None).map_err(failed)?;
        let dialect = match input.lasts {
            true => dialect(path, options, known(given.as_ref()))?,
            false => options.given.or(usual(path)),
        };
        let mut records = Records::new(input.bytes, &dialect, options.skip).map_err(failed)?;
        let mut record = Record::default();
        let nulls = options.null_values();
        let mut first: Option<(Vec<Option<String>>, Vec<String>)> = None;
        let mut columns: Vec<StringBuilder> = Vec::new();
        let (mut bytes, mut others) = (0, Others::default());
        for _ in 0..options.sample.rows {
            if bytes >= options.sample.bytes {
                break;
            }
            match records.read(&mut record).map_err(failed)? {
                Reading::End => break,
                Reading::Malformed(problem)
                    if first.is_none() && options.headers != Some(false) =>
                {
                    return Err(Error::source(format!(
                        "{}:{}: {problem}",
                        path.display(),
                        record.line()
                    )));
                }
                Reading::Malformed(_) => continue,
                Reading::Record => bytes += record.bytes(),
            }
            let Some((fields, _)) = &first else {
                let is_header = options.headers != Some(false);
                check_columns(path, record.len(), if is_header { record.bytes() } else { 0 })?;
                others.line = record.line();
                let fields = (0..record.len()).map(|index| value(&record, index, &nulls));
                let fields = fields.map(|field| field.map(str::to_owned)).collect();
                columns.resize_with(record.len(), StringBuilder::new);
                first = Some((fields, header::numbered(&header::written(&record))));
                continue;
            };
            let is_blank = record.is_blank() && fields.len() != 1;
            if record.len() == fields.len()
                || options.padding && record.len() < fields.len() && !is_blank
            {
                for (index, column) in columns.iter_mut().enumerate() {
                    column.append_option(
                        (index < record.len()).then(|| value(&record, index, &nulls)).flatten(),
                    );
                }
                others.fitting += 1;
            } else if !is_blank {
                others.see(record.len());
            }
        }
        let Some((first, names)) = first else {
            return Err(Error::source(format!(
                "\"{}\" is empty: it has no columns",
                path.display()
            )));
        };
        others.check(path, first.len())?;
        let columns = columns.into_iter().map(|mut values| Arc::new(values.finish()) as ArrayRef);
        Ok(Self { dialect, first, names, columns: columns.collect() })
    }

    /// The columns that are found, whether the first record names them, and why they are of their types.
    fn columns(&self, options: &Options) -> (SchemaRef, bool, Vec<Option<String>>) {
        let spelling = &options.spelling;
        let kinds = |values: &[ArrayRef]| -> Vec<DataType> {
            values.iter().map(|values| kind(values, spelling)).collect()
        };
        let of_others = kinds(&self.columns);
        let has_header = options.headers.unwrap_or_else(|| self.has_header(&of_others, spelling));
        let (names, kinds, values) = match has_header {
            true => (self.names.clone(), of_others, self.columns.clone()),
            false => {
                let numbered = (0..self.first.len()).map(|index| format!("column{index}"));
                let values = self.with_first();
                (numbered.collect(), kinds(&values), values)
            }
        };
        let remarks = kinds.iter().zip(&values);
        let remarks = remarks.map(|(kind, values)| remark(kind, values, spelling)).collect();
        let fields = names.into_iter().zip(kinds);
        let fields = fields.map(|(name, kind)| Field::new(name, kind, true));
        (Arc::new(Schema::new(fields.collect::<Vec<_>>())), has_header, remarks)
    }

    /// Whether the first record names columns that are given: it has their names, or a text that is no value of one.
    fn has_given_header(&self, path: &Path, given: &SchemaRef, options: &Options) -> Result<bool> {
        let (found, expected) = (self.first.len(), given.fields().len());
        if found != expected {
            return Err(Error::source(format!(
                "\"{}\" has {found} columns with {}, and COLUMNS {expected}",
                path.display(),
                self.dialect
            )));
        }
        let columns = || self.first.iter().zip(given.fields());
        let is_name = |(text, field): (&Option<String>, &FieldRef)| {
            text.as_ref().is_some_and(|text| text.trim().eq_ignore_ascii_case(field.name()))
        };
        let is_no_value = |(text, field): (&Option<String>, &FieldRef)| {
            let kind = field.data_type();
            let Some(text) = text.as_ref().filter(|_| !kind.is_nested()) else { return false };
            let text: ArrayRef = Arc::new(StringArray::from(vec![text.as_str()]));
            values(&text, kind, &options.spelling).is_ok_and(|value| value.is_null(0))
        };
        let is_header = || columns().all(is_name) || columns().any(is_no_value);
        Ok(options.headers.unwrap_or_else(is_header))
    }

    /// Whether the first record names the columns: it has a text where the others have values of another type, or nothing
    /// tells it from the others and has no type either.
    fn has_header(&self, kinds: &[DataType], spelling: &Spelling) -> bool {
        let mut fits = false;
        for (field, column) in self.first.iter().zip(kinds) {
            let Some(field) = field.as_ref().filter(|field| !is_missing(field)) else { continue };
            let text: ArrayRef = Arc::new(StringArray::from(vec![field.as_str()]));
            let is_text = kind(&text, spelling) == DataType::Utf8;
            match self.columns.first().is_none_or(|values| values.is_empty()) {
                true => fits |= !is_text,
                false if *column == DataType::Utf8 => {}
                false if is_text => return true,
                false => fits = true,
            }
        }
        !fits
    }

    /// The columns, each after the field of the first record.
    fn with_first(&self) -> Vec<ArrayRef> {
        let all = |(first, column): (&Option<String>, &ArrayRef)| {
            let first = std::iter::once(first.as_deref());
            Arc::new(first.chain(column.as_string::<i32>()).collect::<StringArray>()) as ArrayRef
        };
        self.first.iter().zip(&self.columns).map(all).collect()
    }
}

/// The records that have not as many fields as the first.
#[derive(Default)]
struct Others {
    /// The line of the first.
    line: u64,
    fitting: usize,
    /// How many have as many fields as the first of them.
    width: usize,
    count: usize,
}

impl Others {
    fn see(&mut self, width: usize) {
        if self.count == 0 {
            self.width = width;
        }
        self.count += usize::from(self.width == width);
    }

    /// Fails if most records have more or fewer fields than the first one.
    fn check(&self, path: &Path, width: usize) -> Result<()> {
        match self.count > 1 && self.count > self.fitting {
            true => Err(Error::source(format!(
                "{}:{}: there are {width} fields, and {} in most of the records after it: SKIP passes over lines before \
                 the table, and COMMENT over lines that begin with a character",
                path.display(),
                self.line,
                self.width
            ))),
            false => Ok(()),
        }
    }
}

/// The text of a field, if it is not NULL.
fn value<'a>(record: &'a Record, index: usize, nulls: &[String]) -> Option<&'a str> {
    let field = record.field(index);
    let is_null = field.text.is_empty() || nulls.iter().any(|null| null == field.text);
    (field.quoted || !is_null).then_some(field.text)
}

/// Whether a field of the first record says nothing of the others.
fn is_missing(text: &str) -> bool {
    const MISSING: [&str; 6] = ["NA", "N/A", "NULL", "None", "NaN", "\\N"];
    text.is_empty() || MISSING.iter().any(|missing| text.eq_ignore_ascii_case(missing))
}

/// The type of some texts.
fn kind(texts: &ArrayRef, spelling: &Spelling) -> DataType {
    if texts.null_count() == texts.len() {
        return DataType::Utf8;
    }
    let all = |is: fn(&str) -> bool| texts.as_string::<i32>().iter().flatten().all(is);
    let is = |kind: &DataType| {
        values(texts, kind, spelling).is_ok_and(|values| values.null_count() == texts.null_count())
    };
    // Casts take more for a value than a file would have: 1 for true, a time for its date.
    if all(|text| text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false")) {
        return DataType::Boolean;
    }
    candidates(texts, spelling).into_iter().find(is).unwrap_or(DataType::Utf8)
}

/// The types that texts may have, but BOOLEAN.
fn candidates(texts: &ArrayRef, spelling: &Spelling) -> Vec<DataType> {
    let mut short = texts.as_string::<i32>().iter().flatten().map(|text| text.len() <= 10);
    let are_short = short.all(|is_short| is_short);
    let mut candidates = vec![DataType::Int64, DataType::Float64];
    if are_short || spelling.has_date_format() {
        candidates.push(DataType::Date32);
    }
    if !are_short || spelling.has_timestamp_format() {
        candidates.push(DataType::Timestamp(TimeUnit::Microsecond, None));
    }
    candidates
}

/// Texts as values of a type; what is none becomes NULL.
fn values(
    texts: &ArrayRef,
    kind: &DataType,
    spelling: &Spelling,
) -> std::result::Result<ArrayRef, ArrowError> {
    cast_texts(spelling.usual(texts, kind)?.as_ref().unwrap_or(texts), kind)
}
