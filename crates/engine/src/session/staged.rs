//! Definitions inside of BEGIN and COMMIT, which take effect with the transaction.

use std::path::Path;

use alluvium_sql::statement::{StatementKind, TableDefinition};

use super::{Outcome, Session};
use crate::catalog::Entry;
use crate::definitions::{Definitions, StagedDefinitions};
use crate::error::{Error, Result};
use crate::file_access::Purpose;

impl Session {
    /// Makes a definition part of the open transaction; `None` if the statement is none that can be.
    pub(super) fn stage_definition(
        &mut self,
        statement: &StatementKind,
    ) -> Result<Option<Outcome>> {
        match statement {
            StatementKind::CreateTable(table) => {
                self.check_connectors(&table.connectors, Purpose::Read)?;
                self.stage_in(|definitions, staged, base| {
                    definitions.stage_table(staged, table, base)
                })?;
            }
            StatementKind::CreateView(view) => {
                self.check_connectors(&view.connectors, Purpose::Write)?;
                self.stage_in(|definitions, staged, base| {
                    definitions.stage_view(staged, view, base)
                })?;
            }
            StatementKind::DropTable(drop) | StatementKind::DropView(drop) => {
                let is_table = matches!(statement, StatementKind::DropTable(_));
                let dropped = self.stage_in(|definitions, staged, _| {
                    definitions.stage_drop(staged, drop, is_table)
                });
                dropped.map_err(|error| error.at(drop.position))?;
            }
            _ => return Ok(None),
        }
        Ok(Some(Outcome::Done))
    }

    /// Adds to what the open transaction defines; on an error nothing.
    fn stage_in(
        &mut self,
        stage: impl FnOnce(&Definitions, &mut StagedDefinitions, &Path) -> Result<()>,
    ) -> Result<()> {
        let instance = self.engine.instance.clone();
        let base = instance.recorded_path(&self.base)?;
        let definitions = &instance.definitions;
        let Some(transaction) = &mut self.transaction else { return Ok(()) };
        let mut staged = match transaction.definitions() {
            Some(staged) => staged.clone(),
            None => StagedDefinitions::new(definitions.catalog.entries()),
        };
        stage(definitions, &mut staged, &base)?;
        transaction.set_definitions(staged);
        Ok(())
    }

    /// Creates a table within the open transaction, and has `insert` insert rows into it. If that fails, there is no table.
    pub(super) fn stage_with_rows<R>(
        &mut self,
        definition: &TableDefinition,
        mut insert: impl FnMut(&mut Self, &Entry) -> Result<R>,
    ) -> Result<R> {
        let Some(mark) = self.transaction.as_ref().map(|open| open.mark()) else {
            return Err(Error::sql("no transaction is open"));
        };
        self.stage_in(|definitions, staged, base| {
            definitions.stage_table(staged, definition, base)
        })?;
        let inserted = self.relation(&definition.name).and_then(|created| insert(self, &created));
        if let (Err(_), Some(open)) = (&inserted, &mut self.transaction) {
            open.return_to(&mark);
        }
        inserted
    }
}
