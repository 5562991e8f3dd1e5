//! CREATE, DECLARE and COMMENT: definitions that are new.

use alluvium_sql::statement::{
    Comment, FunctionDefinition, IndexDefinition, SchemaDefinition, SequenceDefinition,
    TableDefinition, ViewDeclaration, ViewDefinition, ViewLateness,
};

use super::done;
use crate::error::Result;
use crate::file_access::Purpose;
use crate::instance::Instance;
use crate::session::{Outcome, Session};

impl Session {
    pub(super) fn create_table(&self, table: &TableDefinition) -> Result<Outcome> {
        self.outside("CREATE TABLE")?;
        self.check_connectors(&table.connectors, Purpose::Read)?;
        let base = self.instance().recorded_path(&self.base)?;
        let Instance { definitions, writer, connectors, .. } = self.instance();
        definitions.create_table(table, &base, writer, connectors)?;
        Ok(Outcome::Done)
    }

    pub(super) fn create_view(&self, view: &ViewDefinition) -> Result<Outcome> {
        self.outside("CREATE VIEW")?;
        self.check_connectors(&view.connectors, Purpose::Write)?;
        self.create_with_outputs(view)?;
        Ok(Outcome::Done)
    }

    pub(super) fn declare_view(&self, declaration: &ViewDeclaration) -> Result<Outcome> {
        self.outside("DECLARE RECURSIVE VIEW")?;
        let base = self.instance().recorded_path(&self.base)?;
        let Instance { definitions, writer, .. } = self.instance();
        done(definitions.declare_view(declaration, &base, writer), declaration.position)
    }

    pub(super) fn declare_lateness(&self, declared: &ViewLateness) -> Result<Outcome> {
        self.outside("LATENESS")?;
        let base = self.instance().recorded_path(&self.base)?;
        let Instance { definitions, writer, connectors, .. } = self.instance();
        let said = definitions.declare_lateness(declared, &base, writer, connectors);
        done(said, declared.position)
    }

    pub(super) fn create_schema(&self, schema: &SchemaDefinition) -> Result<Outcome> {
        self.outside("CREATE SCHEMA")?;
        done(self.instance().definitions.create_schema(schema), schema.position)
    }

    pub(super) fn create_sequence(&self, sequence: &SequenceDefinition) -> Result<Outcome> {
        self.outside("CREATE SEQUENCE")?;
        done(self.instance().definitions.create_sequence(sequence), sequence.position)
    }

    pub(super) fn create_function(&self, function: &FunctionDefinition) -> Result<Outcome> {
        self.outside("CREATE FUNCTION")?;
        done(self.instance().definitions.create_function(function), function.position)
    }

    pub(super) fn create_index(&self, index: &IndexDefinition) -> Result<Outcome> {
        self.outside("CREATE INDEX")?;
        let base = self.instance().recorded_path(&self.base)?;
        let Instance { definitions, writer, .. } = self.instance();
        let created = definitions.create_index(index, &base, writer, !self.is_redoing);
        done(created, index.position)
    }

    pub(super) fn comment(&self, comment: &Comment) -> Result<Outcome> {
        done(self.instance().definitions.comment(comment), comment.position)
    }
}
