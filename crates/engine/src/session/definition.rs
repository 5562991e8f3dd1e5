//! CREATE and DROP.
//!
//! A definition takes effect at once and for everybody; it is not part of a transaction. Whoever reads a
//! relation finds it in the catalog only when its dataflow has caught up.

use std::sync::Arc;

use alluvium_sql::lower;
use alluvium_sql::statement::{TableDefinition, ViewDefinition, ViewKind};

use super::Outcome;
use crate::catalog::{Definition, Entry, Scope, Table, Uses, View};
use crate::error::{Error, Result};
use crate::instance::Instance;
use crate::transaction::Turns;
use crate::worker::Dataflow;

impl Instance {
    pub(super) fn create_table(&self, definition: &TableDefinition) -> Result<Outcome> {
        let _definitions = self.definitions.lock();
        self.catalog.check_free(&definition.name).map_err(|error| error.at(definition.position))?;
        lower::check(&definition.schema).map_err(|error| Error::sql(error.to_string()))?;
        let (kept, append_only) = (definition.is_kept(), definition.is_append_only());
        let TableDefinition { name, schema, primary_key, defaults, .. } = definition.clone();
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
        Ok(Outcome::Done)
    }

    pub(super) fn create_view(&self, definition: &ViewDefinition) -> Result<Outcome> {
        let _definitions = self.definitions.lock();
        let (name, kind) = (&definition.name, definition.kind);
        self.catalog.check_free(name).map_err(|error| error.at(definition.position))?;
        let entries = self.catalog.entries();
        let planned = self.planner.view(definition, &Scope(&entries))?;
        lower::check_plan(&planned.plan).map_err(|error| Error::sql(error.to_string()))?;
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
        self.catalog.insert(Entry {
            name: name.clone(),
            schema: planned.schema,
            depends: planned.depends,
            definition: Definition::View(View { id, kind, logical: planned.logical, plan, uses }),
        });
        Ok(Outcome::Done)
    }

    pub(super) fn drop_table(self: &Instance, name: &str) -> Result<Outcome> {
        // Whoever writes to it finishes first.
        let _turn = Turns::take(&self.turns)?;
        let _definitions = self.definitions.lock();
        let entry = self.catalog.get(name)?;
        entry.as_table()?;
        self.drop_relation(&entry)
    }

    pub(super) fn drop_view(&self, name: &str) -> Result<Outcome> {
        let _definitions = self.definitions.lock();
        let entry = self.catalog.get(name)?;
        entry.as_view()?;
        self.drop_relation(&entry)
    }

    fn drop_relation(&self, entry: &Entry) -> Result<Outcome> {
        self.catalog.check_unused(&entry.name)?;
        self.catalog.remove(&entry.name);
        self.unsubscribe_all(&entry.name);
        if let Some(id) = entry.dataflow() {
            self.sequencer.remove(id);
        }
        if let Ok(view) = entry.as_view() {
            self.release(&view.uses);
        }
        Ok(Outcome::Done)
    }
}
