//! The right to receive changes.

use crate::authorizer::{Action, Object};
use crate::error::{Error, Result};
use crate::roles::{LiveRoles, Role, Roles};

/// The right of a role to the changes of a relation, which it may lose while it receives them.
pub(crate) struct Permission {
    role: String,
    /// The number of the role: another one may get its name.
    id: u64,
    live: LiveRoles,
    /// The roles that gave it the right when it was asked for last.
    known: Option<Roles>,
}

impl Permission {
    /// Of a role.
    pub(crate) fn new(role: String, live: LiveRoles) -> Self {
        let id = live.get().get(&role).map_or(0, Role::id);
        Self { role, id, live, known: None }
    }

    /// Fails if the role may not have changes of the relation any more.
    pub(super) fn check(&mut self, relation: &str) -> Result<()> {
        let roles = self.live.get();
        if self.known.as_ref().is_some_and(|known| known.is(&roles)) {
            return Ok(());
        }
        let is_same = roles.get(&self.role).is_some_and(|role| role.id() == self.id);
        if !is_same || !roles.may(&self.role, Action::Subscribe, Object::Relation(relation)) {
            let role = &self.role;
            return Err(Error::denied(format!(
                "the role \"{role}\" may not SUBSCRIBE to \"{relation}\" any more"
            )));
        }
        self.known = Some(roles);
        Ok(())
    }
}
