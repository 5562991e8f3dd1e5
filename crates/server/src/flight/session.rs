//! A session: what a client has between its requests, whatever connection they come over.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use alluvium::Outcome;
use alluvium::unstable::{ClientInfo, SessionParts};
use parking_lot::Mutex;
use tokio::sync::{Mutex as Turns, OwnedMutexGuard};
use tonic::{Code, Status};

use super::id::Id;
use super::prepared::PreparedStatements;
use super::status;
use super::tickets::Tickets;
use crate::cancel::Cancel;
use crate::client::{Client, Panicked};
use crate::identity::Identity;
use crate::log;
use crate::registry::{Registered, Stranger};
use crate::shared::Shared;
use crate::traffic::{Outcome as Ended, Protocol, Refusal};

/// The bytes of the secret of a client.
const SECRET: usize = 32;
/// How many connections may use a session.
const CONNECTIONS: usize = 64;

/// A client that has logged in. Its statements run one after the other; the rows of earlier ones are pulled meanwhile.
pub(super) struct Session {
    pub(super) shared: Arc<Shared>,
    pub(super) identity: Identity,
    /// Its number among all clients.
    pub(super) number: i32,
    address: Option<IpAddr>,
    cancel: Arc<Cancel>,
    turns: Arc<Turns<Turn>>,
    state: Mutex<State>,
    pub(super) tickets: Tickets,
    pub(super) prepared: PreparedStatements,
}

/// What the statement that runs has.
struct Turn {
    /// `None` once the session has ended.
    client: Option<Client>,
    /// The transaction that the client has begun by a call of its own, and that its statements name.
    transaction: Option<Id>,
}

struct State {
    /// `None` once the session has ended.
    registered: Option<Registered>,
    /// How many requests are answered.
    uses: usize,
    /// How many connections have shown that they are of it.
    connections: usize,
    /// When the last request was answered, and when the last connection has gone.
    idle_since: Instant,
    alone_since: Instant,
    /// How long it may be idle.
    idle_limit: Option<Duration>,
}

/// A request of a session that is answered: while there is one the session is not idle.
pub(super) struct Use(Arc<Session>);

impl Session {
    /// A session of somebody who has just come, or has logged in.
    pub(super) fn begin(
        shared: &Arc<Shared>,
        identity: Identity,
        stranger: Stranger,
        is_encrypted: bool,
    ) -> Result<Arc<Self>, Status> {
        let address = stranger.address();
        let cancel = Arc::<Cancel>::default();
        let traffic = shared.traffic(Protocol::Flight);
        let registered = stranger
            .admit(cancel.clone(), SECRET, identity.clone())
            .inspect_err(|_| traffic.refuse(Refusal::Limit))
            .map_err(|full| status::full(&full))?;
        let mut session = shared.session(&identity).map_err(|error| status::of(&error))?;
        session.set_client(&ClientInfo {
            number: Some(registered.number),
            protocol: Protocol::Flight.name(),
            address,
        });
        session.set_typed_parameters(true);
        let (number, idle_limit) = (registered.number, session.idle_timeout());
        traffic.login(true);
        log::connected(address, &registered, is_encrypted);
        let client = Client::with_cancel(session, shared.pool.clone(), cancel.clone());
        let now = Instant::now();
        Ok(Arc::new(Self {
            shared: shared.clone(),
            identity,
            number,
            address,
            cancel,
            turns: Arc::new(Turns::new(Turn { client: Some(client), transaction: None })),
            state: Mutex::new(State {
                registered: Some(registered),
                uses: 0,
                connections: 0,
                idle_since: now,
                alone_since: now,
                idle_limit,
            }),
            tickets: Tickets::default(),
            prepared: PreparedStatements::default(),
        }))
    }

    /// A connection has shown that it is of this session.
    pub(super) fn attach(&self) -> Result<(), Status> {
        let mut state = self.state.lock();
        if state.connections >= CONNECTIONS {
            let message = format!(
                "a session has at most {CONNECTIONS} connections: close some, or log in again"
            );
            return Err(status::status(Code::ResourceExhausted, "53300", message));
        }
        state.connections += 1;
        Ok(())
    }

    /// A connection of it is gone.
    pub(super) fn detach(&self) {
        let mut state = self.state.lock();
        state.connections -= 1;
        state.alone_since = Instant::now();
    }

    /// A request begins; fails once the session has ended.
    pub(super) fn enter(self: &Arc<Self>) -> Result<Use, Status> {
        let mut state = self.state.lock();
        if state.registered.is_none() {
            return Err(ended());
        }
        state.uses += 1;
        Ok(Use(self.clone()))
    }

    /// Whether it may end: nothing is answered, and it has been idle, or without a connection for `alone`, for too long.
    pub(super) fn is_over(&self, now: Instant, alone: Duration) -> bool {
        let state = self.state.lock();
        let is_idle = state.idle_limit.is_some_and(|limit| now - state.idle_since >= limit);
        let is_alone = state.connections == 0 && now - state.alone_since >= alone;
        state.registered.is_none() || (state.uses == 0 && (is_idle || is_alone))
    }

    /// Whether it has ended.
    pub(super) fn is_ended(&self) -> bool {
        self.state.lock().registered.is_none()
    }

    /// Ends it: its transaction is rolled back, once no statement runs.
    pub(super) fn end(&self) {
        self.state.lock().registered = None;
        self.cancel.request();
        self.tickets.clear();
        self.prepared.clear();
        match self.turns.clone().try_lock_owned() {
            Ok(mut turn) => turn.client = None,
            Err(_) => {
                let turns = self.turns.clone();
                tokio::spawn(async move { turns.lock().await.client = None });
            }
        }
    }

    /// Whether its client is still let in: the role may have been dropped, or have another password.
    pub(super) fn check_let_in(&self) -> Result<(), Status> {
        match self.identity.is_let_in(&self.shared.roles()) {
            true => Ok(()),
            false => {
                let message = "the role of this session may not connect any more: log in again";
                Err(status::status(Code::Unauthenticated, "28000", message))
            }
        }
    }

    /// Runs a statement of the client, which counts as one.
    pub(super) async fn counted<R>(
        &self,
        run: impl Future<Output = Result<R, Status>>,
    ) -> Result<R, Status> {
        let mut statement = self.shared.traffic(Protocol::Flight).run();
        let done = run.await;
        statement.set(done.as_ref().map_or_else(status::outcome, |_| Ended::Done));
        done
    }

    /// Runs a call of the engine, in the transaction that the client has named, or in none. If nobody waits for it any more, it is ended.
    pub(super) async fn call<R: Send + 'static>(
        &self,
        transaction: Option<Id>,
        act: impl FnOnce(&mut alluvium::Session) -> R + Send + 'static,
    ) -> Result<R, Status> {
        let turn = self.turn(transaction).await?;
        self.run(turn, act).await
    }

    /// The next turn, for a statement of this transaction.
    async fn turn(&self, transaction: Option<Id>) -> Result<OwnedMutexGuard<Turn>, Status> {
        let mut turn = self.turns.clone().lock_owned().await;
        let client = turn.client.as_ref().ok_or_else(ended)?;
        if let Some(waiting) = client.is_refused() {
            let message = format!(
                "{waiting} statements wait until they can run, as many as may, by the limit \"waiting\": try again"
            );
            return Err(status::status(Code::ResourceExhausted, "53400", message));
        }
        if !client.is_in_transaction() {
            turn.transaction = None;
        }
        match (transaction, turn.transaction) {
            (Some(named), Some(open)) if named == open => Ok(turn),
            (None, None) => Ok(turn),
            (Some(_), _) => Err(no_transaction()),
            (None, Some(_)) => {
                let message = "a transaction is open, and the statement does not name it: name it, or end it first";
                Err(status::status(Code::FailedPrecondition, "25001", message))
            }
        }
    }

    async fn run<R: Send + 'static>(
        &self,
        mut turn: OwnedMutexGuard<Turn>,
        act: impl FnOnce(&mut alluvium::Session) -> R + Send + 'static,
    ) -> Result<R, Status> {
        self.check_let_in()?;
        let waits = Waits::begin(self.cancel.clone());
        let ended = waits.ended.clone();
        let cancel = self.cancel.clone();
        // Whoever waits may go; the session is not lost with it.
        let running = tokio::spawn(async move {
            let client = turn.client.as_mut().ok_or(Panicked)?;
            let mut call = client.begin(act)?;
            let done = client.end(&mut call).await;
            let limit = client.session().ok().map(|session| session.idle_timeout());
            let mut ended = ended.lock();
            *ended = true;
            cancel.end();
            drop(ended);
            if done.is_err() {
                turn.client = None;
            }
            drop(turn);
            done.map(|done| (done, limit))
        });
        let done = running.await.map_err(|_| status::panicked(Panicked))?;
        drop(waits);
        let (done, limit) = done.map_err(status::panicked)?;
        if let Some(limit) = limit {
            self.state.lock().idle_limit = limit;
        }
        Ok(done)
    }

    /// Begins a transaction, which statements name from then on.
    pub(super) async fn begin_transaction(&self) -> Result<Id, Status> {
        let id = Id::random()?;
        let mut turn = self.turn(None).await?;
        if turn.client.as_ref().is_some_and(Client::is_in_transaction) {
            let message = "there is already a transaction in progress: a session has one at a time";
            return Err(status::status(Code::FailedPrecondition, "25001", message));
        }
        // Of one that cannot be begun, the next turn removes it.
        turn.transaction = Some(id);
        let begun = self.run(turn, |session| session.execute("BEGIN").map(drop)).await?;
        begun.map_err(|error| status::of(&error))?;
        Ok(id)
    }

    /// Commits the transaction, or rolls it back.
    ///
    /// # Errors
    /// If it is not open, or if it is committed after a statement of it has failed, and is rolled back by that.
    pub(super) async fn end_transaction(&self, id: Id, commits: bool) -> Result<(), Status> {
        let command = if commits { "COMMIT" } else { "ROLLBACK" };
        let outcomes = self.call(Some(id), move |session| session.execute(command)).await?;
        let outcomes = outcomes.map_err(|error| status::of(&error))?;
        match outcomes.last() {
            Some(Outcome::RolledBack) if commits => {
                let message =
                    "the transaction was rolled back, because a statement of it had failed";
                Err(status::status(Code::Aborted, "25P02", message))
            }
            _ => Ok(()),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        log::disconnected(self.number, &self.identity, self.address);
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.uses -= 1;
        state.idle_since = Instant::now();
    }
}

/// Somebody who waits for a call. The call is ended if nobody does.
struct Waits {
    cancel: Arc<Cancel>,
    /// Whether the call has ended.
    ended: Arc<Mutex<bool>>,
}

impl Waits {
    fn begin(cancel: Arc<Cancel>) -> Self {
        cancel.begin();
        Self { cancel, ended: Arc::default() }
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        // Locked, lest the next call begins meanwhile and is ended in its place.
        let ended = self.ended.lock();
        if !*ended {
            self.cancel.request();
        }
    }
}

/// The status of a session that has ended.
pub(super) fn ended() -> Status {
    let message =
        "the session has ended, by its client or because it was idle for too long: log in again";
    status::status(Code::Unauthenticated, "57P05", message)
}

pub(super) fn no_transaction() -> Status {
    let message = "the transaction is not open: it has ended, or is of another session";
    status::status(Code::FailedPrecondition, "25P01", message)
}
