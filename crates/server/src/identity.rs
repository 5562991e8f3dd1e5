//! Who a client is.

use std::sync::Arc;

use alluvium::{Role, Roles, Session};

/// Who a client is that has logged in: a role, or, as long as there are none, everybody, who has all rights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// `None` is everybody.
    pub(crate) role: Option<Arc<str>>,
    pub(crate) is_superuser: bool,
    /// How many connections the role may have.
    pub(crate) connection_limit: Option<u32>,
    /// The numbers of the role and of its password.
    pub(crate) ids: (u64, u64),
    /// The number of the token or cookie that it has shown, if it has shown one that can be revoked.
    pub(crate) token: Option<u64>,
}

impl Identity {
    /// Everybody.
    pub(crate) fn everybody() -> Self {
        Self { role: None, is_superuser: true, connection_limit: None, ids: (0, 0), token: None }
    }

    /// A role.
    pub(crate) fn of(role: &Role) -> Self {
        Self {
            role: Some(role.name.as_str().into()),
            is_superuser: role.is_superuser,
            connection_limit: role.connection_limit,
            ids: (role.id(), role.password_id()),
            token: None,
        }
    }

    /// Whether the role is still the same, with the same password.
    pub(crate) fn is_still(&self, roles: &Roles) -> bool {
        let role = self.role.as_ref().and_then(|role| roles.get(role));
        role.is_some_and(|role| (role.id(), role.password_id()) == self.ids)
    }

    /// Whether these roles let it in: everybody if there are none, or else a role that has still the password that it had.
    pub(crate) fn is_let_in(&self, roles: &Roles) -> bool {
        match self.role() {
            None => roles.is_empty(),
            Some(role) => roles.may_connect(role) && self.is_still(roles),
        }
    }

    /// A role of this name, for tests.
    #[cfg(test)]
    pub(crate) fn named(name: &str, is_superuser: bool, connection_limit: Option<u32>) -> Self {
        Self { role: Some(name.into()), is_superuser, connection_limit, ids: (0, 0), token: None }
    }

    /// The name of the role; `None` is everybody.
    pub(crate) fn role(&self) -> Option<&Arc<str>> {
        self.role.as_ref()
    }

    /// Gives the statements of a session the rights of the role.
    pub(crate) fn enter(&self, session: &mut Session) -> alluvium::Result<()> {
        match &self.role {
            Some(role) => session.set_role(&**role),
            None => Ok(()),
        }
    }
}
