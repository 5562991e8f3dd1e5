//! `alluvium.sessions`: the sessions of a server's clients.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array};

use super::{numbers, some_moments, some_numbers};
use crate::query::objects::{some_texts, texts};
use crate::session::clients::ClientStatus;

/// All of them, or those of a role.
pub(super) fn columns(sessions: Vec<ClientStatus>, role: Option<&str>) -> Vec<ArrayRef> {
    let mut rows = sessions;
    rows.retain(|it| role.is_none_or(|role| it.role.as_deref() == Some(role)));
    let name = |it: &ClientStatus| Some(it.application_name.clone()).filter(|it| !it.is_empty());
    vec![
        numbers(rows.iter().map(|it| it.session)),
        Arc::new(rows.iter().map(|it| it.client).collect::<Int32Array>()),
        some_texts(rows.iter().map(|it| Some(it.protocol))),
        some_texts(rows.iter().map(|it| it.address.map(|address| address.to_string()))),
        some_texts(rows.iter().map(|it| it.role.as_deref())),
        some_texts(rows.iter().map(name)),
        texts(rows.iter().map(state)),
        some_texts(rows.iter().map(|it| it.command)),
        numbers(rows.iter().map(|it| it.statements)),
        some_moments(rows.iter().map(|it| Some(it.opened))),
        some_moments(rows.iter().map(|it| it.last_call)),
        some_numbers(rows.iter().map(|it| it.transaction.map(|(number, _)| number))),
        some_moments(rows.iter().map(|it| it.transaction.map(|(_, begun)| begun))),
    ]
}

/// As Postgres names states.
pub(super) fn state(session: &ClientStatus) -> &'static str {
    match (session.is_active, session.is_aborted, session.transaction) {
        (true, ..) => "active",
        (false, true, _) => "idle in transaction (aborted)",
        (false, false, Some(_)) => "idle in transaction",
        (false, false, None) => "idle",
    }
}
