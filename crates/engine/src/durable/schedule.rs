//! When checkpoints are taken.

use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::checkpointer::Checkpointer;
use crate::error::Result;

/// How often it is looked whether a checkpoint is due.
const LOOK: Duration = Duration::from_millis(100);

/// Takes checkpoints on a thread of its own, from time to time. Dropping it ends the thread.
pub(crate) struct Checkpoints {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    checkpointer: Checkpointer,
    is_ending: Mutex<bool>,
    ends: Condvar,
}

impl Checkpoints {
    /// Takes a checkpoint `interval` after the last one, or when `bytes` bytes were recorded since.
    pub(crate) fn start(
        checkpointer: Checkpointer,
        interval: Duration,
        bytes: u64,
    ) -> std::result::Result<Self, String> {
        let (is_ending, ends) = (Mutex::new(false), Condvar::new());
        let shared = Arc::new(Shared { checkpointer, is_ending, ends });
        let run = {
            let shared = shared.clone();
            move || shared.run(interval, bytes)
        };
        let thread = Builder::new().name("alluvium-checkpoints".to_owned()).spawn(run);
        let thread = thread.map_err(|error| format!("no thread for checkpoints: {error}"))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Takes a checkpoint now.
    pub(crate) fn take(&self) -> Result<()> {
        self.shared.checkpointer.take()
    }
}

impl Shared {
    fn run(&self, interval: Duration, bytes: u64) {
        let mut last = Instant::now();
        let mut is_ending = self.is_ending.lock();
        while !*is_ending {
            self.ends.wait_for(&mut is_ending, LOOK.min(interval));
            let recorded = self.checkpointer.recorded();
            if *is_ending || recorded == 0 || (last.elapsed() < interval && recorded < bytes) {
                continue;
            }
            drop(is_ending);
            // If it fails for good the engine stops, and else the next one may succeed.
            let _ = self.checkpointer.take();
            last = Instant::now();
            is_ending = self.is_ending.lock();
        }
    }
}

impl Drop for Checkpoints {
    fn drop(&mut self) {
        *self.shared.is_ending.lock() = true;
        self.shared.checkpointer.end();
        self.shared.ends.notify_all();
        if let Some(thread) = self.thread.take() {
            // It catches nothing, and so has nothing to report.
            let _ = thread.join();
        }
    }
}
