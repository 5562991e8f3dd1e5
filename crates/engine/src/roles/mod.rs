//! Roles: who may do what.
//!
//! [`Roles`] are all [roles](Role), the memberships between them, and the rights that they have on objects. They are a value: a
//! statement is judged by those of one moment ([`rights`]), and CREATE ROLE, GRANT and their like replace them ([`edit`]). What a
//! statement asks for is checked and resolved into edits in [`statement`]. An engine keeps its roles in the journal and in checkpoints,
//! as the [statements](Roles::statements) that make them.
//!
//! Without roles there is nobody to tell apart, and each session may do everything. The first role is a superuser, so that somebody
//! may always do everything.

mod edit;
mod live;
mod object;
mod rights;
mod role;
mod statement;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use alluvium_sql::name::{DATABASE, SCHEMA};
use alluvium_sql::statement::GrantKind;

pub(crate) use self::edit::{RoleEdit, statements};
pub(crate) use self::live::LiveRoles;
use self::object::ObjectRights;
pub(crate) use self::role::HeldRole;
pub use self::role::Role;
pub(crate) use self::statement::{Existing, edits, is_of_roles, is_there, no_role};
use crate::authorizer::{Access, Action, Authorizer, Object};

/// The role that lets its members have the server read files.
pub(crate) const READ_FILES: &str = "pg_read_server_files";

/// The role that lets its members have the server write files.
pub(crate) const WRITE_FILES: &str = "pg_write_server_files";

/// The role that lets its members create connections.
const CREATE_CONNECTION: &str = "alluvium_create_connection";

/// Roles that exist without being created, and cannot be dropped.
const PREDEFINED: [&str; 3] = [READ_FILES, WRITE_FILES, CREATE_CONNECTION];

/// An object that roles have rights on: its kind, and the name that it goes by.
pub(crate) type ObjectName = (GrantKind, String);

/// The database, as an object.
fn database() -> ObjectName {
    (GrantKind::Database, DATABASE.to_owned())
}

/// All roles of an engine at one moment, and their rights. Cloning it is cheap.
#[derive(Clone, Debug, Default)]
pub struct Roles(Arc<Inner>);

#[derive(Clone, Debug, Default)]
struct Inner {
    roles: BTreeMap<String, Role>,
    /// The roles that each one is a member of, predefined ones included.
    member_of: BTreeMap<String, BTreeSet<String>>,
    /// Objects that have owners, or other rights than at first.
    objects: BTreeMap<ObjectName, ObjectRights>,
    /// The last number of a role, or of a password.
    last: u64,
    /// How often anything but the owner of something new has changed.
    version: u64,
}

impl Roles {
    /// Whether they are the same value as others, or a copy of it.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// A number that is another one once anything has changed but the owners of what is new.
    pub(crate) fn version(&self) -> u64 {
        self.0.version
    }

    /// Whether a role, or one that it is a member of, may do everything or is predefined.
    fn is_protected(&self, name: &str) -> bool {
        let mut all = self.effective(name).into_iter();
        all.any(|role| {
            PREDEFINED.contains(&role) || self.get(role).is_some_and(|it| it.is_superuser)
        })
    }

    /// Whether there are none. Each session may do everything then.
    pub fn is_empty(&self) -> bool {
        self.0.roles.is_empty()
    }

    /// The role of this name.
    pub fn get(&self, name: &str) -> Option<&Role> {
        self.0.roles.get(name)
    }

    /// All roles, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &Role> {
        self.0.roles.values()
    }

    /// The roles that this one is a member of itself, in the order of their names.
    pub fn member_of(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.member_of.get(name).into_iter().flatten().map(String::as_str)
    }

    /// Whether a role is another one, or a member of it, directly or through others. A superuser is a member of all roles.
    pub fn is_member(&self, name: &str, of: &str) -> bool {
        self.is_superuser(name) || self.effective(name).contains(of)
    }

    /// Whether a role may do this to an object. Nobody may who is no role.
    pub fn may(&self, role: &str, action: Action, object: Object<'_>) -> bool {
        self.allows(&Access { role, action, object, columns: &[] })
    }

    /// Whether clients may connect as this role.
    pub fn may_connect(&self, name: &str) -> bool {
        rights::may_connect(self, name)
    }

    fn is_superuser(&self, name: &str) -> bool {
        self.get(name).is_some_and(|role| role.is_superuser)
    }

    /// A role, and all that it is a member of.
    fn effective<'a>(&'a self, name: &'a str) -> BTreeSet<&'a str> {
        let mut found = BTreeSet::from([name]);
        let mut left = vec![name];
        while let Some(name) = left.pop() {
            for of in self.member_of(name) {
                if found.insert(of) {
                    left.push(of);
                }
            }
        }
        found
    }

    /// The rights on an object.
    fn rights_on(&self, object: &ObjectName) -> Cow<'_, ObjectRights> {
        match self.0.objects.get(object) {
            Some(rights) => Cow::Borrowed(rights),
            None => Cow::Owned(ObjectRights::at_first(object)),
        }
    }

    /// The owner of an object. One without belongs to the superusers.
    pub(crate) fn owner(&self, object: &ObjectName) -> Option<&str> {
        self.0.objects.get(object)?.owner.as_deref()
    }

    /// The database and the default schema, if their rights are those that they have at first.
    pub(crate) fn at_first(&self) -> Vec<(ObjectName, ObjectRights)> {
        let objects = [database(), (GrantKind::Schema, SCHEMA.to_owned())];
        let objects = objects.into_iter().filter(|object| !self.0.objects.contains_key(object));
        objects.map(|object| (object.clone(), ObjectRights::at_first(&object))).collect()
    }

    /// The objects whose rights are not those that such objects have at first.
    pub(crate) fn objects(&self) -> impl Iterator<Item = (&ObjectName, &ObjectRights)> {
        self.0.objects.iter()
    }
}
