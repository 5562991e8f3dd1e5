//! The engine or the server that runs a shell's statements.

use std::path::Path;

use alluvium::arrow::array::RecordBatch;
use alluvium::arrow::datatypes::SchemaRef;
use alluvium::{Outcome, Refusal, Session, Statement};
use futures::stream::LocalBoxStream;

use super::stop::{Stop, failed};
use super::wake::SourcesEnd;
use crate::diagnostic::Refused;

/// What runs a shell's statements: an engine of this process, or a server.
pub(crate) trait Backend {
    /// Statements name files relative to this folder from now on.
    fn set_base(&mut self, base: &Path);

    /// Statements are typed at a prompt from now on.
    fn at_prompt(&mut self);

    /// Runs a statement, unless `around` objects.
    fn run(
        &mut self,
        statement: &Statement,
        around: &mut dyn Around,
    ) -> Result<Answer<'_>, Failure>;

    /// Reads a file into a table, which is created if there is none.
    fn import(&mut self, path: &str, table: &str) -> Result<Vec<Answer<'_>>, Failure>;

    /// The tables and views.
    fn relations(&mut self) -> Result<Vec<Listed>, Failure>;

    /// A function that gives the tables and views, or none if they cannot be found out.
    fn names(&self) -> Box<dyn Fn() -> Vec<Listed>>;

    /// The statements that define functions.
    fn functions(&mut self) -> Vec<String>;

    /// The input rows that were refused since the last call.
    fn refused(&mut self) -> Refused;

    /// The views that have gained errors since the last call, as of what is complete now, or of all that is committed if it `waits`
    /// for that: how many rows of errors they have, and one of the messages.
    fn gained_errors(&mut self, waits: bool) -> Result<Vec<(String, i64, String)>, Failure>;

    /// The end of the sources, of which this thread is told; `None` if they never end.
    fn sources_end(&self) -> Result<Option<SourcesEnd>, Stop>;

    /// Waits until subscriptions have what is committed.
    fn settle(&self) -> Result<(), Failure>;
}

/// The answer to a statement.
pub(crate) enum Answer<'a> {
    /// Rows, which are computed as they are taken.
    Rows(SchemaRef, Box<dyn Iterator<Item = Result<RecordBatch, Failure>> + 'a>),
    /// A plan.
    Text(String),
    /// The contents and then the changes of a relation.
    Changes(Changes),
    /// Rows were read from a file: how many were inserted and refused, and the first that were refused.
    Copied { rows: u64, refused: u64, messages: Vec<Refusal> },
    /// So many rows were inserted, updated or deleted.
    Changed(u64),
    /// A cursor has passed so many rows.
    Moved(u64),
    /// A COMMIT rolled back.
    RolledBack,
    /// Anything else.
    Done,
}

/// The contents and then the changes of a relation, as rows with their epochs and weights.
pub(crate) struct Changes {
    pub(super) schema: SchemaRef,
    pub(super) rows: LocalBoxStream<'static, Result<RecordBatch, Failure>>,
}

/// A table or a view, as commands and completion show it.
pub(crate) struct Listed {
    /// The [name](alluvium::name) it goes by.
    pub(crate) name: String,
    /// Its kind, in words.
    pub(crate) kind: String,
    pub(crate) columns: Vec<String>,
    /// The relations that it names.
    pub(crate) reads: Vec<String>,
    /// The statements that define it, its indexes and its comments.
    pub(crate) statements: Vec<String>,
}

/// Whether a command that names a relation means the one of this name.
pub(super) fn is_meant(typed: &str, name: &str) -> bool {
    typed.trim_matches('"') == name || typed.to_lowercase() == name
}

/// Why a statement failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The user has ended it.
    Interrupted,
    /// An error, and where it is in the text that the statement was parsed from: line and column, both counted from one.
    Error(String, Option<(u64, u64)>),
}

impl Failure {
    /// An error at no known place.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self::Error(message.into(), None)
    }
}

impl From<alluvium::Error> for Failure {
    fn from(error: alluvium::Error) -> Self {
        match error {
            alluvium::Error::Interrupted => Self::Interrupted,
            error => Self::Error(error.to_string(), error.position()),
        }
    }
}

/// Actions around the statements of a program.
pub(crate) trait Around {
    /// Is told of a statement before it is executed; returns whether it is.
    fn before(&mut self, session: &mut Session, statement: &Statement) -> alluvium::Result<bool> {
        let _ = (session, statement);
        Ok(true)
    }

    /// Is told of a statement and its result, before that is written. An error counts as the statement's.
    fn after(&mut self, statement: &Statement, outcome: &Outcome) -> alluvium::Result<()> {
        let _ = (statement, outcome);
        Ok(())
    }
}

/// Nothing is done around them.
impl Around for () {}

/// Reports a failure without a position in a program, unless the user has ended the call.
pub(crate) fn ended(failure: Failure) -> Stop {
    match failure {
        Failure::Interrupted => Stop::Interrupted,
        Failure::Error(message, _) => failed(None, message),
    }
}
