//! Definitions inside of BEGIN and COMMIT, which take effect with the transaction.

use std::path::Path;

use alluvium_sql::statement::{Change, StatementKind, TableDefinition};

use crate::catalog::Entry;
use crate::definitions::alter::Parts;
use crate::definitions::{Definitions, StagedDefinitions};
use crate::error::{Error, Result};
use crate::file_access::Purpose;
use crate::instance::Instance;
use crate::session::{Outcome, Session};

impl Session {
    /// Makes a definition part of the open transaction; `None` if the statement is none that can be.
    pub(in crate::session) fn stage_definition(
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
            StatementKind::Alter(alter) if !matches!(alter.change, Change::Resume) => {
                let instance = self.engine.instance.clone();
                let Instance { writer, reader, connectors, .. } = &*instance;
                let transaction = self.transaction.as_ref();
                let written: Vec<String> = match transaction {
                    Some(open) => {
                        let entries = open.entries();
                        let written = entries.values().filter(|entry| open.has_written(entry));
                        written.map(|entry| entry.name.clone()).collect()
                    }
                    None => Vec::new(),
                };
                let altered = self.stage_in(|definitions, staged, base| {
                    let has_written = |entry: &Entry| written.contains(&entry.name);
                    let parts = Parts { writer, reader, connectors, base };
                    definitions.stage_alter(staged, alter, base, has_written, parts)
                });
                altered.map_err(|error| error.at(alter.position))?;
            }
            StatementKind::CreateIndex(index) => {
                let created = self.stage_in(|definitions, staged, base| {
                    definitions.stage_index(staged, index, base)
                });
                created.map_err(|error| error.at(index.position))?;
            }
            StatementKind::DropIndex(index) => {
                let dropped = self
                    .stage_in(|definitions, staged, _| definitions.stage_drop_index(staged, index));
                dropped.map_err(|error| error.at(index.position))?;
            }
            StatementKind::Comment(comment) => {
                let said = self
                    .stage_in(|definitions, staged, _| definitions.stage_comment(staged, comment));
                said.map_err(|error| error.at(comment.position))?;
            }
            StatementKind::CreateSchema(schema) => {
                let created = self
                    .stage_in(|definitions, staged, _| definitions.stage_schema(staged, schema));
                created.map_err(|error| error.at(schema.position))?;
            }
            _ => return Ok(None),
        }
        Ok(Some(Outcome::Done))
    }

    /// Adds to the definitions of the open transaction; on an error nothing.
    pub(super) fn stage_in(
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
    pub(in crate::session) fn stage_with_rows<R>(
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
