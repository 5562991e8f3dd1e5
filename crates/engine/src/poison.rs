//! The poison: the message of the first panic or failure, which every call on every handle returns from then on.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock, Weak};

use alluvium_dataflow::panic_text;
use alluvium_trace::Failure;
use parking_lot::Mutex;

use crate::error::{Error, Result};
use crate::log;

/// Something that may have threads waiting in it.
pub(crate) trait Waited: Send + Sync {
    /// Wakes all of them, so that they look at the poison again.
    fn wake(&self);
}

/// Whether a thread of the engine has panicked, and with what.
///
/// A thread that waits checks the poison before each wait, under the lock of its condition variable, which is registered
/// here; [`Waited::wake`] takes the same lock. So no thread misses it.
#[derive(Default)]
pub(crate) struct Poison {
    message: OnceLock<String>,
    waited: Mutex<Vec<Weak<dyn Waited>>>,
}

impl Poison {
    /// Fails if the engine is poisoned.
    pub(crate) fn check(&self) -> Result<()> {
        match self.message.get() {
            None => Ok(()),
            Some(message) => Err(Error::Poisoned { message: message.clone() }),
        }
    }

    /// Whether the engine is poisoned.
    pub(crate) fn is_spread(&self) -> bool {
        self.message.get().is_some()
    }

    /// Poisons the engine with the message of a panic or the reason of a failure; only the first one is kept, and
    /// returned.
    pub(crate) fn spread_panic(&self, who: &str, caught: &(dyn Any + Send)) -> Error {
        let message = match (Failure::reason(caught), panic_text(caught)) {
            (Some(reason), _) => reason.to_owned(),
            (None, Some(what)) => format!("{who} panicked: {what}"),
            (None, None) => format!("{who} panicked"),
        };
        self.spread(message.clone());
        self.check().err().unwrap_or(Error::Poisoned { message })
    }

    /// Poisons the engine; only the first message is kept.
    pub(crate) fn spread(&self, message: String) {
        if self.message.set(message).is_ok() {
            self.message.get().iter().for_each(|message| log::poisoned(message));
            self.wake();
        }
    }

    /// Wakes all threads that wait, so that they look at the poison and at what may [interrupt](crate::interrupt) them.
    pub(crate) fn wake(&self) {
        let waited = self.waited.lock().clone();
        for waited in waited.iter().filter_map(Weak::upgrade) {
            waited.wake();
        }
    }

    /// Runs the request of a client, on its thread. State that cannot be read poisons the engine. A panic is an error of
    /// what was asked.
    pub(crate) fn guard<R>(&self, act: impl FnOnce() -> Result<R>) -> Result<R> {
        catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(|caught| {
            Err(match Failure::reason(&*caught) {
                Some(_) => self.spread_panic("a client", &*caught),
                None => {
                    let what = panic_text(&*caught).unwrap_or("it panicked");
                    Error::data(format!(
                        "this cannot be done, because of a fault in the engine: {what}"
                    ))
                }
            })
        })
    }

    /// Wakes `waited` when the engine is poisoned. It is forgotten when it is dropped.
    pub(crate) fn register(&self, waited: &Arc<impl Waited + 'static>) {
        let waited: Arc<dyn Waited> = waited.clone();
        let mut all = self.waited.lock();
        all.retain(|other| other.strong_count() > 0);
        all.push(Arc::downgrade(&waited));
        drop(all);
        if self.is_spread() {
            waited.wake();
        }
    }
}
