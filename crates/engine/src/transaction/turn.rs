//! One writer at a time.

use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use crate::error::Result;
use crate::poison::{Poison, Waited};

/// Gives out the turn to write.
pub(crate) struct Turns {
    taken: Mutex<bool>,
    given_back: Condvar,
    poison: Arc<Poison>,
}

/// The turn to write; dropping it, on whichever thread, gives it to the next.
pub(crate) struct Turn(Arc<Turns>);

impl Turns {
    pub(crate) fn new(poison: Arc<Poison>) -> Arc<Self> {
        let turns = Arc::new(Self { taken: Mutex::new(false), given_back: Condvar::new(), poison });
        turns.poison.register(&turns);
        turns
    }

    /// Waits for the turn.
    pub(crate) fn take(turns: &Arc<Self>) -> Result<Turn> {
        let mut taken = turns.taken.lock();
        loop {
            turns.poison.check()?;
            if !*taken {
                *taken = true;
                return Ok(Turn(turns.clone()));
            }
            turns.given_back.wait(&mut taken);
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *self.0.taken.lock() = false;
        self.0.given_back.notify_one();
    }
}

impl Waited for Turns {
    fn wake(&self) {
        drop(self.taken.lock());
        self.given_back.notify_all();
    }
}
