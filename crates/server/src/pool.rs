//! Threads for calls that block.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, spawn_blocking};

/// The threads on which statements run. As many statements run at once as the pool has places; the others wait in the order of their
/// arrival. Those of open transactions need no place: others may wait for what they hold.
pub(crate) struct Pool {
    places: Arc<Semaphore>,
}

impl Pool {
    /// A pool with so many places.
    pub(crate) fn new(places: usize) -> Self {
        Self { places: Arc::new(Semaphore::new(places)) }
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
            Err(_) => tokio::spawn(async move {
                let place = places.acquire_owned().await;
                let ran = spawn_blocking(move || {
                    let _place = place;
                    act()
                });
                match ran.await {
                    Ok(done) => done,
                    Err(error) => std::panic::resume_unwind(error.into_panic()),
                }
            }),
        }
    }
}
