//! Temporary tables.

use std::fmt::Debug;

use alluvium_sql::name::TEMPORARY;
use alluvium_sql::statement::OnCommit;

use super::{Entries, Entry};

/// The additional part of a temporary table. It is in no catalog but that of its session, and its dataflow goes with the last who
/// knows it.
#[derive(Debug)]
pub(crate) struct Temporary {
    pub(crate) on_commit: OnCommit,
    /// Removes its dataflow when it is dropped.
    pub(crate) _dataflow: Box<dyn Debug + Send + Sync>,
}

impl Entry {
    /// Its additional part, if it is a temporary table.
    pub(crate) fn temporary(&self) -> Option<&Temporary> {
        self.as_table().ok()?.temporary.as_deref()
    }

    /// Whether its rows are gone when a transaction commits.
    pub(crate) fn is_emptied(&self) -> bool {
        self.temporary().is_some_and(|temporary| temporary.on_commit != OnCommit::Preserve)
    }
}

impl Entries {
    /// Whether a session sees temporary tables among them, and so alone has them.
    pub(crate) fn are_of_session(&self) -> bool {
        self.schemas.contains(TEMPORARY)
    }
}
