//! One connection, from its first byte to its last. Requests come over it beside each other.

use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{Mutex as Turns, Notify};
use tonic::Status;

use super::service::Flight;
use super::session::Session;
use super::status;
use crate::identity::Identity;
use crate::registry::{Full, Stranger};
use crate::shared::Shared;

/// A connection, and the sessions that requests over it have shown.
pub(super) struct Connection {
    flight: Arc<Flight>,
    pub(super) address: Option<IpAddr>,
    is_encrypted: bool,
    state: Mutex<State>,
    /// Wakes who waits for it to be known.
    known: Notify,
    /// Its logins come one after the other, lest guesses are answered beside each other.
    pub(super) logins: Turns<()>,
}

#[derive(Default)]
struct State {
    /// `None` once a request has shown who it is.
    stranger: Option<Stranger>,
    /// Those that requests have shown.
    sessions: Vec<Arc<Session>>,
    /// That of requests without a token.
    own: Option<Arc<Session>>,
}

impl Connection {
    /// A connection of which nothing is known yet.
    pub(super) fn new(flight: Arc<Flight>, stranger: Stranger, is_encrypted: bool) -> Self {
        let address = stranger.address();
        let state = Mutex::new(State { stranger: Some(stranger), ..State::default() });
        let (known, logins) = (Notify::new(), Turns::new(()));
        Self { flight, address, is_encrypted, state, known, logins }
    }

    /// Whether a request has shown who it is.
    pub(super) fn is_known(&self) -> bool {
        self.state.lock().stranger.is_none()
    }

    /// Waits until a request has shown who it is.
    pub(super) async fn is_known_at_last(&self) {
        while !self.is_known() {
            self.known.notified().await;
        }
    }

    /// A new session of somebody.
    pub(super) fn begin(&self, identity: Identity) -> Result<Arc<Session>, Status> {
        let shared: &Arc<Shared> = &self.flight.shared;
        let stranger = match self.state.lock().stranger.take() {
            Some(stranger) => stranger,
            None => {
                shared.registry.connect(self.address).map_err(|full: Full| status::full(&full))?
            }
        };
        self.known.notify_one();
        let session = Session::begin(shared, identity, stranger, self.is_encrypted)?;
        self.attach(&session)?;
        Ok(session)
    }

    /// The session of requests without a token.
    pub(super) fn own(&self) -> Result<Arc<Session>, Status> {
        let own = self.state.lock().own.clone();
        if let Some(own) = own.filter(|own| !own.is_ended()) {
            return Ok(own);
        }
        let session = self.begin(Identity::everybody())?;
        self.flight.sessions.add_of_connection(session.clone());
        let mut state = self.state.lock();
        // Requests beside each other begin one.
        if let Some(other) = state.own.clone().filter(|own| !own.is_ended()) {
            drop(state);
            self.flight.sessions.end(&session);
            return Ok(other);
        }
        state.own = Some(session.clone());
        Ok(session)
    }

    /// A request has shown that it is of this session.
    pub(super) fn attach(&self, session: &Arc<Session>) -> Result<(), Status> {
        let mut state = self.state.lock();
        if state.sessions.iter().any(|other| Arc::ptr_eq(other, session)) {
            return Ok(());
        }
        session.attach()?;
        state.sessions.retain(|other| {
            let is_ended = other.is_ended();
            if is_ended {
                other.detach();
            }
            !is_ended
        });
        state.sessions.push(session.clone());
        drop(state.stranger.take());
        drop(state);
        self.known.notify_one();
        Ok(())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let state = self.state.get_mut();
        state.sessions.iter().for_each(|session| session.detach());
        if let Some(own) = &state.own {
            self.flight.sessions.end(own);
        }
    }
}
