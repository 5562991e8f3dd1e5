//! INSERT, UPDATE and DELETE.

use alluvium_sql::planner::{PlannedWrite, bind};
use alluvium_trace::Epoch;
use arrow::array::RecordBatch;
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast;

use super::{Outcome, Session};
use crate::catalog::{Entries, FileScope, Scope};
use crate::error::Result;
use crate::query::{Files, allow_nulls};
use crate::transaction::{Transaction, Write};

impl Session {
    pub(super) fn insert(
        &mut self,
        insert: &ast::Insert,
        parameters: &[ScalarValue],
    ) -> Result<Outcome> {
        self.change(|session, entries| {
            let files = session.files(insert)?;
            let scope = FileScope { entries, files: &files };
            let mut planned = session.instance().planner.insert(insert, &scope)?;
            planned.plan = allow_nulls(bind(planned.plan, parameters)?)?;
            let (table, rows) = session.rows(planned, entries, &files)?;
            Ok((table, rows.into_iter().map(Write::enter).collect()))
        })
    }

    pub(super) fn delete(
        &mut self,
        delete: &ast::Delete,
        parameters: &[ScalarValue],
    ) -> Result<Outcome> {
        self.change(|session, entries| {
            let mut planned = session.instance().planner.delete(delete, &Scope(entries))?;
            planned.plan = bind(planned.plan, parameters)?;
            let (table, rows) = session.rows(planned, entries, &Files::new())?;
            Ok((table, rows.into_iter().map(Write::leave).collect()))
        })
    }

    /// All old rows leave before any new row enters, because a row may get another row's old key.
    pub(super) fn update(
        &mut self,
        update: &ast::Update,
        parameters: &[ScalarValue],
    ) -> Result<Outcome> {
        let mut updated = 0;
        let outcome = self.change(|session, entries| {
            let mut planned = session.instance().planner.update(update, &Scope(entries))?;
            planned.plan = bind(planned.plan, parameters)?;
            let (table, rows) = session.rows(planned, entries, &Files::new())?;
            let mut writes = Vec::with_capacity(2 * rows.len());
            for half in [0, 1] {
                for rows in &rows {
                    let width = rows.num_columns() / 2;
                    let columns: Vec<usize> = (half * width..(half + 1) * width).collect();
                    let rows = rows.project(&columns)?;
                    writes.push(if half == 0 { Write::leave(rows) } else { Write::enter(rows) });
                }
            }
            updated = rows.iter().map(|rows| rows.num_rows() as u64).sum();
            Ok((table, writes))
        })?;
        Ok(match outcome {
            Outcome::Changed { epoch, .. } => Outcome::Changed { rows: updated, epoch },
            outcome => outcome,
        })
    }

    /// Works out a statement's writes to a table inside the open transaction, or one made for it, and stages
    /// all of them or, on an error, none.
    fn change(
        &mut self,
        writes: impl FnOnce(&Self, &Entries) -> Result<(String, Vec<Write>)>,
    ) -> Result<Outcome> {
        let (rows, epoch) = self.in_one_transaction(|session| {
            let entries = session.instance().catalog.entries();
            let (table, writes) = writes(session, &entries)?;
            session.stage(&entries, &table, writes)
        })?;
        Ok(Outcome::Changed { rows, epoch })
    }

    /// Does something inside the open transaction. If none is open, one is made for it, committed if it
    /// succeeds and rolled back if it fails.
    pub(super) fn in_one_transaction<R>(
        &mut self,
        act: impl FnOnce(&mut Self) -> Result<R>,
    ) -> Result<(R, Option<Epoch>)> {
        if self.transaction.is_some() {
            return Ok((act(self)?, None));
        }
        self.transaction = Some(self.engine.begin()?);
        let acted = act(self);
        let transaction = self.transaction.take();
        let done = acted?;
        let epoch = transaction.map(Transaction::commit).transpose()?;
        self.committed = epoch.unwrap_or(self.committed);
        Ok((done, epoch))
    }

    /// Stages writes in the open transaction; returns how many rows there are.
    pub(super) fn stage(
        &mut self,
        entries: &Entries,
        table: &str,
        writes: Vec<Write>,
    ) -> Result<u64> {
        match (entries.get(table), &mut self.transaction) {
            (Some(entry), Some(transaction)) => transaction.write_all(entry, writes),
            _ => Ok(0),
        }
    }

    fn rows(
        &self,
        planned: PlannedWrite,
        entries: &Entries,
        files: &Files,
    ) -> Result<(String, Vec<RecordBatch>)> {
        let answer = self.instance().evaluate(planned.plan, self.reading(entries, files))?;
        Ok((planned.table, answer.batches))
    }
}
