//! Errors as answers: RFC 9457.

use alluvium::{Error, SqlState};
use axum::body::Body;
use axum::http::header::{CONNECTION, CONTENT_TYPE, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use crate::client::Panicked;
use crate::traffic::Outcome;

/// The media type of problems.
pub(super) const PROBLEM: &str = "application/problem+json";

/// Why a request was not answered as the client wished.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Problem {
    status: StatusCode,
    detail: String,
    /// Members that RFC 9457 leaves to its users.
    more: Map<String, Value>,
    /// Whether the connection ends with it.
    is_last: bool,
}

impl Problem {
    /// A problem with this status, explained by `detail`.
    pub(super) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into(), more: Map::new(), is_last: false }
    }

    /// A request that makes no sense.
    pub(super) fn bad(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// The error of a statement of a client, whose positions are places in the client's text.
    pub(super) fn of_statement(error: &Error) -> Self {
        let problem = Self::of(error);
        match error.position() {
            Some((line, column)) => {
                problem.with("position", json!({ "line": line, "column": column }))
            }
            None => problem,
        }
    }

    /// The error of a statement that the client has not written.
    pub(super) fn of(error: &Error) -> Self {
        let problem = Self::new(status_of(error), error.to_string())
            .with("sqlstate", json!(error.sqlstate().as_str()));
        match error {
            Error::Gone { oldest, .. } => problem
                .with("oldest", json!(oldest))
                .hint("subscribe without \"after\" and Last-Event-ID, to begin with a snapshot"),
            Error::Conflict { .. } => problem.hint("send the request again"),
            _ => problem,
        }
    }

    /// The same problem with another member.
    pub(super) fn with(mut self, member: &str, value: Value) -> Self {
        self.more.insert(member.to_owned(), value);
        self
    }

    /// The same problem, and what to do about it.
    pub(super) fn hint(self, hint: &str) -> Self {
        self.with("hint", json!(hint))
    }

    /// The same problem, after which the connection ends.
    pub(super) fn last(mut self) -> Self {
        self.is_last = true;
        self
    }

    /// The same problem; a relation that is not there is a page that is not there.
    pub(super) fn of_path(mut self) -> Self {
        let state = self.more.get("sqlstate").and_then(Value::as_str);
        if state == Some(SqlState::NO_RELATION.as_str()) {
            self.status = StatusCode::NOT_FOUND;
        }
        self
    }

    /// That of a statement with this problem.
    pub(super) fn outcome(&self) -> Outcome {
        let state = self.more.get("sqlstate").and_then(Value::as_str);
        state.map_or(Outcome::Failed, Outcome::of_error)
    }

    /// As JSON.
    pub(super) fn to_json(&self) -> Value {
        let mut members = Map::new();
        members.insert("type".to_owned(), json!("about:blank"));
        members
            .insert("title".to_owned(), json!(self.status.canonical_reason().unwrap_or("Error")));
        members.insert("status".to_owned(), json!(self.status.as_u16()));
        members.insert("detail".to_owned(), json!(self.detail));
        members.extend(self.more.clone());
        Value::Object(members)
    }
}

/// The status of an error of the engine.
fn status_of(error: &Error) -> StatusCode {
    match error {
        Error::Conflict { .. } | Error::Failed { .. } | Error::Behind { .. } => {
            StatusCode::CONFLICT
        }
        Error::Gone { .. } => StatusCode::GONE,
        Error::Denied { .. } => StatusCode::FORBIDDEN,
        Error::TimedOut => StatusCode::GATEWAY_TIMEOUT,
        Error::Interrupted | Error::Start { .. } => StatusCode::SERVICE_UNAVAILABLE,
        Error::Poisoned { .. } | Error::State { .. } => StatusCode::INTERNAL_SERVER_ERROR,
        _ => match error.sqlstate().as_str() {
            // Constraints.
            state if state.starts_with("23") => StatusCode::CONFLICT,
            // The client's own limit.
            state if state == SqlState::LIMIT.as_str() => StatusCode::TOO_MANY_REQUESTS,
            // Limits of the server.
            state if state.starts_with("53") => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::BAD_REQUEST,
        },
    }
}

impl From<Panicked> for Problem {
    fn from(Panicked: Panicked) -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the statement failed by a fault of the server",
        )
        .with("sqlstate", json!(SqlState::INTERNAL.as_str()))
        .last()
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::from(self.to_json().to_string()));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM));
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if self.is_last {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}
