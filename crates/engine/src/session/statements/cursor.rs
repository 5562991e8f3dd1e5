//! Cursors: DECLARE, FETCH, MOVE and CLOSE.
//!
//! A cursor is the [`Rows`] of its query, which are computed as they are fetched; so it keeps the version that its query began
//! with, and no rows. One over SUBSCRIBE has the [changes](super::changes) that come.

use alluvium_sql::statement::{CursorDefinition, Named, Setting, Steps};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::scalar::ScalarValue;

use super::changes::{FetchedChanges, timeout};
use crate::error::{Error, Result, SqlState};
use crate::query::{Execution, Rows};
use crate::session::{Outcome, Session};

/// The cursors of a session, in the order in which they were declared.
#[derive(Default)]
pub(in crate::session) struct Cursors {
    open: Vec<Cursor>,
    /// How many were ever declared.
    declared: u64,
}

struct Cursor {
    name: String,
    /// Which one it was of all.
    number: u64,
    /// Whether it was declared in the transaction that is open.
    is_of_transaction: bool,
    holds: bool,
    schema: SchemaRef,
    /// The rest of the last batch.
    begun: Option<RecordBatch>,
    /// `None` after the last one.
    rows: Option<Rows>,
    /// The changes of a relation, if it has these.
    changes: Option<Box<FetchedChanges>>,
}

impl Cursors {
    /// How many were ever declared: what a savepoint keeps of them.
    pub(in crate::session) fn declared(&self) -> u64 {
        self.declared
    }

    /// The transaction has gone back to a savepoint after which so many were declared.
    pub(in crate::session) fn return_to(&mut self, declared: u64) {
        self.open.retain(|cursor| cursor.number < declared);
    }

    /// The transaction has ended. Cursors WITH HOLD stay if it was committed.
    pub(in crate::session) fn end_transaction(&mut self, is_committed: bool) {
        self.open.retain(|cursor| !cursor.is_of_transaction || (is_committed && cursor.holds));
        for cursor in &mut self.open {
            cursor.is_of_transaction = false;
        }
    }

    /// All are closed.
    pub(in crate::session) fn close_all(&mut self) {
        self.open.clear();
    }

    fn place(&self, cursor: &Named) -> Result<usize> {
        let found = self.open.iter().position(|open| open.name == cursor.name);
        found.ok_or_else(|| {
            let message = format!("there is no cursor \"{}\"", cursor.name);
            Error::sql(message).with_sqlstate(SqlState::NO_CURSOR).at(cursor.position)
        })
    }

    fn get(&mut self, cursor: &Named) -> Result<&mut Cursor> {
        let place = self.place(cursor)?;
        Ok(&mut self.open[place])
    }

    /// The changes that a cursor has, if it is one over these.
    pub(in crate::session) fn changes(
        &mut self,
        cursor: &Named,
    ) -> Result<Option<&mut FetchedChanges>> {
        Ok(self.get(cursor)?.changes.as_deref_mut())
    }
}

impl Cursor {
    /// The next rows, at most so many, of one batch of the query; `None` after the last.
    fn next(&mut self, most: u64) -> Result<Option<RecordBatch>> {
        let next = match (self.begun.take(), &mut self.rows) {
            (Some(begun), _) => Some(begun),
            (None, Some(rows)) => rows.next().transpose()?,
            (None, None) => None,
        };
        let Some(batch) = next else {
            self.rows = None;
            return Ok(None);
        };
        let length = batch.num_rows();
        let taken = usize::try_from(most).map_or(length, |most| most.min(length));
        if taken < length {
            self.begun = Some(batch.slice(taken, length - taken));
        }
        Ok(Some(batch.slice(0, taken)))
    }

    /// At most so many of the next rows, which count as memory of queries until there are all of them.
    fn fetch(&mut self, mut most: u64) -> Result<Rows> {
        let held = self.rows.as_ref().and_then(Rows::held);
        let mut batches = Vec::new();
        while most > 0
            && let Some(batch) = self.next(most)?
        {
            held.iter().try_for_each(|held| held.add(&batch))?;
            most -= batch.num_rows() as u64;
            batches.push(batch);
        }
        Ok(Rows::new(self.schema.clone(), batches))
    }

    /// All rows that are left, to be pulled: the cursor is past the last one at once.
    fn fetch_all(&mut self) -> Rows {
        let begun = self.begun.take().into_iter().collect();
        match self.rows.take() {
            Some(rows) => rows.behind(begun).limited(),
            None => Rows::new(self.schema.clone(), begun),
        }
    }

    /// Goes over at most so many rows. Returns how many there were.
    fn go(&mut self, most: u64) -> Result<u64> {
        let mut gone = 0;
        while gone < most
            && let Some(batch) = self.next(most - gone)?
        {
            gone += batch.num_rows() as u64;
        }
        Ok(gone)
    }
}

impl Session {
    pub(in crate::session) fn declare_cursor(
        &mut self,
        cursor: &CursorDefinition,
        values: &[ScalarValue],
    ) -> Result<Outcome> {
        let CursorDefinition { name, holds, query } = cursor;
        if !self.in_transaction() && !holds {
            let message = "DECLARE … CURSOR without BEGIN: no transaction is open, at whose end the cursor would end; write WITH HOLD";
            return Err(Error::sql(message).with_sqlstate(SqlState::NO_TRANSACTION));
        }
        if self.cursors.place(name).is_ok() {
            let message = format!("there is already a cursor \"{}\"", name.name);
            let error = Error::sql(message).with_sqlstate(SqlState::DUPLICATE_CURSOR);
            return Err(error.at(name.position));
        }
        let execution = Execution { statement: query, values, own: None };
        let (schema, rows, changes) = match self.perform(execution, true)? {
            // The statement that fetches has limits of its own.
            Outcome::Rows(rows) => (rows.schema().clone(), Some(rows.unlimited()), None),
            Outcome::Subscribed(subscription) => {
                let charge = self.instance().definitions.charge();
                let changes = FetchedChanges::new(subscription, charge);
                (changes.changes().schema().clone(), None, Some(Box::new(changes)))
            }
            _ => return Err(Error::sql("a cursor takes a query or SUBSCRIBE")),
        };
        let is_of_transaction = self.in_transaction();
        self.cursors.open.push(Cursor {
            name: name.name.clone(),
            number: self.cursors.declared,
            is_of_transaction,
            holds: *holds,
            schema,
            begun: None,
            rows,
            changes,
        });
        self.cursors.declared += 1;
        Ok(Outcome::Done)
    }

    pub(in crate::session) fn fetch(
        &mut self,
        cursor: &Named,
        steps: Steps,
        written: Option<&Setting>,
    ) -> Result<Outcome> {
        let open = self.cursors.get(cursor)?;
        // The rows of a query do not have to be waited for.
        let timeout = written.map(timeout).transpose()?;
        if let Some(changes) = &mut open.changes {
            return Ok(Outcome::Rows(changes.fetch(most(cursor, steps)?, timeout)?));
        }
        let rows = match steps {
            Steps::Forward(rows) => open.fetch(rows)?,
            Steps::All => open.fetch_all(),
            Steps::Elsewhere => return Err(only_forward(cursor)),
        };
        Ok(Outcome::Rows(rows.aborting(self.aborter())))
    }

    pub(in crate::session) fn go(&mut self, cursor: &Named, steps: Steps) -> Result<Outcome> {
        let open = self.cursors.get(cursor)?;
        if open.changes.is_some() {
            let message =
                format!("the cursor \"{}\" has changes, which only FETCH takes", cursor.name);
            let error = Error::sql(message).with_sqlstate(SqlState::NOT_SUPPORTED);
            return Err(error.at(cursor.position));
        }
        Ok(Outcome::Moved { rows: open.go(most(cursor, steps)?)? })
    }

    pub(in crate::session) fn close(&mut self, cursor: Option<&Named>) -> Result<Outcome> {
        match cursor {
            None => self.cursors.close_all(),
            Some(cursor) => {
                let place = self.cursors.place(cursor)?;
                self.cursors.open.remove(place);
            }
        }
        Ok(Outcome::Done)
    }

    /// The columns of a cursor.
    pub(in crate::session) fn columns_of_cursor(&self, cursor: &Named) -> Result<SchemaRef> {
        self.cursors.place(cursor).map(|place| self.cursors.open[place].schema.clone())
    }
}

/// The most rows that a cursor goes over.
pub(in crate::session) fn most(cursor: &Named, steps: Steps) -> Result<u64> {
    match steps {
        Steps::Forward(rows) => Ok(rows),
        Steps::All => Ok(u64::MAX),
        Steps::Elsewhere => Err(only_forward(cursor)),
    }
}

fn only_forward(cursor: &Named) -> Error {
    let message = format!(
        "the cursor \"{}\" goes forward only: FETCH NEXT, a number of rows, or ALL",
        cursor.name
    );
    Error::sql(message).with_sqlstate(SqlState::NOT_IN_STATE).at(cursor.position)
}
