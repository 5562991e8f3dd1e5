//! `alluvium.roles` and `alluvium.grants`.

use std::sync::Arc;

use alluvium_sql::name::split;
use alluvium_sql::statement::GrantKind;
use arrow::array::{ArrayRef, Int64Array};

use super::{flags, lists, some_texts, texts};
use crate::catalog::Entries;
use crate::roles::{Role, Roles, is_there};

/// The roles. All may know them, but for their verifiers.
pub(super) fn of(roles: &Roles) -> Vec<ArrayRef> {
    let limits = roles.iter().map(|role| role.connection_limit.map(i64::from));
    let member_of = |role: &str| roles.member_of(role).map(str::to_owned).collect::<Vec<_>>();
    let member_of: Vec<Vec<String>> = roles.iter().map(|role| member_of(&role.name)).collect();
    vec![
        texts(roles.iter().map(|role| &role.name)),
        flags(roles.iter().map(|role| role.is_superuser)),
        flags(roles.iter().map(|role| role.can_create_roles)),
        flags(roles.iter().map(|role| role.can_login)),
        Arc::new(limits.collect::<Int64Array>()),
        some_texts(roles.iter().map(Role::valid_until_text)),
        flags(roles.iter().map(|role| role.verifier.is_some())),
        lists(&member_of),
    ]
}

/// The owners and privileges on objects that are among the entries, and on the database. All have some on that and on the default schema
/// at first.
pub(super) fn grants(roles: &Roles, entries: &Entries) -> Vec<ArrayRef> {
    let (mut kinds, mut names, mut grantees, mut privileges) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut schemas, mut objects) = (Vec::new(), Vec::new());
    let at_first = roles.at_first();
    let all = roles.objects().chain(at_first.iter().map(|(object, rights)| (object, rights)));
    for (object, rights) in all.filter(|(object, _)| is_there(entries, object)) {
        let (kind, name) = object;
        let (schema, own) = match kind {
            GrantKind::Relation | GrantKind::Sequence => {
                let (schema, own) = split(name);
                (Some(schema), own)
            }
            _ => (None, name.clone()),
        };
        let owner = rights.owner.iter().map(|owner| (owner, "OWNER"));
        let granted = rights.granted.iter().flat_map(|(role, privileges)| {
            privileges.iter().map(move |privilege| (role, privilege.word()))
        });
        for (role, privilege) in owner.chain(granted) {
            kinds.push(kind.words().to_lowercase());
            names.push(name);
            grantees.push(role);
            privileges.push(privilege);
            schemas.push(schema.clone());
            objects.push(own.clone());
        }
    }
    vec![
        texts(kinds),
        texts(names),
        texts(grantees),
        texts(privileges),
        some_texts(schemas),
        texts(objects),
    ]
}
