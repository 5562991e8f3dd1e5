//! What all connections of HTTP share.

use std::sync::Arc;

use alluvium::unstable::{ClientInfo, SessionParts as _};
use alluvium::{Action, Object};
use axum::http::StatusCode;
use tokio::sync::watch;

use super::caller::Caller;
use super::connection::Connection;
use super::keys::Keys;
use super::origin::Origin;
use super::problem::Problem;
use super::token::Tokens;
use crate::client::Client;
use crate::identity::Identity;
use crate::shared::Shared;
use crate::traffic::Protocol;

/// What all connections of HTTP share.
pub(super) struct Http {
    pub(super) shared: Arc<Shared>,
    pub(super) tokens: Tokens,
    /// The name of the cookie of browsers.
    pub(super) cookie: String,
    /// Names of this host, beside those that each has.
    pub(super) names: Vec<String>,
    /// The origins of other pages that may send requests.
    pub(super) origins: Vec<Origin>,
    pub(super) keys: Arc<Keys>,
    /// Whether the server stops.
    pub(super) stops: watch::Receiver<bool>,
}

impl Http {
    /// A session for a request of somebody that is a statement.
    pub(super) fn caller(
        &self,
        identity: &Identity,
        connection: &Connection,
    ) -> Result<Caller, Problem> {
        let statement = self.shared.traffic(Protocol::Http).run();
        Ok(Caller::new(self.client(identity, connection)?, Some(statement)))
    }

    /// A session for a request of somebody that counts as no statement.
    pub(super) fn uncounted(
        &self,
        identity: &Identity,
        connection: &Connection,
    ) -> Result<Caller, Problem> {
        Ok(Caller::new(self.client(identity, connection)?, None))
    }

    fn client(&self, identity: &Identity, connection: &Connection) -> Result<Client, Problem> {
        let mut session = self.shared.session(identity).map_err(|error| Problem::of(&error))?;
        let (number, address) = (connection.number(), connection.address);
        session.set_client(&ClientInfo { number, protocol: Protocol::Http.name(), address });
        let (pool, cancel) = (self.shared.pool.clone(), connection.cancel.clone());
        Ok(Client::with_cancel(session, pool, cancel))
    }

    /// Fails if somebody has none of these rights to a relation that is there.
    pub(super) fn check_right(
        &self,
        identity: &Identity,
        actions: &[Action],
        relation: &str,
    ) -> Result<(), Problem> {
        let (roles, object) = (self.shared.roles(), Object::Relation(relation));
        let Some(role) = identity.role() else { return Ok(()) };
        let may = actions.iter().any(|action| roles.may(role, *action, object));
        match may || self.shared.relation(relation).is_err() {
            true => Ok(()),
            false => {
                let detail =
                    format!("the role \"{role}\" has no right to do this with \"{relation}\"");
                Err(Problem::new(StatusCode::FORBIDDEN, detail).with("sqlstate", "42501".into()))
            }
        }
    }
}
