//! Views that fail.
//!
//! A dataflow that fails ends on the workers by itself ([`crate::worker`]). Its dependants are told here, behind the
//! definitions' lock: the view stays in the catalog, *failed*, with its reason and without a dataflow; indexes that have
//! failed are shared no more; and subscriptions to failed dataflows end with an error. `DROP` removes a failed view as any
//! other, and `ALTER VIEW … RESUME` fills it again. That a relation fails and resumes is recorded: an engine that is opened again leaves
//! out what had failed, instead of failing with it once more.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{Builder, JoinHandle};

use alluvium_sql::physical::compile;
use alluvium_sql::statement::Alter;
use parking_lot::Mutex;

use super::install::Replaced;
use super::relations::{Built, output_of};
use super::subscriptions::{Installed, Subscriptions};
use super::{Definitions, alter};
use crate::catalog::{Catalog, Definition, Entries, Entry, Indexes, Uses, View};
use crate::connectors::Connectors;
use crate::durable::checkpoint::DataflowKey;
use crate::error::{Error, Result};
use crate::poison::Poison;
use crate::sequencer::{Role, Sequencer};
use crate::worker::{Dataflow, DataflowId, Failed, Progress, Purpose, Watcher};

/// The parts of the engine that failures of dataflows concern.
pub(crate) struct Failing {
    pub(super) catalog: Arc<Catalog>,
    pub(super) indexes: Arc<Indexes>,
    pub(super) subscriptions: Arc<Mutex<Subscriptions>>,
    pub(super) sequencer: Arc<Sequencer>,
    pub(super) progress: Arc<Progress>,
    pub(super) poison: Arc<Poison>,
    /// The definitions' lock.
    pub(super) lock: Arc<Mutex<()>>,
    /// How many failures have been looked at; changes behind the definitions' lock.
    pub(super) seen: AtomicUsize,
    /// The threads that look at new ones; `None` once there are no more.
    pub(super) threads: Mutex<Option<Vec<JoinHandle<()>>>>,
}

impl Watcher for Failing {
    fn has_failed(self: Arc<Self>) {
        let mut threads = self.threads.lock();
        let Some(threads) = &mut *threads else { return };
        threads.retain(|thread| !thread.is_finished());
        let failing = self.clone();
        let thread = Builder::new().name("alluvium-failures".to_owned()).spawn(move || {
            let settle = || failing.settle_locked(&failing.lock.lock());
            if let Err(panic) = catch_unwind(AssertUnwindSafe(settle)) {
                failing.poison.spread_panic("a thread that ends what has failed", &*panic);
            }
        });
        // Without a thread the next definition does it.
        threads.extend(thread);
    }
}

impl Failing {
    /// Takes note of all dataflows that have failed. The caller holds the definitions' lock.
    pub(super) fn settle_locked(&self, _lock: &()) {
        let failures = self.progress.failures();
        let new = failures.after(self.seen.load(Ordering::Relaxed));
        if new.is_empty() {
            return;
        }
        self.seen.fetch_add(new.len(), Ordering::Relaxed);
        // Nothing is built over an index that has failed, even while those that use it are looked at.
        for (id, _) in &new {
            for part in self.indexes.forget(*id) {
                self.sequencer.remove(part);
            }
        }
        for (id, failed) in &new {
            match &failed.purpose {
                Purpose::Relation(_) => self.fail_relation(*id, failed),
                Purpose::Index => self.sequencer.remove(*id),
                Purpose::Subscription(_) => self.end_subscription(*id, failed),
            }
        }
    }

    /// Whether the dataflow of a relation is this one, or was until it failed.
    pub(super) fn is_of(&self, entry: &Entry, id: DataflowId) -> bool {
        let failed = self.progress.failures().get(id);
        // A reason is of one failure.
        let is_reason = |reason| failed.is_some_and(|failed| Arc::ptr_eq(reason, &failed.reason));
        entry.dataflow() == Some(id) || entry.failed.as_ref().is_some_and(is_reason)
    }

    fn fail_relation(&self, id: DataflowId, failed: &Failed) {
        // One whose creation has failed is gone already.
        let Some(entry) = self.catalog.of_dataflow(id) else { return };
        let uses = entry.as_view().map(|view| view.uses.clone());
        self.catalog.fail(&entry, &failed.reason);
        // If this fails the engine has stopped.
        let _ = self.sequencer.record_failed(&entry.name, &failed.reason);
        self.sequencer.remove(id);
        uses.iter().for_each(|uses| self.release(uses));
        let to_it = self.subscriptions.lock().of(&entry.name);
        to_it.into_iter().for_each(|id| self.end_subscription(id, failed));
    }

    fn end_subscription(&self, id: DataflowId, failed: &Failed) {
        let ended = self.subscriptions.lock().remove(id);
        if let Some(Installed { feed, uses, .. }) = ended {
            feed.fail(failed);
            self.sequencer.remove(id);
            self.release(&uses);
        }
    }

    /// Releases indexes, and removes those without users.
    pub(super) fn release(&self, uses: &Uses) {
        for gone in self.indexes.release(uses) {
            self.sequencer.remove(gone);
        }
    }

    /// Ends the threads.
    pub(crate) fn close(&self) {
        let threads = self.threads.lock().take();
        for thread in threads.into_iter().flatten() {
            // It catches its panics.
            let _ = thread.join();
        }
    }
}

impl Definitions {
    /// Fills a failed view again, durably, from the relations that it reads.
    pub(super) fn resume(&self, alter: &Alter, connectors: &Connectors) -> Result<()> {
        let find = || {
            if alter.if_exists && !self.catalog.contains(&alter.name) {
                return Ok(None);
            }
            let entry = self.catalog.get(&alter.name)?;
            alter::check_kind(&entry, alter)?;
            Ok(Some(entry))
        };
        if let Some(id) = self.begin_again(find, connectors)? {
            let filled = self.progress.wait_filled(id);
            filled.map_err(|error| unfilled(&alter.name, error))?;
        }
        self.sequencer.durable().sync_all()
    }

    /// Records the failures while the journal was replayed, which is attached now.
    pub(super) fn record_failures(&self) -> Result<()> {
        let lock = self.lock();
        self.failing.settle_locked(&lock);
        for entry in self.catalog.entries().values() {
            if let Some(reason) = &entry.failed {
                self.sequencer.record_failed(&entry.name, reason)?;
            }
        }
        Ok(())
    }

    /// Replays that a relation fails, which was left out when it was defined.
    pub(crate) fn replay_failed(&self, relation: &str, reason: &str) {
        let _lock = self.lock();
        self.sequencer.replay_failed(relation, reason);
        if let Ok(entry) = self.catalog.get(relation)
            && entry.dataflow().is_none()
        {
            self.catalog.fail(&entry, &reason.into());
        }
    }

    /// Replays that a view resumes. It stays as it is if it fails again later, or if a relation that it reads has failed this time.
    pub(crate) fn replay_resumed(&self, view: &str, connectors: &Connectors) -> Result<()> {
        if self.sequencer.left_out(view).is_some() {
            self.sequencer.replay_resumed(view);
            return Ok(());
        }
        match self.begin_again(|| self.catalog.get(view).map(Some), connectors) {
            Ok(_) | Err(Error::Sql { .. } | Error::Failed { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Orders the dataflow of a view that has failed once more; of none if it does not have to be there.
    fn begin_again(
        &self,
        find: impl Fn() -> Result<Option<Arc<Entry>>>,
        connectors: &Connectors,
    ) -> Result<Option<DataflowId>> {
        loop {
            let lock = self.lock();
            self.failing.settle_locked(&lock);
            let Some(entry) = find()? else { return Ok(None) };
            match self.begin_again_locked(&entry, connectors)? {
                Built::Begun(id) => return Ok(Some(id)),
                Built::Waits(id) => {
                    drop(lock);
                    self.wait_filled_or_failed(id)?;
                }
            }
        }
    }

    fn begin_again_locked(
        &self,
        entry: &Entry,
        connectors: &Connectors,
    ) -> Result<Built<DataflowId>> {
        let name = &entry.name;
        let view = entry.as_view()?;
        if entry.failed.is_none() {
            return Err(Error::sql(format!(
                "\"{name}\" has not failed: there is nothing to resume"
            )));
        }
        if connectors.outputs.has_ended(name) {
            return Err(Error::sql(format!(
                "\"{name}\" was written to a file, which lacks changes since it failed: DROP it, and create it again"
            )));
        }
        let entries = self.catalog.entries();
        check_reads(name, &entry.depends, &entries)?;
        if let Some(id) = self.filling_of(&entries, &entry.depends) {
            return Ok(Built::Waits(id));
        }
        drop(entries);
        let (id, resumed) = self.fill_again(entry, view)?;
        self.catalog.insert(resumed);
        Ok(Built::Begun(id))
    }

    fn fill_again(&self, entry: &Entry, view: &View) -> Result<(DataflowId, Entry)> {
        let there = |index| self.indexes.is_there(index);
        let compiled = compile(&view.plan, output_of(view.kind), &there)?;
        check_reads(&entry.name, compiled.plan.relations(), &self.catalog.entries())?;
        let key = DataflowKey::relation(&entry.name, compiled.plan.fingerprint());
        let role = Role::Resumed(key);
        let (id, uses) = self.install_plan(
            &compiled,
            &self.catalog.entries(),
            None,
            (role, &Replaced::new()),
            |part| Dataflow::View {
                name: entry.name.clone(),
                plan: part.plan.clone(),
                reads: part.reads.clone(),
                sink: None,
                counts: false,
            },
        )?;
        let view = View { id: Some(id), uses, ..view.clone() };
        let definition = Definition::View(view);
        let mut resumed = Entry { definition, failed: None, indexes: Vec::new(), ..entry.clone() };
        // Its indexes read it as the catalog has it.
        self.catalog.insert(resumed.clone());
        for index in &entry.indexes {
            // It is dropped by name if it cannot be there again.
            let again = self.indexed_again(&resumed, index, &self.catalog.entries());
            let again = again.map(Arc::new);
            resumed.indexes.push(again.unwrap_or_else(|_| index.clone()));
        }
        Ok((id, resumed))
    }
}

/// Fails if a relation called `name` would read one that has failed.
pub(super) fn check_reads<'a>(
    name: &str,
    reads: impl IntoIterator<Item = &'a String>,
    entries: &Entries,
) -> Result<()> {
    let failed = |read: &'a String| Some((read, entries.get(read)?.failed.as_ref()?));
    match reads.into_iter().find_map(failed) {
        None => Ok(()),
        Some((read, reason)) => Err(Error::sql(format!(
            "\"{name}\" reads \"{read}\", which has failed: {reason}; ALTER VIEW {read} RESUME first"
        ))),
    }
}

/// Why what reads these has failed, if one of them has.
pub(super) fn failed_read<'a>(
    reads: impl IntoIterator<Item = &'a String>,
    entries: &Entries,
) -> Option<Arc<str>> {
    let failed = |read: &'a String| Some((read, entries.get(read)?.failed.as_ref()?));
    let (read, reason) = reads.into_iter().find_map(failed)?;
    Some(format!("it reads \"{read}\", which has failed: {reason}").into())
}

/// The error of a relation that has failed while it was filled, and does not exist.
pub(super) fn unfilled(name: &str, error: Error) -> Error {
    match error {
        Error::Failed { reason, .. } => {
            Error::data(format!("\"{name}\" cannot be filled: {reason}"))
        }
        error => error,
    }
}
