//! Definitions: the relations that exist, and the dataflows that keep them.
//!
//! [`Definitions`] owns the catalog, the indexes and the subscriptions, and alone installs and removes dataflows:
//! [`relations`] creates and drops tables and views, in [`schemas`], [`mod@sequences`] what generates their keys, [`functions`] what their queries call, [`mod@indexes`] their
//! indexes, and [`alter`] changes them, with the [`followers`] that read them; [`mod@sources`] pause and go on, [`systems`] creates what connectors name; [`comments`] describe them; [`recursion`] has views that
//! recur wait for each other, [`failed`] has those that have failed, [`lateness`] says how late changes of views may come, [`install`] builds a plan over shared
//! indexes, and [`subscriptions`] has a dataflow for the subscribers of each relation. A definition takes effect at once and for everybody;
//! those of a transaction are [`staged`], [`temporary`] tables are a session's own, and take effect together when it commits ([`exchange`]). A relation enters the catalog when its dataflow is ordered, under the definitions' lock, and is
//! filled outside of it: who reads it waits until it is full.

pub(crate) mod alter;
mod comments;
mod exchange;
pub(crate) mod failed;
mod followers;
mod functions;
mod indexes;
mod install;
mod lateness;
mod recursion;
mod relations;
mod schemas;
mod sequences;
mod sources;
mod staged;
mod subscriptions;
mod systems;
mod temporary;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use alluvium_sql::planner::Planner;
use alluvium_sql::statement::ViewLateness;
use alluvium_storage::{ClaimedStorage, Followed, Journal, Manifests};
use alluvium_trace::memory::StateContext;
pub(crate) use exchange::Exchange;
use failed::Failing;
use parking_lot::{Mutex, MutexGuard};
pub(crate) use relations::{Taken, taken};
pub(crate) use staged::StagedDefinitions;
use subscriptions::Subscriptions;

use crate::catalog::{Catalog, Entry, Indexes};
use crate::clock::Moment;
use crate::connectors::Connectors;
use crate::durable::checkpointer::{Checkpointer, Last, Pinned};
use crate::durable::flusher::{Durability, Flusher};
use crate::durable::followed::Following;
use crate::durable::persisted::ConnectorFacts;
use crate::durable::record::Record;
use crate::durable::restore::Restored;
use crate::error::{Error, Result};
use crate::interrupt;
use crate::poison::Poison;
use crate::sequencer::Sequencer;
use crate::worker::{DataflowId, Progress, Watcher};

/// The part of an engine that knows what exists.
pub(crate) struct Definitions {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) planner: Arc<Planner>,
    indexes: Arc<Indexes>,
    subscriptions: Arc<Mutex<Subscriptions>>,
    pub(crate) failing: Arc<Failing>,
    /// The lateness of views that are not there yet.
    announced: Mutex<BTreeMap<String, Vec<ViewLateness>>>,
    /// The names of relations that a transaction which commits is building.
    claimed: Mutex<BTreeSet<String>>,
    sequencer: Arc<Sequencer>,
    progress: Arc<Progress>,
    poison: Arc<Poison>,
    /// The context that changes waiting for subscribers are counted in.
    context: StateContext,
    /// Held while relations or subscriptions come and go.
    lock: Arc<Mutex<()>>,
}

impl Definitions {
    pub(crate) fn new(
        catalog: Arc<Catalog>,
        planner: Arc<Planner>,
        sequencer: Arc<Sequencer>,
        progress: Arc<Progress>,
        poison: Arc<Poison>,
        context: StateContext,
    ) -> Self {
        let (indexes, subscriptions, lock) = Default::default();
        let failing = Arc::new(Failing {
            catalog: catalog.clone(),
            indexes: Arc::clone(&indexes),
            subscriptions: Arc::clone(&subscriptions),
            sequencer: sequencer.clone(),
            progress: progress.clone(),
            poison: poison.clone(),
            lock: Arc::clone(&lock),
            seen: AtomicUsize::new(0),
            threads: Mutex::new(Some(Vec::new())),
        });
        let watcher: Arc<dyn Watcher> = failing.clone();
        progress.failures().watch(Arc::downgrade(&watcher));
        Self {
            catalog,
            planner,
            indexes,
            subscriptions,
            failing,
            announced: Mutex::default(),
            claimed: Mutex::default(),
            sequencer,
            progress,
            poison,
            context,
            lock,
        }
    }

    /// Keeps relations from coming and going until the guard is dropped.
    pub(crate) fn lock(&self) -> MutexGuard<'_, ()> {
        self.lock.lock()
    }

    /// As [`Definitions::lock`], once the relation of this name is full, which is returned as well.
    pub(super) fn lock_filled(&self, name: &str) -> Result<(MutexGuard<'_, ()>, Arc<Entry>)> {
        loop {
            let lock = self.lock();
            let entry = self.catalog.get(name)?;
            match entry.dataflow().filter(|id| self.progress.is_filling(*id)) {
                None => return Ok((lock, entry)),
                Some(id) => {
                    drop(lock);
                    self.wait_filled_or_failed(id)?;
                }
            }
        }
    }

    /// Waits until a dataflow is full. One that fails instead is noted in the catalog.
    pub(super) fn wait_filled_or_failed(&self, id: DataflowId) -> Result<()> {
        match self.progress.wait_filled(id) {
            Err(Error::Failed { .. }) => {
                self.failing.settle_locked(&self.lock());
                Ok(())
            }
            filled => filled,
        }
    }

    /// Whether a relation has failed, once it is full or has.
    pub(crate) fn has_failed(&self, name: &str) -> Result<bool> {
        self.lock_filled(name).map(|(_, entry)| entry.failed.is_some())
    }

    /// Waits until a relation is full. Fails if it has failed.
    pub(super) fn wait_if_filling(&self, entry: &Entry) -> Result<()> {
        let Some(id) = entry.dataflow() else { return Ok(()) };
        match self.progress.is_filling(id) {
            true => self.progress.wait_filled(id),
            false => self.progress.failures().check([&id]),
        }
    }

    /// Takes the checkpoints of this engine.
    pub(crate) fn checkpointer(
        &self,
        manifests: Arc<dyn Manifests>,
        blobs: Arc<ClaimedStorage>,
        connectors: &Connectors,
        retained: u32,
        last: Last,
    ) -> Checkpointer {
        let engine = Pinned {
            sequencer: self.sequencer.clone(),
            definitions: self.lock.clone(),
            connectors: ConnectorFacts::new(
                &connectors.outputs,
                &connectors.refusals,
                &self.poison,
            ),
        };
        Checkpointer::new(engine, manifests, blobs, self.context.clone(), retained, last)
    }

    /// Whether rows have entered a table.
    pub(crate) fn has_entered(&self, table: &Entry) -> bool {
        table.dataflow().is_some_and(|id| self.sequencer.has_passed(id))
    }

    /// The first rows of a table have come, which it was created with.
    pub(crate) fn complete_table(&self, table: &str) {
        self.sequencer.complete_table(table);
    }

    /// Records an output of a relation.
    pub(crate) fn record_output(&self, relation: &str, output: Record) -> Result<()> {
        self.sequencer.record_output(relation, output)?;
        self.sequencer.durable().sync_all()
    }

    /// The dataflows of a checkpoint start with their state there, until this is done.
    pub(crate) fn restoring(
        &self,
        restored: Restored,
        act: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        self.sequencer.restore(restored);
        act()?;
        self.sequencer.finish_restoring()
    }

    /// From now on there is a journal, also while it is still being replayed.
    pub(crate) fn expect_journal(&self) {
        self.sequencer.durable().expect();
    }

    /// The state is another one than that of the last checkpoint, though nothing was recorded since.
    pub(crate) fn expect_checkpoint(&self) {
        self.sequencer.durable().count(1);
    }

    /// What is done is what another engine records in this journal, until one is attached.
    pub(crate) fn follow(&self, journal: Arc<dyn Followed>) {
        self.sequencer.durable().follow(Following::new(journal));
    }

    /// Records everything in this journal from now on, which has all that was done so far.
    pub(crate) fn attach(
        &self,
        journal: Arc<dyn Journal>,
        durability: Durability,
    ) -> Result<Flusher> {
        self.sequencer.durable().attach(journal, self.sequencer.last(), durability);
        self.record_failures()?;
        Flusher::start(self.sequencer.clone(), durability)
    }

    /// Makes the time of epochs a relation, unless it is one already.
    pub(crate) fn start_clock(&self, now: Moment) -> Result<()> {
        interrupt::deferred(|| self.sequencer.start_clock(now))
    }

    /// Whether the engine has a journal.
    pub(crate) fn is_durable(&self) -> bool {
        self.sequencer.durable().is_expected()
    }

    /// Runs a function on every worker's thread.
    #[cfg(test)]
    pub(crate) fn run_on_workers(&self, act: fn()) {
        self.sequencer.run_on_workers(act);
    }
}
