//! INSERT, UPDATE and DELETE.

use std::sync::Arc;

use alluvium_sql::catalog::Catalog;
use alluvium_sql::planner::{OnConflict, PlannedFor, PlannedWrite, Returning};
use alluvium_sql::statement::{self, Shape};
use alluvium_trace::Epoch;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast;

use super::conflicts::Conflicts;
use crate::catalog::{Entries, Entry};
use crate::error::{Conflict, Error, Result};
use crate::interrupt;
use crate::query::{
    Answer, Change, Execution, FileScope, Files, Held, KeptPlan, Plan, Reader, Reading, Rows,
    Running,
};
use crate::session::{Outcome, Session};
use crate::transaction::{Staging, Transaction, WrittenKeys};
use crate::worker::Durable;
use crate::writer::Mode;

/// How often a statement is run beside others.
pub(in crate::session) const TRIES: usize = 3;

/// A statement that writes, once it is planned.
struct Write {
    table: String,
    change: Change,
    rows: RowsToChange,
    on_conflict: Option<OnConflict>,
    returning: Option<Returning>,
    files: Files,
}

impl Write {
    /// One that only changes rows.
    fn of_kept(table: &str, kept: Arc<KeptPlan>, values: Vec<ScalarValue>, change: Change) -> Self {
        let (table, rows) = (table.to_owned(), RowsToChange::Kept(kept, values));
        Self { table, change, rows, on_conflict: None, returning: None, files: Files::new() }
    }

    /// The key of the row that it changes, if that is known before the row is read.
    fn keys(&self, table: &Entry) -> Result<Option<WrittenKeys>> {
        let (RowsToChange::Kept(plan, values), Change::Update | Change::Delete) =
            (&self.rows, self.change)
        else {
            return Ok(None);
        };
        let Some(columns) = plan.key(values)? else { return Ok(None) };
        let types = table.as_table()?.primary_key.iter();
        let mut types = types.map(|&column| table.schema.field(column).data_type());
        if !columns.iter().all(|values| types.next() == Some(values.data_type())) {
            return Ok(None);
        }
        let mut keys = WrittenKeys::default();
        keys.lock(table.key_columns()?.map(Arc::as_ref), &columns)?;
        Ok(Some(keys))
    }
}

/// The query of the rows that a statement changes.
enum RowsToChange {
    Planned(Plan),
    /// With values for its parameters.
    Kept(Arc<KeptPlan>, Vec<ScalarValue>),
}

impl RowsToChange {
    fn start(&self, reader: &Reader, reading: Reading<'_>) -> Result<Running> {
        match self {
            Self::Planned(plan) => reader.start(plan.clone(), reading),
            Self::Kept(plan, values) => reader.start_kept(plan, values, reading),
        }
    }
}

/// The changes of a statement.
#[derive(Default)]
struct Changed {
    rows: u64,
    /// The rows of its RETURNING.
    returned: Option<Answer>,
}

impl Changed {
    fn outcome(self, epoch: Option<Epoch>) -> Outcome {
        match self.returned {
            Some(Answer { schema, batches }) => Outcome::Rows(Rows::new(schema, batches)),
            None => Outcome::Changed { rows: self.rows, epoch },
        }
    }
}

/// Stages the rows of a plan. Returns those of the table that RETURNING shows.
fn stage(change: Change, staging: &mut Staging<'_>, rows: &RecordBatch) -> Result<RecordBatch> {
    match change {
        Change::Insert | Change::Replace => staging.insert(rows.columns()),
        Change::Delete => staging.delete(rows.columns()),
        // All old rows are deleted before any new row is inserted, because a row may take another row's old key.
        Change::Update => {
            let (old, new) = rows.columns().split_at(rows.num_columns() / 2);
            staging.delete(old)?;
            staging.check_late(new)?;
            staging.insert(new)
        }
    }
}

impl Session {
    pub(in crate::session) fn insert(
        &mut self,
        execution: Execution<'_>,
        insert: &ast::Insert,
    ) -> Result<Outcome> {
        // Its own table is one of them.
        self.before_reading(
            insert.on.is_some() || alluvium_sql::statement::relations(insert).len() > 1,
        )?;
        let plan = |session: &Self, entries: &Entries| {
            let files = session.files(insert)?;
            let scope = FileScope { entries, files: &files };
            let planned = session.instance().definitions.planner.insert(insert, &scope)?;
            Ok((PlannedFor { planned, is_typed: false }, files))
        };
        let replaces = statement::replaces(insert);
        self.change(execution, plan, if replaces { Change::Replace } else { Change::Insert })
    }

    pub(in crate::session) fn delete(
        &mut self,
        execution: Execution<'_>,
        delete: &ast::Delete,
    ) -> Result<Outcome> {
        self.before_reading(true)?;
        let plan = |session: &Self, entries: &Entries| {
            let files = session.files(delete)?;
            let scope = FileScope { entries, files: &files };
            let planner = &session.instance().definitions.planner;
            let plan = |scope: &dyn Catalog| planner.delete(delete, scope);
            let values = (execution.values, true);
            let planned = session.planned_for(&scope, values, plan, |planned| &planned.plan)?;
            Ok((planned, files))
        };
        self.change(execution, plan, Change::Delete)
    }

    pub(in crate::session) fn update(
        &mut self,
        execution: Execution<'_>,
        update: &ast::Update,
    ) -> Result<Outcome> {
        self.before_reading(true)?;
        let plan = |session: &Self, entries: &Entries| {
            let files = session.files(update)?;
            let scope = FileScope { entries, files: &files };
            let planner = &session.instance().definitions.planner;
            let plan = |scope: &dyn Catalog| planner.update(update, scope);
            let values = (execution.values, true);
            let planned = session.planned_for(&scope, values, plan, |planned| &planned.plan)?;
            Ok((planned, files))
        };
        self.change(execution, plan, Change::Update)
    }

    /// Runs the plan of a statement that writes, inside the open transaction or one of its own, and passes its result to
    /// `stage`, batch by batch. On an error nothing is staged.
    fn change(
        &mut self,
        execution: Execution<'_>,
        plan: impl Fn(&Self, &Entries) -> Result<(PlannedFor<PlannedWrite>, Files)>,
        change: Change,
    ) -> Result<Outcome> {
        let parameters = execution.values;
        let (changed, epoch) = self.in_one_transaction(|session| {
            let entries = session.entries(execution)?;
            let reader = &session.instance().reader;
            if let Some(own) = execution.own
                && let Some(kept) = own.get(parameters, &entries)
                && let Some((table, _)) = kept.target()
            {
                let write = Write::of_kept(table, kept.clone(), parameters.to_vec(), change);
                return session.stage(write, &entries);
            }
            let (PlannedFor { planned, is_typed }, files) = plan(session, &entries)?;
            let PlannedWrite { table, plan, on_conflict, returning } = planned;
            let reading = session.reading_to_write(&entries, &files, returning.as_ref());
            let plan = match (&on_conflict, &returning) {
                (None, None) if !is_typed => reader.plan(execution, plan, Some(&table), reading)?,
                _ => reader.plan_once(plan, parameters)?,
            };
            let on_conflict = on_conflict.map(|on_conflict| on_conflict.bind(parameters));
            let returning = returning.map(|returning| returning.bind(parameters));
            let write = Write {
                table,
                change,
                rows: RowsToChange::Planned(plan),
                on_conflict: on_conflict.transpose()?,
                returning: returning.transpose()?,
                files,
            };
            session.stage(write, &entries)
        })?;
        Ok(changed.outcome(epoch))
    }

    /// Runs a statement that writes from the plan that is kept of its shape. `None` if none is, or not any more.
    pub(in crate::session) fn change_kept(
        &mut self,
        shape: &Shape,
        parameters: &[ScalarValue],
    ) -> Result<Option<Outcome>> {
        let key = self.key.clone();
        let mut is_kept = true;
        let changed = self.in_one_transaction(|session| {
            let entries = session.catalog_entries();
            let kept = session.instance().reader.plans.get(shape, parameters, &entries);
            let target = kept.as_ref().and_then(|(kept, _)| kept.target());
            let (Some((kept, values)), Some((table, change))) = (&kept, target) else {
                is_kept = false;
                return Err(Error::sql("there has been a definition"));
            };
            let write = Write::of_kept(table, kept.clone(), values.clone(), change);
            session.stage(write, &entries)
        });
        if !is_kept {
            // The transaction that has it was rolled back.
            self.key = key;
            return Ok(None);
        }
        let (changed, epoch) = changed?;
        Ok(Some(changed.outcome(epoch)))
    }

    /// Stages the changes of a statement, and locks these rows, before it reads them if their key is known. If others have changed them
    /// since the version that the transaction reads, the statement reads a later version.
    fn stage(&mut self, write: Write, entries: &Arc<Entries>) -> Result<Changed> {
        let Some(table) = entries.get(&write.table) else { return Ok(Changed::default()) };
        for _ in 0..TRIES {
            let Some(transaction) = &self.transaction else { return Ok(Changed::default()) };
            let before = transaction.read_before();
            if let Some(keys) = write.keys(table)? {
                transaction.lock_keys(
                    table,
                    &keys,
                    Mode::Exclusive,
                    self.settings.lock_timeout(),
                )?;
                if !transaction.are_current(table, &keys)? {
                    transaction.go_on(&before)?;
                }
            }
            let (staging, changed) = self.evaluate(&write, table, transaction, entries)?;
            transaction.lock_rows(&staging, self.settings.lock_timeout())?;
            if transaction.is_current(&staging)? {
                transaction.check_new_keys(&staging)?;
                self.finish_staging(staging)?;
                return Ok(changed);
            }
            transaction.go_on(&before)?;
        }
        Err(Error::conflict(
            Conflict::Serialization,
            format!(
                "the rows of \"{}\" that the statement changes are changed by others again and again; run the transaction again",
                write.table
            ),
        ))
    }

    /// As [`Session::reading`], for a statement that writes: unless it returns rows, it shows nothing before it is durable itself.
    fn reading_to_write<'a>(
        &'a self,
        entries: &'a Arc<Entries>,
        files: &'a Files,
        returning: Option<&Returning>,
    ) -> Reading<'a> {
        let durable = returning.map_or(Durable::No, |_| Durable::Yes);
        Reading { durable, ..self.reading(entries, files) }
    }

    /// The rows that a statement changes.
    fn evaluate<'a>(
        &self,
        write: &Write,
        table: &'a Entry,
        transaction: &Transaction,
        entries: &Arc<Entries>,
    ) -> Result<(Staging<'a>, Changed)> {
        let Write { change, rows: to_change, on_conflict, returning, files, .. } = write;
        let reader = &self.instance().reader;
        let mut staging = transaction.begin_staging(table)?;
        if *change == Change::Replace {
            staging.replace();
        }
        let reading = self.reading_to_write(entries, files, returning.as_ref());
        let conflicts = on_conflict
            .as_ref()
            .map(|on_conflict| Conflicts::new(reader, reading, table, on_conflict));
        let mut conflicts = conflicts.transpose()?;
        let returned = returning
            .as_ref()
            .map(|returning| Returned::new(reader, reading, &table.schema, returning));
        let mut returned = returned.transpose()?;
        let mut rows = 0;
        let mut running = to_change.start(reader, reading)?;
        while let Some(batch) = running.pull()? {
            let changed = match &mut conflicts {
                Some(conflicts) => conflicts.stage(&mut staging, &batch)?,
                None => vec![stage(*change, &mut staging, &batch)?],
            };
            for changed in changed {
                rows += changed.num_rows() as u64;
                if let Some(returned) = &mut returned {
                    returned.add(&changed)?;
                }
            }
        }
        let returned = returned.map(|returned| returned.answer);
        drop(conflicts);
        Ok((staging, Changed { rows, returned }))
    }

    /// Runs `act` inside the open transaction. Without one, it begins a transaction, and commits it if `act` succeeds or
    /// rolls it back if it fails. If another transaction stands in its way, it is run again; after [`TRIES`] no other one may commit
    /// meanwhile.
    pub(in crate::session) fn in_one_transaction<R>(
        &mut self,
        mut act: impl FnMut(&mut Self) -> Result<R>,
    ) -> Result<(R, Option<Epoch>)> {
        if self.transaction.is_some() {
            return Ok((act(self)?, None));
        }
        let key = self.key.clone();
        for _ in 0..TRIES {
            match self.in_new_transaction(false, &mut act) {
                Err(Error::Conflict {
                    kind: Conflict::Serialization | Conflict::Deadlock, ..
                }) => {
                    interrupt::check()?;
                    self.key.clone_from(&key);
                }
                done => return done,
            }
        }
        self.in_new_transaction(true, &mut act)
    }

    /// Runs `act` inside a transaction of its own. If it `locks_out` others, these do not commit meanwhile.
    fn in_new_transaction<R>(
        &mut self,
        locks_out: bool,
        act: &mut impl FnMut(&mut Self) -> Result<R>,
    ) -> Result<(R, Option<Epoch>)> {
        let mut transaction = self.begin_transaction()?;
        if locks_out {
            transaction.lock_out()?;
        }
        self.transaction = Some(transaction);
        let poison = self.instance().poison.clone();
        // The transaction ends whatever happens.
        let acted = poison.guard(|| act(self));
        let transaction = self.transaction.take();
        let done = acted?;
        let epoch = transaction.map(Transaction::commit).transpose()?;
        self.settings.committed = epoch.or(self.settings.committed);
        Ok((done, epoch))
    }

    /// Makes the staged changes part of the open transaction; returns how many rows there are.
    pub(in crate::session) fn finish_staging(&mut self, staging: Staging<'_>) -> Result<u64> {
        self.transaction.as_mut().map_or(Ok(0), |open| open.finish_staging(staging))
    }
}

/// The rows of RETURNING so far.
struct Returned<'a> {
    reader: &'a Reader,
    reading: Reading<'a>,
    returning: &'a Returning,
    held: Held,
    answer: Answer,
}

impl<'a> Returned<'a> {
    fn new(
        reader: &'a Reader,
        reading: Reading<'a>,
        table: &SchemaRef,
        returning: &'a Returning,
    ) -> Result<Self> {
        let nothing = RecordBatch::new_empty(table.clone());
        let schema = reader.columns(returning.of(&nothing)?, reading)?;
        let answer = Answer { schema, batches: Vec::new() };
        Ok(Self { reader, reading, returning, held: reader.hold(), answer })
    }

    /// Adds its result for rows of the table.
    fn add(&mut self, rows: &RecordBatch) -> Result<()> {
        let plan = self.returning.of(rows)?.into();
        for rows in self.reader.evaluate(plan, self.reading)?.batches {
            self.held.add(&rows)?;
            self.answer.batches.push(rows);
        }
        Ok(())
    }
}
