//! Failures and notices, as messages.

use alluvium::unstable::error_kind;
use alluvium::{Error, SqlState};
use pgwire::messages::PgWireBackendMessage as Answer;
use pgwire::messages::response::{ErrorResponse, NoticeResponse};

use super::frame::Malformed;
use super::types::Rejected;
use super::wire::Broken;
use crate::client::Panicked;

/// Codes that the engine has no use for.
pub(super) mod code {
    /// A message that has no place here.
    pub(in crate::pg) const PROTOCOL: &str = "08P01";
    /// A login without the right.
    pub(in crate::pg) const NO_LOGIN: &str = "28000";
    /// A right that a role does not have.
    pub(in crate::pg) const NO_RIGHT: &str = "42501";
    /// A password that is none of the role's.
    pub(in crate::pg) const WRONG_PASSWORD: &str = "28P01";
    /// A limit that a client has reached.
    pub(in crate::pg) const TOO_MUCH: &str = "54000";
    /// More statements wait than may.
    pub(in crate::pg) const WAITING: &str = "53400";
    /// More than a connection may keep.
    pub(in crate::pg) const LIMIT: &str = "53400";
    /// More connections than there may be.
    pub(in crate::pg) const CONNECTIONS: &str = "53300";
    /// The server ends.
    pub(in crate::pg) const SHUTDOWN: &str = "57P01";
    /// A warning of no special kind.
    pub(in crate::pg) const WARNING: &str = "01000";
}

/// Why a message was not answered as the client wished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    code: &'static str,
    message: String,
    /// The character of the statement's text that it is about, counted from one.
    position: Option<usize>,
    /// The kind of the engine's error, which codes do not tell apart.
    kind: Option<&'static str>,
    /// The number of the row of parameters that it is about, from zero on.
    row: Option<usize>,
    /// Whether the connection ends with it.
    is_fatal: bool,
}

impl Failure {
    /// A failure after which the connection goes on.
    pub(super) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            position: None,
            kind: None,
            row: None,
            is_fatal: false,
        }
    }

    /// A failure that ends the connection.
    pub(super) fn fatal(code: &'static str, message: impl Into<String>) -> Self {
        Self { is_fatal: true, ..Self::new(code, message) }
    }

    /// The failure of a statement of this text.
    pub(super) fn of(error: &Error, sql: &str) -> Self {
        let position = error.position().and_then(|(line, column)| character(sql, line, column));
        let kind = Some(error_kind(error));
        Self { position, kind, ..Self::new(error.sqlstate().as_str(), error.to_string()) }
    }

    /// Its SQLSTATE.
    pub(super) fn code(&self) -> &'static str {
        self.code
    }

    /// Whether it is a fault of the server.
    pub(super) fn is_fault(&self) -> bool {
        self.code == SqlState::INTERNAL.as_str()
    }

    /// Its message.
    pub(super) fn message(&self) -> &str {
        &self.message
    }

    /// The same failure, at a place of the statement's text; line and column are counted from one.
    pub(super) fn at(self, sql: &str, line: u64, column: u64) -> Self {
        Self { position: character(sql, line, column), ..self }
    }

    /// The same failure, said to be about `subject`.
    pub(super) fn about(mut self, subject: &str) -> Self {
        self.message = format!("{subject}: {}", self.message);
        self
    }

    /// The same failure, about a row of parameters.
    pub(super) fn of_row(self, row: usize) -> Self {
        Self { row: Some(row), ..self }
    }

    /// Whether the connection ends with it.
    pub(super) fn is_fatal(&self) -> bool {
        self.is_fatal
    }

    /// The message that says it.
    pub(super) fn answer(&self) -> Answer {
        let severity = if self.is_fatal { "FATAL" } else { "ERROR" };
        Answer::ErrorResponse(ErrorResponse::new(self.fields(severity)))
    }

    fn fields(&self, severity: &str) -> Vec<(u8, String)> {
        let mut fields = vec![
            (b'S', severity.to_owned()),
            (b'V', severity.to_owned()),
            (b'C', self.code.to_owned()),
            // A zero would end it.
            (b'M', self.message.replace('\0', "\\0")),
        ];
        fields.extend(self.position.map(|position| (b'P', position.to_string())));
        fields.extend(self.row.map(|row| (b'W', format!("parameters of row {row}"))));
        // Postgres has there which of its routines has failed.
        fields.extend(self.kind.map(|kind| (b'R', kind.to_owned())));
        fields
    }
}

impl From<Panicked> for Failure {
    fn from(Panicked: Panicked) -> Self {
        Self::fatal(
            SqlState::INTERNAL.as_str(),
            "the statement failed by a fault of the server, and the connection ends: connect again",
        )
    }
}

impl From<Rejected> for Failure {
    fn from(rejected: Rejected) -> Self {
        Self::new(rejected.code(), rejected.to_string())
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::of(&error, "")
    }
}

impl From<Malformed> for Failure {
    fn from(malformed: Malformed) -> Self {
        let code = match malformed {
            Malformed::TooLong { .. } => code::TOO_MUCH,
            _ => code::PROTOCOL,
        };
        Self::fatal(code, malformed.to_string())
    }
}

/// Why a message is not answered: the client is told, or it is gone.
#[derive(Debug)]
pub(super) enum Ended {
    /// The client is told, and the connection goes on unless the failure is fatal.
    Failed(Failure),
    /// Nothing more can be said.
    Broken(Broken),
}

impl From<Failure> for Ended {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<Panicked> for Ended {
    fn from(panicked: Panicked) -> Self {
        Self::Failed(panicked.into())
    }
}

impl From<Rejected> for Ended {
    fn from(rejected: Rejected) -> Self {
        Self::Failed(rejected.into())
    }
}

impl From<Error> for Ended {
    fn from(error: Error) -> Self {
        Self::Failed(error.into())
    }
}

impl From<Broken> for Ended {
    fn from(broken: Broken) -> Self {
        Self::Broken(broken)
    }
}

/// A warning, which changes nothing.
pub(super) fn warning(code: &str, message: &str) -> Answer {
    note("WARNING", code, message)
}

/// A notice, which changes nothing.
pub(super) fn notice(message: &str) -> Answer {
    note("NOTICE", "00000", message)
}

fn note(severity: &str, code: &str, message: &str) -> Answer {
    let fields = vec![
        (b'S', severity.to_owned()),
        (b'V', severity.to_owned()),
        (b'C', code.to_owned()),
        (b'M', message.to_owned()),
    ];
    Answer::NoticeResponse(NoticeResponse::new(fields))
}

/// The character of a text that stands in this column of this line, all counted from one.
fn character(text: &str, line: u64, column: u64) -> Option<usize> {
    let lines = usize::try_from(line.checked_sub(1)?).ok()?;
    let column = usize::try_from(column).ok()?;
    let start = match lines.checked_sub(1) {
        None => 0,
        Some(last) => text.match_indices('\n').nth(last)?.0 + 1,
    };
    let before = text[..start].chars().count();
    Some(before + column).filter(|place| *place <= text.chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_characters_of_the_text() {
        assert_eq!(character("SELECT x", 1, 8), Some(8));
        assert_eq!(character("SELECT 'ä',\n x", 2, 2), Some(14));
        assert_eq!(character("", 1, 1), Some(1));
        assert_eq!(character("SELECT", 3, 1), None);
    }
}
