//! The roles of an engine, as they are at any moment.

use std::sync::Arc;

use parking_lot::RwLock;

use super::Roles;

/// The roles of an engine. They change under the sequencer's state, and are read without it.
#[derive(Clone, Default)]
pub(crate) struct LiveRoles(Arc<RwLock<Roles>>);

impl LiveRoles {
    /// The roles of this moment.
    pub(crate) fn get(&self) -> Roles {
        self.0.read().clone()
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut Roles)) {
        change(&mut self.0.write());
    }

    pub(crate) fn set(&self, roles: Roles) {
        *self.0.write() = roles;
    }
}
