//! Errors as statuses of gRPC, whose details have the SQLSTATE and the position.

use std::collections::HashMap;
use std::fmt::Display;

use alluvium::{Error, SqlState};
use arrow::error::ArrowError;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use crate::client::Panicked;
use crate::registry::Full;
use crate::traffic::Outcome;

/// The domain of the reasons in the details: reasons are values of SQLSTATE.
const DOMAIN: &str = "sqlstate";

/// A status with a SQLSTATE as the reason of its details.
pub(super) fn status(code: Code, state: &str, message: impl Into<String>) -> Status {
    with_details(code, state, message.into(), HashMap::new())
}

/// A request that makes no sense.
pub(super) fn bad(message: impl Into<String>) -> Status {
    status(Code::InvalidArgument, "08P01", message)
}

/// Something that this server does not do.
pub(super) fn unsupported(message: impl Into<String>) -> Status {
    status(Code::Unimplemented, SqlState::NOT_SUPPORTED.as_str(), message)
}

/// Rows that a client has sent, and that are none.
pub(super) fn unreadable(error: impl Display) -> Status {
    let message = format!("the rows that were sent are no stream of Arrow: {error}");
    status(Code::InvalidArgument, "22000", message)
}

/// The error of a statement. Its position is a place of the statement's text.
pub(super) fn of(error: &Error) -> Status {
    let mut details = HashMap::new();
    if let Some((line, column)) = error.position() {
        details.insert("line".to_owned(), line.to_string());
        details.insert("column".to_owned(), column.to_string());
    }
    with_details(code(error), error.sqlstate().as_str(), error.to_string(), details)
}

/// An error of Arrow while an answer is made.
pub(super) fn unwritten(error: ArrowError) -> Status {
    of(&Error::from(error))
}

/// A connection or session too many.
pub(super) fn full(full: &Full) -> Status {
    status(Code::ResourceExhausted, "53300", full.to_string())
}

/// A call has panicked.
pub(super) fn panicked(Panicked: Panicked) -> Status {
    let message =
        "the statement failed by a fault of the server, and the session ends: connect again";
    status(Code::Internal, SqlState::INTERNAL.as_str(), message)
}

/// How a statement with this status has ended.
pub(super) fn outcome(status: &Status) -> Outcome {
    let state = status.get_details_error_info().map(|info| info.reason);
    state.map_or(Outcome::Failed, |state| Outcome::of_error(&state))
}

fn with_details(
    code: Code,
    state: &str,
    message: String,
    details: HashMap<String, String>,
) -> Status {
    Status::with_error_details(code, message, ErrorDetails::with_error_info(state, DOMAIN, details))
}

fn code(error: &Error) -> Code {
    match error {
        Error::Conflict { .. } => Code::Aborted,
        Error::Denied { .. } => Code::PermissionDenied,
        Error::TimedOut => Code::DeadlineExceeded,
        Error::Interrupted => Code::Cancelled,
        Error::Failed { .. } | Error::Behind { .. } | Error::Gone { .. } => {
            Code::FailedPrecondition
        }
        Error::Poisoned { .. } | Error::State { .. } => Code::Internal,
        Error::Start { .. } => Code::Unavailable,
        _ => of_state(error.sqlstate().as_str()),
    }
}

/// The code of a SQLSTATE.
fn of_state(state: &str) -> Code {
    match state {
        "42P01" | "42703" | "42704" | "3F000" => Code::NotFound,
        "42P07" | "42P06" | "42710" | "23505" => Code::AlreadyExists,
        "0A000" => Code::Unimplemented,
        "XX000" => Code::Internal,
        _ => match state.get(..2) {
            Some("23" | "25" | "55") => Code::FailedPrecondition,
            Some("53" | "54") => Code::ResourceExhausted,
            _ => Code::InvalidArgument,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_have_the_state_and_the_code_follows_it() {
        let made = status(Code::NotFound, "42P01", "there is no table");
        let info = made.get_details_error_info();
        assert_eq!(info.map(|info| info.reason).as_deref(), Some("42P01"));
        let codes = ["42P01", "23505", "23502", "53200", "42601", ""].map(of_state);
        let expected = [
            Code::NotFound,
            Code::AlreadyExists,
            Code::FailedPrecondition,
            Code::ResourceExhausted,
            Code::InvalidArgument,
            Code::InvalidArgument,
        ];
        assert_eq!(codes, expected);
    }
}
