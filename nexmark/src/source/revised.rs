//! Bids that are revised: of the bids of each epoch, one in twenty is deleted in the next epoch, and one in twenty gets
//! another price.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, UInt64Array};
use arrow::compute::take_record_batch;
use arrow::datatypes::Int64Type;

use super::Events;
use crate::error::Result;

/// The number of bids of which one is deleted and one is changed.
const CYCLE: u64 = 20;

/// The numbers of those in each cycle.
const DELETED: u64 = 3;
const CHANGED: u64 = 13;

/// Changes of bids of the epoch before, with the columns of their table.
#[derive(Clone, Debug)]
pub struct Revision {
    /// Bids that are no longer there.
    pub deleted: RecordBatch,
    /// Bids that are there instead of some of them.
    pub inserted: RecordBatch,
}

impl Revision {
    /// The revision of these bids, the first of which has this number.
    fn of(bids: &RecordBatch, first: u64) -> Result<Self> {
        let rows = 0..bids.num_rows() as u64;
        let those = |numbers: &[u64]| {
            let is_one = |row: &u64| numbers.contains(&((first + row) % CYCLE));
            take_record_batch(bids, &UInt64Array::from_iter_values(rows.clone().filter(is_one)))
        };
        let deleted = those(&[DELETED, CHANGED])?;
        let changed = those(&[CHANGED])?;
        let (schema, mut columns, _) = changed.into_parts();
        let price = schema.index_of("price")?;
        let higher: Int64Array = columns[price].as_primitive::<Int64Type>().unary(|it| it + 1);
        columns[price] = Arc::new(higher) as ArrayRef;
        Ok(Self { deleted, inserted: RecordBatch::try_new(schema, columns)? })
    }

    /// Its size in memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.deleted.get_array_memory_size() + self.inserted.get_array_memory_size()
    }
}

/// Epochs, each with the revision of the one before.
pub struct Revised<I> {
    epochs: I,
    /// The bids of the last epoch.
    before: Option<RecordBatch>,
    /// The number of bids before them.
    first: u64,
}

impl<I> Revised<I> {
    /// Revises these epochs.
    pub fn new(epochs: I) -> Self {
        Self { epochs, before: None, first: 0 }
    }

    fn revise(&mut self, mut events: Events) -> Result<Events> {
        let [_, _, bids] = events.arrive()?;
        if let Some(before) = self.before.replace(bids) {
            events.revision = Some(Revision::of(&before, self.first)?);
            self.first += before.num_rows() as u64;
        }
        Ok(events)
    }
}

impl<I: Iterator<Item = Result<Events>>> Iterator for Revised<I> {
    type Item = Result<Events>;

    fn next(&mut self) -> Option<Self::Item> {
        let events = self.epochs.next()?;
        Some(events.and_then(|events| self.revise(events)))
    }
}
