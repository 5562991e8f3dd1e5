//! Waiting for the first event: a change of a subscription, the end of the sources, or a signal.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Builder, JoinHandle};

use alluvium::Engine;
use alluvium::unstable::EngineParts;

use super::stop::{Stop, failed};

/// The end of the sources of an engine, which unparks the thread that waits for it.
pub(crate) struct SourcesEnd {
    has_come: Arc<AtomicBool>,
    stop: alluvium::Interrupt,
    thread: Option<JoinHandle<()>>,
}

impl SourcesEnd {
    /// Has this thread unparked when no source runs any more.
    pub(super) fn watch(engine: &Engine) -> Result<Self, Stop> {
        let has_come = Arc::new(AtomicBool::new(false));
        let (stop, waiting) = (engine.interrupt(), thread::current());
        let watch = {
            let (engine, has_come, stop) = (engine.clone(), has_come.clone(), stop.clone());
            move || {
                let ended = stop.watch(|| engine.wait_for_ends_of_sources());
                // Of an engine that has stopped the subscription tells.
                has_come.store(ended.is_ok(), Ordering::Release);
                waiting.unpark();
            }
        };
        let thread = Builder::new().name("sources-end".to_owned()).spawn(watch);
        let thread = thread.map_err(|error| failed(None, error))?;
        Ok(Self { has_come, stop, thread: Some(thread) })
    }

    /// Whether it has come.
    pub(super) fn has_come(&self) -> bool {
        self.has_come.load(Ordering::Acquire)
    }
}

impl Drop for SourcesEnd {
    fn drop(&mut self) {
        self.stop.request();
        if let Some(thread) = self.thread.take() {
            // It panics only if the engine does, which tells of that.
            let _ = thread.join();
        }
    }
}
