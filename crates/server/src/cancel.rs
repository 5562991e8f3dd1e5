//! Ending the statement that a client runs.

use alluvium::Interrupt;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// A handle by which others end the statement that a client runs. Between statements a request has no effect.
#[derive(Default)]
pub(crate) struct Cancel {
    interrupt: Interrupt,
    runs: Mutex<bool>,
    /// Wakes the task of the client while it waits for changes, on no thread of the engine.
    requested: Notify,
}

impl Cancel {
    /// Ends the statement that runs now, if one does.
    pub(crate) fn request(&self) {
        let runs = self.runs.lock();
        if *runs {
            self.interrupt.request();
            self.requested.notify_one();
        }
    }

    /// A statement begins.
    pub(crate) fn begin(&self) {
        *self.runs.lock() = true;
    }

    /// The statement has ended: a request that came meanwhile is spent.
    pub(crate) fn end(&self) {
        let mut runs = self.runs.lock();
        *runs = false;
        self.interrupt.clear();
    }

    /// Runs calls of the engine, which end when it is requested.
    pub(crate) fn watch<R>(&self, act: impl FnOnce() -> R) -> R {
        self.interrupt.watch(act)
    }

    /// Waits until it is requested.
    pub(crate) async fn requested(&self) {
        while !self.interrupt.is_requested() {
            self.requested.notified().await;
        }
    }
}
