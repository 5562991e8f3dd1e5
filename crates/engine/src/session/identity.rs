//! Who a session is: the role that its client has logged in as, and the one that its statements are judged by.

use std::sync::Arc;

use alluvium_sql::statement::{Named, RoleChange};

use super::rights::KnownUses;
use super::{Outcome, Session};
use crate::authorizer::{Action, Authorizer, Object, Rights};
use crate::error::{Error, Result, SqlState};
use crate::file_access::{FileAccess, Purpose};
use crate::roles::{READ_FILES, Roles, WRITE_FILES};

/// The roles of a session.
pub(super) struct Identity {
    /// The one that the client has logged in as.
    login: String,
    /// The one of the session: another one after SET SESSION AUTHORIZATION.
    session: String,
    /// The one whose rights its statements have: another one after SET ROLE.
    current: String,
    /// The roles by which its rights were found, and how many edits of the open transaction are in them.
    known: Option<(Roles, usize)>,
    /// Which files it may use as far as its role is concerned.
    reads_files: bool,
    writes_files: bool,
}

impl Identity {
    fn new(role: String) -> Self {
        let (session, current) = (role.clone(), role.clone());
        let (known, reads_files, writes_files) = Default::default();
        Self { login: role, session, current, known, reads_files, writes_files }
    }

    /// Whether its role may have the engine use files.
    pub(super) fn may_use_files(&self, purpose: Purpose) -> bool {
        match purpose {
            Purpose::Read => self.reads_files,
            Purpose::Write => self.writes_files,
        }
    }
}

impl Session {
    /// Makes the session that of a [role](crate::Role): from now on its statements may do what that role may. SET ROLE can then make it a
    /// role that this one is a member of, and what the session creates belongs to its role. Rights are asked for at each statement, so
    /// grants and revocations take effect at the next one; a role that is dropped may do nothing.
    ///
    /// Files that the session [may use](Session::set_file_access) are used only for roles that are superusers, or members of
    /// `pg_read_server_files` and `pg_write_server_files`.
    ///
    /// Fails if there is no such role. Takes the place of an [authorizer](Session::set_authorizer).
    pub fn set_role(&mut self, role: impl Into<String>) -> Result<()> {
        let role = role.into();
        if self.live_roles().get(&role).is_none() {
            return Err(no_role(&role));
        }
        self.identity = Some(Box::new(Identity::new(role)));
        self.update_rights();
        Ok(())
    }

    /// Whether the session may do this to an object now.
    pub fn may(&mut self, action: Action, object: Object<'_>) -> bool {
        self.update_rights();
        self.rights.as_ref().is_none_or(|rights| rights.check(action, object, &[]).is_ok())
    }

    /// The role whose rights the statements of the session have, if it [has one](Session::set_role).
    pub(super) fn current_role(&self) -> Option<&str> {
        Some(&self.identity.as_ref()?.current)
    }

    fn live_roles(&self) -> Roles {
        self.instance().reader.sequencer.roles().get()
    }

    /// The roles as the session sees them, with the edits of its open transaction.
    pub(super) fn roles(&self) -> Roles {
        let mut roles = self.live_roles();
        self.role_edits().iter().for_each(|edit| roles.edit(edit));
        roles
    }

    /// Finds the rights of the session again if roles have changed.
    pub(super) fn update_rights(&mut self) {
        let Some(identity) = &self.identity else { return };
        let (roles, edits) = (self.live_roles(), self.role_edits().len());
        let is_known = |(known, count): &(Roles, usize)| known.is(&roles) && *count == edits;
        if identity.known.as_ref().is_some_and(is_known) {
            return;
        }
        let known = Some((roles, edits));
        let roles = self.roles();
        let Some(identity) = &mut self.identity else { return };
        let current = identity.current.clone();
        identity.known = known;
        identity.reads_files = roles.is_member(&current, READ_FILES);
        identity.writes_files = roles.is_member(&current, WRITE_FILES);
        self.settings.roles = Some((current.clone(), identity.session.clone()));
        let is_superuser = roles.get(&current).is_some_and(|role| role.is_superuser);
        // Nothing is asked for a superuser, as in a session without a role.
        self.rights = (!is_superuser).then(|| {
            let authorizer: Arc<dyn Authorizer> = Arc::new(roles);
            Box::new(Rights::new(current, authorizer))
        });
        self.known_uses = KnownUses::default();
    }

    pub(super) fn change_role(&mut self, change: &RoleChange) -> Result<Outcome> {
        let roles = self.roles();
        let Some(identity) = &mut self.identity else {
            let Some(Named { name, position }) = &change.role else { return Ok(Outcome::Done) };
            if roles.get(name).is_none() {
                return Err(no_role(name).at(*position));
            }
            // Whoever may do everything may be any role, and does not come back.
            self.identity = Some(Box::new(Identity::new(name.clone())));
            self.update_rights();
            return Ok(Outcome::Done);
        };
        let role = match &change.role {
            None if change.is_of_session => identity.login.clone(),
            None => identity.session.clone(),
            Some(Named { name, position }) => {
                if roles.get(name).is_none() {
                    return Err(no_role(name).at(*position));
                }
                let is_superuser = roles.get(&identity.login).is_some_and(|role| role.is_superuser);
                let is_allowed = match change.is_of_session {
                    true => is_superuser || *name == identity.login,
                    false => roles.is_member(&identity.session, name),
                };
                if !is_allowed {
                    let message =
                        format!("\"{}\" may not become the role \"{name}\"", identity.session);
                    return Err(Error::denied(message).at(*position));
                }
                name.clone()
            }
        };
        if change.is_of_session {
            identity.session.clone_from(&role);
        }
        identity.current = role;
        identity.known = None;
        self.update_rights();
        Ok(Outcome::Done)
    }

    /// The role is the one again that the session began with.
    pub(super) fn reset_role(&mut self) {
        if let Some(identity) = &mut self.identity {
            identity.session.clone_from(&identity.login);
            identity.current.clone_from(&identity.login);
            identity.known = None;
            self.update_rights();
        }
    }

    /// The files that the session may use for a purpose.
    pub(super) fn file_access(&self, purpose: Purpose) -> &FileAccess {
        match &self.identity {
            Some(identity) if !identity.may_use_files(purpose) => &FileAccess::Nothing,
            _ => &self.file_access,
        }
    }
}

fn no_role(name: &str) -> Error {
    Error::sql(format!("there is no role \"{name}\"")).with_sqlstate(SqlState::NO_OBJECT)
}
