//! Periodic work on a separate thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A thread that acts at intervals until dropped.
pub(crate) struct Ticker {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    /// Acts at once, and after each interval.
    pub(crate) fn start(interval: Duration, mut act: impl FnMut() + Send + 'static) -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let watched = ended.clone();
        let thread = thread::spawn(move || {
            while !watched.load(Ordering::Acquire) {
                act();
                thread::park_timeout(interval);
            }
        });
        Self { ended, thread: Some(thread) }
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // The thread only informs the user; the program continues even if it panicked.
            let _ = thread.join();
        }
    }
}
