//! Setting an engine up.

use std::num::NonZero;
use std::time::SystemTime;

use crate::clock::Clock;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::instance::Instance;
use crate::source::Source;

/// What an engine is started with.
pub struct Builder {
    workers: Option<usize>,
    sources: Vec<Box<dyn Source>>,
    clock: Clock,
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self { workers: None, sources: Vec::new(), clock: Clock::default() }
    }

    /// How many threads the dataflows run on, at least one; by default as many as the machine can run at a
    /// time. Results do not depend on it.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = Some(workers);
        self
    }

    /// Registers a source for `COPY … FROM`.
    pub fn source(mut self, source: impl Source + 'static) -> Self {
        self.sources.push(Box::new(source));
        self
    }

    /// Where `NOW()` comes from; by default, from the system's clock.
    ///
    /// A transaction has the time it begins at, and its epoch has it too. Time does not go backwards: where the
    /// clock does, it stands still until it is overtaken. See also [`Engine::begin_at`].
    pub fn clock(mut self, now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.clock = Clock::new(now);
        self
    }

    /// Starts an engine that keeps everything in memory.
    pub fn open_in_memory(self) -> Result<Engine> {
        let available = || std::thread::available_parallelism().map_or(1, NonZero::get);
        let workers = self.workers.unwrap_or_else(available);
        if workers == 0 {
            return Err(Error::Start { message: "at least one worker is needed".to_owned() });
        }
        Ok(Engine { instance: Instance::start(workers, self.sources, self.clock)? })
    }
}
