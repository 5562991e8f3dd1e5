//! A client of any protocol.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use alluvium::Session;
use alluvium::unstable::SessionParts as _;
use tokio::task::JoinHandle;

use crate::cancel::Cancel;
use crate::pool::Pool;

/// A client: its session, which moves to the threads of the pool and back with each call.
pub(crate) struct Client {
    /// `None` while a call runs, and after one that panicked.
    session: Option<Session>,
    pool: Arc<Pool>,
    cancel: Arc<Cancel>,
    is_in_transaction: bool,
    is_aborted: bool,
}

/// A call has panicked, and the session is lost with it.
#[derive(Debug)]
pub(crate) struct Panicked;

/// A call that runs.
pub(crate) struct Call<R>(JoinHandle<(Session, R)>);

impl Client {
    pub(crate) fn new(session: Session, pool: Arc<Pool>) -> Self {
        Self {
            session: Some(session),
            pool,
            cancel: Arc::default(),
            is_in_transaction: false,
            is_aborted: false,
        }
    }

    /// As [`Client::new`], of a client whose statements end by this handle.
    pub(crate) fn with_cancel(session: Session, pool: Arc<Pool>, cancel: Arc<Cancel>) -> Self {
        Self { cancel, ..Self::new(session, pool) }
    }

    /// The handle that ends its statements.
    pub(crate) fn cancel(&self) -> &Arc<Cancel> {
        &self.cancel
    }

    /// Whether a transaction is open, even if it has been aborted.
    pub(crate) fn is_in_transaction(&self) -> bool {
        self.is_in_transaction
    }

    /// Whether the open transaction has been aborted.
    pub(crate) fn is_aborted(&self) -> bool {
        self.is_aborted
    }

    /// How many statements wait for a thread, if this client's may not wait as well.
    pub(crate) fn is_refused(&self) -> Option<usize> {
        self.pool.is_full().filter(|_| !self.is_in_transaction)
    }

    /// Begins a call on a thread of the pool; [`Client::end`] has to follow it.
    pub(crate) fn begin<R: Send + 'static>(
        &mut self,
        act: impl FnOnce(&mut Session) -> R + Send + 'static,
    ) -> Result<Call<R>, Panicked> {
        let mut session = self.session.take().ok_or(Panicked)?;
        let cancel = self.cancel.clone();
        Ok(Call(self.pool.run(self.is_in_transaction, move || {
            session.begin_call();
            let done = cancel.watch(|| act(&mut session));
            session.end_call();
            (session, done)
        })))
    }

    /// Waits for the end of a call. It may be dropped and called again.
    pub(crate) async fn end<R>(&mut self, call: &mut Call<R>) -> Result<R, Panicked> {
        let (session, done) = (&mut call.0).await.map_err(|_| Panicked)?;
        self.keep(session);
        Ok(done)
    }

    /// Aborts the open transaction, as a statement that fails does.
    pub(crate) fn abort(&mut self) {
        if let Some(mut session) = self.session.take() {
            session.abort();
            self.keep(session);
        }
    }

    /// The session is between calls again.
    fn keep(&mut self, session: Session) {
        self.is_in_transaction = session.in_transaction();
        self.is_aborted = session.is_aborted();
        self.session = Some(session);
    }

    /// Makes a call on this thread, which must not block.
    pub(crate) fn call_at_once<R>(
        &mut self,
        act: impl FnOnce(&mut Session) -> R,
    ) -> Result<R, Panicked> {
        let mut session = self.session.take().ok_or(Panicked)?;
        session.begin_call();
        let watched = || self.cancel.watch(|| act(&mut session));
        // The session is not used again after a panic.
        let done = catch_unwind(AssertUnwindSafe(watched)).map_err(|_| Panicked)?;
        session.end_call();
        self.keep(session);
        Ok(done)
    }

    /// The session between calls, for what does not block.
    pub(crate) fn session(&mut self) -> Result<&mut Session, Panicked> {
        self.session.as_mut().ok_or(Panicked)
    }
}
