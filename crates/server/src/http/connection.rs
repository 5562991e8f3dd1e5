//! One connection, from its first byte to its last.

use std::net::IpAddr;
use std::sync::Arc;

use axum::http::StatusCode;
use parking_lot::Mutex;

use super::problem::Problem;
use crate::cancel::Cancel;
use crate::identity::Identity;
use crate::log;
use crate::registry::{Registered, Stranger};
use crate::traffic::{Refusal, Traffic};

/// The bytes of the secret of a client.
const SECRET: usize = 32;

/// A connection. Its requests come one after the other; each has a session of its own.
pub(super) struct Connection {
    /// Ends the statement of the request that is answered.
    pub(super) cancel: Arc<Cancel>,
    /// Where its client is.
    pub(super) address: Option<IpAddr>,
    /// Whether it is encrypted.
    pub(super) is_encrypted: bool,
    admission: Mutex<Admission>,
    /// Counts whether it is let in.
    traffic: Arc<Traffic>,
}

/// How far a connection has come.
enum Admission {
    /// No request has shown yet who it is.
    Stranger(Stranger),
    /// It counts as a client, and is known to others until it is dropped.
    Client(Registered),
    /// There were too many clients.
    Refused,
}

impl Connection {
    /// A connection of which nothing is known yet.
    pub(super) fn new(stranger: Stranger, is_encrypted: bool, traffic: Arc<Traffic>) -> Self {
        let address = stranger.address();
        let admission = Mutex::new(Admission::Stranger(stranger));
        Self { cancel: Arc::default(), address, is_encrypted, admission, traffic }
    }

    /// Its number among the clients, if it is one.
    pub(super) fn number(&self) -> Option<i32> {
        match &*self.admission.lock() {
            Admission::Client(registered) => Some(registered.number),
            Admission::Stranger(_) | Admission::Refused => None,
        }
    }

    /// A request has shown who it is: from now on the connection is one of the clients, of which there may be so many. It stays that
    /// of this client, also in the counts of roles.
    pub(super) fn admit(&self, identity: &Identity) -> Result<(), Problem> {
        let mut admission = self.admission.lock();
        match std::mem::replace(&mut *admission, Admission::Refused) {
            Admission::Stranger(stranger) => {
                // Others end its statements by the registry alone: no client learns the secret.
                let registered = stranger
                    .admit(self.cancel.clone(), SECRET, identity.clone())
                    .inspect_err(|_| self.traffic.refuse(Refusal::Limit))
                    .map_err(|full| too_many(full.to_string()))?;
                self.traffic.login(true);
                log::connected(self.address, &registered, self.is_encrypted);
                *admission = Admission::Client(registered);
            }
            Admission::Client(registered) => {
                let is_other = registered.identity != *identity;
                *admission = Admission::Client(registered);
                if is_other {
                    let detail = "the connection belongs to another client: open one for each";
                    return Err(Problem::bad(detail).last());
                }
            }
            Admission::Refused => return Err(too_many("there are too many connections")),
        }
        Ok(())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Admission::Client(registered) = self.admission.get_mut() {
            log::disconnected(registered.number, &registered.identity, self.address);
        }
    }
}

/// The problem of one connection too many.
pub(super) fn too_many(detail: impl Into<String>) -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail).with("sqlstate", "53300".into()).last()
}
