//! `to_char` of times, with PostgreSQL's patterns: `to_char(t, 'YYYY-MM-DD HH24:MI')`.
//!
//! DataFusion's has formats such as `%Y-%m-%d`. A format without a percent sign is a pattern.

use std::fmt::Write as _;
use std::sync::Arc;

use arrow::array::types::TimestampMicrosecondType;
use arrow::array::{ArrayRef, AsArray, StringArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use chrono::{Datelike, NaiveDateTime, Timelike};
use datafusion_common::{Result, ScalarValue, exec_datafusion_err};
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature};
use datafusion_functions::datetime;

use super::duckdb::{TIMESTAMP, date_time};

/// The function.
pub(super) fn function() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(ToChar { others: datetime::to_char() }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ToChar {
    /// DataFusion's, for formats.
    others: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for ToChar {
    fn name(&self) -> &str {
        self.others.name()
    }

    fn aliases(&self) -> &[String] {
        self.others.aliases()
    }

    fn signature(&self) -> &Signature {
        self.others.signature()
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.others.return_type(arguments)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [times, ColumnarValue::Scalar(format)] = &arguments.args[..] else {
            return self.others.invoke_with_args(arguments);
        };
        let is_time = matches!(times.data_type(), DataType::Date32 | DataType::Timestamp(..));
        let pattern = match format.try_as_str().flatten() {
            Some(pattern) if is_time && !pattern.contains('%') => pattern,
            _ => return self.others.invoke_with_args(arguments),
        };
        let pieces = pieces(pattern);
        match times {
            ColumnarValue::Array(times) => Ok(ColumnarValue::Array(written(times, &pieces)?)),
            ColumnarValue::Scalar(time) => {
                let text = written(&time.to_array()?, &pieces)?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&text, 0)?))
            }
        }
    }
}

fn written(times: &ArrayRef, pieces: &[Piece<'_>]) -> Result<ArrayRef> {
    let times = cast(times, &TIMESTAMP)?;
    let texts = times.as_primitive::<TimestampMicrosecondType>().iter().map(|time| {
        let Some(time) = time else { return Ok(None) };
        let time = date_time(time)?;
        let mut text = String::new();
        for piece in pieces {
            piece.write(time, &mut text).map_err(|_| exec_datafusion_err!("out of memory"))?;
        }
        Ok(Some(text))
    });
    Ok(Arc::new(texts.collect::<Result<StringArray>>()?))
}

/// A part of a pattern.
enum Piece<'a> {
    Text(&'a str),
    /// A field, in capitals; as it is written; and whether it is padded.
    Field {
        field: &'static str,
        written: &'a str,
        padded: bool,
    },
}

/// The fields, each before those that it begins with, and the formats that mean the same.
const FIELDS: [(&str, &str); 26] = [
    ("IYYY", "%G"),
    ("YYYY", "%Y"),
    ("YY", "%y"),
    ("MONTH", "%B"),
    ("MON", "%b"),
    ("MM", "%m"),
    ("MI", "%M"),
    ("MS", "%3f"),
    ("US", "%6f"),
    ("DDD", "%j"),
    ("DD", "%d"),
    ("DAY", "%A"),
    ("DY", "%a"),
    ("HH24", "%H"),
    ("HH12", "%I"),
    ("HH", "%I"),
    ("SSSS", ""),
    ("SS", "%S"),
    ("A.M.", "%p"),
    ("P.M.", "%p"),
    ("AM", "%p"),
    ("PM", "%p"),
    ("IW", "%V"),
    ("ID", "%u"),
    ("WW", ""),
    ("Q", ""),
];

fn pieces(pattern: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = pattern;
    let mut padded = true;
    while let Some(first) = rest.chars().next() {
        if let Some(quoted) = rest.strip_prefix('"') {
            let (text, behind) = quoted.split_once('"').unwrap_or((quoted, ""));
            pieces.push(Piece::Text(text));
            rest = behind;
            continue;
        }
        if rest.starts_with("FM") {
            padded = false;
            rest = &rest[2..];
            continue;
        }
        let begins = |field: &str| {
            rest.get(..field.len()).is_some_and(|start| start.eq_ignore_ascii_case(field))
        };
        let end = match FIELDS.iter().find(|(field, _)| begins(field)) {
            Some((field, _)) => {
                pieces.push(Piece::Field { field, written: &rest[..field.len()], padded });
                padded = true;
                field.len()
            }
            None => {
                pieces.push(Piece::Text(&rest[..first.len_utf8()]));
                first.len_utf8()
            }
        };
        rest = &rest[end..];
    }
    pieces
}

impl Piece<'_> {
    fn write(&self, time: NaiveDateTime, to: &mut String) -> std::fmt::Result {
        let (field, written, padded) = match *self {
            Piece::Text(text) => {
                to.push_str(text);
                return Ok(());
            }
            Piece::Field { field, written, padded } => (field, written, padded),
        };
        let text = match field {
            "Q" => (time.month0() / 3 + 1).to_string(),
            "WW" => format!("{:02}", time.ordinal0() / 7 + 1),
            "SSSS" => time.num_seconds_from_midnight().to_string(),
            "A.M." | "P.M." => if time.hour() < 12 { "A.M." } else { "P.M." }.to_owned(),
            _ => {
                let format = FIELDS.iter().find(|(name, _)| *name == field);
                let mut text = String::new();
                write!(text, "{}", time.format(format.map_or("", |(_, format)| format)))?;
                text
            }
        };
        let is_name = text.chars().any(char::is_alphabetic);
        let text = match (is_name, padded) {
            (true, _) => in_case(text, written),
            (false, true) => text,
            (false, false) => match text.trim_start_matches('0') {
                "" => "0".to_owned(),
                short => short.to_owned(),
            },
        };
        match field {
            // PostgreSQL pads full names to the longest one.
            "MONTH" | "DAY" if padded => write!(to, "{text:<9}"),
            _ => to.write_str(&text),
        }
    }
}

/// A name in the case in which its field is written: `MON`, `Mon` or `mon`.
fn in_case(name: String, written: &str) -> String {
    let mut letters = written.chars().filter(|letter| letter.is_alphabetic());
    let is_upper = |letter: Option<char>| letter.is_some_and(char::is_uppercase);
    match (is_upper(letters.next()), is_upper(letters.next())) {
        (true, true) => name.to_uppercase(),
        (true, false) => name,
        _ => name.to_lowercase(),
    }
}

/// The format that reads what a pattern writes; a format is one already.
pub(super) fn as_format(pattern: &str) -> String {
    if pattern.contains('%') || !pattern.contains(|letter: char| letter.is_ascii_alphabetic()) {
        return pattern.to_owned();
    }
    let mut format = String::new();
    for piece in pieces(pattern) {
        match piece {
            Piece::Text(text) => format.push_str(text),
            Piece::Field { field, .. } => {
                let known = FIELDS.iter().find(|(name, _)| *name == field);
                let known = known.map_or("", |(_, format)| *format);
                // Fractions are read together with the point before them.
                match (known, format.ends_with('.')) {
                    ("%3f" | "%6f", true) => {
                        format.pop();
                        format.push_str("%.f");
                    }
                    _ => format.push_str(known),
                }
            }
        }
    }
    format
}
