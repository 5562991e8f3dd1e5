//! Records of a journal that are read once more.

use std::time::Duration;

use alluvium_storage::{Arriving, Followed, Journal, Position, Replay, Result};
use bytes::Bytes;

/// How long a record is waited for before it is asked whether to wait on.
const PATIENCE: Duration = Duration::from_millis(20);

/// A journal of which records are read once more.
#[derive(Clone, Copy)]
pub(super) enum Past<'a> {
    /// One that fails if it cannot be reached.
    Opened(&'a dyn Journal),
    /// One that is waited for, for as long as it takes.
    Followed(&'a dyn Followed),
}

/// Records of a journal in their order.
pub(super) enum Records {
    Opened(Replay),
    Followed(Box<dyn Arriving>),
}

impl Past<'_> {
    /// The records from a position on.
    pub(super) fn records(self, from: Position) -> Result<Records> {
        Ok(match self {
            Past::Opened(journal) => Records::Opened(journal.replay(from)?),
            Past::Followed(journal) => Records::Followed(journal.follow(from)),
        })
    }

    /// Where a record is, for messages.
    pub(super) fn place(self, record: Position) -> String {
        match self {
            Past::Opened(journal) => journal.place(record),
            Past::Followed(journal) => journal.place(record),
        }
    }
}

impl Records {
    /// The next record; `None` if there is none, or if it `is_over` before one comes.
    pub(super) fn next(&mut self, is_over: impl Fn() -> bool) -> Result<Option<Bytes>> {
        loop {
            let next = match self {
                Records::Opened(records) => {
                    return Ok(records.next().transpose()?.map(|(_, record)| record));
                }
                Records::Followed(records) => records.next(PATIENCE)?,
            };
            match next {
                Some((_, record)) => return Ok(Some(record)),
                None if is_over() => return Ok(None),
                None => {}
            }
        }
    }
}
