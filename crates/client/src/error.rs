//! Errors.

use std::io;

use arrow::error::ArrowError;
use tokio_postgres::error::{DbError, ErrorPosition};

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server refused a statement or a login, or could not run it.
    #[error("{0}")]
    Server(Box<Refusal>),
    /// The address of a server is none, or names what this client does not have.
    #[error("{0}")]
    Address(String),
    /// The server cannot be reached.
    #[error("{0}")]
    Unreached(String),
    /// The connection was lost. What ran then may have been committed.
    #[error("{0}")]
    Connection(String),
    /// A value cannot be sent or read as what it is.
    #[error("{0}")]
    Value(String),
    /// A statement that was to run for many rows of values returns rows itself.
    #[error("the statement returns rows, and cannot be run for many rows of values")]
    ReturnsRows,
    /// Arrow refused to make an array or a batch.
    #[error(transparent)]
    Arrow(#[from] ArrowError),
}

/// What the server said of a failure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct Refusal {
    /// The SQLSTATE: five letters and digits.
    pub sqlstate: String,
    /// What happened.
    pub message: String,
    /// More about it.
    pub detail: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
    /// The character of the statement's text that it is about, counted from one.
    pub position: Option<u32>,
    /// The kind of error that the server's engine has, by the name of the variant of `alluvium::Error`: what the SQLSTATE does not tell apart.
    pub kind: Option<String>,
    /// The row of parameters that it is about, from zero on, if the statement was run for several.
    pub row: Option<usize>,
    /// Whether the connection ended with it.
    pub is_fatal: bool,
}

/// Why one of many rows of values failed.
#[derive(Debug, thiserror::Error)]
#[error("row {row}: {error}")]
#[non_exhaustive]
pub struct RowError {
    /// The number of the row, from zero on. Those before it were run.
    pub row: usize,
    /// The failure.
    pub error: Error,
}

impl Error {
    /// What the server said, if it was the server.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Server(refusal) => Some(refusal),
            _ => None,
        }
    }

    /// The SQLSTATE that the server gave.
    pub fn sqlstate(&self) -> Option<&str> {
        self.refusal().map(|refusal| refusal.sqlstate.as_str())
    }

    /// The character of the statement's text that it is about, counted from one.
    pub fn position(&self) -> Option<u32> {
        self.refusal().and_then(|refusal| refusal.position)
    }

    /// Whether the statement was cancelled, by a request or by its timeout.
    pub fn is_cancelled(&self) -> bool {
        self.sqlstate() == Some("57014")
    }

    /// Whether the connection is lost, so that the call may succeed over another one: it broke, the server ends, or has no room now.
    pub fn is_lost(&self) -> bool {
        match self {
            Self::Unreached(_) | Self::Connection(_) => true,
            Self::Server(refusal) => {
                refusal.sqlstate.starts_with("57P") || refusal.sqlstate == "53300"
            }
            _ => false,
        }
    }

    pub(crate) fn value(message: impl Into<String>) -> Self {
        Self::Value(message.into())
    }
}

/// The row of parameters that a context of the server names.
fn row(context: &str) -> Option<usize> {
    context.strip_prefix("parameters of row ")?.parse().ok()
}

impl From<&DbError> for Refusal {
    fn from(error: &DbError) -> Self {
        Self {
            sqlstate: error.code().code().to_owned(),
            message: error.message().to_owned(),
            detail: error.detail().map(str::to_owned),
            hint: error.hint().map(str::to_owned),
            position: match error.position() {
                Some(ErrorPosition::Original(position)) => Some(*position),
                _ => None,
            },
            kind: error.routine().map(str::to_owned),
            row: error.where_().and_then(row),
            is_fatal: matches!(error.severity(), "FATAL" | "PANIC"),
        }
    }
}

impl From<tokio_postgres::Error> for Error {
    fn from(error: tokio_postgres::Error) -> Self {
        if let Some(refusal) = error.as_db_error() {
            return Self::Server(Box::new(refusal.into()));
        }
        let cause = std::error::Error::source(&error);
        let is_of_connection =
            error.is_closed() || cause.is_some_and(|cause| cause.is::<io::Error>());
        let message = match cause {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        };
        match is_of_connection {
            true => Self::Connection(message),
            false => Self::Value(message),
        }
    }
}
