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
use crate::transaction::{Staging, Transaction};

impl Session {
    pub(super) fn insert(
        &mut self,
        insert: &ast::Insert,
        parameters: &[ScalarValue],
    ) -> Result<Outcome> {
        let plan = |session: &Self, entries: &Entries| {
            let files = session.files(insert)?;
            let scope = FileScope { entries, files: &files };
            let mut planned = session.instance().definitions.planner.insert(insert, &scope)?;
            planned.plan = allow_nulls(bind(planned.plan, parameters)?)?;
            Ok((planned, files))
        };
        self.change(plan, |staging, rows| staging.insert(rows.columns()))
    }

    pub(super) fn delete(
        &mut self,
        delete: &ast::Delete,
        parameters: &[ScalarValue],
    ) -> Result<Outcome> {
        let plan = |session: &Self, entries: &Entries| {
            let mut planned =
                session.instance().definitions.planner.delete(delete, &Scope(entries))?;
            planned.plan = bind(planned.plan, parameters)?;
            Ok((planned, Files::new()))
        };
        self.change(plan, |staging, rows| staging.delete(rows.columns()))
    }

    /// All old rows are deleted before any new row is inserted, because a row may take another row's old key.
    pub(super) fn update(
        &mut self,
        update: &ast::Update,
        parameters: &[ScalarValue],
    ) -> Result<Outcome> {
        let plan = |session: &Self, entries: &Entries| {
            let mut planned =
                session.instance().definitions.planner.update(update, &Scope(entries))?;
            planned.plan = bind(planned.plan, parameters)?;
            Ok((planned, Files::new()))
        };
        let outcome = self.change(plan, |staging, rows| {
            let width = rows.num_columns() / 2;
            let (old, new) = rows.columns().split_at(width);
            staging.delete(old)?;
            staging.insert(new)
        })?;
        Ok(match outcome {
            // Each was deleted and inserted.
            Outcome::Changed { rows, epoch } => Outcome::Changed { rows: rows / 2, epoch },
            outcome => outcome,
        })
    }

    /// Runs the plan of a statement that writes, inside the open transaction or one of its own, and passes its result to
    /// `stage`, batch by batch. On an error nothing is staged.
    fn change(
        &mut self,
        plan: impl FnOnce(&Self, &Entries) -> Result<(PlannedWrite, Files)>,
        mut stage: impl FnMut(&mut Staging<'_>, RecordBatch) -> Result<()> + Send,
    ) -> Result<Outcome> {
        let (rows, epoch) = self.in_one_transaction(|session| {
            let entries = session.instance().definitions.catalog.entries();
            let (planned, files) = plan(session, &entries)?;
            let table = entries.get(&planned.table);
            let (Some(table), Some(transaction)) = (table, &session.transaction) else {
                return Ok(0);
            };
            let mut staging = transaction.begin_staging(table);
            session.instance().reader.evaluate_each(
                planned.plan,
                session.reading(&entries, &files),
                &mut |rows| stage(&mut staging, rows),
            )?;
            session.finish_staging(staging)
        })?;
        Ok(Outcome::Changed { rows, epoch })
    }

    /// Runs `act` inside the open transaction. Without one, it begins a transaction, and commits it if `act` succeeds or
    /// rolls it back if it fails.
    pub(super) fn in_one_transaction<R>(
        &mut self,
        act: impl FnOnce(&mut Self) -> Result<R>,
    ) -> Result<(R, Option<Epoch>)> {
        if self.transaction.is_some() {
            return Ok((act(self)?, None));
        }
        self.transaction = Some(self.begin_transaction()?);
        let poison = self.instance().poison.clone();
        // The transaction ends whatever happens.
        let acted = poison.guard(|| act(self));
        let transaction = self.transaction.take();
        let done = acted?;
        let epoch = transaction.map(Transaction::commit).transpose()?;
        Ok((done, epoch))
    }

    /// Makes the staged changes part of the open transaction; returns how many rows there are.
    pub(super) fn finish_staging(&mut self, staging: Staging<'_>) -> Result<u64> {
        self.transaction.as_mut().map_or(Ok(0), |open| open.finish_staging(staging))
    }
}
