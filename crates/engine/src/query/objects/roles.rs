//! `alluvium.roles` and `alluvium.grants`.

use std::sync::Arc;

use alluvium_sql::statement::GrantKind;
use arrow::array::{ArrayRef, Int64Array};

use super::{flags, lists, some_texts, texts};
use crate::catalog::Entries;
use crate::roles::{Role, Roles};

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

/// The owners and privileges on objects, of relations only on those that are among the entries.
pub(super) fn grants(roles: &Roles, entries: &Entries) -> Vec<ArrayRef> {
    let (mut kinds, mut names, mut grantees, mut privileges) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for ((kind, name), rights) in roles.objects() {
        if *kind == GrantKind::Relation && !entries.contains_key(name) {
            continue;
        }
        let owner = rights.owner.iter().map(|owner| (owner, "OWNER"));
        let granted = rights.granted.iter().flat_map(|(role, privileges)| {
            privileges.iter().map(move |privilege| (role, privilege.word()))
        });
        for (role, privilege) in owner.chain(granted) {
            kinds.push(kind.words().to_lowercase());
            names.push(name);
            grantees.push(role);
            privileges.push(privilege);
        }
    }
    vec![texts(kinds), texts(names), texts(grantees), texts(privileges)]
}
