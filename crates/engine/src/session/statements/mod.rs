//! The execution of each kind of statement.
//!
//! - [`create`] has definitions that are new, with [`create_view`], [`create_as`] and [`copy`] for views with outputs and tables with rows;
//!   [`change`] those that change or end. [`staged`] has them within transactions, [`temporary`] tables of one session.
//! - [`write`](mod@write) is INSERT, UPDATE and DELETE, with [`conflicts`]; [`several`] are statements about several relations.
//! - [`changes`] is SUBSCRIBE, [`locking`] SELECT … FOR UPDATE, [`cursor`] fetches the rows of a query one after the other, [`named_statements`] calls statements
//!   that are prepared.
//! - [`block`] is BEGIN, COMMIT, ROLLBACK and savepoints.
//! - [`roles`] has CREATE ROLE, GRANT and their like.
//! - [`describe`] and [`explain`] tell about relations and plans.

pub(in crate::session) mod block;
mod change;
pub(in crate::session) mod changes;
mod conflicts;
mod copy;
mod create;
mod create_as;
mod create_view;
pub(in crate::session) mod cursor;
pub(in crate::session) mod describe;
mod explain;
mod locking;
pub(in crate::session) mod named_statements;
mod roles;
mod several;
mod staged;
mod systems;
pub(in crate::session) mod temporary;
mod write;

use alluvium_sql::error::Position;
use alluvium_sql::statement::StatementKind;

use self::changes::for_clients;
use self::copy::without_client;
use super::{Outcome, Session};
use crate::error::Result;
use crate::query::Execution;

/// The outcome of a statement, whose error is about what stands at a place.
fn done<T>(result: Result<T>, position: Position) -> Result<Outcome> {
    result.map(|_| Outcome::Done).map_err(|error| error.at(position))
}

impl Session {
    /// Runs a statement, which is already known to be allowed.
    pub(super) fn dispatch(&mut self, execution: Execution<'_>) -> Result<Outcome> {
        let Execution { statement, values: parameters, .. } = execution;
        if let Some(outcome) = self.run_temporary(statement)? {
            return Ok(outcome);
        }
        if self.transaction.is_some()
            && let Some(outcome) = self.stage_definition(&statement.kind)?
        {
            return Ok(outcome);
        }
        match &statement.kind {
            StatementKind::CreateTable(table) => self.create_table(table),
            StatementKind::CreateTableFrom { name, position, path, options } => {
                let created = self.create_table_from(name, *position, path, options);
                created.map_err(|error| error.at(*position))
            }
            StatementKind::CreateTableAs { name, position, if_taken, temporary, query } => {
                let taken = (*if_taken, *temporary);
                self.create_table_as((name, *position), taken, query, parameters)
            }
            StatementKind::CreateView(view) => self.create_view(view),
            StatementKind::DeclareView(declaration) => self.declare_view(declaration),
            StatementKind::Lateness(declared) => self.declare_lateness(declared),
            StatementKind::CreateSchema(schema) => self.create_schema(schema),
            StatementKind::CreateSequence(sequence) => self.create_sequence(sequence),
            StatementKind::CreateFunction(function) => self.create_function(function),
            StatementKind::SetRole(change) => self.change_role(change),
            StatementKind::CreateRole(_)
            | StatementKind::AlterRole(_)
            | StatementKind::DropRole { .. }
            | StatementKind::Grant(_)
            | StatementKind::SetOwner(_) => self.change_roles(&statement.kind),
            StatementKind::CreateIndex(index) => self.create_index(index),
            StatementKind::Comment(comment) => self.comment(comment),
            StatementKind::Alter(alter) => self.alter(alter),
            StatementKind::RestartSequence(restart) => self.restart_sequence(restart),
            StatementKind::CreateSecret(secret) => self.create_secret(secret),
            StatementKind::DropSecret(dropped) => self.drop_secret(dropped),
            StatementKind::CreateConnection(connection) => self.create_connection(connection),
            StatementKind::DropConnection(dropped) => self.drop_connection(dropped),
            StatementKind::CreateSink(sink) => self.create_sink(sink),
            StatementKind::DropSink(dropped) => self.drop_sink(dropped),
            StatementKind::AlterSource(change) => self.alter_source(change),
            StatementKind::DropTable(table) => self.drop_table(table),
            StatementKind::DropView(view) => self.drop_view(view),
            StatementKind::DropSchema(schema) => self.drop_schema(schema),
            StatementKind::DropSequence(sequence) => self.drop_sequence(sequence),
            StatementKind::DropFunction(function) => self.drop_function(function),
            StatementKind::DropIndex(index) => self.drop_index(index),
            StatementKind::DropSeveral(drops) => self.drop_several(drops),
            StatementKind::Truncate(deletes) => self.truncate(deletes),
            StatementKind::Vacuum => Ok(Outcome::Done),
            StatementKind::Refresh { name, position } => self.refresh(name, *position),
            StatementKind::Insert(insert) => self.insert(execution, insert),
            StatementKind::Update(update) => self.update(execution, update),
            StatementKind::Delete(delete) => self.delete(execution, delete),
            StatementKind::Copy { table, position, columns, path, options } => {
                let copied = match path {
                    Some(path) => self.copy(table, columns, path, options),
                    None => Err(without_client("STDIN")),
                };
                copied.map_err(|error| error.at(*position))
            }
            StatementKind::CopyTo { query, position, path, options } => {
                let copied = match path {
                    Some(path) => self.copy_to(statement, query, path, options),
                    None => Err(without_client("STDOUT")),
                };
                copied.map_err(|error| error.at(*position))
            }
            StatementKind::Begin(modes) => self.begin(*modes),
            StatementKind::Commit { and_chain } => self.commit(*and_chain),
            StatementKind::Rollback { and_chain } => self.rollback(*and_chain),
            StatementKind::Savepoint(savepoint) => self.savepoint(savepoint),
            StatementKind::RollbackTo(savepoint) => self.roll_back_to(savepoint),
            StatementKind::Release(savepoint) => self.release(savepoint),
            StatementKind::Prepare { name, statement } => self.prepare_named(name, statement),
            StatementKind::Execute { name, values } => {
                self.execute_named(name, values.as_deref(), parameters)
            }
            StatementKind::Deallocate(name) => self.deallocate(name.as_ref()),
            StatementKind::DeclareCursor(cursor) => self.declare_cursor(cursor, parameters),
            StatementKind::Fetch { cursor, steps, timeout } => {
                self.fetch(cursor, *steps, timeout.as_ref())
            }
            StatementKind::Move { cursor, steps } => self.go(cursor, *steps),
            StatementKind::Close(cursor) => self.close(cursor.as_ref()),
            StatementKind::Query(query) => Ok(Outcome::Rows(self.answer(execution, query)?)),
            StatementKind::LockingQuery(query) => self.lock(execution, query),
            StatementKind::Set(set) => self.set_all(set),
            StatementKind::Show { name, position } => self.show(name.as_deref(), *position),
            StatementKind::Reset { name, position } => self.reset(name.as_deref(), *position),
            StatementKind::DiscardAll => self.discard_all(),
            StatementKind::ShowTables => self.show_tables(),
            StatementKind::ShowSources => self.show_sources(),
            StatementKind::ShowSinks => self.show_sinks(),
            StatementKind::Describe { name, position } => self.describe_relation(name, *position),
            StatementKind::DescribeFile { file, position } => {
                self.describe_file(file).map_err(|error| error.at(*position))
            }
            StatementKind::Subscribe(changes) | StatementKind::CopyChanges { changes, .. } => {
                self.subscribe(changes)
            }
            StatementKind::Listen(_) => Err(for_clients("LISTEN")),
            StatementKind::Unlisten(_) => Err(for_clients("UNLISTEN")),
            StatementKind::ExplainSelect { query, analyze: false, format } => {
                self.explain_query(query, parameters, *format)
            }
            StatementKind::ExplainSelect { query, analyze: true, format } => {
                self.explain_run(query, parameters, *format)
            }
            StatementKind::ExplainView { name, position, format } => {
                self.explain_view(name, *position, *format)
            }
            StatementKind::ExplainState { name, position, format } => {
                self.explain_state(name, *position, *format)
            }
            StatementKind::ExplainAnalyze { name, position, time, format } => {
                self.explain_analyze(name, *position, *time, *format)
            }
            StatementKind::Start => self.start(),
            StatementKind::Checkpoint => self.checkpoint(),
        }
    }
}
