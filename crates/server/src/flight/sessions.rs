//! The sessions of a server, and the tokens by which their clients show that they are theirs.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time;
use tonic::{Code, Status};

use super::session::Session;
use super::status::status;
use crate::http::Secret;

/// How long a session stays whose last connection is gone: clients connect again without logging in again.
const ALONE: Duration = Duration::from_secs(60);
/// How often sessions are looked for that are over.
const LOOK: Duration = Duration::from_millis(500);

/// The sessions of clients that have logged in, by the number in their tokens.
#[derive(Default)]
pub(super) struct Sessions {
    by_number: Mutex<HashMap<i32, (Secret, Arc<Session>)>>,
    /// Those of connections without a login.
    others: Mutex<Vec<Arc<Session>>>,
}

impl Sessions {
    /// Adds a session, and returns its token: its number, and a random text.
    pub(super) fn add(&self, session: Arc<Session>) -> Result<String, Status> {
        let secret = Secret::random().map_err(|error| {
            status(Code::Unavailable, "58000", format!("the token cannot be made: {error}"))
        })?;
        let token = format!("{}.{}", session.number, secret.text());
        self.by_number.lock().insert(session.number, (secret, session));
        Ok(token)
    }

    /// Adds a session that goes with its connection, and has no token.
    pub(super) fn add_of_connection(&self, session: Arc<Session>) {
        self.others.lock().push(session);
    }

    /// The session of a token.
    pub(super) fn find(&self, token: &[u8]) -> Option<Arc<Session>> {
        let dot = token.iter().position(|byte| *byte == b'.')?;
        let number = std::str::from_utf8(&token[..dot]).ok()?.parse().ok()?;
        let sessions = self.by_number.lock();
        let (secret, session) = sessions.get(&number)?;
        secret.is(&token[dot + 1..]).then(|| session.clone())
    }

    /// Ends a session.
    pub(super) fn end(&self, session: &Arc<Session>) {
        self.by_number.lock().retain(|_, (_, other)| !Arc::ptr_eq(other, session));
        self.others.lock().retain(|other| !Arc::ptr_eq(other, session));
        session.end();
    }

    /// Ends the sessions that have been idle, or without a connection for `alone`, for too long.
    fn end_those_over(&self, alone: Duration) {
        let now = Instant::now();
        let mut over = Vec::new();
        let mut stays = |session: &Arc<Session>| {
            let is_over = session.is_over(now, alone);
            over.extend(is_over.then(|| session.clone()));
            !is_over
        };
        self.by_number.lock().retain(|_, (_, session)| stays(session));
        self.others.lock().retain(stays);
        over.iter().for_each(|session| session.end());
    }

    /// Looks after the sessions for as long as the server runs. Once it stops, none stays without a connection.
    pub(super) async fn look_after(self: Arc<Self>, stops: watch::Receiver<bool>) {
        let mut looks = time::interval(LOOK);
        loop {
            looks.tick().await;
            let alone = if *stops.borrow() { Duration::ZERO } else { ALONE };
            self.end_those_over(alone);
        }
    }
}
