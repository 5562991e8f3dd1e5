//! Rows as bytes of the format that a client wants.

use alluvium::Error;
use alluvium::unstable::type_name;
use alluvium_connect::CsvText;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
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
pub(super) enum Encoder {
    Json(Writer<Vec<u8>, JsonArray>),
    Lines(Writer<Vec<u8>, LineDelimited>),
    Csv(CsvText, Vec<u8>),
    Arrow(Box<StreamWriter<Vec<u8>>>),
}

impl Encoder {
    /// An encoder of rows with these columns; the buffer has what stands before them.
    pub(super) fn new(format: Format, schema: &SchemaRef) -> Result<Self, Problem> {
        Ok(match format {
            Format::Json => {
                let mut out = Vec::new();
                out.extend_from_slice(b"{\"columns\":");
                out.extend_from_slice(columns(schema).to_string().as_bytes());
                out.extend_from_slice(b",\"rows\":");
                Self::Json(WriterBuilder::new().with_explicit_nulls(true).build(out))
            }
            Format::Lines => {
                Self::Lines(WriterBuilder::new().with_explicit_nulls(true).build(Vec::new()))
            }
            Format::Csv => {
                let (csv, mut out) = (CsvText::with_null(""), Vec::new());
                csv.write_header(schema, &mut out).map_err(|error| unwritten(error.into()))?;
                Self::Csv(csv, out)
            }
            Format::Arrow => {
                let writer = StreamWriter::try_new(Vec::new(), schema).map_err(unwritten)?;
                Self::Arrow(Box::new(writer))
            }
        })
    }

    /// Adds rows.
    pub(super) fn write(&mut self, rows: &RecordBatch) -> Result<(), Problem> {
        let written = match self {
            Self::Json(writer) => writer.write(rows),
            Self::Lines(writer) => writer.write(rows),
            Self::Csv(csv, out) => csv.write_rows(rows, out).map_err(ArrowError::from),
            Self::Arrow(writer) => writer.write(rows),
        };
        written.map_err(unwritten)
    }

    /// Adds what stands after the rows.
    pub(super) fn finish(&mut self) -> Result<(), Problem> {
        let finished = match self {
            Self::Json(writer) => writer.finish().map(|()| writer.get_mut().push(b'}')),
            Self::Lines(writer) => writer.finish(),
            Self::Csv(..) => Ok(()),
            Self::Arrow(writer) => writer.finish(),
        };
        finished.map_err(unwritten)
    }

    /// Says after some rows that there was an error. Returns whether the format can say it; otherwise the answer has to be cut off.
    pub(super) fn fail(&mut self, problem: &Problem) -> bool {
        let problem = json!({ "error": problem.to_json() }).to_string();
        match self {
            Self::Json(writer) => {
                let is_closed = writer.finish().is_ok();
                let out = writer.get_mut();
                out.push(b',');
                // Without the brace that begins the object.
                out.extend_from_slice(&problem.as_bytes()[1..]);
                is_closed
            }
            Self::Lines(writer) => {
                let out = writer.get_mut();
                out.extend_from_slice(problem.as_bytes());
                out.push(b'\n');
                false
            }
            Self::Csv(..) | Self::Arrow(_) => false,
        }
    }

    /// The bytes that are in the buffer.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Json(writer) => writer.get_ref().len(),
            Self::Lines(writer) => writer.get_ref().len(),
            Self::Csv(_, out) => out.len(),
            Self::Arrow(writer) => writer.get_ref().len(),
        }
    }

    /// Takes the bytes out of the buffer.
    pub(super) fn take(&mut self) -> Bytes {
        std::mem::take(match self {
            Self::Json(writer) => writer.get_mut(),
            Self::Lines(writer) => writer.get_mut(),
            Self::Csv(_, out) => out,
            Self::Arrow(writer) => writer.get_mut(),
        })
        .into()
    }
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
