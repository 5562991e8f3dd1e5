//! When the journal is synced, if commits do not wait for it.

use std::str::FromStr;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::error::{Error, Result};
use crate::sequencer::Sequencer;

/// When a commit is on the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Durability {
    /// Before it returns. Nothing that was acknowledged, or that anyone has seen, is ever lost. Those who commit at the same
    /// time share a sync of the disk.
    #[default]
    Always,
    /// At most this much later. A crash of the machine may lose the commits of that time; a crash of the process alone loses
    /// none. After a crash, all commits up to some epoch are there.
    Interval(Duration),
    /// When the operating system writes it, or a checkpoint is taken. A crash of the machine may lose all since then; a crash
    /// of the process alone loses none.
    Never,
}

/// As it is written in options: `always`, `never`, or `interval(MS)` with a number of milliseconds that is not zero.
impl FromStr for Durability {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let interval = text.strip_prefix("interval(").and_then(|rest| rest.strip_suffix(')'));
        let milliseconds = interval.and_then(|text| text.trim().parse().ok());
        match (text, milliseconds) {
            ("always", _) => Ok(Self::Always),
            ("never", _) => Ok(Self::Never),
            (_, Some(milliseconds)) if milliseconds > 0 => {
                Ok(Self::Interval(Duration::from_millis(milliseconds)))
            }
            _ => Err(Error::data(
                "durability is always, never, or interval(MS) with a number of milliseconds",
            )),
        }
    }
}

/// Syncs the journal from time to time. Dropping it syncs it once more.
pub(crate) struct Flusher {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    sequencer: Arc<Sequencer>,
    is_ending: Mutex<bool>,
    ends: Condvar,
}

impl Flusher {
    /// Syncs the journal of these epochs as often as that.
    pub(crate) fn start(sequencer: Arc<Sequencer>, durability: Durability) -> Result<Self> {
        let (is_ending, ends) = (Mutex::new(false), Condvar::new());
        let shared = Arc::new(Shared { sequencer, is_ending, ends });
        let thread = match durability {
            Durability::Interval(interval) => {
                let run = {
                    let shared = shared.clone();
                    move || shared.run(interval)
                };
                let thread = Builder::new().name("alluvium-journal".to_owned()).spawn(run);
                Some(thread.map_err(|error| Error::Start {
                    message: format!("no thread for the journal: {error}"),
                })?)
            }
            Durability::Always | Durability::Never => None,
        };
        Ok(Self { shared, thread })
    }
}

impl Shared {
    fn run(&self, interval: Duration) {
        let mut is_ending = self.is_ending.lock();
        while !*is_ending {
            self.ends.wait_for(&mut is_ending, interval);
            drop(is_ending);
            // If it fails the engine has stopped.
            if self.sequencer.durable().sync_all().is_err() {
                return;
            }
            is_ending = self.is_ending.lock();
        }
    }
}

impl Drop for Flusher {
    fn drop(&mut self) {
        *self.shared.is_ending.lock() = true;
        self.shared.ends.notify_all();
        if let Some(thread) = self.thread.take() {
            // It catches nothing, and so has nothing to report.
            let _ = thread.join();
        }
        // No caller is left to report a failure to.
        let _ = self.shared.sequencer.durable().sync_all();
    }
}
