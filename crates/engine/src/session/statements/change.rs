//! ALTER and DROP: definitions that change or end.

use alluvium_sql::statement::{Alter, Drop, SequenceRestart, SourceChange};

use super::done;
use crate::definitions::alter::Parts;
use crate::error::Result;
use crate::instance::Instance;
use crate::session::{Outcome, Session};

impl Session {
    pub(super) fn alter(&self, alter: &Alter) -> Result<Outcome> {
        self.outside("ALTER")?;
        let base = &self.instance().recorded_path(&self.base)?;
        let Instance { definitions, writer, reader, connectors, .. } = self.instance();
        done(definitions.alter(alter, Parts { writer, reader, connectors, base }), alter.position)
    }

    pub(super) fn restart_sequence(&self, restart: &SequenceRestart) -> Result<Outcome> {
        self.outside("ALTER SEQUENCE")?;
        done(self.instance().definitions.restart_sequence(restart), restart.position)
    }

    pub(super) fn alter_source(&self, change: &SourceChange) -> Result<Outcome> {
        self.outside("ALTER SOURCE")?;
        done(self.engine.instance.alter_source(change), change.position)
    }

    pub(super) fn drop_table(&self, table: &Drop) -> Result<Outcome> {
        self.outside("DROP TABLE")?;
        let Instance { definitions, writer, connectors, .. } = self.instance();
        done(definitions.drop_table(table, writer, connectors), table.position)
    }

    pub(super) fn drop_view(&self, view: &Drop) -> Result<Outcome> {
        self.outside("DROP VIEW")?;
        let Instance { definitions, connectors, .. } = self.instance();
        done(definitions.drop_view(view, connectors), view.position)
    }

    pub(super) fn drop_schema(&self, schema: &Drop) -> Result<Outcome> {
        self.outside("DROP SCHEMA")?;
        let Instance { definitions, writer, connectors, .. } = self.instance();
        done(definitions.drop_schema(schema, writer, connectors), schema.position)
    }

    pub(super) fn drop_sequence(&self, sequence: &Drop) -> Result<Outcome> {
        self.outside("DROP SEQUENCE")?;
        done(self.instance().definitions.drop_sequence(sequence), sequence.position)
    }

    pub(super) fn drop_function(&self, function: &Drop) -> Result<Outcome> {
        self.outside("DROP FUNCTION")?;
        done(self.instance().definitions.drop_function(function), function.position)
    }

    pub(super) fn drop_index(&self, index: &Drop) -> Result<Outcome> {
        self.outside("DROP INDEX")?;
        done(self.instance().definitions.drop_index(index), index.position)
    }
}
