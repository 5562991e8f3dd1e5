//! Threads for calls that block.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, spawn_blocking};

/// The threads on which statements run. As many statements run at once as the pool has places; the others wait in the order of their
/// arrival. Those of open transactions need no place: others may wait for what they hold.
pub(crate) struct Pool {
    places: Arc<Semaphore>,
    /// How many statements wait for a place.
    waiting: Arc<AtomicUsize>,
    most_waiting: usize,
}

/// One of the statements that wait for a place.
struct Waiting(Arc<AtomicUsize>);

impl Waiting {
    fn new(waiting: &Arc<AtomicUsize>) -> Self {
        waiting.fetch_add(1, Ordering::Relaxed);
        Self(waiting.clone())
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Pool {
    /// A pool with so many places, for which so many statements may wait.
    pub(crate) fn new(places: usize, most_waiting: usize) -> Self {
        Self { places: Arc::new(Semaphore::new(places)), waiting: Arc::default(), most_waiting }
    }

    /// How many statements wait for a place, if no more may.
    pub(crate) fn is_full(&self) -> Option<usize> {
        let waiting = self.waiting();
        (waiting >= self.most_waiting && self.places.available_permits() == 0).then_some(waiting)
    }

    /// How many statements wait for a place.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Runs `act` on a thread. Statements of an open transaction do not wait for a place.
    pub(crate) fn run<R: Send + 'static>(
        &self,
        is_in_transaction: bool,
        act: impl FnOnce() -> R + Send + 'static,
    ) -> JoinHandle<R> {
        let places = self.places.clone();
        if is_in_transaction {
            return spawn_blocking(act);
        }
        match places.clone().try_acquire_owned() {
            Ok(place) => spawn_blocking(move || {
                let _place = place;
                act()
            }),
            Err(_) => {
                let waiting = Waiting::new(&self.waiting);
                tokio::spawn(async move {
                    let place = places.acquire_owned().await;
                    drop(waiting);
                    let ran = spawn_blocking(move || {
                        let _place = place;
                        act()
                    });
                    match ran.await {
                        Ok(done) => done,
                        Err(error) => std::panic::resume_unwind(error.into_panic()),
                    }
                })
            }
        }
    }
}
