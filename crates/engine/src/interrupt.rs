//! Ending calls before they are done.

use std::cell::RefCell;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use crate::error::{Error, Result};
use crate::poison::Poison;

/// A request to end what a thread does in an engine. Clones are the same request.
///
/// Calls that the thread makes inside of [`Interrupt::watch`] fail with [`Error::Interrupted`] soon after
/// [`Interrupt::request`], while they wait, answer a query, or read or write a file. They leave nothing behind: what was
/// staged is not committed, and what was created is gone. A call that has nothing to wait for, or that could not be undone,
/// is completed.
#[derive(Clone)]
pub struct Interrupt {
    requested: Arc<AtomicBool>,
    poison: Arc<Poison>,
}

thread_local! {
    /// The request that this thread watches.
    static WATCHED: RefCell<Option<Interrupt>> = const { RefCell::new(None) };
}

impl Interrupt {
    pub(crate) fn new(poison: Arc<Poison>) -> Self {
        Self { requested: Arc::default(), poison }
    }

    /// Ends calls of the threads that watch this, now and until it is cleared.
    pub fn request(&self) {
        self.requested.store(true, Ordering::SeqCst);
        self.poison.wake();
    }

    /// Withdraws the request.
    pub fn clear(&self) {
        self.requested.store(false, Ordering::SeqCst);
    }

    /// Runs `act`, whose calls on this thread end when this is requested.
    pub fn watch<R>(&self, act: impl FnOnce() -> R) -> R {
        watching(Some(self.clone()), act)
    }
}

/// The request that this thread watches before something else does, put back when this is dropped.
struct Restored(Option<Interrupt>);

impl Drop for Restored {
    fn drop(&mut self) {
        WATCHED.set(self.0.take());
    }
}

/// Runs `act`, whose calls on this thread end when this is requested.
pub(crate) fn watching<R>(interrupt: Option<Interrupt>, act: impl FnOnce() -> R) -> R {
    let _restored = Restored(WATCHED.replace(interrupt));
    act()
}

/// Runs `act` to its end: it must not stop halfway.
pub(crate) fn deferred<R>(act: impl FnOnce() -> R) -> R {
    watching(None, act)
}

/// The request that this thread watches.
pub(crate) fn watched() -> Option<Interrupt> {
    WATCHED.with_borrow(Clone::clone)
}

/// Whether this thread should end what it does.
pub(crate) fn is_requested() -> bool {
    WATCHED.with_borrow(|watched| {
        watched.as_ref().is_some_and(|interrupt| interrupt.requested.load(Ordering::SeqCst))
    })
}

/// Fails if this thread should end what it does.
pub(crate) fn check() -> Result<()> {
    match is_requested() {
        true => Err(Error::Interrupted),
        false => Ok(()),
    }
}

/// Runs a future until it is done or this thread should end, which is looked at whenever the future yields.
pub(crate) async fn until_requested<R>(future: impl Future<Output = R>) -> Result<R> {
    let mut future = pin!(future);
    std::future::poll_fn(|context| match check() {
        Err(interrupted) => Poll::Ready(Err(interrupted)),
        // It may have failed because it was interrupted.
        Ok(()) => future.as_mut().poll(context).map(|done| check().map(|()| done)),
    })
    .await
}
