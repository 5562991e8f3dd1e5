//! Recording the changes of a program's tables, in order to replay them.
//!
//! A statement that reads waits until the epochs it reads are complete, so a script rarely has two epochs in
//! flight. The recorded changes are committed without waiting, so that workers receive many epochs at a time.

use std::time::SystemTime;

use alluvium::arrow::array::{RecordBatch, UInt32Array};
use alluvium::arrow::compute::take_record_batch;
use alluvium::{Change, Engine, Subscription};

use super::Table;
use super::run::text;

/// The transactions of a program that ran, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recording {
    /// `None` for a transaction that made no epoch.
    transactions: Vec<Option<Epoch>>,
}

/// An epoch of a program.
#[derive(Clone, Debug)]
struct Epoch {
    number: u64,
    /// When its transaction began.
    time: SystemTime,
    changes: Vec<(String, Change)>,
}

impl Recording {
    /// Commits the changes of a transaction again, as the same epoch.
    pub(crate) fn commit(&self, place: usize, engine: &Engine) -> Result<(), String> {
        let Some(epoch) = self.transactions.get(place).and_then(Option::as_ref) else {
            return Ok(());
        };
        let mut transaction = engine.begin_at(epoch.time).map_err(text)?;
        for (table, change) in &epoch.changes {
            let (gone, come) = (copies(change, |by| -by)?, copies(change, |by| by)?);
            // The old row of a key is deleted before the new one is inserted. Append-only tables refuse deletes.
            if gone.num_rows() > 0 {
                transaction.delete(table, gone).map_err(text)?;
            }
            transaction.upsert(table, come).map_err(text)?;
        }
        let made = transaction.commit().map_err(text)?;
        match made == epoch.number {
            true => Ok(()),
            false => Err(format!("epoch {} became epoch {made} when replayed", epoch.number)),
        }
    }
}

/// The rows of a change, each repeated by `weight` of its weight if that is positive.
fn copies(change: &Change, weight: impl Fn(i64) -> i64) -> Result<RecordBatch, String> {
    let rows = (0u32..).zip(change.weights.iter());
    let rows = rows.flat_map(|(row, by)| std::iter::repeat_n(row, weight(*by).max(0) as usize));
    take_record_batch(&change.rows, &UInt32Array::from_iter_values(rows)).map_err(text)
}

/// Makes a recording while a program runs.
pub(crate) struct Recorder {
    tables: Vec<(String, Subscription)>,
    recording: Recording,
}

impl Recorder {
    pub(crate) fn new(engine: &Engine, tables: &[Table]) -> Result<Self, String> {
        let subscribed = tables
            .iter()
            .map(|table| Ok((table.name.clone(), engine.subscribe(&table.name).map_err(text)?)));
        let mut recorder = Self {
            tables: subscribed.collect::<Result<_, String>>()?,
            recording: Recording::default(),
        };
        // The initial snapshots are empty.
        recorder.changes()?;
        Ok(recorder)
    }

    /// Records a transaction: the epoch that it made, which is complete, and its time.
    pub(crate) fn note(&mut self, made: Option<(u64, SystemTime)>) -> Result<(), String> {
        let changes = self.changes()?;
        let epoch = made.map(|(number, time)| Epoch { number, time, changes });
        self.recording.transactions.push(epoch);
        Ok(())
    }

    /// The finished recording.
    pub(crate) fn finish(self) -> Recording {
        self.recording
    }

    fn changes(&mut self) -> Result<Vec<(String, Change)>, String> {
        let mut changes = Vec::new();
        for (table, subscription) in &mut self.tables {
            while let Some(change) = subscription.try_next().map_err(text)? {
                changes.push((table.clone(), change));
            }
        }
        Ok(changes)
    }
}
