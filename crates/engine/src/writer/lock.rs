//! The write lock: one writer at a time.

use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use crate::error::Result;
use crate::interrupt;
use crate::poison::{Poison, Waited};

/// Serialises writers. A transaction holds the lock from its first statement to its last, and it may be released on
/// another thread than the one that acquired it.
pub(crate) struct WriteLock {
    held: Mutex<bool>,
    released: Condvar,
    poison: Arc<Poison>,
}

/// The write lock, held. Dropping it releases the lock.
pub(crate) struct WriteGuard(Arc<WriteLock>);

impl WriteLock {
    pub(crate) fn new(poison: Arc<Poison>) -> Arc<Self> {
        let lock = Arc::new(Self { held: Mutex::new(false), released: Condvar::new(), poison });
        lock.poison.register(&lock);
        lock
    }

    /// Waits until no other writer holds the lock.
    pub(crate) fn acquire(self: &Arc<Self>) -> Result<WriteGuard> {
        let mut held = self.held.lock();
        loop {
            self.poison.check()?;
            interrupt::check()?;
            if !*held {
                *held = true;
                return Ok(WriteGuard(self.clone()));
            }
            self.released.wait(&mut held);
        }
    }
}

impl Drop for WriteGuard {
    fn drop(&mut self) {
        *self.0.held.lock() = false;
        self.0.released.notify_one();
    }
}

impl Waited for WriteLock {
    fn wake(&self) {
        drop(self.held.lock());
        self.released.notify_all();
    }
}
