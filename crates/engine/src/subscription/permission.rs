//! The right to receive changes.

use crate::authorizer::{Action, Object};
use crate::error::{Error, Result};
use crate::roles::{HeldRole, LiveRoles, Roles};

/// The right of a role to the changes of a relation, which it may lose while it receives them.
pub(crate) struct Permission {
    role: HeldRole,
    live: LiveRoles,
    /// The roles that gave it the right when it was asked for last.
    known: Option<Roles>,
}

impl Permission {
    /// Of a role.
    pub(crate) fn new(role: HeldRole, live: LiveRoles) -> Self {
        Self { role, live, known: None }
    }

    /// Fails if the role may not have changes of the relation any more.
    pub(super) fn check(&mut self, relation: &str) -> Result<()> {
        let roles = self.live.get();
        if self.known.as_ref().is_some_and(|known| known.is(&roles)) {
            return Ok(());
        }
        let role = &self.role.name;
        let may = roles.may(role, Action::Subscribe, Object::Relation(relation));
        if !may || !self.role.is_in(&roles) {
            return Err(Error::denied(format!(
                "the role \"{role}\" may not SUBSCRIBE to \"{relation}\" any more"
            )));
        }
        self.known = Some(roles);
        Ok(())
    }
}
