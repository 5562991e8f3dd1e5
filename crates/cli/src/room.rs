//! Tells people that the disk is full while the engine waits for room.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use alluvium::Engine;

use crate::progress::ProgressLine;

/// How often the engine is asked.
const INTERVAL: Duration = Duration::from_millis(200);

/// Watches an engine until it is dropped.
pub struct RoomWatch {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl RoomWatch {
    /// Tells on standard error, beside `line`, when the engine begins to wait and when it goes on.
    pub fn start(engine: Engine, line: ProgressLine) -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let watched = ended.clone();
        let thread = thread::spawn(move || {
            let mut waits = false;
            while !watched.load(Ordering::Acquire) {
                let reason = engine.waits_for_room();
                if reason.is_some() != waits {
                    waits = reason.is_some();
                    line.aside(|| match reason {
                        Some(reason) => eprintln!(
                            "alluvium: {reason}. Nothing is lost; the program goes on when there is room."
                        ),
                        None => eprintln!("alluvium: there is room again"),
                    });
                }
                thread::park_timeout(INTERVAL);
            }
        });
        Self { ended, thread: Some(thread) }
    }
}

impl Drop for RoomWatch {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A thread that only prints has nothing to tell.
            let _ = thread.join();
        }
    }
}
