//! Roles, as statements change them.

use super::Sequencer;
use crate::durable::record::Record;
use crate::error::Result;
use crate::roles::{LiveRoles, RoleEdit, Roles, statements};

impl Sequencer {
    /// The roles, as they are at any moment.
    pub(crate) fn roles(&self) -> &LiveRoles {
        &self.roles
    }

    /// Records edits of roles, and makes them.
    pub(crate) fn edit_roles(&self, edits: &[RoleEdit]) -> Result<()> {
        self.poison.check()?;
        let state = self.state.lock();
        self.durable.append(&Record::role(statements(edits)))?;
        state.roles.change(|roles| edits.iter().for_each(|edit| roles.edit(edit)));
        Ok(())
    }

    /// Has rights follow a definition, which is recorded.
    pub(crate) fn change_roles(&self, change: impl FnOnce(&mut Roles)) {
        self.state.lock().roles.change(change);
    }
}
