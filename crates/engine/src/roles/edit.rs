//! Edits of roles.

use std::collections::BTreeSet;
use std::sync::Arc;

use alluvium_sql::name;
use alluvium_sql::statement::{Grant, GrantKind, OwnerChange, PUBLIC, Privilege, RoleOptions};

use super::object::ObjectRights;
use super::{Inner, ObjectName, PREDEFINED, Role, Roles};
use crate::durable::record::Record;

/// A change of roles, all of whose names are resolved.
#[derive(Clone, Debug)]
pub(crate) enum RoleEdit {
    /// There is a new role.
    Create(Role),
    /// A role has these options from now on.
    Alter(Role),
    /// A role is gone, with its memberships and privileges.
    Drop(String),
    /// A role is a member of another one, or no longer.
    Member { revokes: bool, of: String, member: String },
    /// A role has privileges on an object, or no longer.
    Grant { revokes: bool, privileges: BTreeSet<Privilege>, object: ObjectName, role: String },
    /// An object has this owner.
    Own { object: ObjectName, owner: String },
    /// An object that is new has this owner, and nobody has a privilege on it.
    Claim { object: ObjectName, owner: String },
}

impl RoleEdit {
    /// The statement that makes it again.
    pub(crate) fn statement(&self) -> String {
        match self {
            Self::Create(role) => role.options().statement(&role.name, true),
            Self::Alter(role) => role.options().statement(&role.name, false),
            Self::Drop(role) => RoleOptions::dropped(role),
            Self::Member { revokes, of, member } => Grant::membership(*revokes, of, member),
            Self::Grant { revokes, privileges, object: (kind, name), role } => {
                Grant::statement(*revokes, privileges.iter().copied(), (*kind, name), role)
            }
            Self::Own { object: (kind, name), owner }
            | Self::Claim { object: (kind, name), owner } => {
                OwnerChange::statement((*kind, name), owner)
            }
        }
    }

    /// The object that it is about, if it is about one.
    pub(crate) fn object(&self) -> Option<&ObjectName> {
        match self {
            Self::Grant { object, .. } | Self::Own { object, .. } | Self::Claim { object, .. } => {
                Some(object)
            }
            _ => None,
        }
    }

    /// Has it follow the name of a relation.
    pub(crate) fn rename(&mut self, before: &str, after: &str) {
        if let Self::Grant { object, .. } | Self::Own { object, .. } | Self::Claim { object, .. } =
            self
            && object.0 == GrantKind::Relation
            && object.1 == before
        {
            after.clone_into(&mut object.1);
        }
    }
}

/// The statements that make edits again, as one text.
pub(crate) fn statements(edits: &[RoleEdit]) -> String {
    edits.iter().map(RoleEdit::statement).collect::<Vec<_>>().join(";\n")
}

impl Roles {
    /// Makes an edit. What it names and is gone by now is left out.
    pub(crate) fn edit(&mut self, edit: &RoleEdit) {
        let inner = Arc::make_mut(&mut self.0);
        inner.version += u64::from(!matches!(edit, RoleEdit::Claim { .. }));
        match edit {
            RoleEdit::Create(role) => {
                let (id, password_id) = (inner.next(), inner.next());
                inner.roles.insert(role.name.clone(), Role { id, password_id, ..role.clone() });
            }
            RoleEdit::Alter(role) => {
                let next = inner.next();
                if let Some(known) = inner.roles.get_mut(&role.name) {
                    let is_same = known.verifier == role.verifier;
                    let password_id = if is_same { known.password_id } else { next };
                    *known = Role { id: known.id, password_id, ..role.clone() };
                }
            }
            RoleEdit::Drop(role) => inner.drop(role),
            RoleEdit::Member { revokes: true, of, member } => {
                if let Some(known) = inner.member_of.get_mut(member) {
                    known.remove(of);
                }
            }
            RoleEdit::Member { revokes: false, of, member } => {
                let is_there = |role: &String| {
                    inner.roles.contains_key(role) || PREDEFINED.contains(&role.as_str())
                };
                if is_there(of) && is_there(member) {
                    inner.member_of.entry(member.clone()).or_default().insert(of.clone());
                }
            }
            RoleEdit::Grant { revokes, privileges, object, role } => {
                if role == PUBLIC || inner.roles.contains_key(role) {
                    inner.rights_mut(object).grant(role, privileges, *revokes);
                }
            }
            RoleEdit::Own { object, owner } | RoleEdit::Claim { object, owner } => {
                if let RoleEdit::Claim { .. } = edit {
                    inner.objects.remove(object);
                }
                if inner.roles.contains_key(owner) {
                    inner.rights_mut(object).owner = Some(owner.clone());
                }
            }
        }
    }

    /// Has the rights on a relation follow its name.
    pub(crate) fn rename(&mut self, before: &str, after: &str) {
        let of = |name: &str| (GrantKind::Relation, name.to_owned());
        if before != after && self.0.objects.contains_key(&of(before)) {
            let inner = Arc::make_mut(&mut self.0);
            inner.version += 1;
            if let Some(rights) = inner.objects.remove(&of(before)) {
                inner.objects.insert(of(after), rights);
            }
        }
    }

    /// Forgets the rights on a dropped object, by the name by which its definition is recorded.
    pub(crate) fn forget(&mut self, recorded: &str) {
        let is_it = |(kind, name): &ObjectName| match kind {
            GrantKind::Relation | GrantKind::Sequence => name == recorded,
            GrantKind::Schema => Record::name_of_schema(name) == recorded,
            GrantKind::Function => Record::name_of_function(name) == recorded,
            GrantKind::Secret => Record::name_of_secret(name) == recorded,
            GrantKind::Connection => Record::name_of_connection(name) == recorded,
            GrantKind::AllRelations | GrantKind::Database => false,
        };
        if self.0.objects.keys().any(is_it) {
            let inner = Arc::make_mut(&mut self.0);
            inner.version += 1;
            inner.objects.retain(|object, _| !is_it(object));
        }
    }

    /// The statements that make all of this, in an order in which they can be executed, each with a name for messages.
    pub(crate) fn statements(&self) -> Vec<(String, String)> {
        let inner = &*self.0;
        let mut all = Vec::new();
        let named = |name: &str| format!("role {}", name::spelled(name));
        for role in inner.roles.values() {
            all.push((named(&role.name), RoleEdit::Create(role.clone()).statement()));
        }
        for (member, of) in &inner.member_of {
            let memberships = of.iter().map(|of| Grant::membership(false, of, member));
            all.extend(memberships.map(|text| (named(member), text)));
        }
        for (object, rights) in &inner.objects {
            let (kind, name) = object;
            let mut note = |text| all.push((name.clone(), text));
            if let Some(owner) = &rights.owner {
                note(OwnerChange::statement((*kind, name), owner));
            }
            let all_of = |privileges: &BTreeSet<Privilege>, role: &str, revokes| {
                Grant::statement(revokes, privileges.iter().copied(), (*kind, name), role)
            };
            for (role, privileges) in &ObjectRights::at_first(object).granted {
                note(all_of(privileges, role, true));
            }
            for (role, privileges) in &rights.granted {
                note(all_of(privileges, role, false));
            }
        }
        all
    }
}

impl Inner {
    /// A number that was none before.
    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    fn drop(&mut self, role: &str) {
        self.roles.remove(role);
        self.member_of.remove(role);
        self.member_of.values_mut().for_each(|of| {
            of.remove(role);
        });
        for rights in self.objects.values_mut() {
            rights.granted.remove(role);
            if rights.owner.as_deref() == Some(role) {
                rights.owner = None;
            }
        }
    }

    fn rights_mut(&mut self, object: &ObjectName) -> &mut ObjectRights {
        let rights = self.objects.entry(object.clone());
        rights.or_insert_with(|| ObjectRights::at_first(object))
    }
}
