//! When checkpoints are taken.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Builder, JoinHandle};
use std::time::{Duration, Instant};

use super::checkpointer::Checkpointer;
use crate::error::Result;

/// How long to wait after a checkpoint that has failed, as on a disk that is full.
const RETRY: Duration = Duration::from_secs(1);

/// Takes checkpoints on a thread of its own, from time to time. Dropping it ends the thread, which sleeps until there is something to
/// take a checkpoint of.
pub(crate) struct Checkpoints {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    checkpointer: Checkpointer,
    is_ending: AtomicBool,
}

impl Checkpoints {
    /// Takes a checkpoint `interval` after the last one, or when `bytes` bytes were recorded since.
    pub(crate) fn start(
        checkpointer: Checkpointer,
        interval: Duration,
        bytes: u64,
    ) -> std::result::Result<Self, String> {
        let shared = Arc::new(Shared { checkpointer, is_ending: AtomicBool::new(false) });
        let run = {
            let shared = shared.clone();
            move || shared.run(interval, bytes)
        };
        let thread = Builder::new().name("alluvium-checkpoints".to_owned()).spawn(run);
        let thread = thread.map_err(|error| format!("no thread for checkpoints: {error}"))?;
        shared.checkpointer.wake_at(bytes, thread.thread().clone());
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
        while !self.is_ending.load(Ordering::Acquire) {
            let recorded = self.checkpointer.recorded();
            let left = interval.saturating_sub(last.elapsed());
            if recorded == 0 {
                thread::park();
            } else if recorded < bytes && !left.is_zero() {
                thread::park_timeout(left);
            } else {
                let taken = self.checkpointer.take();
                last = Instant::now();
                match taken {
                    // Nothing is recorded any more.
                    Err(_) if self.checkpointer.has_stopped() => return,
                    // The next one may succeed.
                    Err(_) => thread::park_timeout(RETRY),
                    Ok(()) => {}
                }
            }
        }
    }
}

impl Drop for Checkpoints {
    fn drop(&mut self) {
        self.shared.is_ending.store(true, Ordering::Release);
        self.shared.checkpointer.end();
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It catches nothing, and so has nothing to report.
            let _ = thread.join();
        }
    }
}
