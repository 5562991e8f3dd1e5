//! What only the server of this project asks of a session: see [`SessionParts`].

use std::sync::Arc;
use std::task::{Poll, Waker};

use alluvium_sql::statement::{Statement, StatementKind};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::statements::changes;
use super::statements::cursor::most;
use super::{Outcome, Prepared, Session};
use crate::error::{Error, Result};
use crate::file_access::FileAccess;
use crate::interrupt;
use crate::query::{Execution, Rows};
use crate::unstable::{ClientInfo, Fetching, SessionParts};
use crate::value::Value;

impl SessionParts for Session {
    fn execute_at_once(
        &mut self,
        prepared: &Prepared,
        values: &[Value],
    ) -> Option<Result<Outcome>> {
        self.run_at_once(prepared, values)
    }

    fn execute_text_at_once(&mut self, sql: &str) -> Option<Result<(&'static str, Outcome)>> {
        self.run_text_at_once(sql)
    }

    fn is_current(&mut self, prepared: &Prepared) -> bool {
        self.is_as_prepared(prepared)
    }

    fn uses_system(&self, statement: &Statement) -> bool {
        let system = self.instance().definitions.planner.system();
        match &statement.kind {
            StatementKind::Query(query) | StatementKind::CopyTo { query, .. } => {
                system.is_used_by(query)
            }
            _ => false,
        }
    }

    fn set_client(&mut self, info: &ClientInfo) {
        self.become_client(info);
    }

    fn begin_call(&mut self) {
        self.note_call();
    }

    fn end_call(&mut self) {
        self.note_settled();
    }

    fn set_private_files(&mut self, access: FileAccess) {
        self.private_files = Some(access);
    }

    fn columns_from_client(&mut self, statement: &crate::Statement) -> Result<SchemaRef> {
        self.with_client(statement.tree(), |session, statement| {
            let (entry, columns) = session.copied_into(statement)?;
            Ok(Arc::new(entry.schema.project(&columns)?))
        })
    }

    fn copy_to_client(&mut self, statement: &crate::Statement) -> Result<Rows> {
        self.with_client(statement.tree(), |session, statement| {
            let StatementKind::CopyTo { query, .. } = &statement.kind else {
                return Err(Error::sql("COPY … TO STDOUT is expected here"));
            };
            let query =
                Statement { kind: StatementKind::Query(query.clone()), ..statement.clone() };
            let execution = Execution { statement: &query, values: &[], own: None };
            match session.perform(execution, true)? {
                Outcome::Rows(rows) => Ok(rows),
                _ => Err(Error::sql("COPY … TO STDOUT copies rows")),
            }
        })
    }

    fn begin_fetch(&mut self, statement: &Statement) -> Result<Option<Fetching>> {
        let StatementKind::Fetch { cursor, steps, timeout } = &statement.kind else {
            return Ok(None);
        };
        self.in_block(Some(&statement.kind), |session| {
            let statement_ends = session.settings.deadline();
            let Some(changes) = session.cursors.changes(cursor)? else { return Ok(None) };
            let (schema, has_progress) = {
                let changes = changes.changes();
                (changes.schema().clone(), changes.has_progress())
            };
            let timeout = timeout.as_ref().map(changes::timeout).transpose()?;
            let most = most(cursor, *steps)?;
            let cursor = cursor.clone();
            Ok(Some(Fetching { cursor, schema, most, timeout, has_progress, statement_ends }))
        })
    }

    fn poll_fetch(
        &mut self,
        fetching: &Fetching,
        most: u64,
        waker: Option<&Waker>,
    ) -> Poll<Result<Option<RecordBatch>>> {
        let polled = self.in_block(None, |session| {
            let Some(changes) = session.cursors.changes(&fetching.cursor)? else {
                return Ok(Poll::Ready(None));
            };
            match changes.poll_next(most, waker) {
                Poll::Ready(next) => next.map(Poll::Ready),
                Poll::Pending => Ok(Poll::Pending),
            }
        });
        match polled {
            Ok(polled) => polled.map(Ok),
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    fn check_not_aborted(&mut self) -> Result<()> {
        self.in_block(None, |_| Ok(()))
    }

    fn savepoints(&self) -> usize {
        self.block.savepoints()
    }

    fn listened(&mut self, statement: &Statement) -> Result<String> {
        self.with_client(statement, |session, statement| {
            let StatementKind::Listen(relation) = &statement.kind else {
                return Err(Error::sql("LISTEN is expected here"));
            };
            let entry = session.relation(&relation.name);
            let entry = entry.map_err(|error| error.at(relation.position))?;
            entry.changes().map_err(|error| error.at(relation.position))?;
            Ok(entry.name.clone())
        })
    }

    fn named_statement_bytes(&self) -> usize {
        self.named_statements.iter().map(|(name, of)| name.len() + of.text().len()).sum()
    }

    fn copy_from_client(
        &mut self,
        statement: &crate::Statement,
        next: &mut dyn FnMut() -> Result<Option<RecordBatch>>,
    ) -> Result<u64> {
        self.with_client(statement.tree(), |session, statement| session.copy_sent(statement, next))
    }
}

impl Session {
    /// Runs a part of a statement that concerns the client itself, whose names are complete, as statements run.
    fn with_client<R>(
        &mut self,
        statement: &Statement,
        act: impl FnOnce(&mut Self, &Statement) -> Result<R>,
    ) -> Result<R> {
        self.note_statement(|| statement.command());
        let _statement = self.logged(Some(statement.command()));
        let ran = self.in_block(Some(&statement.kind), |session| {
            let qualified = session.qualified(statement)?;
            let statement = qualified.as_ref().map_or(statement, |qualified| &qualified.statement);
            session.within_limits(|session| {
                let poison = session.instance().poison.clone();
                poison.check()?;
                poison.guard(|| {
                    session.check_read_only(&statement.kind)?;
                    let entries = session.authorize(statement)?;
                    session.authorized = session.rights.is_some().then_some(entries);
                    let done = act(session, statement);
                    session.authorized = None;
                    done
                })
            })
        });
        ran.map_err(|error| match error {
            Error::Poisoned { .. } => error,
            error => {
                interrupt::reached().unwrap_or_else(|| self.told(error)).at(statement.position)
            }
        })
    }
}
