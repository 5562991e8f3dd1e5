//! The dataflows that have failed, and why, for all threads.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;

use super::command::DataflowId;
use crate::error::{Error, Result};
use crate::log;

/// The purpose of a dataflow, in messages.
#[derive(Clone, Debug)]
pub(crate) enum Purpose {
    /// A table or view of this name.
    Relation(String),
    /// An index.
    Index,
    /// A subscription, by its name.
    Subscription(String),
}

impl fmt::Display for Purpose {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Relation(name) => write!(to, "\"{name}\""),
            Self::Index => write!(to, "an index"),
            Self::Subscription(name) => write!(to, "{name}"),
        }
    }
}

/// A dataflow that has failed, or that reads one that has.
#[derive(Clone, Debug)]
pub(crate) struct Failed {
    pub(crate) purpose: Purpose,
    /// Why, in the words of messages.
    pub(crate) reason: Arc<str>,
}

impl Failed {
    /// The error for its readers.
    pub(crate) fn error(&self) -> Error {
        match &self.purpose {
            Purpose::Relation(name) => {
                Error::Failed { view: name.clone(), reason: self.reason.to_string() }
            }
            // Its user adds the purpose.
            Purpose::Index => {
                Error::Failed { view: "index".to_owned(), reason: self.reason.to_string() }
            }
            Purpose::Subscription(name) => {
                Error::data(format!("{name} has failed: {}", self.reason))
            }
        }
    }
}

/// Who is told when dataflows fail.
pub(crate) trait Watcher: Send + Sync {
    /// Some have failed. Called by workers: it must not wait for them.
    fn has_failed(self: Arc<Self>);
}

/// All dataflows that have failed so far, in order. They stay here when they are removed.
#[derive(Default)]
pub(crate) struct Failures {
    /// How many there are, for those who look for new ones without the lock.
    count: AtomicUsize,
    all: Mutex<All>,
    watcher: OnceLock<Weak<dyn Watcher>>,
}

#[derive(Default)]
struct All {
    order: Vec<DataflowId>,
    failed: BTreeMap<DataflowId, Failed>,
}

impl Failures {
    /// Tells this one of every failure.
    pub(crate) fn watch(&self, watcher: Weak<dyn Watcher>) {
        // An engine has one.
        let _ = self.watcher.set(watcher);
    }

    /// How many there have been.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// Those after the first `seen` ones.
    pub(crate) fn after(&self, seen: usize) -> Vec<(DataflowId, Failed)> {
        let all = self.all.lock();
        let ids = all.order.get(seen..).unwrap_or_default();
        ids.iter().filter_map(|id| Some((*id, all.failed.get(id)?.clone()))).collect()
    }

    /// How a dataflow has failed, if it has.
    pub(crate) fn get(&self, id: DataflowId) -> Option<Failed> {
        if self.count() == 0 {
            return None;
        }
        self.all.lock().failed.get(&id).cloned()
    }

    /// Fails if one of these has failed.
    pub(crate) fn check<'a>(&self, ids: impl IntoIterator<Item = &'a DataflowId>) -> Result<()> {
        if self.count() == 0 {
            return Ok(());
        }
        let all = self.all.lock();
        match ids.into_iter().find_map(|id| all.failed.get(id)) {
            Some(failed) => Err(failed.error()),
            None => Ok(()),
        }
    }

    /// Adds dataflows that have failed, apart from those that are here already.
    pub(super) fn add(&self, failed: impl IntoIterator<Item = (DataflowId, Failed)>) {
        let mut all = self.all.lock();
        let before = all.order.len();
        for (id, failed) in failed {
            if all.failed.contains_key(&id) {
                continue;
            }
            log::failed(&failed.purpose, &failed.reason);
            all.failed.insert(id, failed);
            all.order.push(id);
        }
        let is_new = all.order.len() > before;
        self.count.store(all.order.len(), Ordering::Release);
        drop(all);
        if is_new && let Some(watcher) = self.watcher.get().and_then(Weak::upgrade) {
            watcher.has_failed();
        }
    }
}
