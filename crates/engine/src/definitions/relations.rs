//! CREATE and DROP.

use std::path::Path;
use std::sync::Arc;

use alluvium_sql::catalog::DeclaredRecursion;
use alluvium_sql::physical::{self, Output, compile};
use alluvium_sql::plan::PlannedView;
use alluvium_sql::planner::CLOCK;
use alluvium_sql::statement::{Drop, IfTaken, TableDefinition, ViewDefinition, ViewKind};
use arrow::datatypes::SchemaRef;

use super::followers::Continued;
use super::install::Replaced;
use super::{Definitions, failed, lateness, recursion, schemas};
use crate::catalog::{Entries, Entry, Scope, Uses};
use crate::connectors::Connectors;
use crate::durable::checkpoint::DataflowKey;
use crate::durable::record::{Record, Recorded};
use crate::error::{Conflict, Error, Result, SqlState};
use crate::interrupt;
use crate::sequencer::Role;
use crate::worker::{Dataflow, DataflowId};
use crate::writer::Writer;

/// The outcome of claiming the name of a new relation.
pub(crate) enum Taken {
    /// No relation has it.
    Free,
    /// The relation that has it stays.
    Keep,
    /// The new relation takes it from this one, which no other relation names.
    Replace(Arc<Entry>),
}

/// How the dataflow of a view starts.
pub(super) enum Start<'a> {
    /// Empty, to be filled; with its record.
    Empty(Option<&'a Recorded>),
    /// Empty, to be filled and then to replace another one, when it is recorded.
    Candidate,
    /// With what another one keeps, whose place it takes.
    With(Continued<'a>),
}

impl<'a> Start<'a> {
    fn record(&self) -> Option<&'a Recorded> {
        match self {
            Self::Empty(record) => *record,
            Self::Candidate | Self::With(_) => None,
        }
    }
}

/// The outcome of building a view.
pub(super) enum Built<B> {
    /// Its dataflow is filled.
    Begun(B),
    /// Not yet: it reads a relation whose dataflow is filled.
    Waits(DataflowId),
}

/// Views whose dataflows are filled.
pub(super) struct Begun {
    /// The dataflows, with the names of their views.
    filled: Vec<(String, DataflowId)>,
    /// The replacement to make when they are full.
    replacement: Option<Box<Replacement>>,
}

/// A view that replaces another one when it is full.
struct Replacement {
    before: Arc<Entry>,
    entry: Entry,
    record: Option<Recorded>,
}

/// The output of the dataflow of a view of this kind.
pub(super) fn output_of(kind: ViewKind) -> Output {
    match kind {
        ViewKind::Materialized => Output::Rows,
        ViewKind::Plain | ViewKind::Local => Output::Changes,
    }
}

impl Definitions {
    /// Creates a table and adds its inputs; does nothing if there is one that stays.
    pub(crate) fn create_table(
        &self,
        definition: &TableDefinition,
        base: &Path,
        writer: &Writer,
        connectors: &Connectors,
    ) -> Result<()> {
        let name = &definition.name;
        let record = self.recorded(name, || {
            let record = match &*definition.text {
                // The columns of a file or a query, whose rows it is created with.
                "" => Record::incomplete(name, &definition.schema),
                sql => Record::definition(sql, base, writer.now()?),
            };
            record.map(|record| (record.clone(), record))
        })?;
        // Nothing is committed to the replaced table meanwhile.
        let _writing = match definition.if_taken {
            IfTaken::Replace => Some(writer.lock()?),
            IfTaken::Fail | IfTaken::Keep => None,
        };
        interrupt::deferred(|| {
            let added = self.add_table(definition, base, record.as_ref(), connectors)?;
            added.map_or(Ok(()), |id| self.progress.wait_filled(id))
        })?;
        self.sequencer.durable().sync_all()
    }

    /// The record of a statement about a relation, and of its whole definition; `None` without a journal.
    pub(super) fn recorded(
        &self,
        name: &str,
        record: impl FnOnce() -> Result<(Record, Record)>,
    ) -> Result<Option<Recorded>> {
        if !self.is_durable() {
            return Ok(None);
        }
        let (definition, whole) = record()?;
        let (name, before, adds) = (name.to_owned(), None, false);
        Ok(Some(Recorded { name, before, definition, whole, adds }))
    }

    fn add_table(
        &self,
        definition: &TableDefinition,
        base: &Path,
        record: Option<&Recorded>,
        connectors: &Connectors,
    ) -> Result<Option<DataflowId>> {
        self.planner.checks(definition)?;
        let _lock = self.lock();
        let kept = definition.is_kept();
        let table = Arc::new(table_of(definition)?);
        let entries = self.catalog.entries();
        let inputs = (0..).zip(&definition.connectors).map(|(number, connector)| {
            let over = (base, &entries.systems);
            connectors.formats.input(&definition.name, number, connector, over)
        });
        let inputs = inputs.collect::<Result<Vec<_>>>()?;
        let name = definition.name.clone();
        let taken = self
            .taken(&name, definition.if_taken, Entry::is_table)
            .map_err(|error| error.at(definition.position))?;
        let before = match &taken {
            Taken::Replace(before) => Some(&**before),
            Taken::Free | Taken::Keep => None,
        };
        if !matches!(taken, Taken::Keep) {
            self.check_sequences(definition, &self.catalog.entries())?;
            self.check_uniques(definition, before, &self.catalog.entries())?;
        }
        let removed = match taken {
            Taken::Free => Ok(()),
            Taken::Keep => return Ok(None),
            Taken::Replace(before) => {
                self.sequencer.change_comments(|comments| comments.forget(&name));
                self.sequencer.forget_pause(&name);
                self.remove(&before, connectors)
            }
        };
        let role = Role::Kept(DataflowKey::relation(&name, table.fingerprint()));
        self.sequencer.begin_sequences(definition.sequences().map(|(_, sequence, _)| sequence));
        let id = self.install_table(&name, &table, kept, record, role)?;
        let entry = Entry::of_table(definition, id)?;
        self.sequencer.declare(&entry);
        self.forget_announced(&entry.name);
        self.catalog.insert(entry);
        self.build_uniques(&name)?;
        connectors.inputs.add(inputs);
        removed.map(|()| Some(id))
    }

    /// All relations but this one.
    fn entries_without(&self, entry: &Entry) -> Arc<Entries> {
        let mut entries = self.catalog.entries();
        Arc::make_mut(&mut entries).remove(&entry.name);
        entries
    }

    /// Installs the dataflow of a table. The caller holds the definitions' lock.
    pub(super) fn install_table(
        &self,
        name: &str,
        table: &Arc<physical::Table>,
        kept: bool,
        record: Option<&Recorded>,
        role: Role,
    ) -> Result<DataflowId> {
        self.sequencer.install(&[], record, role, |_, _, _| match kept {
            true => Dataflow::Table { name: name.to_owned(), table: table.clone() },
            false => Dataflow::Stream { name: name.to_owned() },
        })
    }

    /// Creates a view, without outputs, durably. If the caller `waits`, or if the view replaces another one, it is full then.
    /// Returns false, and does nothing, if there is one that stays. Fails with a conflict if the relations are others than those of
    /// `over`, if it is given.
    pub(crate) fn create_view(
        &self,
        definition: &ViewDefinition,
        base: &Path,
        (writer, connectors): (&Writer, &Connectors),
        waits: bool,
        over: Option<&Arc<Entries>>,
    ) -> Result<bool> {
        let create = || match self.begin_view(definition, base, writer, over)? {
            Some(Begun { replacement: None, .. }) if !waits => Ok(true),
            Some(begun) => self.finish_view(begun, connectors).map(|()| true),
            None => Ok(false),
        };
        // Earlier definitions of the view go when its record is written: the two are not interrupted. Neither are views that
        // recur, as one creates others.
        let created = match self.is_said(&definition.name) {
            true => interrupt::deferred(create)?,
            false => create()?,
        };
        self.sequencer.durable().sync_all().map(|()| created)
    }

    /// The columns of a view that is created; `None` if there is one that stays.
    pub(crate) fn columns_of(&self, definition: &ViewDefinition) -> Result<Option<SchemaRef>> {
        let _lock = self.lock();
        let name = &definition.name;
        let mut entries = self.catalog.entries();
        if !self.is_only_declared(name) {
            let taken = self.taken(name, definition.if_taken, |entry| !entry.is_table());
            match taken.map_err(|error| error.at(definition.position))? {
                Taken::Free => {}
                Taken::Keep => return Ok(None),
                Taken::Replace(before) => entries = self.entries_without(&before),
            }
        }
        Ok(Some(PlannedView::of(definition, &self.planner, &Scope(&entries))?.schema))
    }

    /// Orders the dataflow of a view over the relations of this moment, or `over` these; `None` if there is a view that stays.
    fn begin_view(
        &self,
        definition: &ViewDefinition,
        base: &Path,
        writer: &Writer,
        over: Option<&Arc<Entries>>,
    ) -> Result<Option<Begun>> {
        loop {
            let lock = self.lock();
            if over.is_some_and(|over| !Arc::ptr_eq(over, &self.catalog.entries())) {
                let message = "relations have been defined since the statement began";
                return Err(Error::conflict(Conflict::Serialization, message));
            }
            self.failing.settle_locked(&lock);
            let definition = &self.with_announced(definition);
            let name = &definition.name;
            let mut record = self.recorded(name, || {
                let now = writer.now()?;
                let created = Record::definition(&definition.text, base, now)?;
                Ok((created, Record::definition(&lateness::whole(definition), base, now)?))
            })?;
            let is_declared = self.is_only_declared(name);
            if let Some(record) = &mut record {
                record.adds = is_declared;
            }
            let taken = match is_declared {
                true => Taken::Free,
                false => self
                    .taken(name, definition.if_taken, |entry| !entry.is_table())
                    .map_err(|error| error.at(definition.position))?,
            };
            let before = match taken {
                Taken::Free => None,
                Taken::Keep => return Ok(None),
                Taken::Replace(before) => Some(before),
            };
            match self.build_view(definition, before, record, writer)? {
                Built::Begun(begun) => {
                    self.forget_announced(&definition.name);
                    return Ok(Some(begun));
                }
                Built::Waits(id) => {
                    drop(lock);
                    self.wait_filled_or_failed(id)?;
                }
            }
        }
    }

    /// Orders the dataflow of a view, which replaces another. The caller holds the definitions' lock.
    pub(super) fn build_view(
        &self,
        definition: &ViewDefinition,
        before: Option<Arc<Entry>>,
        record: Option<Recorded>,
        writer: &Writer,
    ) -> Result<Built<Begun>> {
        // A view cannot read the one it replaces.
        let entries = match &before {
            Some(before) => self.entries_without(before),
            None => self.catalog.entries(),
        };
        let planned = PlannedView::of(definition, &self.planner, &Scope(&entries))?;
        if !self.sequencer.durable().is_replaying() {
            let reads = planned.depends.iter().chain(&planned.reads);
            failed::check_reads(&definition.name, reads, &entries)?;
        }
        if let Some(id) = self.filling_of(&entries, &planned.depends) {
            return Ok(Built::Waits(id));
        }
        if planned.declared.is_some() {
            let filled = self.add_recursive(definition, planned, record.as_ref(), writer)?;
            return Ok(Built::Begun(Begun { filled, replacement: None }));
        }
        recursion::check_awaited(definition, &planned)?;
        let start = match before {
            Some(_) => Start::Candidate,
            None => Start::Empty(record.as_ref()),
        };
        let entry = self.install_view(definition, planned, None, start, &entries, writer)?;
        let filled = entry.dataflow().into_iter().map(|id| (entry.name.clone(), id)).collect();
        // The catalog copies entries that are still being read.
        drop(entries);
        let replacement = match before {
            Some(before) => Some(Box::new(Replacement { before, entry, record })),
            None => {
                self.catalog.insert(entry);
                None
            }
        };
        Ok(Built::Begun(Begun { filled, replacement }))
    }

    /// Waits until a view is full that was begun, and puts it into the place of the one that it replaces. If that fails, or is
    /// given up, it leaves nothing.
    pub(super) fn finish_view(&self, begun: Begun, connectors: &Connectors) -> Result<()> {
        let Begun { filled, replacement } = begun;
        let full = filled.iter().try_for_each(|(_, id)| self.progress.wait_filled(*id));
        let lock = self.lock();
        self.failing.settle_locked(&lock);
        // A replayed view was full once, and failed later.
        let replays = self.sequencer.durable().is_replaying();
        let Some(replacement) = replacement else {
            return match full {
                Err(Error::Failed { .. }) if replays => Ok(()),
                full => full.or_else(|error| self.give_up(&filled, error, connectors)),
            };
        };
        // It may have failed since it was full.
        let ids = filled.iter().map(|(_, id)| id);
        let replaced = full.and_then(|()| self.progress.failures().check(ids));
        let Replacement { before, entry, record } = *replacement;
        let (stopped, replaced) = match replaced {
            Ok(()) => (None, self.replace(&before, &entry, record.as_ref(), connectors)),
            Err(Error::Failed { reason, .. }) if replays => {
                let stopped = entry.stopped(&reason.into());
                let replaced = self.replace(&before, &stopped, record.as_ref(), connectors);
                (Some(stopped), replaced)
            }
            Err(error) => (None, Err(failed::unfilled(&entry.name, error))),
        };
        if stopped.is_some() || replaced.is_err() {
            filled.iter().for_each(|(_, id)| self.sequencer.remove(*id));
            if let Ok(view) = entry.as_view() {
                self.release(&view.uses);
            }
        }
        replaced?
    }

    /// Drops the views whose creation was given up, unless they are full by now. The caller holds the definitions' lock.
    fn give_up(
        &self,
        views: &[(String, DataflowId)],
        error: Error,
        connectors: &Connectors,
    ) -> Result<()> {
        let has_failed = matches!(error, Error::Failed { .. });
        if !has_failed && views.iter().all(|(_, id)| self.progress.is_filled(*id)) {
            return Ok(());
        }
        for (name, id) in views {
            // Another client may have dropped it.
            if let Ok(entry) = self.catalog.get(name)
                && self.failing.is_of(&entry, *id)
            {
                self.drop_relation(&entry, true, connectors)?;
            }
        }
        Err(match views {
            [(name, _), ..] => failed::unfilled(name, error),
            [] => error,
        })
    }

    /// Has a view that is full take the place of another one, at once for all readers. An inner error says that an output of
    /// the old one could not be written to its end. The caller holds the definitions' lock.
    fn replace(
        &self,
        before: &Arc<Entry>,
        entry: &Entry,
        record: Option<&Recorded>,
        connectors: &Connectors,
    ) -> Result<Result<()>> {
        let name = &entry.name;
        let is_current = self.catalog.get(name).is_ok_and(|current| Arc::ptr_eq(&current, before));
        let entries = self.catalog.entries();
        let is_there = |read: &String| entries.contains_key(read) || read == CLOCK;
        if !is_current || !entry.depends.iter().all(is_there) {
            return Err(Error::sql(format!(
                "\"{name}\", or what it reads, has been altered or dropped while the view that replaces it was filled; run the \
                 statement again"
            )));
        }
        self.catalog.check_unused(name)?;
        // Who subscribes from now on waits for the definitions' lock, and finds the new view.
        self.cut_all(name);
        if let Some(id) = entry.dataflow() {
            self.sequencer.promote(id, record)?;
        } else if let Some(record) = record {
            self.sequencer.record(record)?;
        }
        self.sequencer.change_comments(|comments| comments.retain_columns(name, &entry.schema));
        self.catalog.replace(name, entry.clone());
        Ok(self.dismantle(before, connectors))
    }

    /// Orders the dataflow of a view that is planned over these relations, which is part of a recursion if there is one. The caller holds the
    /// definitions' lock.
    pub(super) fn install_view(
        &self,
        definition: &ViewDefinition,
        planned: PlannedView,
        recursion: Option<Arc<DeclaredRecursion>>,
        start: Start<'_>,
        entries: &Entries,
        writer: &Writer,
    ) -> Result<Entry> {
        let (name, kind) = (&definition.name, definition.kind);
        let (compiled, replaced) = match &start {
            Start::With(continued) => continued.compiled(name, &planned.plan, output_of(kind))?,
            Start::Empty(_) | Start::Candidate => {
                let there = |index| self.indexes.is_there(index);
                (compile(&planned.plan, output_of(kind), &there)?, Replaced::new())
            }
        };
        if planned.reads.iter().any(|relation| relation == CLOCK) {
            self.start_clock(writer.now()?)?;
        }
        let replays = self.sequencer.durable().is_replaying();
        // It may have failed then, or what it reads, with which it has as well.
        let mut left_out = match kind {
            ViewKind::Plain | ViewKind::Materialized if replays => {
                let reads = planned.depends.iter().chain(&planned.reads);
                let read = || failed::failed_read(reads, entries);
                self.sequencer.left_out(name).map(Arc::from).or_else(read)
            }
            _ => None,
        };
        let (id, uses) = match kind {
            // It is part of the views that name it.
            ViewKind::Local => {
                start.record().map(|record| self.sequencer.record(record)).transpose()?;
                (None, Uses::default())
            }
            _ if left_out.is_some() => {
                start.record().map(|record| self.sequencer.record(record)).transpose()?;
                (None, Uses::default())
            }
            ViewKind::Plain | ViewKind::Materialized => {
                let key = DataflowKey::relation(name, compiled.plan.fingerprint());
                let record = start.record();
                let role = match start {
                    Start::Empty(_) => Role::Kept(key),
                    Start::Candidate => Role::Candidate(key),
                    Start::With(continued) => {
                        Role::of(key, Some(continued.kept(name, &compiled.plan)?))
                    }
                };
                let role = (role, &replaced);
                let installed =
                    self.install_plan(&compiled, entries, record, role, |view| Dataflow::View {
                        name: name.clone(),
                        plan: view.plan.clone(),
                        reads: view.reads.clone(),
                        sink: None,
                        counts: false,
                    });
                match installed {
                    Ok((id, uses)) => (Some(id), uses),
                    // It reads rows that are not kept, and the checkpoint does not have it: it failed or was filled just then.
                    Err(error @ Error::Sql { .. })
                        if replays && !self.sequencer.has_saved(name) =>
                    {
                        record.map(|record| self.sequencer.record(record)).transpose()?;
                        left_out = Some(error.to_string().into());
                        (None, Uses::default())
                    }
                    Err(error) => return Err(error),
                }
            }
        };
        let entry = Entry::of_view(definition, planned, (id, uses), recursion);
        Ok(Entry { failed: left_out, ..entry })
    }

    /// Drops a table. Nothing is committed meanwhile.
    pub(crate) fn drop_table(
        &self,
        table: &Drop,
        writer: &Writer,
        connectors: &Connectors,
    ) -> Result<()> {
        let writing = writer.lock()?;
        let lock = self.lock();
        if table.if_exists && !self.catalog.contains(&table.name) {
            return Ok(());
        }
        let entry = self.catalog.get(&table.name)?;
        entry.as_table()?;
        let dropped = self.drop_relation(&entry, table.cascade, connectors);
        drop((writing, lock));
        dropped.and_then(|()| self.sequencer.durable().sync_all())
    }

    /// Drops a view.
    pub(crate) fn drop_view(&self, view: &Drop, connectors: &Connectors) -> Result<()> {
        let lock = self.lock();
        if view.if_exists && !self.catalog.contains(&view.name) {
            return Ok(());
        }
        let entry = self.catalog.get(&view.name)?;
        entry.check_view()?;
        let dropped = self.drop_relation(&entry, view.cascade, connectors);
        drop(lock);
        dropped.and_then(|()| self.sequencer.durable().sync_all())
    }

    /// Drops a relation whose creation has failed halfway.
    pub(crate) fn undo(&self, name: &str, writer: &Writer, connectors: &Connectors) -> Result<()> {
        let _writing = interrupt::deferred(|| writer.lock())?;
        let _lock = self.lock();
        let entry = self.catalog.get(name)?;
        self.drop_relation(&entry, false, connectors)?;
        self.sequencer.durable().sync_all()
    }

    fn drop_relation(&self, entry: &Entry, cascade: bool, connectors: &Connectors) -> Result<()> {
        let record = Record::dropped(entry.kind(), &entry.name, cascade);
        let mut removed = Ok(());
        if cascade {
            let dependents = self.catalog.dependents(&entry.name);
            let names = dependents.iter().map(|dependent| &*dependent.name);
            self.sequencer.record_drop(&record, names.chain([&*entry.name]))?;
            for dependent in &dependents {
                removed = removed.and(self.remove(dependent, connectors));
            }
        } else {
            self.catalog.check_unused(&entry.name)?;
            self.sequencer.record_drop(&record, [&*entry.name])?;
        }
        removed.and(self.remove(entry, connectors))
    }

    /// Removes a relation that no other names, with its subscriptions, inputs and outputs. An error says that an output
    /// could not be written to its end; the relation is gone all the same.
    pub(super) fn remove(&self, entry: &Entry, connectors: &Connectors) -> Result<()> {
        self.catalog.remove(&entry.name);
        self.dismantle(entry, connectors)
    }

    /// As [`Definitions::remove`], of a relation that is no longer in the catalog.
    pub(super) fn dismantle(&self, entry: &Entry, connectors: &Connectors) -> Result<()> {
        self.sequencer.forget(entry.indexes.iter().map(|index| &*index.name));
        self.take_down(entry, connectors)
    }

    /// As [`Definitions::dismantle`], of a relation whose definitions are already forgotten.
    pub(super) fn take_down(&self, entry: &Entry, connectors: &Connectors) -> Result<()> {
        self.cut_all(&entry.name);
        // Outputs write what is complete, which waits for the disk.
        let durable = self.sequencer.sync(self.sequencer.last());
        let written = connectors.forget(&entry.name);
        self.forget_sinks(&entry.name, connectors);
        if let Some(id) = entry.dataflow() {
            self.sequencer.remove(id);
        }
        if let Ok(view) = entry.as_view() {
            self.release(&view.uses);
        }
        if let Ok(table) = entry.as_table() {
            let entries = self.catalog.entries();
            let sequences = table.defined.sequences().map(|(_, sequence, _)| sequence);
            // That of a table which takes the place of another one continues.
            for sequence in sequences.filter(|name| entries.sequence(name).is_none()) {
                self.sequencer.hold_sequences().forget(&sequence);
            }
        }
        entry.indexes.iter().for_each(|index| self.release(&index.uses));
        durable.and(written)
    }

    /// The outcome of claiming the name of a new relation; fails if it cannot have the name.
    pub(crate) fn taken(
        &self,
        name: &str,
        if_taken: IfTaken,
        is_same_kind: impl Fn(&Entry) -> bool,
    ) -> Result<Taken> {
        self.check_unclaimed(name)?;
        taken(&self.catalog.entries(), name, if_taken, is_same_kind)
    }
}

/// The outcome of claiming the name of a new relation among others; fails if it cannot have the name.
pub(crate) fn taken(
    entries: &Entries,
    name: &str,
    if_taken: IfTaken,
    is_same_kind: impl Fn(&Entry) -> bool,
) -> Result<Taken> {
    schemas::check_schema(entries, name)?;
    entries.check_no_index(name)?;
    entries.check_no_sequence(name)?;
    let Some(entry) = entries.get(name) else { return Ok(Taken::Free) };
    match if_taken {
        IfTaken::Keep if is_same_kind(entry) => Ok(Taken::Keep),
        IfTaken::Replace if is_same_kind(entry) => {
            entries.check_unused(name)?;
            Ok(Taken::Replace(entry.clone()))
        }
        _ => Err(Error::sql(format!("there is already a {} \"{name}\"", entry.kind().noun()))
            .with_sqlstate(SqlState::DUPLICATE_RELATION)),
    }
}

/// The table of a definition, ready to be rendered.
pub(super) fn table_of(definition: &TableDefinition) -> Result<physical::Table> {
    let keeps_arrivals = definition.is_kept() && definition.is_append_only();
    let (schema, key) = (&definition.schema, &definition.primary_key);
    let table = physical::Table::compile(schema, key, keeps_arrivals)?;
    Ok(table.with_lateness(&definition.lateness))
}
