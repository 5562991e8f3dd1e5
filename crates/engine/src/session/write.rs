//! INSERT, UPDATE and DELETE.

use alluvium_sql::planner::{PlannedWrite, Returning};
use alluvium_sql::statement::Statement;
use alluvium_trace::Epoch;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast;

use super::conflicts::Conflicts;
use super::{Outcome, Session};
use crate::catalog::{Entries, FileScope, Scope};
use crate::error::Result;
use crate::query::{Answer, Files, Held, Reader, Reading, Rows};
use crate::transaction::{Staging, Transaction};

/// Stages the rows of a plan. Returns those of the table that RETURNING shows.
type Stage = fn(&mut Staging<'_>, RecordBatch) -> Result<RecordBatch>;

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
        self.change(statement, parameters, plan, |staging, rows| {
            let width = rows.num_columns() / 2;
            let (old, new) = rows.columns().split_at(width);
            staging.delete(old)?;
            staging.check_late(new)?;
            staging.insert(new)
        })
    }

    /// Runs the plan of a statement that writes, inside the open transaction or one of its own, and passes its result to
    /// `stage`, batch by batch. On an error nothing is staged.
    fn change(
        &mut self,
        statement: &Statement,
        parameters: &[ScalarValue],
        plan: impl FnOnce(&Self, &Entries) -> Result<(PlannedWrite, Files)>,
        stage: Stage,
    ) -> Result<Outcome> {
        let ((rows, returned), epoch) = self.in_one_transaction(|session| {
            let entries = session.instance().definitions.catalog.entries();
            let reader = &session.instance().reader;
            let prepared = reader.plans.get(statement, parameters, &entries);
            let prepared = prepared.and_then(|plan| Some((plan.target()?.to_owned(), plan)));
            let (mut on_conflict, mut returning) = (None, None);
            let (target, plan, files) = match prepared {
                Some((target, plan)) => (target, plan.bind(parameters)?, Files::new()),
                None => {
                    let (planned, files) = plan(session, &entries)?;
                    let PlannedWrite { table, plan, .. } = planned;
                    (on_conflict, returning) = (planned.on_conflict, planned.returning);
                    let reading = session.reading(&entries, &files);
                    let plan = match (&on_conflict, &returning) {
                        (None, None) => {
                            reader.plan(statement, plan, Some(&table), parameters, reading)?
                        }
                        _ => reader.plan_once(plan, parameters)?,
                    };
                    (table, plan, files)
                }
            };
            let (Some(table), Some(transaction)) = (entries.get(&target), &session.transaction)
            else {
                return Ok((0, None));
            };
            let mut staging = transaction.begin_staging(table);
            let reading = session.reading(&entries, &files);
            let conflicts = on_conflict.map(|on_conflict| {
                Conflicts::new(reader, reading, table, on_conflict.bind(parameters)?)
            });
            let mut conflicts = conflicts.transpose()?;
            let returned = returning.map(|returning| {
                Returned::new(reader, reading, &table.schema, returning.bind(parameters)?)
            });
            let mut returned = returned.transpose()?;
            let mut count = 0;
            reader.evaluate_each(plan, reading, &mut |rows| {
                let changed = match &mut conflicts {
                    Some(conflicts) => conflicts.stage(&mut staging, &rows)?,
                    None => vec![stage(&mut staging, rows)?],
                };
                for rows in changed {
                    count += rows.num_rows() as u64;
                    if let Some(returned) = &mut returned {
                        returned.add(&rows)?;
                    }
                }
                Ok(())
            })?;
            let answer = returned.map(|returned| returned.answer);
            drop(conflicts);
            session.finish_staging(staging)?;
            Ok((count, answer))
        })?;
        Ok(match returned {
            Some(Answer { schema, batches }) => Outcome::Rows(Rows::new(schema, batches)),
            None => Outcome::Changed { rows, epoch },
        })
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

/// What RETURNING says of the changed rows so far.
struct Returned<'a> {
    reader: &'a Reader,
    reading: Reading<'a>,
    returning: Returning,
    held: Held,
    answer: Answer,
}

impl<'a> Returned<'a> {
    fn new(
        reader: &'a Reader,
        reading: Reading<'a>,
        table: &SchemaRef,
        returning: Returning,
    ) -> Result<Self> {
        let nothing = RecordBatch::new_empty(table.clone());
        let schema = reader.columns(returning.of(&nothing)?, reading)?;
        let answer = Answer { schema, batches: Vec::new() };
        Ok(Self { reader, reading, returning, held: reader.hold(), answer })
    }

    /// Adds what it says of rows of the table.
    fn add(&mut self, rows: &RecordBatch) -> Result<()> {
        let plan = self.returning.of(rows)?.into();
        for rows in self.reader.evaluate(plan, self.reading)?.batches {
            self.held.add(&rows)?;
            self.answer.batches.push(rows);
        }
        Ok(())
    }
}
