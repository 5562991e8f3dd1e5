//! The sessions of a server's clients, as `alluvium.sessions` shows them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;

use crate::clock::{Moment, moment};

/// A client of a server.
#[derive(Clone, Debug)]
pub struct ClientInfo {
    /// Its number among the clients of the server, which `current_setting('alluvium.session')` shows.
    pub number: Option<i32>,
    /// The protocol that it speaks.
    pub protocol: &'static str,
    /// Where it is; `None` for the sockets of this machine.
    pub address: Option<IpAddr>,
}

/// All sessions of clients.
#[derive(Default)]
pub(crate) struct Clients(Mutex<State>);

#[derive(Default)]
struct State {
    last: u64,
    /// By number.
    all: BTreeMap<u64, Arc<Mutex<ClientStatus>>>,
}

/// A session of a client.
#[derive(Clone)]
pub(crate) struct ClientStatus {
    /// Its number among all sessions of clients since the start.
    pub(crate) session: u64,
    pub(crate) client: Option<i32>,
    pub(crate) protocol: &'static str,
    pub(crate) address: Option<IpAddr>,
    pub(crate) role: Option<String>,
    pub(crate) application_name: String,
    pub(crate) opened: Moment,
    /// Whether it runs a call.
    pub(crate) is_active: bool,
    /// Whether the open transaction has been aborted.
    pub(crate) is_aborted: bool,
    /// The command of the last statement.
    pub(crate) command: Option<&'static str>,
    pub(crate) statements: u64,
    /// When the last call has begun.
    pub(crate) last_call: Option<Moment>,
    /// The number of the open transaction, and when it has begun.
    pub(crate) transaction: Option<(u64, Moment)>,
    /// The revision of the settings when they were looked at.
    revision: Option<u64>,
}

/// The place of a session among those of clients, until this is dropped.
pub(crate) struct OfClient {
    clients: Arc<Clients>,
    session: u64,
    status: Arc<Mutex<ClientStatus>>,
}

impl Clients {
    /// Each of them now.
    pub(crate) fn all(&self) -> Vec<ClientStatus> {
        self.0.lock().all.values().map(|status| status.lock().clone()).collect()
    }

    /// A session has become that of a client.
    pub(crate) fn add(self: &Arc<Self>, info: &ClientInfo) -> OfClient {
        let state = &mut *self.0.lock();
        state.last += 1;
        let session = state.last;
        let status = Arc::new(Mutex::new(ClientStatus {
            session,
            client: info.number,
            protocol: info.protocol,
            address: info.address,
            role: None,
            application_name: String::new(),
            opened: now(),
            is_active: false,
            is_aborted: false,
            command: None,
            statements: 0,
            last_call: None,
            transaction: None,
            revision: None,
        }));
        state.all.insert(session, status.clone());
        OfClient { clients: self.clone(), session, status }
    }
}

impl OfClient {
    /// Its number.
    pub(crate) fn session(&self) -> u64 {
        self.session
    }

    /// A call of the client begins.
    pub(crate) fn begin_call(&self) {
        let status = &mut *self.status.lock();
        (status.is_active, status.last_call) = (true, Some(now()));
    }

    /// A statement with this command begins.
    pub(crate) fn begin_statement(&self, command: &'static str) {
        let status = &mut *self.status.lock();
        status.command = Some(command);
        status.statements += 1;
    }

    /// A call has ended, with this transaction open. The role and the name of the program are asked for if the revision of the settings
    /// is another one than before.
    pub(crate) fn end_call(
        &self,
        (transaction, is_aborted): (Option<(u64, Moment)>, bool),
        revision: u64,
        names: impl FnOnce() -> (Option<String>, String),
    ) {
        let status = &mut *self.status.lock();
        (status.is_active, status.is_aborted) = (false, is_aborted);
        status.transaction = transaction;
        if status.revision != Some(revision) {
            status.revision = Some(revision);
            (status.role, status.application_name) = names();
        }
    }
}

impl Drop for OfClient {
    fn drop(&mut self) {
        self.clients.0.lock().all.remove(&self.session);
    }
}

/// The time of the system's clock. What is shown does not have to agree with the engine's.
fn now() -> Moment {
    moment(SystemTime::now()).unwrap_or_default()
}
