//! A role.

use std::fmt;

use alluvium_sql::statement::{Password, RoleOptions};

use super::Roles;
use crate::clock::Moment;

/// A role: who may connect, and as what its statements are judged.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Role {
    /// Its name.
    pub name: String,
    /// Whether it may do everything.
    pub is_superuser: bool,
    /// Whether it may create, alter and drop roles that are no superusers.
    pub can_create_roles: bool,
    /// Whether clients may connect as this role.
    pub can_login: bool,
    /// How many clients may be connected as this role; `None` is any number.
    pub connection_limit: Option<u32>,
    /// What a password is checked with, in the text form of Postgres: `SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey`. Without it
    /// no password is right.
    pub verifier: Option<String>,
    /// From when on no password is right, in microseconds since 1970; `None` is never.
    pub valid_until: Option<Moment>,
    /// Those that [`Role::id`] and [`Role::password_id`] tell.
    pub(super) id: u64,
    pub(super) password_id: u64,
}

/// Without the verifier.
impl fmt::Debug for Role {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Role")
            .field("name", &self.name)
            .field("is_superuser", &self.is_superuser)
            .field("can_create_roles", &self.can_create_roles)
            .field("can_login", &self.can_login)
            .field("connection_limit", &self.connection_limit)
            .field("valid_until", &self.valid_until)
            .finish_non_exhaustive()
    }
}

impl Role {
    /// A role with no options.
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            is_superuser: false,
            can_create_roles: false,
            can_login: false,
            connection_limit: None,
            verifier: None,
            valid_until: None,
            id: 0,
            password_id: 0,
        }
    }

    /// A number that no other role has had since the engine started, also none of the same name.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// A number that is another one once the role has another password; also after each start.
    pub fn password_id(&self) -> u64 {
        self.password_id
    }

    /// Whether it can always do everything, also what nobody else can do any more.
    pub(super) fn is_last_resort(&self) -> bool {
        self.is_superuser && self.can_login
    }

    /// When its password ends to be valid, as SQL has it; `None` is never.
    pub(crate) fn valid_until_text(&self) -> Option<String> {
        let until = self.valid_until.and_then(chrono::DateTime::from_timestamp_micros);
        until.map(|until| until.to_rfc3339())
    }

    /// Its options, all of them said.
    pub(super) fn options(&self) -> RoleOptions {
        let until = self.valid_until_text();
        RoleOptions {
            superuser: Some(self.is_superuser),
            create_role: Some(self.can_create_roles),
            login: Some(self.can_login),
            connection_limit: Some(self.connection_limit.map_or(-1, i64::from)),
            password: Some(self.verifier.clone().map(Password)),
            valid_until: Some(until.unwrap_or_else(|| "infinity".to_owned())),
        }
    }
}

/// A role that somebody has: later another one may have its name.
#[derive(Clone)]
pub(crate) struct HeldRole {
    pub(crate) name: String,
    id: u64,
}

impl HeldRole {
    pub(crate) fn of(role: &Role) -> Self {
        Self { name: role.name.clone(), id: role.id }
    }

    /// Whether it is still there.
    pub(crate) fn is_in(&self, roles: &Roles) -> bool {
        roles.get(&self.name).is_some_and(|role| role.id == self.id)
    }
}
