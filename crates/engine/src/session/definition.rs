//! CREATE and DROP.
//!
//! A definition takes effect at once and for everybody; it is not part of a transaction. Whoever reads a
//! relation finds it in the catalog only when its dataflow has caught up.

use std::path::Path;
use std::sync::Arc;

use alluvium_sql::lower;
use alluvium_sql::planner::CLOCK;
use alluvium_sql::statement::{Drop, IfTaken, TableDefinition, ViewDefinition, ViewKind};

use super::Outcome;
use crate::catalog::{Definition, Entry, Scope, Table, Uses, View};
use crate::error::{Error, Result};
use crate::instance::Instance;
use crate::transaction::Turns;
use crate::worker::Dataflow;

impl Instance {
    pub(super) fn create_table(
        &self,
        definition: &TableDefinition,
        base: &Path,
    ) -> Result<Outcome> {
        // Whoever writes to the table that is replaced finishes first.
        let _turn = match definition.if_taken {
            IfTaken::Replace => Some(Turns::take(&self.turns)?),
            IfTaken::Fail | IfTaken::Keep => None,
        };
        let _definitions = self.definitions.lock();
        lower::check(&definition.schema)
            .and_then(|()| lower::check_keys(&definition.schema, &definition.primary_key))
            .map_err(|error| Error::sql(error.to_string()))?;
        let (kept, append_only) = (definition.is_kept(), definition.is_append_only());
        let inputs = definition.connectors.iter();
        let inputs = inputs.map(|connector| self.formats.input(&definition.name, connector, base));
        let inputs = inputs.collect::<Result<Vec<_>>>()?;
        let TableDefinition { name, schema, primary_key, defaults, .. } = definition.clone();
        let taken = self
            .taken(&name, definition.if_taken, Entry::is_table)
            .map_err(|error| error.at(definition.position))?;
        let removed = match taken {
            Taken::Free => Ok(()),
            Taken::Keep => return Ok(Outcome::Done),
            Taken::Replace(before) => self.remove(&before),
        };
        let id = self.sequencer.install(&[], |_, _, _| match kept {
            true => Dataflow::Table {
                name: name.clone(),
                schema: schema.clone(),
                primary_key: primary_key.clone(),
            },
            false => Dataflow::Stream { name: name.clone() },
        })?;
        let definition = Definition::Table(Table { id, primary_key, defaults, kept, append_only });
        self.catalog.insert(Entry { name, schema, depends: Vec::new(), definition });
        self.inputs.add(inputs);
        removed.map(|()| Outcome::Done)
    }

    pub(super) fn create_view(
        self: &Arc<Self>,
        definition: &ViewDefinition,
        base: &Path,
    ) -> Result<Outcome> {
        let name = &definition.name;
        let outputs = definition.connectors.iter();
        let outputs = outputs.map(|connector| {
            let output = self.formats.output(name, connector, base)?;
            output.mode_for(name, definition.kind.into())?;
            Ok(output)
        });
        let outputs = outputs.collect::<Result<Vec<_>>>()?;
        if !self.create_relation(definition)? {
            return Ok(Outcome::Done);
        }
        for output in outputs {
            if let Err(error) = self.add_output(name, output) {
                self.undo(name)?;
                return Err(error.of(&format!("view \"{name}\"")));
            }
        }
        Ok(Outcome::Done)
    }

    /// Makes a view; not if there is one that stays.
    fn create_relation(&self, definition: &ViewDefinition) -> Result<bool> {
        let _definitions = self.definitions.lock();
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
            // A view cannot be made of the one it replaces.
            Arc::make_mut(&mut entries).remove(name);
        }
        let planned = self.planner.view(definition, &Scope(&entries))?;
        lower::check_plan(&planned.plan).map_err(|error| Error::sql(error.to_string()))?;
        if planned.reads.iter().any(|relation| relation == CLOCK) {
            self.sequencer.start_clock(self.clock.now()?)?;
        }
        let plan = Arc::new(planned.plan);
        let (id, uses) = match kind {
            // It lives in the views that name it.
            ViewKind::Local => (None, Uses::default()),
            ViewKind::Plain | ViewKind::Materialized => {
                let keep = kind == ViewKind::Materialized;
                let (id, uses) = self.install_plan(&plan, |plan, _, _, _| Dataflow::View {
                    name: name.clone(),
                    plan: plan.clone(),
                    keep,
                    sink: None,
                })?;
                (Some(id), uses)
            }
        };
        let removed = before.map_or(Ok(()), |before| self.remove(&before));
        self.catalog.insert(Entry {
            name: name.clone(),
            schema: planned.schema,
            depends: planned.depends,
            definition: Definition::View(View { id, kind, logical: planned.logical, plan, uses }),
        });
        removed.map(|()| true)
    }

    pub(super) fn drop_table(&self, table: &Drop) -> Result<Outcome> {
        // Whoever writes to it finishes first.
        let _turn = Turns::take(&self.turns)?;
        let _definitions = self.definitions.lock();
        if table.if_exists && !self.catalog.contains(&table.name) {
            return Ok(Outcome::Done);
        }
        let entry = self.catalog.get(&table.name)?;
        entry.as_table()?;
        self.drop_relation(&entry, table.cascade)
    }

    pub(super) fn drop_view(&self, view: &Drop) -> Result<Outcome> {
        let _definitions = self.definitions.lock();
        if view.if_exists && !self.catalog.contains(&view.name) {
            return Ok(Outcome::Done);
        }
        let entry = self.catalog.get(&view.name)?;
        entry.as_view()?;
        self.drop_relation(&entry, view.cascade)
    }

    /// Takes back what was just made.
    pub(super) fn undo(&self, name: &str) -> Result<()> {
        let _turn = Turns::take(&self.turns)?;
        let _definitions = self.definitions.lock();
        let entry = self.catalog.get(name)?;
        self.drop_relation(&entry, false).map(drop)
    }

    fn drop_relation(&self, entry: &Entry, cascade: bool) -> Result<Outcome> {
        let mut removed = Ok(());
        if cascade {
            for dependent in self.catalog.dependents(&entry.name) {
                removed = removed.and(self.remove(&dependent));
            }
        } else {
            self.catalog.check_unused(&entry.name)?;
        }
        removed.and(self.remove(entry)).map(|()| Outcome::Done)
    }

    /// Takes away a relation that no other names. An error tells that not all of its changes could be written where they
    /// should be; it is gone all the same, and what else was to be done is to be done.
    fn remove(&self, entry: &Entry) -> Result<()> {
        self.catalog.remove(&entry.name);
        self.unsubscribe_all(&entry.name);
        self.inputs.remove(&entry.name);
        self.refusals.forget(&entry.name);
        let written = self.outputs.remove(&entry.name);
        if let Some(id) = entry.dataflow() {
            self.sequencer.remove(id);
        }
        if let Ok(view) = entry.as_view() {
            self.release(&view.uses);
        }
        written
    }

    /// What becomes of a name that is to be given; fails if it cannot be.
    pub(super) fn taken(
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

/// What becomes of a name that is to be given.
pub(super) enum Taken {
    /// It is nobody's.
    Free,
    /// It stays whose it is.
    Keep,
    /// It is taken from this relation, which no other names.
    Replace(Arc<Entry>),
}
