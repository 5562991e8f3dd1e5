//! INSERT, UPDATE and DELETE.

use alluvium_sql::planner::PlannedWrite;
use alluvium_sql::statement::Statement;
use alluvium_trace::Epoch;
use arrow::array::RecordBatch;
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast;

use super::{Outcome, Session};
use crate::catalog::{Entries, FileScope, Scope};
use crate::error::Result;
use crate::query::Files;
use crate::transaction::{Staging, Transaction};

impl Session {
    pub(super) fn insert(
        &mut self,
        statement: &Statement,
        insert: &ast::Insert,
        parameters: &[ScalarValue],
    ) -> Result<Outcome> {
        let plan = |session: &Self, entries: &Entries| {
            let files = session.files(insert)?;
            let scope = FileScope { entries, files: &files };
            let planned = session.instance().definitions.planner.insert(insert, &scope)?;
            Ok((planned, files))
        };
        self.change(statement, parameters, plan, |staging, rows| staging.insert(rows.columns()))
    }

    pub(super) fn delete(
        &mut self,
        statement: &Statement,
        delete: &ast::Delete,
        parameters: &[ScalarValue],
    ) -> Result<Outcome> {
        let plan = |session: &Self, entries: &Entries| {
            let planned = session.instance().definitions.planner.delete(delete, &Scope(entries))?;
            Ok((planned, Files::new()))
        };
        self.change(statement, parameters, plan, |staging, rows| staging.delete(rows.columns()))
    }

    /// All old rows are deleted before any new row is inserted, because a row may take another row's old key.
    pub(super) fn update(
        &mut self,
        statement: &Statement,
        update: &ast::Update,
        parameters: &[ScalarValue],
    ) -> Result<Outcome> {
        let plan = |session: &Self, entries: &Entries| {
            let planned = session.instance().definitions.planner.update(update, &Scope(entries))?;
            Ok((planned, Files::new()))
        };
        let outcome = self.change(statement, parameters, plan, |staging, rows| {
            let width = rows.num_columns() / 2;
            let (old, new) = rows.columns().split_at(width);
            staging.delete(old)?;
            staging.check_late(new)?;
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
        statement: &Statement,
        parameters: &[ScalarValue],
        plan: impl FnOnce(&Self, &Entries) -> Result<(PlannedWrite, Files)>,
        mut stage: impl FnMut(&mut Staging<'_>, RecordBatch) -> Result<()> + Send,
    ) -> Result<Outcome> {
        let (rows, epoch) = self.in_one_transaction(|session| {
            let entries = session.instance().definitions.catalog.entries();
            let reader = &session.instance().reader;
            let prepared = reader.plans.get(statement, parameters, &entries);
            let prepared = prepared.and_then(|plan| Some((plan.target()?.to_owned(), plan)));
            let (target, plan, files) = match prepared {
                Some((target, plan)) => (target, plan.bind(parameters)?, Files::new()),
                None => {
                    let (PlannedWrite { table, plan }, files) = plan(session, &entries)?;
                    let reading = session.reading(&entries, &files);
                    let plan = reader.plan(statement, plan, Some(&table), parameters, reading)?;
                    (table, plan, files)
                }
            };
            let (Some(table), Some(transaction)) = (entries.get(&target), &session.transaction)
            else {
                return Ok(0);
            };
            let mut staging = transaction.begin_staging(table);
            let reading = session.reading(&entries, &files);
            reader.evaluate_each(plan, reading, &mut |rows| stage(&mut staging, rows))?;
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
