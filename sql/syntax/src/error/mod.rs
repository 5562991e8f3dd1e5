//! Errors in the user's SQL, with positions.
//!
//! - `names` says which names are near one that does not exist;
//! - `datafusion` translates DataFusion's errors: `wording` has texts for its messages, and `calls` for calls that have no
//!   function of their arguments;
//! - `sqlstate` has the codes that programs tell errors by.
mod calls;
mod datafusion;
mod names;
mod sqlstate;
mod wording;

use std::fmt;

use alluvium_dataflow::messages::shorten::abridge;
use alluvium_dataflow::messages::wording::in_sql_terms;
use alluvium_dataflow::without_notice;
use sqlparser::ast::Spanned;
use sqlparser::tokenizer::{Location, Span};

pub use self::datafusion::worded;
pub use self::names::{keyword_meant, no_column};
pub use self::sqlstate::SqlState;

/// A position in the text. Both numbers start at one; columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The line.
    pub line: u64,
    /// The column.
    pub column: u64,
}

impl Position {
    /// The start of a span; `None` for a span that does not come from the text.
    pub fn of_span(span: Span) -> Option<Position> {
        Position::of_location(span.start)
    }

    /// The start of a node of the syntax tree.
    pub fn of(node: &impl Spanned) -> Option<Position> {
        Position::of_span(node.span())
    }

    /// A place in the text; `None` for one that is not in it.
    pub fn of_location(location: Location) -> Option<Position> {
        (location.line > 0).then_some(Position { line: location.line, column: location.column })
    }
}

/// An error in the user's SQL. It displays as its message only: a caller that knows the file's name adds file and
/// position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The problem and, where possible, its remedy.
    pub message: String,
    /// Where, in the text.
    pub position: Option<Position>,
    /// Its kind.
    pub sqlstate: SqlState,
}

/// The result of reading or planning SQL.
pub type Result<T> = std::result::Result<T, Error>;

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl Error {
    /// An error at a position, if one is known. Types in the message get the names that SQL has for them.
    pub fn new(message: impl Into<String>, position: impl Into<Option<Position>>) -> Error {
        let message = in_sql_terms(&abridge(without_notice(message.into())));
        Error { message, position: position.into(), sqlstate: SqlState::WRONG }
    }

    /// The error for valid SQL that is not supported yet.
    pub fn not_supported(name: impl fmt::Display, position: impl Into<Option<Position>>) -> Error {
        Error::new(format!("{name} is not supported yet"), position)
            .with_sqlstate(SqlState::NOT_SUPPORTED)
    }

    /// The same error, of this kind.
    pub fn with_sqlstate(self, sqlstate: SqlState) -> Error {
        Error { sqlstate, ..self }
    }

    /// The same error, at `position` unless it already has one.
    pub fn at(mut self, position: Option<Position>) -> Error {
        self.position = self.position.or(position);
        self
    }
}
