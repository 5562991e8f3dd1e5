//! The answers to statements.

use std::io;
use std::sync::Arc;

use alluvium::Outcome;
use arrow::datatypes::{DataType, Field, Schema};
use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use futures::stream;
use serde_json::{Value, json};

use super::caller::Caller;
use super::encoder::Format;
use super::media;
use super::problem::Problem;
use super::results::{Chunk, End, Results};
use crate::lines::lines;
use crate::traffic::Outcome as Ended;

/// The beginning of an answer.
pub(super) enum Begun {
    /// It is whole.
    Whole(Value),
    /// Rows, the first of which are encoded.
    Rows(Format, Box<Results>, Chunk),
}

/// Begins the answer of a command that had this outcome.
pub(super) fn begin(outcome: Outcome, command: &str, format: Format) -> Result<Begun, Problem> {
    Ok(Begun::Whole(match outcome {
        Outcome::Rows(rows) => {
            let schema = rows.schema().clone();
            return rows_begun(format, Results::new(format, &schema, Box::new(rows))?);
        }
        Outcome::Text(text) => {
            let schema = Arc::new(Schema::new(vec![Field::new("plan", DataType::Utf8, false)]));
            let rows = std::iter::once(lines(&text, schema.clone()));
            return rows_begun(format, Results::new(format, &schema, Box::new(rows))?);
        }
        Outcome::Subscribed(_) => {
            let detail = "SUBSCRIBE has no end: GET /v1/relations/NAME/changes streams the changes of a relation";
            return Err(Problem::bad(detail).with("sqlstate", "0A000".into()));
        }
        Outcome::Changed { rows, epoch, .. } => {
            json!({ "command": command, "rows": rows, "epoch": epoch })
        }
        Outcome::Moved { rows, .. } => json!({ "command": command, "rows": rows }),
        Outcome::Copied { rows, refused, messages, epoch, .. } => {
            let messages: Vec<_> = messages.iter().map(ToString::to_string).collect();
            json!({ "command": command, "rows": rows, "refused": refused, "messages": messages, "epoch": epoch })
        }
        Outcome::RolledBack => json!({ "command": "ROLLBACK" }),
        _ => json!({ "command": command }),
    }))
}

fn rows_begun(format: Format, results: Results) -> Result<Begun, Problem> {
    let mut results = Box::new(results);
    let first = results.first()?;
    Ok(Begun::Rows(format, results, first))
}

/// Sends an answer. Its rows are pulled by the session as the client takes them; nothing is pulled meanwhile.
pub(super) fn respond(caller: Caller, begun: Begun) -> Response {
    let (format, results, first) = match begun {
        Begun::Whole(value) => return whole(StatusCode::OK, &value),
        Begun::Rows(format, results, first) => (format, results, first),
    };
    let sending = Sending { caller, results, first: Some(first) };
    let body = stream::try_unfold(Next::Chunk(Box::new(sending)), step);
    let mut response = Response::new(Body::from_stream(body));
    let media_type = HeaderValue::from_static(format.media_type());
    response.headers_mut().insert(CONTENT_TYPE, media_type);
    response
}

/// An answer of JSON that is there.
pub(super) fn whole(status: StatusCode, value: &Value) -> Response {
    let mut response = Response::new(Body::from(value.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media::JSON));
    response
}

/// Rows that are sent.
struct Sending {
    caller: Caller,
    results: Box<Results>,
    /// The chunk that comes next, if it is there.
    first: Option<Chunk>,
}

/// What is sent next.
enum Next {
    Chunk(Box<Sending>),
    /// Nothing: the connection is cut, by which the client knows that rows are missing.
    Cut,
    /// Nothing: the answer is whole.
    End,
}

/// Sends a chunk.
async fn step(next: Next) -> io::Result<Option<(Bytes, Next)>> {
    let mut sending = match next {
        Next::Chunk(sending) => sending,
        Next::Cut => return Err(io::Error::other("the statement has failed after some rows")),
        Next::End => return Ok(None),
    };
    let chunk = match sending.first.take() {
        Some(chunk) => chunk,
        None => {
            let mut results = sending.results;
            let pulled = sending.caller.call(move |_| Ok((results.next(), results))).await;
            let Ok((chunk, rest)) = pulled else { return Err(io::Error::other("it has panicked")) };
            sending.results = rest;
            chunk
        }
    };
    let next = match chunk.end {
        End::Open => {
            sending.caller.set(Ended::Canceled);
            Next::Chunk(sending)
        }
        End::Finished => Next::End,
        End::Broken { outcome, says_so } => {
            sending.caller.set(outcome);
            if says_so { Next::End } else { Next::Cut }
        }
    };
    Ok(Some((chunk.bytes, next)))
}
