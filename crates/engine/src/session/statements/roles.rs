//! CREATE ROLE, GRANT and their like, and the owners of what is created.

use alluvium_sql::name::is_temporary;
use alluvium_sql::statement::{GrantKind, IfTaken, Statement, StatementKind};

use crate::error::{Error, Result, SqlState};
use crate::instance::Instance;
use crate::query::Execution;
use crate::roles::{Existing, ObjectName, RoleEdit, edits, is_there};
use crate::session::{Outcome, Session};

/// The codes of errors for names that are taken.
const TAKEN: [SqlState; 4] = [
    SqlState::DUPLICATE_RELATION,
    SqlState::DUPLICATE_SCHEMA,
    SqlState::DUPLICATE_FUNCTION,
    SqlState::DUPLICATE_OBJECT,
];

impl Session {
    /// Changes roles and their rights, in the open transaction if there is one.
    pub(super) fn change_roles(&mut self, statement: &StatementKind) -> Result<Outcome> {
        self.check_has_roles()?;
        if self.transaction.is_some() {
            let version = self.live_roles().version();
            let edits = self.resolved(statement)?;
            self.stage_edits(edits, version)?;
            return Ok(Outcome::Done);
        }
        let Instance { definitions, reader, .. } = self.instance();
        let lock = definitions.lock();
        let edits = self.resolved(statement)?;
        if !edits.is_empty() {
            reader.sequencer.edit_roles(&edits)?;
        }
        drop(lock);
        reader.sequencer.durable().sync_all()?;
        Ok(Outcome::Done)
    }

    /// The edits of roles that a statement asks for.
    fn resolved(&self, statement: &StatementKind) -> Result<Vec<RoleEdit>> {
        let existing = Existing {
            roles: &self.roles(),
            entries: &self.catalog_entries(),
            by: self.current_role(),
            verifier: self.instance().settings.password_verifier,
            replays: self.is_redoing,
        };
        edits(statement, &existing)
    }

    /// Adds edits of roles to the open transaction.
    fn stage_edits(&mut self, edits: Vec<RoleEdit>, version: u64) -> Result<()> {
        self.stage_in(|_, staged, _| {
            staged.edit_roles(edits, version);
            Ok(())
        })
    }

    /// Runs a statement, and gives what it creates to the role of the session.
    pub(in crate::session) fn run_owned(
        &mut self,
        execution: Execution<'_>,
        run: impl FnOnce(&mut Self, Execution<'_>) -> Result<Outcome>,
    ) -> Result<Outcome> {
        let created = match self.current_role() {
            Some(_) if !self.is_redoing => self.created_by(&execution.statement.kind),
            _ => None,
        };
        let Some(object) = created else { return run(self, execution) };
        // With IF NOT EXISTS it would not be known whose it is.
        let mut statement = execution.statement.clone();
        let is_kept = fail_if_taken(&mut statement);
        match run(self, Execution { statement: &statement, ..execution }) {
            Err(error) if is_kept && TAKEN.contains(&error.sqlstate()) => Ok(Outcome::Done),
            ran => {
                let outcome = ran?;
                // It is among the relations of this moment.
                self.authorized = None;
                self.own(object)?;
                Ok(outcome)
            }
        }
    }

    /// Gives what is new to the role of the session.
    fn own(&mut self, object: ObjectName) -> Result<()> {
        let Some(owner) = self.current_role().map(str::to_owned) else { return Ok(()) };
        let edits = vec![RoleEdit::Claim { object: object.clone(), owner }];
        if self.transaction.is_some() {
            return self.stage_edits(edits, self.live_roles().version());
        }
        let Instance { definitions, reader, .. } = self.instance();
        let lock = definitions.lock();
        // Somebody may have dropped it by now.
        if is_there(&self.catalog_entries(), &object) {
            reader.sequencer.edit_roles(&edits)?;
        }
        drop(lock);
        reader.sequencer.durable().sync_all()
    }

    /// Fails if the session has an authorizer in place of roles: what it may do is not for SQL to say.
    pub(in crate::session) fn check_has_roles(&self) -> Result<()> {
        match self.rights.is_some() && self.current_role().is_none() && !self.is_redoing {
            true => Err(Error::denied("the role of this session is its program's to say")),
            false => Ok(()),
        }
    }

    /// What a statement creates that is not there yet, and outlives the session.
    fn created_by(&self, statement: &StatementKind) -> Option<ObjectName> {
        let object = match statement {
            StatementKind::CreateTable(table) if table.temporary.is_none() => {
                (GrantKind::Relation, &table.name)
            }
            StatementKind::CreateTableAs { name, temporary: None, .. }
            | StatementKind::CreateTableFrom { name, .. } => (GrantKind::Relation, name),
            StatementKind::CreateView(view) => (GrantKind::Relation, &view.name),
            StatementKind::DeclareView(view) => (GrantKind::Relation, &view.name),
            StatementKind::CreateSchema(schema) => (GrantKind::Schema, &schema.name),
            StatementKind::CreateSequence(sequence) => (GrantKind::Sequence, &sequence.name),
            StatementKind::CreateFunction(function) => (GrantKind::Function, &function.name),
            StatementKind::CreateConnection(connection) => {
                (GrantKind::Connection, &connection.name)
            }
            _ => return None,
        };
        let object = (object.0, object.1.clone());
        let is_new = !is_temporary(&object.1) && !is_there(&self.catalog_entries(), &object);
        is_new.then_some(object)
    }
}

/// Makes a statement fail if what it creates is there. Returns whether it was to do nothing then.
fn fail_if_taken(statement: &mut Statement) -> bool {
    let if_taken = match &mut statement.kind {
        StatementKind::CreateTable(table) => &mut table.if_taken,
        StatementKind::CreateTableAs { if_taken, .. } => if_taken,
        StatementKind::CreateView(view) => &mut view.if_taken,
        StatementKind::CreateFunction(function) => &mut function.if_taken,
        StatementKind::CreateSchema(schema) => {
            return std::mem::take(&mut schema.if_not_exists);
        }
        StatementKind::CreateSequence(sequence) => {
            return std::mem::take(&mut sequence.if_not_exists);
        }
        StatementKind::CreateConnection(connection) => {
            return std::mem::take(&mut connection.if_not_exists);
        }
        _ => return false,
    };
    let is_kept = *if_taken == IfTaken::Keep;
    if is_kept {
        *if_taken = IfTaken::Fail;
    }
    is_kept
}
