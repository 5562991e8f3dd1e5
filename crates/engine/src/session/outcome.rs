//! The outcome of a statement.

use crate::error::Result;
use crate::query::Rows;
use crate::source::Refusal;
use crate::subscription::Subscription;

/// The outcome of a statement.
#[derive(Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// A definition was made or dropped, or a transaction was begun or ended.
    Done,
    /// `COMMIT` of a transaction that an error [had aborted](crate::Session::set_aborts_on_error) rolled it back.
    RolledBack,
    /// Rows were inserted, updated or deleted.
    #[non_exhaustive]
    Changed {
        /// How many: of an UPDATE, the rows that were updated.
        rows: u64,
        /// The epoch that the statement made; `None` inside a transaction. If no row was changed, the last
        /// epoch there was.
        epoch: Option<u64>,
    },
    /// The answer to a query, or what RETURNING says of the rows that were changed.
    Rows(Rows),
    /// A cursor went forward.
    #[non_exhaustive]
    Moved {
        /// Over how many rows.
        rows: u64,
    },
    /// The contents and then the changes of a relation: the answer to a SUBSCRIBE.
    Subscribed(Subscription),
    /// The answer to an EXPLAIN.
    Text(String),
    /// Rows were read from a file.
    #[non_exhaustive]
    Copied {
        /// How many were read and inserted.
        rows: u64,
        /// How many were refused.
        refused: u64,
        /// The first ten that were refused.
        messages: Vec<Refusal>,
        /// As of `Changed`.
        epoch: Option<u64>,
    },
}

impl Outcome {
    /// The same outcome, with all of its rows computed.
    pub(super) fn complete(self) -> Result<Self> {
        match self {
            Self::Rows(rows) => {
                let schema = rows.schema().clone();
                Ok(Self::Rows(Rows::new(schema, rows.into_batches()?)))
            }
            outcome => Ok(outcome),
        }
    }
}
