//! The write lock: one transaction at a time is validated and ordered.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::error::Result;
use crate::poison::{Poison, Waited};
use crate::wait::{self, Look, WaitList};

/// Serialises commits, and the definitions of tables. It may be released on another thread than the one that acquired it.
pub(crate) struct WriteLock {
    held: Mutex<bool>,
    waits: WaitList<()>,
    poison: Arc<Poison>,
}

/// The write lock, held. Dropping it releases the lock.
pub(crate) struct WriteGuard(Arc<WriteLock>);

impl WriteLock {
    pub(crate) fn new(poison: Arc<Poison>) -> Arc<Self> {
        let waits = WaitList::default();
        let lock = Arc::new(Self { held: Mutex::new(false), waits, poison });
        lock.poison.register(&lock);
        lock
    }

    /// Waits until no other writer holds the lock.
    pub(crate) fn acquire(self: &Arc<Self>) -> Result<WriteGuard> {
        let acquired = wait::until(|waker| {
            let mut held = self.held.lock();
            self.poison.check()?;
            if *held {
                return Ok(Look::Waits(self.waits.enter((), waker)));
            }
            *held = true;
            Ok(Look::Found(WriteGuard(self.clone())))
        });
        // It may have been woken to take the lock, and given up instead.
        acquired.inspect_err(|_| self.waits.wake_first())
    }
}

impl Drop for WriteGuard {
    fn drop(&mut self) {
        *self.0.held.lock() = false;
        self.0.waits.wake_first();
    }
}

impl Waited for WriteLock {
    fn wake(&self) {
        drop(self.held.lock());
        self.waits.wake_all();
    }
}
