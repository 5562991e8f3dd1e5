//! Transactions: changes to tables that become visible together, or not at all.
//!
//! Writers are serialised: a transaction has its [`Turn`] from BEGIN, or from the statement that makes it,
//! until it ends, and others wait. So what it reads stays as it is until it commits. Its [`Write`]s are
//! staged, in statement order, and reach the dataflows when it commits; what it reads meanwhile is the last
//! complete epoch with its writes laid over it ([`Overlay`]).

mod fit;
mod overlay;
mod turn;
mod write;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use alluvium_trace::Epoch;
use arrow::array::RecordBatch;

pub(crate) use overlay::Overlay;
pub(crate) use turn::{Turn, Turns};
pub(crate) use write::{Direction, Write};

use crate::catalog::{Entry, Table};
use crate::clock::{Moment, moment};
use crate::error::{Error, Result};
use crate::instance::Instance;
use crate::source::Refusal;
use crate::worker::DataflowId;

/// Rows that a source refused to bring into a table.
struct Refused {
    table: String,
    source: String,
    refusals: Vec<Refusal>,
}

/// An open transaction. Dropping it rolls it back.
///
/// While it is open, other writers wait: a thread that begins a second one, or executes SQL that writes
/// outside of it, waits for itself.
pub struct Transaction {
    instance: Arc<Instance>,
    writes: BTreeMap<DataflowId, Vec<Write>>,
    time: Moment,
    /// Whether the time was given: then it is a change of its own.
    is_time_given: bool,
    refused: Vec<Refused>,
    _turn: Turn,
}

impl Transaction {
    /// Waits for the turn to write.
    pub(crate) fn begin(instance: &Arc<Instance>, at: Option<SystemTime>) -> Result<Self> {
        let turn = Turns::take(&instance.turns)?;
        let last = instance.sequencer.time();
        let time = match at.map(moment).transpose()? {
            Some(time) if last.is_some_and(|last| time < last) => {
                return Err(Error::data("the time is before that of the last epoch"));
            }
            Some(time) => time,
            None => instance.clock.now()?.max(last.unwrap_or(Moment::MIN)),
        };
        Ok(Self {
            instance: instance.clone(),
            writes: BTreeMap::new(),
            time,
            is_time_given: at.is_some(),
            refused: Vec::new(),
            _turn: turn,
        })
    }

    /// Inserts rows into a table; in a table with a primary key each replaces the row of its key.
    ///
    /// The columns are taken in the table's order, whatever their names are; their types must be the
    /// table's. On an error nothing of the rows is inserted, and the transaction stays open.
    pub fn insert(&mut self, table: &str, rows: RecordBatch) -> Result<()> {
        self.write(table, rows, Direction::Enter)
    }

    /// Inserts rows of which only these columns are given, in this order. All others get their DEFAULT, or
    /// NULL; a `DEFAULT NOW()` is the transaction's time.
    ///
    /// Else as [`Transaction::insert`].
    pub fn insert_columns(
        &mut self,
        table: &str,
        columns: &[&str],
        rows: RecordBatch,
    ) -> Result<()> {
        self.instance.poison.check()?;
        let entry = self.instance.catalog.get(table)?;
        let defaults = self.instance.defaults(&entry, self.time)?;
        let columns = fit::complete(&entry, columns, &rows, &defaults)?;
        let rows = fit::fit(&entry, &columns)?;
        self.stage(entry.as_table()?.id, vec![Write::enter(rows)]);
        Ok(())
    }

    /// Deletes rows from a table: of a table with a primary key the rows with their keys, whatever the other
    /// columns say; of one without, one copy of each row. A table that is append-only or keeps nothing
    /// refuses it.
    ///
    /// What is not there is let pass; without a primary key it is counted ([`crate::RelationInfo::refused`]).
    /// Columns as in [`Transaction::insert`].
    pub fn delete(&mut self, table: &str, rows: RecordBatch) -> Result<()> {
        self.write(table, rows, Direction::Leave)
    }

    /// Makes the changes the next epoch, and returns its number; they are visible once it is complete
    /// ([`crate::Engine::wait`]). A transaction without changes makes no epoch and returns the last one, unless it
    /// [began at a time of its own](crate::Engine::begin_at).
    ///
    /// Waits while too many epochs are in flight, and while a [`crate::Subscription`] is too far behind.
    pub fn commit(self) -> Result<u64> {
        self.instance.poison.check()?;
        let epoch = if self.writes.is_empty() && !self.is_time_given {
            self.instance.sequencer.last()
        } else {
            let writes = self
                .writes
                .into_iter()
                .map(|(table, writes)| Ok((table, Write::coalesce(writes)?)));
            self.instance.sequencer.commit(writes.collect::<Result<_>>()?, self.time)?
        };
        for Refused { table, source, refusals } in &self.refused {
            self.instance.refusals.add(table, source, epoch, refusals)?;
        }
        Ok(epoch)
    }

    /// Tells what a source refused to bring into a table; it is known once the transaction is committed.
    /// Fails with the first of it if the engine is strict.
    pub(crate) fn refuse(&mut self, table: &str, source: &str, refusals: &[Refusal]) -> Result<()> {
        if let Some(first) = refusals.first() {
            if self.instance.settings.strict {
                return Err(Error::source(first.to_string()));
            }
            let (table, source, refusals) =
                (table.to_owned(), source.to_owned(), refusals.to_vec());
            self.refused.push(Refused { table, source, refusals });
        }
        Ok(())
    }

    fn write(&mut self, table: &str, rows: RecordBatch, direction: Direction) -> Result<()> {
        self.instance.poison.check()?;
        let entry = self.instance.catalog.get(table)?;
        let table = entry.as_table()?;
        if direction == Direction::Leave {
            table.check_leave(&entry.name)?;
        }
        self.stage(table.id, vec![Write { rows: fit::fit(&entry, rows.columns())?, direction }]);
        Ok(())
    }

    /// Stages writes of one statement to a table, all or none of them. Returns how many rows enter or leave.
    pub(crate) fn write_all(&mut self, entry: &Entry, writes: Vec<Write>) -> Result<u64> {
        let id = entry.as_table()?.id;
        let fit =
            |write: Write| Ok(Write { rows: fit::fit(entry, write.rows.columns())?, ..write });
        let writes = writes.into_iter().map(fit).collect::<Result<Vec<_>>>()?;
        let rows = writes.iter().map(|write| write.rows.num_rows() as u64).sum();
        self.stage(id, writes);
        Ok(rows)
    }

    fn stage(&mut self, table: DataflowId, mut writes: Vec<Write>) {
        writes.retain(|write| write.rows.num_rows() > 0);
        if !writes.is_empty() {
            self.writes.entry(table).or_default().append(&mut writes);
        }
    }

    /// What the transaction has written to a table, to be laid over what it held before; `None` if nothing.
    pub(crate) fn overlay(&self, table: &Table) -> Result<Option<Overlay>> {
        let writes = self.writes.get(&table.id);
        writes.map(|writes| Overlay::new(&table.primary_key, writes)).transpose()
    }

    /// What `NOW()` is in it.
    pub(crate) fn time(&self) -> Moment {
        self.time
    }

    /// The epoch that its reads are as of, apart from its own writes.
    pub(crate) fn base(&self) -> Epoch {
        self.instance.sequencer.last()
    }
}
