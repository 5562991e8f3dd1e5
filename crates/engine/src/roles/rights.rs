//! What a role may do.

use alluvium_sql::name;
use alluvium_sql::statement::{GrantKind, Privilege};

use super::{CREATE_CONNECTION, ObjectName, Roles, database};
use crate::authorizer::{Access, Action, Authorizer, Object};

/// The actions of a session are judged by the roles of the moment when it acts.
impl Authorizer for Roles {
    fn allows(&self, access: &Access<'_>) -> bool {
        let Access { role, action, object, .. } = *access;
        match self.get(role) {
            // It has been dropped.
            None => false,
            Some(role) if role.is_superuser => true,
            Some(_) => match object {
                Object::Relation(name) => of_relation(self, role, action, name),
                Object::Schema(name) => of_schema(self, role, action, name),
                Object::Sequence(name) => of_sequence(self, role, action, name),
                Object::Function(name) => match action {
                    // Functions are in no schema of their own.
                    Action::Create => may_create_in(self, role, name::SCHEMA),
                    _ => owns(self, role, &(GrantKind::Function, name.to_owned())),
                },
                // It says which of the stored secrets it is.
                Object::Secret(_) if action == Action::Create => false,
                Object::Secret(name) => of_named(self, role, action, (GrantKind::Secret, name)),
                Object::Connection(_) if action == Action::Create => {
                    self.is_member(role, CREATE_CONNECTION)
                }
                Object::Connection(name) => {
                    of_named(self, role, action, (GrantKind::Connection, name))
                }
            },
        }
    }
}

/// Whether clients may connect as this role.
pub(super) fn may_connect(roles: &Roles, role: &str) -> bool {
    let is_let_in = roles.get(role).is_some_and(|role| role.can_login);
    is_let_in && (roles.is_superuser(role) || has(roles, role, &database(), &[Privilege::Connect]))
}

/// Whether a role owns an object, or is a member of the role that does.
pub(super) fn owns(roles: &Roles, role: &str, object: &ObjectName) -> bool {
    roles.is_superuser(role)
        || roles.owner(object).is_some_and(|owner| roles.effective(role).contains(owner))
}

fn has(roles: &Roles, role: &str, object: &ObjectName, privileges: &[Privilege]) -> bool {
    roles.rights_on(object).gives(&roles.effective(role), privileges)
}

fn schema_of(object: &str) -> ObjectName {
    (GrantKind::Schema, name::split(object).0)
}

/// Whether a role may name what is in the schema of an object. Privileges on the rows of a schema let it do so, too.
fn may_use(roles: &Roles, role: &str, schema: &ObjectName) -> bool {
    const ANY: [Privilege; 6] = [
        Privilege::Usage,
        Privilege::Create,
        Privilege::Select,
        Privilege::Insert,
        Privilege::Update,
        Privilege::Delete,
    ];
    owns(roles, role, schema) || has(roles, role, schema, &ANY)
}

pub(super) fn may_create_in(roles: &Roles, role: &str, schema: &str) -> bool {
    let schema = (GrantKind::Schema, schema.to_owned());
    owns(roles, role, &schema) || has(roles, role, &schema, &[Privilege::Create])
}

fn of_relation(roles: &Roles, role: &str, action: Action, relation: &str) -> bool {
    let schema = schema_of(relation);
    let object = (GrantKind::Relation, relation.to_owned());
    let privilege = match action {
        Action::Create if name::is_temporary(relation) => {
            return has(roles, role, &database(), &[Privilege::Temporary]);
        }
        Action::Create => return may_create_in(roles, role, &schema.1),
        Action::Alter => return owns(roles, role, &object),
        Action::Drop => return owns(roles, role, &object) || owns(roles, role, &schema),
        Action::Select | Action::Subscribe => Privilege::Select,
        Action::Insert => Privilege::Insert,
        Action::Update => Privilege::Update,
        Action::Delete => Privilege::Delete,
        // That is of what connectors name.
        Action::Use => return false,
    };
    may_use(roles, role, &schema)
        && (owns(roles, role, &object)
            || has(roles, role, &object, &[privilege])
            || has(roles, role, &schema, &[privilege]))
}

fn of_schema(roles: &Roles, role: &str, action: Action, schema: &str) -> bool {
    match action {
        Action::Create => has(roles, role, &database(), &[Privilege::Create]),
        Action::Select => may_use(roles, role, &(GrantKind::Schema, schema.to_owned())),
        _ => owns(roles, role, &(GrantKind::Schema, schema.to_owned())),
    }
}

/// Of what connectors name.
fn of_named(roles: &Roles, role: &str, action: Action, (kind, name): (GrantKind, &str)) -> bool {
    let object = (kind, name.to_owned());
    owns(roles, role, &object)
        || action == Action::Use && has(roles, role, &object, &[Privilege::Usage])
}

fn of_sequence(roles: &Roles, role: &str, action: Action, sequence: &str) -> bool {
    let schema = schema_of(sequence);
    let object = (GrantKind::Sequence, sequence.to_owned());
    let privileges = match action {
        Action::Create => return may_create_in(roles, role, &schema.1),
        Action::Select => [Privilege::Select, Privilege::Usage],
        Action::Update => [Privilege::Update, Privilege::Usage],
        _ => return owns(roles, role, &object) || owns(roles, role, &schema),
    };
    may_use(roles, role, &schema)
        && (owns(roles, role, &object) || has(roles, role, &object, &privileges))
}
