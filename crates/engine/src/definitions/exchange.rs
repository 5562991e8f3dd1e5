//! Definitions of a transaction that commits.
//!
//! First, beside all other work, its relations are built and filled: [`Candidates`], which are in no catalog and no checkpoint. If
//! that fails or is interrupted, they are removed, and nothing has happened. Then, while nothing else is committed or defined,
//! it is made sure that all relations are still those that the transaction has named, and all takes effect at once: one record in
//! the journal, one exchange of the catalog's relations, and the epoch with the transaction's rows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use alluvium_sql::plan::{PlannedView, Renamed};
use parking_lot::MutexGuard;

use super::alter::Parts;
use super::relations::{self, Start};
use super::staged::{Created, Moved, StagedDefinitions};
use super::{Definitions, failed};
use crate::catalog::{Entries, Entry, NamedIndex, Scope, named_index};
use crate::connectors::Connectors;
use crate::durable::checkpoint::DataflowKey;
use crate::durable::record::{Record, Recorded};
use crate::error::{Error, Result};
use crate::interrupt;
use crate::roles;
use crate::sequencer::{Changed, Committed, Defined, Role};
use crate::worker::DataflowId;
use crate::writer::{WriteGuard, Writer};

/// The relations that a transaction creates, built. Dropping it removes it again, unless it has [taken its place](Candidates::take_places).
pub(crate) struct Candidates<'a> {
    definitions: &'a Definitions,
    staged: StagedDefinitions,
    /// The relations, in the order in which they were built.
    built: Vec<Arc<Entry>>,
    /// The relations that take the places of others, each with that one.
    moved: Vec<(Arc<Entry>, Arc<Entry>)>,
    /// The names that others may not give to relations meanwhile.
    claimed: BTreeSet<String>,
}

/// How definitions take effect.
pub(crate) struct Exchange<'a> {
    pub(crate) defined: Defined<'a>,
    /// The tables that take the places of others, by the dataflows of these.
    moved: BTreeMap<DataflowId, Arc<Entry>>,
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
    /// Builds the relations that a transaction creates, and waits until they are full.
    pub(crate) fn build(
        &self,
        mut staged: StagedDefinitions,
        writer: &Writer,
    ) -> Result<Candidates<'_>> {
        staged.sort_moved();
        let moved = staged.moved.iter().map(|moved| moved.after.name());
        let names = staged.created.iter().map(|created| created.name()).chain(moved);
        let names: BTreeSet<String> = names.map(str::to_owned).collect();
        let (built, moved, claimed) = Default::default();
        let mut candidates = Candidates { definitions: self, staged, built, moved, claimed };
        {
            let lock = self.lock();
            self.failing.settle_locked(&lock);
            candidates.staged.over(&self.catalog.entries())?;
            names.iter().try_for_each(|name| self.check_unclaimed(name))?;
            self.claimed.lock().extend(names.iter().cloned());
            candidates.claimed = names;
        }
        // A relation starts with what is kept by one that is full.
        for id in candidates.staged.moved.iter().filter_map(|moved| moved.before.dataflow()) {
            self.wait_filled_or_failed(id)?;
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

    /// Removes relations whose places others have taken.
    fn finish_moved(
        &self,
        moved: &[(Arc<Entry>, Arc<Entry>)],
        connectors: &Connectors,
    ) -> Result<()> {
        // Those that read others come after them.
        for (before, after) in moved.iter().rev() {
            if let Some(id) = before.dataflow() {
                self.sequencer.remove(id);
            }
            if let Ok(view) = before.as_view() {
                self.release(&view.uses);
            }
            before.indexes.iter().for_each(|index| self.release(&index.uses));
            // Waterlines go by the name of the table.
            self.sequencer.declare(after);
        }
        let renamed = moved.iter().filter(|(before, after)| before.name != after.name);
        // Two may have each other's names.
        let renamed: Vec<_> = renamed.enumerate().collect();
        let between = |number: &usize| format!("{number} of those that are renamed");
        for (number, (before, _)) in &renamed {
            connectors.refusals.rename(&before.name, &between(number))?;
        }
        for (number, (_, after)) in &renamed {
            connectors.refusals.rename(&between(number), &after.name)?;
        }
        Ok(())
    }

    /// Fills an index that is there by its name. Without it, its users find the same rows in another order. The caller
    /// holds the definitions' lock.
    fn fill_index(&self, relation: &str, name: &str) {
        let Ok(entry) = self.catalog.get(relation) else { return };
        let Some(index) = entry.indexes.iter().find(|index| index.name == name) else { return };
        if let Ok(index) = self.indexed_again(&entry, index, &self.catalog.entries()) {
            self.catalog.insert(entry.without_index(name).with_index(index));
        }
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
            // It has the rows of its relation in another order, and is filled after that.
            Created::Index { .. } => return Ok(()),
            Created::Table { definition, id, .. } => {
                let (_lock, _) = self.over()?;
                let table = Arc::new(relations::table_of(definition)?);
                let key = DataflowKey::relation(&definition.name, table.fingerprint());
                let role = Role::Reserved(*id, key);
                let (name, kept) = (&definition.name, definition.is_kept());
                let id = self.definitions.install_table(name, &table, kept, None, role)?;
                Entry::of_table(definition, id)?
            }
            Created::View { definition, .. } => loop {
                let (lock, entries) = self.over()?;
                let planned =
                    PlannedView::of(definition, &self.definitions.planner, &Scope(&entries))?;
                let filling = self.definitions.filling_of(&entries, &planned.depends);
                if let Some(id) = filling {
                    drop(lock);
                    self.definitions.wait_filled_or_failed(id)?;
                    self.definitions.progress.failures().check(self.ids().iter())?;
                    continue;
                }
                let reads = planned.depends.iter().chain(&planned.reads);
                failed::check_reads(&definition.name, reads, &entries)?;
                let (definitions, start) = (self.definitions, Start::Candidate);
                break definitions
                    .install_view(definition, planned, None, start, &entries, writer)?;
            },
        };
        self.built.push(Arc::new(entry));
        Ok(())
    }

    /// The name that a table of this dataflow has when the transaction is committed, if it gives it another one.
    pub(crate) fn name_of(&self, table: DataflowId) -> Option<&str> {
        let mut moved = self.staged.moved.iter();
        let moved = moved.find(|moved| moved.before.dataflow() == Some(table))?;
        Some(moved.after.name())
    }

    /// Has relations of other names begin with what those keep whose places they take. Nothing is committed meanwhile.
    fn move_all(&mut self, parts: Parts<'_>) -> Result<()> {
        let definitions = self.definitions;
        let mut entries = self.staged.over(&definitions.catalog.entries())?;
        let names = self.staged.moved.iter();
        let names = names.map(|moved| (moved.before.name.clone(), moved.after.name().to_owned()));
        let renamed = Renamed::new(names);
        for Moved { before, after, .. } in &self.staged.moved {
            let mut indexes = self.staged.moved_indexes(after.name());
            if before.name != after.name() && self.staged.base_has(after.name()) {
                // The index of the other one is there still. These are built when it is not.
                indexes = indexes.iter().map(|index| Arc::new(index.stopped())).collect();
            }
            let over = (&entries, &renamed);
            let moved = definitions.move_relation(before, after, &indexes, over, parts.writer)?;
            let moved = Arc::new(moved);
            self.moved.push((before.clone(), moved.clone()));
            // It starts with the rows of the other one, and so is full.
            match moved.dataflow().map_or(Ok(()), |id| definitions.progress.wait_filled(id)) {
                // As the other one would have.
                Err(Error::Failed { .. }) => {}
                filled => filled?,
            }
            entries.insert(moved.name.clone(), moved);
        }
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
            self.move_all(parts)?;
            let committed = commit(self.exchange(parts)?)?;
            let built = std::mem::take(&mut self.built);
            let moved = std::mem::take(&mut self.moved);
            drop(writing);
            let dropped = self.staged.dropped.iter();
            let gone = dropped.map(|entry| definitions.take_down(entry, parts.connectors));
            let gone = gone.fold(Ok(()), Result::and);
            let renamed = definitions.finish_moved(&moved, parts.connectors);
            let of_moved = moved.iter().flat_map(|(before, _)| &before.indexes);
            let of_moved: BTreeSet<&str> = of_moved.map(|index| &*index.name).collect();
            for (_, index) in &self.staged.dropped_indexes {
                if !of_moved.contains(&*index.name) {
                    definitions.release(&index.uses);
                }
            }
            for created in &self.staged.created {
                if let Created::Index { definition, .. } = created {
                    definitions.fill_index(&definition.relation, &definition.name);
                }
            }
            let new = built.iter().chain(moved.iter().map(|(_, after)| after));
            let mut names = new.filter(|entry| entry.is_table()).map(|entry| &entry.name);
            let indexed = names.try_for_each(|name| definitions.build_uniques(name));
            gone.and(renamed).and(indexed).map(|()| committed)
        })
    }

    fn exchange(&self, parts: Parts<'_>) -> Result<Exchange<'_>> {
        let definitions = self.definitions;
        self.staged.check_roles(&definitions.sequencer.roles().get())?;
        let moved = self.moved.iter().map(|(before, _)| before);
        let before: Vec<&Arc<Entry>> = self.staged.dropped.iter().chain(moved).collect();
        before.iter().for_each(|entry| definitions.cut_all(&entry.name));
        for (before, after) in &self.moved {
            if let (Ok(_), Some(from), Some(to)) =
                (after.as_table(), before.dataflow(), after.dataflow())
            {
                definitions.sequencer.hand_on(from, to, &after.name);
            }
        }
        for entry in &self.built {
            definitions.sequencer.declare(entry);
        }
        let (statements, recorded) = match definitions.is_durable() {
            true => self.recorded(parts.writer)?,
            false => (Vec::new(), Vec::new()),
        };
        let gone: Vec<String> = before.iter().map(|entry| entry.name.clone()).collect();
        let mut forgotten = gone.clone();
        let indexes = before.iter().flat_map(|entry| &entry.indexes);
        let dropped_indexes = self.staged.dropped_indexes.clone();
        let indexes = indexes.chain(dropped_indexes.iter().map(|(_, index)| index));
        forgotten.extend(indexes.map(|index| index.name.clone()));
        let moved = self.moved.iter().map(|(_, after)| after);
        let made: Vec<Arc<Entry>> = self.built.iter().chain(moved).cloned().collect();
        made.iter().for_each(|entry| definitions.catalog.note_depth(entry));
        let schemas = self.staged.schemas.clone();
        let staged = self.staged.entries().clone();
        let created = self.staged.created.iter();
        let created_indexes = created.filter_map(|created| match created {
            Created::Index { definition, .. } => {
                let (entry, index) = named_index::find(&staged, &definition.name)?;
                Some((entry.name.clone(), NamedIndex::clone(index)))
            }
            _ => None,
        });
        let created_indexes: Vec<(String, NamedIndex)> = created_indexes.collect();
        let comments = self.staged.comments(definitions.sequencer.comments());
        let roles = self.staged.roles(definitions.sequencer.roles().get());
        let names =
            |(before, after): &(Arc<Entry>, Arc<Entry>)| (before.name.clone(), after.name.clone());
        let defined = Defined {
            statements,
            forgotten,
            recorded,
            moved: self.moved.iter().map(names).collect(),
            comments,
            roles,
            candidates: self.ids(),
            catalog: &definitions.catalog,
            change: Box::new(move |entries, epoch| {
                for name in &gone {
                    entries.remove(name);
                }
                for entry in made {
                    entries.insert(entry.name.clone(), Arc::new(Entry::clone(&entry).since(epoch)));
                }
                entries.schemas.extend(schemas);
                for (relation, index) in dropped_indexes {
                    if let Some(entry) = entries.get_mut(&relation) {
                        *entry = Arc::new(entry.without_index(&index.name));
                    }
                }
                for (relation, index) in created_indexes {
                    if let Some(entry) = entries.get_mut(&relation) {
                        *entry = Arc::new(entry.with_index(index));
                    }
                }
            }),
        };
        let moved = self.moved.iter().filter_map(|(before, after)| {
            after.as_table().ok()?;
            Some((before.dataflow()?, after.clone()))
        });
        Ok(Exchange { defined, moved: moved.collect() })
    }

    /// The statements of the record, and the resulting definitions of relations.
    fn recorded(&self, writer: &Writer) -> Result<(Vec<Record>, Vec<Recorded>)> {
        let now = writer.now()?;
        let mut statements = self.staged.statements.clone();
        let mut recorded = Vec::with_capacity(self.staged.created.len());
        for schema in &self.staged.schemas {
            let name = Record::name_of_schema(schema);
            recorded.push(Recorded::new(name, Record::schema(schema)));
        }
        // The statements that have altered them are recorded; this is what they leave.
        for Moved { after, base, .. } in &self.staged.moved {
            let whole = Record::definition(after.text(), base, now)?;
            recorded.push(Recorded::new(after.name().to_owned(), whole));
            for index in self.staged.moved_indexes(after.name()) {
                if index.unique.is_none() {
                    let whole = Record::definition(&index.text, base, now)?;
                    recorded.push(Recorded::new(index.name.clone(), whole));
                }
            }
        }
        for created in &self.staged.created {
            let record = match created {
                Created::Table { definition, base, .. } => match &*definition.text {
                    "" => Record::table(&definition.name, &definition.schema)?,
                    sql => Record::definition(sql, base, now)?,
                },
                Created::View { definition, base } => {
                    Record::definition(&definition.text, base, now)?
                }
                Created::Index { definition, base } => {
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
        statements.extend(self.staged.comments.statements());
        if !self.staged.role_edits().is_empty() {
            statements.push(Record::role(roles::statements(self.staged.role_edits())));
        }
        Ok((statements, recorded))
    }
}

impl Drop for Candidates<'_> {
    fn drop(&mut self) {
        let lock = self.definitions.lock();
        let moved = self.moved.iter().map(|(_, after)| after);
        for entry in self.built.iter().chain(moved).rev() {
            if let Some(id) = entry.dataflow() {
                self.definitions.sequencer.remove(id);
            }
            if let Ok(view) = entry.as_view() {
                self.definitions.release(&view.uses);
            }
            entry.indexes.iter().for_each(|index| self.definitions.release(&index.uses));
        }
        self.definitions.claimed.lock().retain(|name| !self.claimed.contains(name));
        drop(lock);
    }
}
