//! Definitions of a transaction that commits.
//!
//! First, beside everybody else, what it creates is built and filled: [`Candidates`], which are in no catalog and no checkpoint. If
//! that fails or is interrupted, they are removed, and nothing has happened. Then, while nothing else is committed or defined,
//! it is made sure that all relations are still those that the transaction has named, and all takes effect at once: one record in
//! the journal, one exchange of the catalog's relations, and the epoch with the transaction's rows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::MutexGuard;

use super::alter::Parts;
use super::relations::{self, Start};
use super::staged::{Created, StagedDefinitions};
use super::{Definitions, failed};
use crate::catalog::{Entries, Entry, Scope};
use crate::durable::checkpoint::DataflowKey;
use crate::durable::record::{Record, Recorded};
use crate::error::Result;
use crate::interrupt;
use crate::sequencer::{Changed, Committed, Defined, Role};
use crate::worker::DataflowId;
use crate::writer::{WriteGuard, Writer};

/// What a transaction creates, built. Dropping it removes it again, unless it has [taken its place](Candidates::take_places).
pub(crate) struct Candidates<'a> {
    definitions: &'a Definitions,
    staged: StagedDefinitions,
    /// The relations, in the order in which they were built.
    built: Vec<Arc<Entry>>,
    /// The names that nobody else may give to relations meanwhile.
    claimed: BTreeSet<String>,
}

/// How definitions take effect.
pub(crate) struct Exchange<'a> {
    pub(crate) defined: Defined<'a>,
    /// The tables that take the places of others, by the dataflows of these.
    moved: BTreeMap<DataflowId, Entry>,
}

impl Exchange<'_> {
    /// Has changes of a table whose place another one takes be changes of that.
    pub(crate) fn hand_on(&self, changed: &mut Changed) {
        if let Some(entry) = self.moved.get(&changed.table)
            && let Some(id) = entry.dataflow()
        {
            changed.table = id;
            changed.name.clone_from(&entry.name);
        }
    }
}

impl Definitions {
    /// Builds what a transaction creates, and waits until it is full.
    pub(crate) fn build(
        &self,
        staged: StagedDefinitions,
        writer: &Writer,
    ) -> Result<Candidates<'_>> {
        let names: BTreeSet<String> =
            staged.created.iter().map(|created| created.name().to_owned()).collect();
        let mut candidates =
            Candidates { definitions: self, staged, built: Vec::new(), claimed: BTreeSet::new() };
        {
            let lock = self.lock();
            self.failing.settle_locked(&lock);
            candidates.staged.over(&self.catalog.entries())?;
            names.iter().try_for_each(|name| self.check_unclaimed(name))?;
            self.claimed.lock().extend(names.iter().cloned());
            candidates.claimed = names;
        }
        let created = candidates.staged.created.clone();
        created.iter().try_for_each(|created| candidates.build(created, writer))?;
        for entry in &candidates.built {
            let Some(id) = entry.dataflow() else { continue };
            let filled = self.progress.wait_filled(id);
            filled.map_err(|error| failed::unfilled(&entry.name, error))?;
        }
        Ok(candidates)
    }
}

impl Candidates<'_> {
    /// A table that is created.
    pub(crate) fn table(&self, id: DataflowId) -> Option<&Arc<Entry>> {
        self.built.iter().find(|entry| entry.is_table() && entry.dataflow() == Some(id))
    }

    /// The definitions' lock, and the relations over which the next one is built.
    fn over(&self) -> Result<(MutexGuard<'_, ()>, Entries)> {
        let lock = self.definitions.lock();
        self.definitions.failing.settle_locked(&lock);
        let mut entries = self.staged.over(&self.definitions.catalog.entries())?;
        for entry in &self.built {
            entries.insert(entry.name.clone(), entry.clone());
        }
        Ok((lock, entries))
    }

    fn build(&mut self, created: &Created, writer: &Writer) -> Result<()> {
        let entry = match created {
            Created::Table { definition, id, .. } => {
                let (_lock, _) = self.over()?;
                let table = Arc::new(relations::table_of(definition)?);
                let key = DataflowKey::relation(&definition.name, table.fingerprint());
                let role = Role::Reserved(*id, key);
                let (name, kept) = (&definition.name, definition.is_kept());
                let id = self.definitions.install_table(name, &table, kept, None, role)?;
                Entry::of_table(definition, id)
            }
            Created::View { definition, .. } => loop {
                let (lock, entries) = self.over()?;
                let planned = self.definitions.planner.view(definition, &Scope(&entries))?;
                let filling = self.definitions.filling_of(&entries, &planned.depends);
                if let Some(id) = filling {
                    drop(lock);
                    self.definitions.wait_filled_or_failed(id)?;
                    self.definitions.progress.failures().check(self.ids().iter())?;
                    continue;
                }
                let reads = planned.depends.iter().chain(&planned.reads);
                failed::check_reads(&definition.name, reads, &entries)?;
                let start = Start::Candidate;
                let (of, planner) = (&self.definitions, planned);
                break of.install_view(definition, planner, None, start, &entries, writer)?;
            },
        };
        self.built.push(Arc::new(entry));
        Ok(())
    }

    fn ids(&self) -> Vec<DataflowId> {
        self.built.iter().filter_map(|entry| entry.dataflow()).collect()
    }

    /// Has all take effect at once, with what `commit` commits, and releases the write lock. If it fails before that, nothing has
    /// happened.
    pub(crate) fn take_places(
        &mut self,
        parts: Parts<'_>,
        writing: WriteGuard,
        commit: impl FnOnce(Exchange<'_>) -> Result<Committed>,
    ) -> Result<Committed> {
        interrupt::deferred(|| {
            let definitions = self.definitions;
            let lock = definitions.lock();
            definitions.failing.settle_locked(&lock);
            self.staged.over(&definitions.catalog.entries())?;
            definitions.progress.failures().check(self.ids().iter())?;
            let committed = commit(self.exchange(parts)?)?;
            self.built.clear();
            drop(writing);
            let dropped = std::mem::take(&mut self.staged.dropped);
            let gone = dropped.iter().map(|entry| definitions.dismantle(entry, parts.connectors));
            gone.fold(Ok(()), Result::and).map(|()| committed)
        })
    }

    fn exchange(&self, parts: Parts<'_>) -> Result<Exchange<'_>> {
        let definitions = self.definitions;
        for entry in &self.staged.dropped {
            definitions.cut_all(&entry.name);
        }
        for entry in &self.built {
            definitions.sequencer.declare(entry);
        }
        let (statements, recorded) = match definitions.is_durable() {
            true => self.recorded(parts.writer)?,
            false => (Vec::new(), Vec::new()),
        };
        let dropped: Vec<String> =
            self.staged.dropped.iter().map(|entry| entry.name.clone()).collect();
        let (forgotten, built) = (dropped.clone(), self.built.clone());
        built.iter().for_each(|entry| definitions.catalog.note_depth(entry));
        let defined = Defined {
            statements,
            forgotten,
            recorded,
            candidates: self.ids(),
            catalog: &definitions.catalog,
            change: Box::new(move |entries, epoch| {
                for name in &dropped {
                    entries.remove(name);
                }
                for entry in built {
                    entries.insert(entry.name.clone(), Arc::new(Entry::clone(&entry).since(epoch)));
                }
            }),
        };
        Ok(Exchange { defined, moved: BTreeMap::new() })
    }

    /// The statements of the record, and what they leave to be said of relations.
    fn recorded(&self, writer: &Writer) -> Result<(Vec<Record>, Vec<Recorded>)> {
        let now = writer.now()?;
        let mut statements = self.staged.statements.clone();
        let mut recorded = Vec::with_capacity(self.staged.created.len());
        for created in &self.staged.created {
            let record = match created {
                Created::Table { definition, base, .. } => match &*definition.text {
                    "" => Record::table(&definition.name, &definition.schema)?,
                    sql => Record::definition(sql, base, now)?,
                },
                Created::View { definition, base } => {
                    Record::definition(&definition.text, base, now)?
                }
            };
            recorded.push(Recorded::new(created.name().to_owned(), record.clone()));
            statements.push(record);
            if let Created::Table { definition, .. } = created {
                let sequences = definition.sequences().map(|(_, sequence, _)| sequence);
                // The transaction may have taken values.
                statements.extend(sequences.filter_map(|name| {
                    let value = self.definitions.sequencer.recorded_sequence(&name)?;
                    Some(Record::Sequence { name, value })
                }));
            }
        }
        Ok((statements, recorded))
    }
}

impl Drop for Candidates<'_> {
    fn drop(&mut self) {
        let lock = self.definitions.lock();
        for entry in self.built.iter().rev() {
            if let Some(id) = entry.dataflow() {
                self.definitions.sequencer.remove(id);
            }
            if let Ok(view) = entry.as_view() {
                self.definitions.release(&view.uses);
            }
        }
        self.definitions.claimed.lock().retain(|name| !self.claimed.contains(name));
        drop(lock);
    }
}
