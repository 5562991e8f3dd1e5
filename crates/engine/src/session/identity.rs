//! Who a session is: the role that its client has logged in as, and the one that its statements are judged by.

use std::sync::Arc;

use alluvium_sql::statement::{ConnectorDefinition, Named, RoleChange};

use super::rights::KnownUses;
use super::settings::SessionRoles;
use super::{Outcome, Session};
use crate::authorizer::{Action, Authorizer, Object, Rights};
use crate::error::{Error, Result};
use crate::file_access::{FileAccess, Purpose};
use crate::roles::{HeldRole, READ_FILES, Role, Roles, WRITE_FILES, no_role};

/// The roles of a session.
pub(super) struct Identity {
    /// The one that the client has logged in as.
    login: HeldRole,
    /// The one of the session: another one after SET SESSION AUTHORIZATION.
    session: HeldRole,
    /// The one whose rights its statements have: another one after SET ROLE.
    current: HeldRole,
    /// The roles by which its rights were found, and the revision of the open transaction's edits in them.
    known: Option<(Roles, usize)>,
    /// Which files it may use as far as its role is concerned.
    reads_files: bool,
    writes_files: bool,
}

impl Identity {
    fn new(role: &Role) -> Self {
        let login = HeldRole::of(role);
        let (session, current) = (login.clone(), login.clone());
        let (known, reads_files, writes_files) = Default::default();
        Self { login, session, current, known, reads_files, writes_files }
    }

    /// Whether all of its roles are still there, and it may still have them.
    fn is_in(&self, roles: &Roles) -> bool {
        let may = |role: &HeldRole, is_of_session| {
            let role = roles.get(&role.name).filter(|_| role.is_in(roles));
            role.is_some_and(|role| self.may_become(role, is_of_session, roles))
        };
        self.login.is_in(roles) && may(&self.session, true) && may(&self.current, false)
    }

    /// Whether it may have this role, as that of the session or as that of its statements.
    fn may_become(&self, role: &Role, is_of_session: bool, roles: &Roles) -> bool {
        match is_of_session {
            true => {
                let login = roles.get(&self.login.name);
                role.name == self.login.name || login.is_some_and(|login| login.is_superuser)
            }
            false => roles.is_member(&self.session.name, &role.name),
        }
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
        let (name, roles) = (role.into(), self.live_roles());
        let role = roles.get(&name).ok_or_else(|| no_role(&name))?;
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
        self.held_role().map(|role| &*role.name)
    }

    /// As [`Session::current_role`], with what tells it from a later one of its name.
    pub(super) fn held_role(&self) -> Option<&HeldRole> {
        Some(&self.identity.as_ref()?.current)
    }

    pub(super) fn live_roles(&self) -> Roles {
        self.instance().reader.sequencer.roles().get()
    }

    /// The roles as the session sees them, with the edits of its open transaction.
    pub(super) fn roles(&self) -> Roles {
        let roles = self.live_roles();
        match self.transaction.as_ref().and_then(|open| open.definitions()) {
            Some(staged) => staged.roles(roles),
            None => roles,
        }
    }

    /// Finds the rights of the session again if roles have changed.
    pub(super) fn update_rights(&mut self) {
        let Some(identity) = &self.identity else { return };
        let staged = self.transaction.as_ref().and_then(|open| open.definitions());
        let edits = staged.map_or(0, |staged| staged.roles_revision());
        let roles = self.live_roles();
        let is_known = |(known, count): &(Roles, usize)| known.is(&roles) && *count == edits;
        if identity.known.as_ref().is_some_and(is_known) {
            return;
        }
        let known = Some((roles, edits));
        let roles = self.roles();
        let Some(identity) = &mut self.identity else { return };
        let current = identity.current.name.clone();
        identity.known = known;
        // A role that another one has the name of may do nothing, and neither may one that the session is not permitted any more.
        let roles = if identity.is_in(&roles) { roles } else { Roles::default() };
        identity.reads_files = roles.is_member(&current, READ_FILES);
        identity.writes_files = roles.is_member(&current, WRITE_FILES);
        let is_superuser = roles.get(&current).is_some_and(|role| role.is_superuser);
        let session = identity.session.name.clone();
        self.settings.set_roles(Some(SessionRoles {
            current: current.clone(),
            session,
            is_superuser,
        }));
        // Nothing is asked for a superuser, as in a session without a role.
        self.rights = (!is_superuser).then(|| {
            let authorizer: Arc<dyn Authorizer> = Arc::new(roles);
            Box::new(Rights::new(current, authorizer).with_generated_sequences())
        });
        self.known_uses = KnownUses::default();
    }

    pub(super) fn change_role(&mut self, change: &RoleChange) -> Result<Outcome> {
        self.check_has_roles()?;
        let roles = self.roles();
        let find = |Named { name, position }: &Named| {
            roles.get(name).ok_or_else(|| no_role(name).at(*position))
        };
        let role = change.role.as_ref().map(find).transpose()?;
        match (&mut self.identity, role) {
            (None, None) => return Ok(Outcome::Done),
            // Whoever may do everything may be any role, and does not come back.
            (None, Some(role)) => self.identity = Some(Box::new(Identity::new(role))),
            (Some(identity), role) => {
                let role = match role {
                    None if change.is_of_session => identity.login.clone(),
                    None => identity.session.clone(),
                    Some(role) => {
                        let is_allowed = identity.may_become(role, change.is_of_session, &roles);
                        if let Some(named) = change.role.as_ref().filter(|_| !is_allowed) {
                            let (session, name) = (&identity.session.name, &role.name);
                            let message =
                                format!("\"{session}\" may not become the role \"{name}\"");
                            return Err(Error::denied(message).at(named.position));
                        }
                        HeldRole::of(role)
                    }
                };
                if change.is_of_session {
                    identity.session = role.clone();
                }
                identity.current = role;
                identity.known = None;
            }
        }
        self.update_rights();
        Ok(Outcome::Done)
    }

    /// The role is the one again that the session began with.
    pub(super) fn reset_role(&mut self) {
        if let Some(identity) = &mut self.identity {
            identity.session = identity.login.clone();
            identity.current = identity.login.clone();
            identity.known = None;
            self.update_rights();
        }
    }

    /// Fails unless the session may connect to a system as a connector says: as a superuser, by a connection that its role may use or,
    /// without a role, if it may use all files.
    pub(super) fn check_connects(&self, connector: &ConnectorDefinition) -> Result<()> {
        match (&self.rights, &connector.connection) {
            (Some(rights), Some(connection)) => {
                rights.check(Action::Use, Object::Connection(&connection.name), &[])
            }
            (None, _) if *self.file_access != FileAccess::Nothing => Ok(()),
            _ => {
                let transport = &connector.transport.value;
                let message = format!("only a superuser may use the transport \"{transport}\"");
                Err(Error::denied(message))
            }
        }
    }

    /// Fails if the session has no role and may use no files, so that it may not say what other systems are.
    pub(super) fn check_reaches_others(&self) -> Result<()> {
        match self.rights.is_none() && *self.file_access == FileAccess::Nothing && !self.is_redoing
        {
            true => Err(Error::denied("this session may use no files and other systems")),
            false => Ok(()),
        }
    }

    /// The files that the session may use for a purpose.
    pub(super) fn file_access(&self, purpose: Purpose) -> &FileAccess {
        match (&self.private_files, &self.identity) {
            (Some(private), _) if purpose == Purpose::Read => private,
            (_, Some(identity)) if !identity.may_use_files(purpose) => &FileAccess::Nothing,
            _ => &self.file_access,
        }
    }
}
