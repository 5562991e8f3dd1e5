//! Why calls fail.

use alluvium::Error;
use alluvium::unstable::error_kind;

/// The result of a call of a backend.
pub(crate) type Fallible<T> = Result<T, Failure>;

/// Why a call failed, as an exception tells it.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The class of the exception.
    pub(crate) class: &'static str,
    pub(crate) message: String,
    pub(crate) sqlstate: Option<String>,
    /// The line and the column in the text of the call, both counted from one.
    pub(crate) position: Option<(u64, u64)>,
}

impl Failure {
    /// A failure that no statement is to blame for.
    pub(crate) fn new(class: &'static str, message: impl Into<String>) -> Self {
        Self { class, message: message.into(), sqlstate: None, position: None }
    }

    /// The failure of what is not there.
    pub(crate) fn not_supported(message: impl Into<String>) -> Self {
        Self { sqlstate: Some("0A000".to_owned()), ..Self::new("NotSupportedError", message) }
    }

    /// The failure of a call that was asked to end.
    pub(crate) fn interrupted() -> Self {
        Error::Interrupted.into()
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let sqlstate = error.sqlstate().to_string();
        Self {
            class: class(error_kind(&error), &sqlstate),
            message: error.to_string(),
            sqlstate: Some(sqlstate),
            position: error.position(),
        }
    }
}

/// The class of the exception for an error of this kind; the kind is empty of errors that are none of an engine.
pub(crate) fn class(kind: &str, sqlstate: &str) -> &'static str {
    match (kind, sqlstate.get(..2).unwrap_or_default()) {
        ("Sql" | "", "0A") => "NotSupportedError",
        ("Sql", _) | ("", "42") => "ProgrammingError",
        ("Data" | "", "23") => "IntegrityError",
        ("Data", _) | ("", "22") => "DataError",
        ("Source", _) => "SourceError",
        ("Denied", _) => "DeniedError",
        ("Failed", _) => "ViewFailedError",
        ("Conflict", _) | ("", "40") => "ConflictError",
        ("Poisoned", _) => "InternalError",
        ("Behind", _) => "BehindError",
        ("Gone", _) => "GoneError",
        ("Interrupted", _) => "InterruptedError",
        ("TimedOut", _) => "TimedOutError",
        ("State" | "Start", _) => "StateError",
        _ => "OperationalError",
    }
}
