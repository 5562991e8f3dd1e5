//! CREATE and DROP.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use alluvium_sql::catalog::DeclaredRecursion;
use alluvium_sql::physical::{self, Output, compile};
use alluvium_sql::planner::{CLOCK, PlannedView};
use alluvium_sql::statement::{Drop, IfTaken, TableDefinition, ViewDefinition, ViewKind};
use arrow::datatypes::SchemaRef;

use super::{Definitions, lateness, recursion};
use crate::catalog::{Definition, Entries, Entry, RelationKind, Scope, Uses, View};
use crate::connectors::Connectors;
use crate::durable::checkpoint::DataflowKey;
use crate::durable::record::{Record, Recorded};
use crate::durable::restore::RestoredDataflow;
use crate::error::{Error, Result};
use crate::interrupt;
use crate::sequencer::Role;
use crate::worker::{Dataflow, DataflowId};
use crate::writer::Writer;

/// What happens to the name of a new relation.
pub(crate) enum Taken {
    /// No relation has it.
    Free,
    /// The relation that has it stays.
    Keep,
    /// The new relation takes it from this one, which no other relation names.
    Replace(Arc<Entry>),
}

/// What the dataflow of a view of this kind makes.
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
        let record = self.recorded(RelationKind::Table, name, || {
            let record = match &*definition.text {
                // The columns of a file or a query, whose rows it is created with.
                "" => Record::incomplete(name, &definition.schema),
                sql => Record::definition(sql, base, writer.now()?),
            };
            record.map(|record| (record.clone(), record))
        })?;
        // Transactions that write to the replaced table finish first.
        let _writing = match definition.if_taken {
            IfTaken::Replace => Some(writer.lock()?),
            IfTaken::Fail | IfTaken::Keep => None,
        };
        interrupt::deferred(|| self.add_table(definition, base, record.as_ref(), connectors))?;
        self.sequencer.durable().sync_all()
    }

    /// The record of a statement about a relation, and of all that has been said of it; `None` without a journal.
    pub(super) fn recorded(
        &self,
        kind: RelationKind,
        name: &str,
        record: impl FnOnce() -> Result<(Record, Record)>,
    ) -> Result<Option<Recorded>> {
        if !self.is_durable() {
            return Ok(None);
        }
        let undo = Some(Record::dropped(kind, name, false));
        let (definition, whole) = record()?;
        let (name, before, adds) = (name.to_owned(), None, false);
        Ok(Some(Recorded { name, before, definition, whole, undo, adds }))
    }

    fn add_table(
        &self,
        definition: &TableDefinition,
        base: &Path,
        record: Option<&Recorded>,
        connectors: &Connectors,
    ) -> Result<()> {
        let _lock = self.lock();
        let kept = definition.is_kept();
        let table = Arc::new(table_of(definition)?);
        let inputs = (0..).zip(&definition.connectors).map(|(number, connector)| {
            connectors.formats.input(&definition.name, number, connector, base)
        });
        let inputs = inputs.collect::<Result<Vec<_>>>()?;
        let name = definition.name.clone();
        let taken = self
            .taken(&name, definition.if_taken, Entry::is_table)
            .map_err(|error| error.at(definition.position))?;
        let removed = match taken {
            Taken::Free => Ok(()),
            Taken::Keep => return Ok(()),
            Taken::Replace(before) => self.remove(&before, connectors),
        };
        let role = Role::Kept(DataflowKey::relation(&name, table.fingerprint()));
        let id = self.install_table(&name, &table, kept, record, role)?;
        let entry = Entry::of_table(definition, id);
        self.sequencer.declare(&entry);
        self.forget_announced(&entry.name);
        self.catalog.insert(entry);
        connectors.inputs.add(inputs);
        removed
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

    /// Creates a view, without outputs, durably. Returns false, and does nothing, if there is one that stays.
    pub(crate) fn create_view(
        &self,
        definition: &ViewDefinition,
        base: &Path,
        writer: &Writer,
        connectors: &Connectors,
    ) -> Result<bool> {
        let create = || self.add_view(definition, base, writer, connectors);
        // What has been said of the view goes when its record is written: the two are not interrupted. Neither are views that
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
        Ok(Some(self.planner.view(definition, &Scope(&entries))?.schema))
    }

    fn add_view(
        &self,
        definition: &ViewDefinition,
        base: &Path,
        writer: &Writer,
        connectors: &Connectors,
    ) -> Result<bool> {
        let _lock = self.lock();
        let definition = &self.with_announced(definition);
        let (name, kind) = (&definition.name, definition.kind);
        let mut record = self.recorded(kind.into(), name, || {
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
            Taken::Keep => return Ok(false),
            Taken::Replace(before) => Some(before),
        };
        let record = record.as_ref();
        let is_replaced = before.is_some();
        let build = || self.build_view(definition, (before, None), record, writer, connectors);
        // The view that is replaced could not come back.
        match is_replaced {
            true => interrupt::deferred(build)?,
            false => build()?,
        }
        self.forget_announced(&definition.name);
        Ok(true)
    }

    /// Installs a view, which replaces another and may start with what that keeps. The caller holds the definitions' lock.
    pub(super) fn build_view(
        &self,
        definition: &ViewDefinition,
        (before, kept): (Option<Arc<Entry>>, Option<RestoredDataflow>),
        record: Option<&Recorded>,
        writer: &Writer,
        connectors: &Connectors,
    ) -> Result<()> {
        // A view cannot read the one it replaces.
        let entries = match &before {
            Some(before) => self.entries_without(before),
            None => self.catalog.entries(),
        };
        let planned = self.planner.view(definition, &Scope(&entries))?;
        if planned.declared.is_some() {
            return self.add_recursive(definition, planned, record, writer);
        }
        recursion::check_awaited(definition, &planned)?;
        let entry = self.install_view(definition, planned, None, kept, record, writer)?;
        let removed = before.map_or(Ok(()), |before| self.remove(&before, connectors));
        // The catalog copies entries that somebody still reads.
        drop(entries);
        self.catalog.insert(entry);
        removed
    }

    /// Installs a view that is planned, which is part of a recursion if there is one, and may start with what another one keeps.
    /// The caller holds the definitions' lock.
    pub(super) fn install_view(
        &self,
        definition: &ViewDefinition,
        planned: PlannedView,
        recursion: Option<Arc<DeclaredRecursion>>,
        kept: Option<RestoredDataflow>,
        record: Option<&Recorded>,
        writer: &Writer,
    ) -> Result<Entry> {
        let (name, kind) = (&definition.name, definition.kind);
        let there = |index| self.indexes.is_there(index);
        let compiled = compile(&planned.plan, output_of(kind), &there)?;
        if planned.reads.iter().any(|relation| relation == CLOCK) {
            self.start_clock(writer.now()?)?;
        }
        let plan = Arc::new(planned.plan);
        let (id, uses) = match kind {
            // It is part of the views that name it.
            ViewKind::Local => {
                record.map(|record| self.sequencer.record(record)).transpose()?;
                (None, Uses::default())
            }
            ViewKind::Plain | ViewKind::Materialized => {
                let key = DataflowKey::relation(name, compiled.plan.fingerprint());
                if kept.as_ref().is_some_and(|kept| !kept.is_of(&key.fingerprint)) {
                    return Err(Error::sql(format!(
                        "\"{name}\" would be computed in another way than before: create another view and drop this one"
                    )));
                }
                let role = Role::of(key, kept);
                let (id, uses) =
                    self.install_plan(&compiled, record, role, |view| Dataflow::View {
                        name: name.clone(),
                        plan: view.plan.clone(),
                        indexes: view.indexes.clone(),
                        sink: None,
                    })?;
                (Some(id), uses)
            }
        };
        Ok(Entry {
            name: name.clone(),
            schema: planned.schema,
            depends: planned.depends,
            indexes: Vec::new(),
            definition: Definition::View(View {
                id,
                kind,
                logical: planned.logical,
                extent: planned.extent,
                emit_final: planned.emit_final,
                lateness: planned.lateness,
                late_by: definition.lateness.clone(),
                plan,
                bounds: planned.bounds,
                recursion,
                awaits: planned.awaits,
                calls: planned.calls,
                uses,
                text: definition.text.clone(),
                kept: OnceLock::new(),
            }),
        })
    }

    /// Drops a table once no transaction writes.
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
        self.cut_all(&entry.name);
        // Outputs write what is complete, which waits for the disk.
        let durable = self.sequencer.sync(self.sequencer.last());
        let written = connectors.forget(&entry.name);
        if let Some(id) = entry.dataflow() {
            self.sequencer.remove(id);
        }
        if let Ok(view) = entry.as_view() {
            self.release(&view.uses);
        }
        self.remove_indexes(entry);
        durable.and(written)
    }

    /// What happens to the name of a new relation; fails if it cannot have the name.
    pub(crate) fn taken(
        &self,
        name: &str,
        if_taken: IfTaken,
        is_same_kind: impl Fn(&Entry) -> bool,
    ) -> Result<Taken> {
        self.check_schema(name)?;
        self.catalog.check_no_index(name)?;
        let Ok(entry) = self.catalog.get(name) else { return Ok(Taken::Free) };
        match if_taken {
            IfTaken::Keep if is_same_kind(&entry) => Ok(Taken::Keep),
            IfTaken::Replace if is_same_kind(&entry) => {
                self.catalog.check_unused(name)?;
                Ok(Taken::Replace(entry))
            }
            _ => Err(Error::sql(format!("there is already a {} \"{name}\"", entry.kind().noun()))),
        }
    }
}

/// The table of a definition, ready to be rendered.
pub(super) fn table_of(definition: &TableDefinition) -> Result<physical::Table> {
    let keeps_arrivals = definition.is_kept() && definition.is_append_only();
    let (schema, key) = (&definition.schema, &definition.primary_key);
    let table = physical::Table::compile(schema, key, keeps_arrivals)?;
    Ok(table.with_lateness(&definition.lateness))
}
