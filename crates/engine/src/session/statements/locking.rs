//! SELECT … FOR UPDATE and FOR SHARE: rows that other transactions cannot change until this one ends.

use std::sync::Arc;

use alluvium_sql::planner::{PlannedLocking, RowRange};
use alluvium_sql::statement::{IfLocked, LockingQuery};
use arrow::array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow::compute::{filter, filter_record_batch};
use arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast::{Expr, Value};

use super::write::TRIES;
use crate::catalog::{Entries, Entry};
use crate::error::{Conflict, Error, Result, SqlState};
use crate::query::{Answer, Execution, FileScope, Files, Plan, Rows};
use crate::session::{Outcome, Session};
use crate::transaction::{Transaction, WrittenKeys};
use crate::writer::Mode;

/// A query that locks rows, as it runs.
struct Locking<'a> {
    query: &'a LockingQuery,
    table: &'a Entry,
    files: &'a Files,
    plan: Plan,
    /// How many columns are the key's.
    key: usize,
    limit: Option<usize>,
    offset: usize,
}

impl Locking<'_> {
    fn mode(&self) -> Mode {
        if self.query.is_shared { Mode::Shared } else { Mode::Exclusive }
    }

    /// The columns of the query, and those of the key.
    fn split(
        &self,
        rows: &RecordBatch,
        schema: &SchemaRef,
    ) -> Result<(RecordBatch, Vec<ArrayRef>)> {
        let (columns, key) = rows.columns().split_at(rows.num_columns() - self.key);
        let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
        let rows = RecordBatch::try_new_with_options(schema.clone(), columns.to_vec(), &options)?;
        Ok((rows, key.to_vec()))
    }

    /// Locks rows that no other owner has, until there are enough. The result marks the rows to return.
    fn take(
        &self,
        transaction: &Transaction,
        (rows, key): (usize, &[ArrayRef]),
        counted: &mut Counted,
    ) -> Result<BooleanArray> {
        let columns = self.table.key_columns()?;
        let keys = columns.map(|columns| columns.of_parts(key.iter())).transpose()?;
        let mut taken = Vec::with_capacity(rows);
        for row in 0..rows {
            if counted.is_enough(self) {
                break;
            }
            let key = keys.as_ref().map(|keys| keys.row(row));
            let key = key.as_ref().map(|key| key.as_ref());
            let is_locked = transaction.try_lock(self.table, key, self.mode())?;
            if !is_locked && self.query.locked == IfLocked::Fail {
                let message = format!(
                    "another transaction has a row of \"{}\", and the query does not wait for it: NOWAIT",
                    self.table.name
                );
                return Err(Error::conflict(Conflict::Locked, message));
            }
            taken.push(is_locked && counted.is_returned(self));
        }
        taken.resize(rows, false);
        Ok(taken.into())
    }
}

/// How many rows were locked.
#[derive(Default)]
struct Counted {
    skipped: usize,
    returned: usize,
}

impl Counted {
    fn is_enough(&self, locking: &Locking<'_>) -> bool {
        locking.limit.is_some_and(|limit| self.returned >= limit)
    }

    /// Whether the next row is returned, or one of those that are skipped.
    fn is_returned(&mut self, locking: &Locking<'_>) -> bool {
        let is_returned = self.skipped >= locking.offset;
        match is_returned {
            true => self.returned += 1,
            false => self.skipped += 1,
        }
        is_returned
    }
}

impl Session {
    /// Locks the rows that a query finds, for as long as the transaction is open, and returns them. If others have changed them
    /// since the version that the transaction reads, it reads a later version.
    pub(in crate::session) fn lock(
        &mut self,
        execution: Execution<'_>,
        query: &LockingQuery,
    ) -> Result<Outcome> {
        self.before_reading(true)?;
        let (answer, _) = self.in_one_transaction(|session| {
            let entries = session.entries(execution)?;
            let files = session.files(&query.query)?;
            let scope = FileScope { entries: &entries, files: &files };
            let planned = session.instance().definitions.planner.locking(query, &scope)?;
            let PlannedLocking { table, plan, key, range } = planned;
            let Some(table) = entries.get(&table) else { return Err(Error::replaced(&table)) };
            let RowRange { limit, offset } = range.unwrap_or_default();
            let number = |of: Option<Expr>| {
                of.map(|of| row_count(&of, execution.values)).transpose().map(Option::flatten)
            };
            let (limit, offset) = (number(limit)?, number(offset)?.unwrap_or(0));
            let plan = session.instance().reader.plan_once(plan, execution.values)?;
            let locking = Locking { query, table, files: &files, plan, key, limit, offset };
            session.locked(&locking, &entries)
        })?;
        let Answer { schema, batches } = answer;
        Ok(Outcome::Rows(Rows::new(schema, batches).with_written_names()))
    }

    fn locked(&self, locking: &Locking<'_>, entries: &Arc<Entries>) -> Result<Answer> {
        for _ in 0..TRIES {
            let Some(transaction) = &self.transaction else { break };
            let before = transaction.read_before();
            let (answer, keys) = self.found(locking, transaction, entries)?;
            if locking.query.locked == IfLocked::Wait {
                let timeout = self.settings.lock_timeout();
                transaction.lock_keys(locking.table, &keys, locking.mode(), timeout)?;
            }
            if transaction.are_current(locking.table, &keys)? {
                return Ok(answer);
            }
            transaction.go_on(&before)?;
        }
        Err(Error::conflict(
            Conflict::Serialization,
            format!(
                "the rows of \"{}\" that the query locks are changed by others again and again; run the transaction again",
                locking.table.name
            ),
        ))
    }

    /// The rows that a query finds, and their keys. Unless it waits for those that others have, it has locked them.
    fn found(
        &self,
        locking: &Locking<'_>,
        transaction: &Transaction,
        entries: &Arc<Entries>,
    ) -> Result<(Answer, WrittenKeys)> {
        let reader = &self.instance().reader;
        let reading = self.reading_of_query(entries, locking.files)?;
        let columns = reader.columns(locking.plan.logical().clone(), reading)?;
        let fields = columns.fields();
        let shown: Vec<_> = fields[..fields.len() - locking.key].to_vec();
        let schema: SchemaRef = Arc::new(Schema::new(shown));
        let held = reader.hold();
        let mut answer = Answer { schema, batches: Vec::new() };
        let (mut keys, mut counted) = (WrittenKeys::default(), Counted::default());
        let key_columns = locking.table.key_columns()?;
        let mut running = reader.start(locking.plan.clone(), reading)?;
        while !counted.is_enough(locking)
            && let Some(rows) = running.pull()?
        {
            let (mut rows, mut key) = locking.split(&rows, &answer.schema)?;
            if locking.query.locked != IfLocked::Wait {
                let taken = locking.take(transaction, (rows.num_rows(), &key), &mut counted)?;
                rows = filter_record_batch(&rows, &taken)?;
                let filtered = key.iter().map(|part| filter(part, &taken));
                key = filtered.collect::<std::result::Result<_, _>>()?;
            }
            if rows.num_rows() > 0 {
                keys.lock(key_columns.map(|columns| &**columns), &key)?;
                held.add(&rows)?;
                answer.batches.push(rows);
            }
        }
        Ok((answer, keys))
    }
}

/// How many rows LIMIT or OFFSET says; `None` for NULL and ALL.
fn row_count(written: &Expr, parameters: &[ScalarValue]) -> Result<Option<usize>> {
    let wrong = || {
        let message =
            format!("LIMIT and OFFSET beside SKIP LOCKED are whole numbers, not {written}");
        Error::sql(message).with_sqlstate(SqlState::INVALID_VALUE)
    };
    let Expr::Value(value) = written else { return Err(wrong()) };
    match &value.value {
        Value::Null => Ok(None),
        Value::Number(digits, _) => digits.parse().map(Some).map_err(|_| wrong()),
        Value::Placeholder(name) => {
            let place = name.trim_start_matches('$').parse::<usize>().ok();
            let given = place.and_then(|place| parameters.get(place.checked_sub(1)?));
            let given = given.ok_or_else(wrong)?.cast_to(&DataType::Int64);
            match given {
                Ok(ScalarValue::Int64(None)) => Ok(None),
                Ok(ScalarValue::Int64(Some(count))) => {
                    usize::try_from(count).map(Some).map_err(|_| wrong())
                }
                _ => Err(wrong()),
            }
        }
        _ => Err(wrong()),
    }
}
