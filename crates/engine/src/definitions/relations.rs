//! CREATE and DROP.

use std::path::Path;
use std::sync::Arc;

use alluvium_sql::physical::{self, Output, compile};
use alluvium_sql::planner::CLOCK;
use alluvium_sql::statement::{Drop, IfTaken, TableDefinition, ViewDefinition, ViewKind};

use super::Definitions;
use crate::catalog::{Definition, Entry, Scope, Table, Uses, View};
use crate::connectors::Connectors;
use crate::error::{Error, Result};
use crate::interrupt;
use crate::worker::Dataflow;
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

impl Definitions {
    /// Creates a table and adds its inputs; does nothing if there is one that stays.
    pub(crate) fn create_table(
        &self,
        definition: &TableDefinition,
        base: &Path,
        writer: &Writer,
        connectors: &Connectors,
    ) -> Result<()> {
        // Transactions that write to the replaced table finish first.
        let _writing = match definition.if_taken {
            IfTaken::Replace => Some(writer.lock()?),
            IfTaken::Fail | IfTaken::Keep => None,
        };
        interrupt::deferred(|| self.add_table(definition, base, connectors))
    }

    fn add_table(
        &self,
        definition: &TableDefinition,
        base: &Path,
        connectors: &Connectors,
    ) -> Result<()> {
        let _lock = self.lock();
        let table = physical::Table::compile(&definition.schema, &definition.primary_key)?;
        let table = Arc::new(table);
        let (kept, append_only) = (definition.is_kept(), definition.is_append_only());
        let inputs = definition.connectors.iter();
        let inputs =
            inputs.map(|connector| connectors.formats.input(&definition.name, connector, base));
        let inputs = inputs.collect::<Result<Vec<_>>>()?;
        let TableDefinition { name, schema, primary_key, defaults, .. } = definition.clone();
        let taken = self
            .taken(&name, definition.if_taken, Entry::is_table)
            .map_err(|error| error.at(definition.position))?;
        let removed = match taken {
            Taken::Free => Ok(()),
            Taken::Keep => return Ok(()),
            Taken::Replace(before) => self.remove(&before, connectors),
        };
        let id = self.sequencer.install(&[], |_, _, _| match kept {
            true => Dataflow::Table { name: name.clone(), table: table.clone() },
            false => Dataflow::Stream { name: name.clone() },
        })?;
        let definition = Definition::Table(Table { id, primary_key, defaults, kept, append_only });
        self.catalog.insert(Entry { name, schema, depends: Vec::new(), definition });
        connectors.inputs.add(inputs);
        removed
    }

    /// Creates a view, without outputs. Returns false, and does nothing, if there is one that stays.
    pub(crate) fn create_view(
        &self,
        definition: &ViewDefinition,
        writer: &Writer,
        connectors: &Connectors,
    ) -> Result<bool> {
        let _lock = self.lock();
        let (name, kind) = (&definition.name, definition.kind);
        let taken = self
            .taken(name, definition.if_taken, |entry| !entry.is_table())
            .map_err(|error| error.at(definition.position))?;
        let before = match taken {
            Taken::Free => None,
            Taken::Keep => return Ok(false),
            Taken::Replace(before) => Some(before),
        };
        let mut entries = self.catalog.entries();
        if before.is_some() {
            // A view cannot read the one it replaces.
            Arc::make_mut(&mut entries).remove(name);
        }
        let planned = self.planner.view(definition, &Scope(&entries))?;
        let output = match kind {
            ViewKind::Materialized => Output::Rows,
            ViewKind::Plain | ViewKind::Local => Output::Changes,
        };
        let compiled = compile(&planned.plan, output)?;
        if planned.reads.iter().any(|relation| relation == CLOCK) {
            let now = writer.now()?;
            interrupt::deferred(|| self.sequencer.start_clock(now))?;
        }
        let plan = Arc::new(planned.plan);
        let (id, uses) = match kind {
            // It is part of the views that name it.
            ViewKind::Local => (None, Uses::default()),
            ViewKind::Plain | ViewKind::Materialized => {
                let (id, uses) = self.install_plan(&compiled, |view| Dataflow::View {
                    name: name.clone(),
                    plan: view.plan.clone(),
                    indexes: view.indexes.clone(),
                    sink: None,
                })?;
                (Some(id), uses)
            }
        };
        let removed = before.map_or(Ok(()), |before| self.remove(&before, connectors));
        // The catalog copies entries that somebody still reads.
        drop(entries);
        self.catalog.insert(Entry {
            name: name.clone(),
            schema: planned.schema,
            depends: planned.depends,
            definition: Definition::View(View {
                id,
                kind,
                logical: planned.logical,
                extent: planned.extent,
                plan,
                uses,
            }),
        });
        removed.map(|()| true)
    }

    /// Drops a table once no transaction writes.
    pub(crate) fn drop_table(
        &self,
        table: &Drop,
        writer: &Writer,
        connectors: &Connectors,
    ) -> Result<()> {
        let _writing = writer.lock()?;
        let _lock = self.lock();
        if table.if_exists && !self.catalog.contains(&table.name) {
            return Ok(());
        }
        let entry = self.catalog.get(&table.name)?;
        entry.as_table()?;
        self.drop_relation(&entry, table.cascade, connectors)
    }

    /// Drops a view.
    pub(crate) fn drop_view(&self, view: &Drop, connectors: &Connectors) -> Result<()> {
        let _lock = self.lock();
        if view.if_exists && !self.catalog.contains(&view.name) {
            return Ok(());
        }
        let entry = self.catalog.get(&view.name)?;
        entry.as_view()?;
        self.drop_relation(&entry, view.cascade, connectors)
    }

    /// Drops a relation whose creation has failed halfway.
    pub(crate) fn undo(&self, name: &str, writer: &Writer, connectors: &Connectors) -> Result<()> {
        let _writing = interrupt::deferred(|| writer.lock())?;
        let _lock = self.lock();
        let entry = self.catalog.get(name)?;
        self.drop_relation(&entry, false, connectors)
    }

    fn drop_relation(&self, entry: &Entry, cascade: bool, connectors: &Connectors) -> Result<()> {
        let mut removed = Ok(());
        if cascade {
            for dependent in self.catalog.dependents(&entry.name) {
                removed = removed.and(self.remove(&dependent, connectors));
            }
        } else {
            self.catalog.check_unused(&entry.name)?;
        }
        removed.and(self.remove(entry, connectors))
    }

    /// Removes a relation that no other names, with its subscriptions, inputs and outputs. An error says that an output
    /// could not be written to its end; the relation is gone all the same.
    fn remove(&self, entry: &Entry, connectors: &Connectors) -> Result<()> {
        self.catalog.remove(&entry.name);
        self.cut_all(&entry.name);
        let written = connectors.forget(&entry.name);
        if let Some(id) = entry.dataflow() {
            self.sequencer.remove(id);
        }
        if let Ok(view) = entry.as_view() {
            self.release(&view.uses);
        }
        written
    }

    /// What happens to the name of a new relation; fails if it cannot have the name.
    pub(crate) fn taken(
        &self,
        name: &str,
        if_taken: IfTaken,
        is_same_kind: impl Fn(&Entry) -> bool,
    ) -> Result<Taken> {
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
