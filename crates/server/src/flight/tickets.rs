//! Tickets: what a client has been told that it can get, and what it is getting.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;
use tonic::{Code, Status};

use super::id::Id;
use super::parameters::too_much;
use super::query::Query;
use super::status::status;
use crate::cancel::Cancel;

/// How many tickets of a session may be waiting.
const MOST: usize = 256;

/// The tickets of a session. Each can be used once.
#[derive(Default)]
pub(super) struct Tickets {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waiting: HashMap<Id, Query>,
    running: HashMap<Id, Handle>,
}

/// Ends the stream of a ticket.
#[derive(Clone)]
pub(super) struct Handle {
    pub(super) cancel: Arc<Cancel>,
    pub(super) stop: watch::Sender<bool>,
}

impl Handle {
    pub(super) fn new() -> Self {
        Self { cancel: Arc::default(), stop: watch::Sender::new(false) }
    }

    /// Ends it.
    pub(super) fn end(&self) {
        self.stop.send_replace(true);
        self.cancel.request();
    }
}

impl Tickets {
    /// A ticket for a query. All that wait have at most `limit` bytes.
    pub(super) fn add(&self, query: Query, limit: usize) -> Result<Id, Status> {
        let id = Id::random()?;
        let mut state = self.state.lock();
        if state.waiting.len() >= MOST {
            let message = format!(
                "{MOST} tickets of this session have not been used: get their rows, or cancel them"
            );
            return Err(status(Code::ResourceExhausted, "54000", message));
        }
        let bytes = state.waiting.values().map(Query::bytes).sum::<usize>();
        if bytes.saturating_add(query.bytes()) > limit {
            return Err(too_much(limit));
        }
        state.waiting.insert(id, query);
        Ok(id)
    }

    /// The query of a ticket, which cannot be used again. From now on the handle ends it.
    pub(super) fn take(&self, id: Id, handle: &Handle) -> Option<Query> {
        let mut state = self.state.lock();
        let query = state.waiting.remove(&id)?;
        state.running.insert(id, handle.clone());
        Some(query)
    }

    /// The stream of a ticket has ended.
    pub(super) fn remove(&self, id: Id) {
        self.state.lock().running.remove(&id);
    }

    /// Ends what a ticket stands for; returns whether there was something.
    pub(super) fn cancel(&self, id: Id) -> bool {
        let mut state = self.state.lock();
        let running = state.running.get(&id).cloned();
        let waited = state.waiting.remove(&id);
        drop(state);
        running.iter().for_each(Handle::end);
        waited.is_some() || running.is_some()
    }

    /// Ends all of them.
    pub(super) fn clear(&self) {
        let state = std::mem::take(&mut *self.state.lock());
        state.running.values().for_each(Handle::end);
    }
}
