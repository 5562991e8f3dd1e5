//! Rows as bytes of the format that a client wants.

use std::collections::HashSet;
use std::sync::Arc;

use alluvium::Error;
use alluvium::unstable::type_name;
use alluvium_connect::CsvText;
use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::ipc::writer::StreamWriter;
use arrow::json::writer::{JsonArray, LineDelimited};
use arrow::json::{Writer, WriterBuilder};
use axum::http::{HeaderMap, StatusCode};
use bytes::Bytes;
use serde_json::{Value, json};

use super::media::{self, Choices};
use super::problem::Problem;

/// A format of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// An object with the columns, and an array of an object for each row.
    Json,
    /// An object on each line.
    Lines,
    /// A header and a line for each row.
    Csv,
    /// A stream of Arrow's IPC.
    Arrow,
}

impl Format {
    const ALL: &Choices<Self> = &[
        (Self::Json, &[media::JSON]),
        (Self::Lines, &[media::LINES, media::OTHER_LINES[0], media::OTHER_LINES[1]]),
        (Self::Csv, &[media::CSV]),
        (Self::Arrow, &[media::ARROW]),
    ];

    /// The format that a client wants.
    pub(super) fn wanted(headers: &HeaderMap) -> Result<Self, Problem> {
        media::wanted(headers, Self::ALL)
    }

    /// Its media type.
    pub(super) fn media_type(self) -> &'static str {
        match self {
            Self::Json => media::JSON,
            Self::Lines => media::LINES,
            Self::Csv => "text/csv; charset=utf-8; header=present",
            Self::Arrow => media::ARROW,
        }
    }
}

/// Encodes rows into a buffer, from which it is taken as it is sent.
pub(super) struct Encoder {
    text: Text,
    /// The columns, if they have other names in this format.
    renamed: Option<SchemaRef>,
}

/// The text of rows in a format.
enum Text {
    Json(Writer<Vec<u8>, JsonArray>),
    Lines(Writer<Vec<u8>, LineDelimited>),
    Csv(CsvText, Vec<u8>),
    Arrow(Box<StreamWriter<Vec<u8>>>),
}

impl Encoder {
    /// An encoder of rows with these columns; the buffer has what stands before them.
    pub(super) fn new(format: Format, schema: &SchemaRef) -> Result<Self, Problem> {
        let renamed = match format {
            Format::Json | Format::Lines => told_apart(schema),
            Format::Csv | Format::Arrow => None,
        };
        let schema = renamed.as_ref().unwrap_or(schema);
        let text = match format {
            Format::Json => {
                let mut out = Vec::new();
                out.extend_from_slice(b"{\"columns\":");
                out.extend_from_slice(columns(schema).to_string().as_bytes());
                out.extend_from_slice(b",\"rows\":");
                Text::Json(WriterBuilder::new().with_explicit_nulls(true).build(out))
            }
            Format::Lines => {
                Text::Lines(WriterBuilder::new().with_explicit_nulls(true).build(Vec::new()))
            }
            Format::Csv => {
                let (csv, mut out) = (CsvText::with_null(""), Vec::new());
                csv.write_header(schema, &mut out).map_err(|error| unwritten(error.into()))?;
                Text::Csv(csv, out)
            }
            Format::Arrow => {
                let writer = StreamWriter::try_new(Vec::new(), schema).map_err(unwritten)?;
                Text::Arrow(Box::new(writer))
            }
        };
        Ok(Self { text, renamed })
    }

    /// Adds rows.
    pub(super) fn write(&mut self, rows: &RecordBatch) -> Result<(), Problem> {
        let renamed;
        let rows = match &self.renamed {
            Some(schema) => {
                let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
                let columns = rows.columns().to_vec();
                renamed = RecordBatch::try_new_with_options(schema.clone(), columns, &options)
                    .map_err(unwritten)?;
                &renamed
            }
            None => rows,
        };
        let written = match &mut self.text {
            Text::Json(writer) => writer.write(rows),
            Text::Lines(writer) => writer.write(rows),
            Text::Csv(csv, out) => csv.write_rows(rows, out).map_err(ArrowError::from),
            Text::Arrow(writer) => writer.write(rows),
        };
        written.map_err(unwritten)
    }

    /// Adds what stands after the rows.
    pub(super) fn finish(&mut self) -> Result<(), Problem> {
        let finished = match &mut self.text {
            Text::Json(writer) => writer.finish().map(|()| writer.get_mut().push(b'}')),
            Text::Lines(writer) => writer.finish(),
            Text::Csv(..) => Ok(()),
            Text::Arrow(writer) => writer.finish(),
        };
        finished.map_err(unwritten)
    }

    /// Says after some rows that there was an error. Returns whether the format can say it; otherwise the answer has to be cut off.
    pub(super) fn fail(&mut self, problem: &Problem) -> bool {
        let problem = json!({ "error": problem.to_json() }).to_string();
        match &mut self.text {
            Text::Json(writer) => {
                let is_closed = writer.finish().is_ok();
                let out = writer.get_mut();
                out.push(b',');
                // Without the brace that begins the object.
                out.extend_from_slice(&problem.as_bytes()[1..]);
                is_closed
            }
            Text::Lines(writer) => {
                let out = writer.get_mut();
                out.extend_from_slice(problem.as_bytes());
                out.push(b'\n');
                false
            }
            Text::Csv(..) | Text::Arrow(_) => false,
        }
    }

    /// The bytes that are in the buffer.
    pub(super) fn len(&self) -> usize {
        match &self.text {
            Text::Json(writer) => writer.get_ref().len(),
            Text::Lines(writer) => writer.get_ref().len(),
            Text::Csv(_, out) => out.len(),
            Text::Arrow(writer) => writer.get_ref().len(),
        }
    }

    /// Takes the bytes out of the buffer.
    pub(super) fn take(&mut self) -> Bytes {
        std::mem::take(match &mut self.text {
            Text::Json(writer) => writer.get_mut(),
            Text::Lines(writer) => writer.get_mut(),
            Text::Csv(_, out) => out,
            Text::Arrow(writer) => writer.get_mut(),
        })
        .into()
    }
}

/// Columns of other names where a column before has the same one, since members of an object have names of their own; `None` if no two
/// names are the same. Of several columns `n` the second is `n_2`, or has the next number that is free.
fn told_apart(schema: &SchemaRef) -> Option<SchemaRef> {
    let mut names: HashSet<String> = schema.fields().iter().map(|it| it.name().clone()).collect();
    if names.len() == schema.fields().len() {
        return None;
    }
    let mut seen = HashSet::new();
    let fields = schema.fields().iter().map(|field| {
        if seen.insert(field.name()) {
            return field.clone();
        }
        let mut others = (2_u64..).map(|number| format!("{}_{number}", field.name()));
        let name = others.find(|name| names.insert(name.clone()));
        Arc::new(field.as_ref().clone().with_name(name.expect("some number is free")))
    });
    Some(Arc::new(Schema::new(fields.collect::<Vec<_>>())))
}

/// Names and types of columns.
fn columns(schema: &SchemaRef) -> Value {
    let column = |(name, data_type): (&String, String)| json!({ "name": name, "type": data_type });
    let fields = schema.fields().iter();
    fields.map(|field| column((field.name(), type_name(field.data_type())))).collect()
}

fn unwritten(error: ArrowError) -> Problem {
    let error = Error::from(error);
    Problem::new(
        StatusCode::BAD_REQUEST,
        format!("the rows cannot be written in this format: {error}"),
    )
    .with("sqlstate", error.sqlstate().as_str().into())
}
