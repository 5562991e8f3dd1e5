//! Errors, in the user's terms.

use alluvium_dataflow::messages::shorten::shorten;
use alluvium_dataflow::without_notice;
pub use alluvium_sql::error::SqlState;
use alluvium_sql::error::{Position, worded};
use datafusion::error::DataFusionError;

use crate::catalog::is_system;

/// The result of asking an engine for something.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an engine could not do something.
///
/// A statement that fails has no effect; a transaction it was part of stays open as it was.
/// Displays as its message alone. A program that knows the file's name puts it and [`Error::position`] in front.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The SQL cannot be parsed, names something that does not exist, or needs something that is not supported.
    #[error("{message}")]
    #[non_exhaustive]
    Sql {
        /// The problem and, where possible, a remedy.
        message: String,
        /// Where, in the text that was given.
        position: Option<Position>,
        /// Its kind, as [`Error::sqlstate`] has it.
        sqlstate: SqlState,
    },
    /// The statement is fine, but not with this data: a NULL in a NOT NULL column, an overflow, rows
    /// of other columns than the table's.
    #[error("{message}")]
    #[non_exhaustive]
    Data {
        /// The problem with the data.
        message: String,
        /// Where the statement starts, if it was a statement.
        position: Option<Position>,
        /// Its kind, as [`Error::sqlstate`] has it.
        sqlstate: SqlState,
        /// The message without the values of a row, if `message` quotes one: for sessions that may not select from its relation.
        bare: Option<Box<str>>,
    },
    /// A source cannot be opened or read, or a sink written.
    #[error("{message}")]
    #[non_exhaustive]
    Source {
        /// The operation, and why it failed.
        message: String,
        /// Where the statement starts, if it was a statement.
        position: Option<Position>,
    },
    /// The session may not do this: an [`Authorizer`](crate::Authorizer) or its [`FileAccess`](crate::FileAccess) says so.
    #[error("{message}")]
    #[non_exhaustive]
    Denied {
        /// Who may not do what, and with what.
        message: String,
        /// Where the statement starts, or names what it may not use.
        position: Option<Position>,
    },
    /// A view has failed, or one that it reads, and is not kept up to date any more. All other relations are.
    #[error(
        "\"{view}\" has failed: {reason}; DROP it, or fill it again with ALTER VIEW {view} RESUME"
    )]
    #[non_exhaustive]
    Failed {
        /// The view.
        view: String,
        /// The cause.
        reason: String,
    },
    /// Another transaction stands in the way. Nothing is wrong with the statement: the transaction may succeed if it is run again.
    #[error("{message}")]
    #[non_exhaustive]
    Conflict {
        /// The kind of conflict.
        kind: Conflict,
        /// The event, with its relation and key.
        message: String,
        /// Where the statement starts, if it was a statement.
        position: Option<Position>,
    },
    /// A part of the engine panicked. Nothing more can be done with this engine.
    #[error("the engine has stopped: {message}; open a new one")]
    #[non_exhaustive]
    Poisoned {
        /// The message of the panic.
        message: String,
    },
    /// A subscription was further behind than it may be, and has ended: its [policy](crate::Policy::Disconnect) says so. Who
    /// subscribes again begins with a snapshot.
    #[error(
        "the subscription to \"{relation}\" has ended, because it was {epochs} changes of {bytes} bytes behind; subscribe again, and take changes as they come"
    )]
    #[non_exhaustive]
    Behind {
        /// The view or table.
        relation: String,
        /// How many changes had not been taken, each of one epoch.
        epochs: u64,
        /// The bytes of their rows.
        bytes: u64,
    },
    /// A subscriber cannot [resume after an epoch](crate::Engine::subscribe_from): the changes since then are not kept any more,
    /// or never were. Who subscribes without an epoch begins with a snapshot.
    #[error("{message}")]
    #[non_exhaustive]
    Gone {
        /// Why, and what to do.
        message: String,
        /// The first epoch after which the relation's changes are kept; `None` if it keeps none.
        oldest: Option<u64>,
    },
    /// The call was ended by an [`Interrupt`](crate::Interrupt).
    #[error("interrupted")]
    Interrupted,
    /// The call took longer than it may.
    #[error("the statement took longer than its timeout allows, and was ended")]
    TimedOut,
    /// A state directory could not be checked, listed or copied.
    #[error("{message}")]
    #[non_exhaustive]
    State {
        /// The failure, its place, and the remedy.
        message: String,
    },
    /// The engine could not be started.
    #[error("the engine cannot start: {message}")]
    #[non_exhaustive]
    Start {
        /// The failure.
        message: String,
    },
}

/// How one transaction stands in the way of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Conflict {
    /// Another one has changed what this one has read. It has no effect, and is to be run again.
    Serialization,
    /// Each of several waits for another.
    Deadlock,
    /// A resource that it needs was locked for longer than it may wait.
    Locked,
}

impl Error {
    /// The error of a transaction that another one stands in the way of.
    pub(crate) fn conflict(kind: Conflict, message: impl Into<String>) -> Self {
        Self::Conflict { kind, message: message.into(), position: None }
    }

    /// The error of what uses a relation as it was before another session altered or dropped it.
    pub(crate) fn replaced(relation: &str) -> Self {
        let message = format!(
            "\"{relation}\" has been altered or dropped meanwhile; run the transaction again"
        );
        Self::conflict(Conflict::Serialization, message)
    }

    /// An error in SQL, at no known place.
    pub(crate) fn sql(message: impl Into<String>) -> Self {
        Self::Sql { message: message.into(), position: None, sqlstate: SqlState::WRONG }
    }

    /// An error in data.
    pub fn data(message: impl Into<String>) -> Self {
        let (position, bare) = (None, None);
        Self::Data { message: message.into(), position, sqlstate: SqlState::DATA, bare }
    }

    /// An error of a [`crate::Source`] or a [`crate::Sink`].
    pub fn source(message: impl Into<String>) -> Self {
        Self::Source { message: message.into(), position: None }
    }

    /// The error of a session without the right.
    pub(crate) fn denied(message: impl Into<String>) -> Self {
        Self::Denied { message: message.into(), position: None }
    }

    /// The same error, of this kind, if it is one of a statement or of data.
    pub(crate) fn with_sqlstate(mut self, kind: SqlState) -> Self {
        if let Self::Sql { sqlstate, .. } | Self::Data { sqlstate, .. } = &mut self {
            *sqlstate = kind;
        }
        self
    }

    /// The same error, which has this message for sessions that may not see the row that it quotes.
    pub(crate) fn or_bare(mut self, message: impl Into<Box<str>>) -> Self {
        if let Self::Data { bare, .. } = &mut self {
            *bare = Some(message.into());
        }
        self
    }

    /// The same error without the name that it proposes in place of an unknown relation, unless the session may know it.
    pub(crate) fn without_name(mut self, may_know: impl Fn(&str) -> bool) -> Self {
        if let Self::Sql { message, sqlstate: SqlState::NO_RELATION, .. } = &mut self
            && let Some((kept, near)) = message.rsplit_once("; did you mean \"")
            && !near.strip_suffix("\"?").is_some_and(|near| is_system(near) || may_know(near))
        {
            message.truncate(kept.len());
        }
        self
    }

    /// The same error without the values of rows: those that break a constraint and, `with_expressions`, those for which an expression
    /// fails.
    pub(crate) fn without_values(self, with_expressions: bool) -> Self {
        match self {
            Self::Data { bare: Some(message), position, sqlstate, .. } => {
                Self::Data { message: message.into(), position, sqlstate, bare: None }
            }
            Self::Data { position, sqlstate, .. }
                if with_expressions && sqlstate.as_str().starts_with("22") =>
            {
                let message = "an expression fails for a row, of the statement or of a view that it reads; the role may not SELECT from all that the view reads, so the values are not shown";
                Self::Data { message: message.to_owned(), position, sqlstate, bare: None }
            }
            error => error,
        }
    }

    /// The kind of the error, as a code that the SQL standard or Postgres has for it: what a wire protocol sends, and what a program
    /// asks for that does not read messages.
    pub fn sqlstate(&self) -> SqlState {
        match self {
            Self::Sql { sqlstate, .. } | Self::Data { sqlstate, .. } => *sqlstate,
            Self::Conflict { kind: Conflict::Serialization, .. } => SqlState::SERIALIZATION,
            Self::Conflict { kind: Conflict::Deadlock, .. } => SqlState::DEADLOCK,
            Self::Conflict { kind: Conflict::Locked, .. } => SqlState::LOCKED,
            Self::Source { .. } | Self::State { .. } => SqlState::IO,
            Self::Denied { .. } => SqlState::DENIED,
            Self::Failed { .. } | Self::Behind { .. } | Self::Gone { .. } => SqlState::NOT_IN_STATE,
            Self::Interrupted | Self::TimedOut => SqlState::CANCELED,
            Self::Poisoned { .. } | Self::Start { .. } => SqlState::INTERNAL,
        }
    }

    /// The same error, said to be about `subject`.
    pub(crate) fn of(mut self, subject: &str) -> Self {
        if let Self::Sql { message, .. }
        | Self::Data { message, .. }
        | Self::Source { message, .. }
        | Self::Denied { message, .. }
        | Self::Conflict { message, .. } = &mut self
        {
            *message = format!("{subject}: {message}");
        }
        self
    }

    /// Where in the SQL text the error is, as line and column, both counted from one.
    pub fn position(&self) -> Option<(u64, u64)> {
        let (Self::Sql { position, .. }
        | Self::Data { position, .. }
        | Self::Source { position, .. }
        | Self::Denied { position, .. }
        | Self::Conflict { position, .. }) = self
        else {
            return None;
        };
        position.map(|position| (position.line, position.column))
    }

    /// The same error, at `place` unless it already has a position or can have none.
    pub(crate) fn at(mut self, place: Position) -> Self {
        if let Some(position) = self.place() {
            position.get_or_insert(place);
        }
        self
    }

    /// The same error at another position, if it has one.
    pub(crate) fn moved(mut self, to: impl FnOnce(Position) -> Position) -> Self {
        if let Some(position) = self.place() {
            *position = position.take().map(to);
        }
        self
    }

    fn place(&mut self) -> Option<&mut Option<Position>> {
        match self {
            Self::Sql { position, .. }
            | Self::Data { position, .. }
            | Self::Source { position, .. }
            | Self::Denied { position, .. }
            | Self::Conflict { position, .. } => Some(position),
            _ => None,
        }
    }
}

impl From<alluvium_sql::Error> for Error {
    fn from(error: alluvium_sql::Error) -> Self {
        Self::Sql { message: error.message, position: error.position, sqlstate: error.sqlstate }
    }
}

/// An error while a statement runs is one of its data: planning has reported all others.
impl From<DataFusionError> for Error {
    fn from(error: DataFusionError) -> Self {
        if let DataFusionError::ResourcesExhausted(_) = error.find_root() {
            return Self::data(
                "the query takes more memory than queries may, a quarter of the memory budget or 32 MiB: \
                 select fewer rows or columns, aggregate them, or allow more memory",
            )
            .with_sqlstate(SqlState::OUT_OF_MEMORY);
        }
        let sqlstate = SqlState::of_run(&error);
        Self::data(shorten(without_notice(worded(&error)))).with_sqlstate(sqlstate)
    }
}

impl From<arrow::error::ArrowError> for Error {
    fn from(error: arrow::error::ArrowError) -> Self {
        DataFusionError::from(error).into()
    }
}

/// The error of what a standby does not do.
pub(crate) fn is_standby(what: &str) -> Error {
    Error::sql(format!(
        "{what} on a standby, which only does what the engine does that it follows: ask that one, or promote the standby to take its place"
    ))
    .with_sqlstate(SqlState::READ_ONLY)
}
