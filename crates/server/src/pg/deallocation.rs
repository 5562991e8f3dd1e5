//! DEALLOCATE, also of statements that were prepared by messages: to clients they are of one kind.

use alluvium::Statement;
use alluvium::unstable::{StatementKind, tree};

use super::connection::Connection;

/// The prepared statements that a statement removes.
pub(super) enum Deallocation {
    /// That of a name.
    One(String),
    /// All.
    All,
}

impl Deallocation {
    /// What a statement removes, if it does.
    pub(super) fn of(statement: &Statement) -> Option<Self> {
        match &tree(statement).kind {
            StatementKind::Deallocate(Some(named)) => Some(Self::One(named.name.clone())),
            StatementKind::Deallocate(None) | StatementKind::DiscardAll => Some(Self::All),
            _ => None,
        }
    }
}

impl<S> Connection<S> {
    /// Removes statements that were prepared by messages. Returns whether the session has nothing more to remove.
    pub(super) fn deallocate(&mut self, deallocation: &Deallocation) -> bool {
        // The session refuses the statement.
        if self.client.is_aborted() {
            return false;
        }
        match deallocation {
            Deallocation::One(name) => self.statements.remove(name).is_some(),
            Deallocation::All => {
                self.statements.clear();
                false
            }
        }
    }
}
