//! The rights that roles have on an object.

use std::collections::{BTreeMap, BTreeSet};

use alluvium_sql::name::SCHEMA;
use alluvium_sql::statement::{GrantKind, PUBLIC, Privilege};

use super::ObjectName;

/// The owner of an object, and the privileges of roles on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ObjectRights {
    /// It may do everything with the object. `None` are the superusers.
    pub(crate) owner: Option<String>,
    /// By role; [`PUBLIC`] is all.
    pub(crate) granted: BTreeMap<String, BTreeSet<Privilege>>,
}

impl ObjectRights {
    /// The rights that an object has at first: all may connect to the database, and name what is in the default schema.
    pub(super) fn at_first((kind, name): &ObjectName) -> Self {
        let public = match kind {
            GrantKind::Database => [Privilege::Connect, Privilege::Temporary].into(),
            GrantKind::Schema if name == SCHEMA => [Privilege::Usage].into(),
            _ => return Self::default(),
        };
        Self { owner: None, granted: [(PUBLIC.to_owned(), public)].into() }
    }

    /// Whether one of these roles, or all roles, have one of the privileges.
    pub(super) fn gives(&self, roles: &BTreeSet<&str>, privileges: &[Privilege]) -> bool {
        let is_theirs = |role: &str| role == PUBLIC || roles.contains(role);
        let mut theirs = self.granted.iter().filter(|(role, _)| is_theirs(role));
        theirs.any(|(_, granted)| privileges.iter().any(|privilege| granted.contains(privilege)))
    }

    /// Gives a role privileges, or takes them.
    pub(super) fn grant(&mut self, role: &str, privileges: &BTreeSet<Privilege>, revokes: bool) {
        let granted = self.granted.entry(role.to_owned()).or_default();
        match revokes {
            true => granted.retain(|privilege| !privileges.contains(privilege)),
            false => granted.extend(privileges),
        }
        if granted.is_empty() {
            self.granted.remove(role);
        }
    }
}
