//! The writes of the last epochs, by which earlier reads are validated.
//!
//! It is kept while a transaction that reads is open, for the epochs after the one it reads as of, and for those that are not
//! complete when the last such transaction ends: until another one does, or an epoch is committed. Without such transactions nothing
//! is kept.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ops::Bound;
use std::sync::{Arc, OnceLock};

use alluvium_dataflow::state::key_ranges::KeyRanges;
use alluvium_trace::Epoch;
use parking_lot::Mutex;

use crate::changes::TableChange;
use crate::error::Result;
use crate::fault::{Fault, armed};
use crate::transaction::KeyColumns;
use crate::worker::DataflowId;

/// How many bytes of rows are kept of a table. Beyond that only the last epoch that has written is known, not the keys.
const MOST_BYTES: u64 = 4 << 20;

/// The writes of the last epochs, by table.
#[derive(Default)]
pub(super) struct Writes {
    /// All epochs after this one are here.
    since: Epoch,
    tables: HashMap<DataflowId, TableWrites>,
    /// How many transactions read as of each epoch, or a later one.
    observers: BTreeMap<Epoch, usize>,
}

/// The writes to a table.
#[derive(Default)]
struct TableWrites {
    /// In order.
    epochs: VecDeque<Arc<EpochWrites>>,
    /// The bytes of their rows.
    bytes: u64,
    /// The last epoch whose keys are not known.
    unknown: Epoch,
}

/// The writes of an epoch to a table with a key.
pub(crate) struct EpochWrites {
    pub(crate) epoch: Epoch,
    changes: Vec<TableChange>,
    /// The keys, and whether there is a row with each after the epoch; made on demand.
    keys: OnceLock<BTreeMap<Box<[u8]>, bool>>,
    /// The values of inserted rows in columns that are UNIQUE, by these; made on demand.
    values: Mutex<BTreeMap<Vec<usize>, Arc<InsertedValues>>>,
}

/// The values, encoded, of the rows that an epoch has inserted.
type InsertedValues = BTreeSet<Box<[u8]>>;

/// The writes to a table after an epoch.
pub(crate) enum WritesAfter {
    /// These, in order.
    Known(Vec<Arc<EpochWrites>>),
    /// There are some, and the keys are not known.
    Unknown,
}

impl WritesAfter {
    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Self::Known(epochs) if epochs.is_empty())
    }
}

impl EpochWrites {
    fn new(epoch: Epoch, changes: Vec<TableChange>) -> Self {
        let (keys, values) = Default::default();
        Self { epoch, changes, keys, values }
    }

    fn bytes(&self) -> u64 {
        self.changes.iter().map(|change| change.rows().size()).sum()
    }

    fn keys(&self, of: &KeyColumns) -> Result<&BTreeMap<Box<[u8]>, bool>> {
        if let Some(keys) = self.keys.get() {
            return Ok(keys);
        }
        let mut keys = BTreeMap::new();
        for change in &self.changes {
            let (rows, _) = change.load()?;
            let is_there = !change.deletes();
            let written = of.of(rows.columns())?;
            keys.extend(written.iter().map(|key| (key.as_ref().into(), is_there)));
        }
        Ok(self.keys.get_or_init(|| keys))
    }

    /// Whether it has written a key within ranges.
    pub(crate) fn touches(&self, of: &KeyColumns, ranges: &KeyRanges) -> Result<bool> {
        let keys = self.keys(of)?;
        Ok(ranges.iter().any(|(low, high)| {
            let high = high.map_or(Bound::Unbounded, Bound::Excluded);
            let mut written = keys.range::<[u8], _>((Bound::Included(low), high));
            written.any(|(_, is_there)| *is_there || !armed(Fault::SkipDeleted))
        }))
    }

    /// Whether it has inserted a row that has such a value in these columns within ranges.
    pub(crate) fn inserts(&self, of: &KeyColumns, ranges: &KeyRanges) -> Result<bool> {
        let values = self.inserted(of)?;
        Ok(ranges.iter().any(|(low, high)| {
            let high = high.map_or(Bound::Unbounded, Bound::Excluded);
            values.range::<[u8], _>((Bound::Included(low), high)).next().is_some()
        }))
    }

    fn inserted(&self, of: &KeyColumns) -> Result<Arc<InsertedValues>> {
        let mut all = self.values.lock();
        if let Some(values) = all.get(of.columns()) {
            return Ok(values.clone());
        }
        let mut values = InsertedValues::new();
        for change in self.changes.iter().filter(|change| !change.deletes()) {
            let (rows, _) = change.load()?;
            values.extend(of.of(rows.columns())?.iter().map(|value| Box::from(value.as_ref())));
        }
        let values = Arc::new(values);
        all.insert(of.columns().to_vec(), values.clone());
        Ok(values)
    }

    /// Whether there is a row with a key after it; `None` if it has not written that.
    pub(crate) fn has(&self, of: &KeyColumns, key: &[u8]) -> Result<Option<bool>> {
        Ok(self.keys(of)?.get(key).copied())
    }
}

impl Writes {
    /// All epochs after this one are known.
    pub(super) fn since(&self) -> Epoch {
        self.since
    }

    /// A transaction will read as of this epoch, after which all are known or which is the last one, or a later one.
    pub(super) fn observe(&mut self, from: Epoch) {
        if self.observers.is_empty() && self.tables.is_empty() {
            self.since = self.since.max(from);
        }
        *self.observers.entry(from).or_default() += 1;
    }

    /// A transaction that has observed from this epoch on has ended.
    pub(super) fn end(&mut self, from: Epoch) {
        if let Some(count) = self.observers.get_mut(&from) {
            *count -= 1;
            if *count == 0 {
                self.observers.remove(&from);
            }
        }
    }

    /// Whether the writes of the next epoch are observed.
    pub(super) fn is_observed(&self) -> bool {
        !self.observers.is_empty()
    }

    /// An epoch without observers.
    pub(super) fn skip(&mut self, epoch: Epoch) {
        self.since = epoch;
        self.tables.clear();
    }

    /// An epoch has written to a table; without keys, or with more rows than are kept, these are not known.
    pub(super) fn add(
        &mut self,
        table: DataflowId,
        epoch: Epoch,
        changes: Option<Vec<TableChange>>,
    ) {
        let writes = self.tables.entry(table).or_default();
        let written = changes.map(|changes| EpochWrites::new(epoch, changes));
        match written.map(|written| (written.bytes(), written)) {
            Some((bytes, written)) if bytes <= MOST_BYTES => {
                writes.bytes += bytes;
                writes.epochs.push_back(Arc::new(written));
                while writes.bytes > MOST_BYTES
                    && let Some(oldest) = writes.pop()
                {
                    writes.unknown = oldest;
                }
            }
            _ => *writes = TableWrites { unknown: epoch, ..TableWrites::default() },
        }
    }

    /// A table has been dropped.
    pub(super) fn remove(&mut self, table: DataflowId) {
        self.tables.remove(&table);
    }

    /// Forgets writes that are no longer needed once all epochs up to `complete` are complete.
    pub(super) fn forget(&mut self, complete: Epoch) {
        let upto = self.observers.keys().next().map_or(complete, |first| complete.min(*first));
        self.since = self.since.max(upto);
        self.tables.retain(|_, writes| {
            while writes.epochs.front().is_some_and(|first| first.epoch <= upto) {
                writes.pop();
            }
            !writes.epochs.is_empty() || writes.unknown > upto
        });
    }

    /// The writes to a table after an epoch.
    pub(super) fn after(&self, table: DataflowId, epoch: Epoch) -> WritesAfter {
        if self.since > epoch {
            return WritesAfter::Unknown;
        }
        let Some(writes) = self.tables.get(&table) else {
            return WritesAfter::Known(Vec::new());
        };
        if writes.unknown > epoch {
            return WritesAfter::Unknown;
        }
        let first = writes.epochs.partition_point(|of| of.epoch <= epoch);
        WritesAfter::Known(writes.epochs.range(first..).cloned().collect())
    }
}

impl TableWrites {
    /// Forgets the oldest epoch whose keys are known. Returns which it was.
    fn pop(&mut self) -> Option<Epoch> {
        let oldest = self.epochs.pop_front()?;
        self.bytes -= oldest.bytes();
        Some(oldest.epoch)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};

    use super::*;

    const TABLE: DataflowId = DataflowId(3);

    fn rows(keys: &[i64], text: &str) -> RecordBatch {
        let column: ArrayRef = Arc::new(Int64Array::from(keys.to_vec()));
        let texts: ArrayRef = Arc::new(StringArray::from(vec![text; keys.len()]));
        RecordBatch::try_from_iter([("k", column), ("t", texts)]).unwrap()
    }

    fn key() -> KeyColumns {
        KeyColumns::new(&rows(&[], "").schema(), &[0]).unwrap()
    }

    fn inserts(keys: &[i64]) -> Option<Vec<TableChange>> {
        Some(vec![TableChange::insertions(rows(keys, "x"))])
    }

    /// The epochs after one that have written a key; `None` if that is not known.
    fn writers(writes: &Writes, epoch: Epoch, value: i64) -> Option<Vec<Epoch>> {
        let of = key();
        let encoded = of.of(rows(&[value], "").columns()).unwrap();
        let ranges = KeyRanges::of_keys([encoded.row(0).data()]);
        match writes.after(TABLE, epoch) {
            WritesAfter::Unknown => None,
            WritesAfter::Known(epochs) => {
                let touched = epochs.iter().filter(|epoch| epoch.touches(&of, &ranges).unwrap());
                Some(touched.map(|epoch| epoch.epoch).collect())
            }
        }
    }

    #[test]
    fn writes_are_known_from_the_epoch_on_that_somebody_observes() {
        let mut writes = Writes::default();
        writes.skip(1);
        writes.skip(2);
        writes.observe(2);
        writes.add(TABLE, 3, inserts(&[1, 2]));
        writes.add(TABLE, 4, Some(vec![TableChange::deletions(rows(&[2], "x"))]));
        assert_eq!(writers(&writes, 2, 2), Some(vec![3, 4]));
        assert_eq!(writers(&writes, 3, 2), Some(vec![4]));
        assert_eq!(writers(&writes, 2, 7), Some(vec![]));
        assert_eq!(writers(&writes, 1, 7), None);
        let WritesAfter::Known(epochs) = writes.after(TABLE, 2) else { panic!("they are known") };
        let of = key();
        let encoded = of.of(rows(&[2, 9], "").columns()).unwrap();
        let has = |epoch: usize, row: usize| epochs[epoch].has(&of, encoded.row(row).data());
        assert_eq!((has(0, 0), has(1, 0), has(0, 1)), (Ok(Some(true)), Ok(Some(false)), Ok(None)));
        // They stay while there are observers, and until they are complete.
        writes.forget(4);
        assert_eq!(writers(&writes, 2, 2), Some(vec![3, 4]));
        writes.end(2);
        writes.forget(3);
        assert_eq!((writers(&writes, 2, 2), writers(&writes, 3, 2)), (None, Some(vec![4])));
        writes.observe(4);
        assert_eq!(writers(&writes, 3, 2), Some(vec![4]));
        writes.add(DataflowId(4), 4, inserts(&[1]));
        writes.remove(DataflowId(4));
        assert_eq!(writes.tables.keys().collect::<Vec<_>>(), [&TABLE]);
        writes.end(4);
        writes.skip(5);
        assert_eq!((writers(&writes, 4, 2), writers(&writes, 5, 2)), (None, Some(vec![])));
    }

    #[test]
    fn of_very_many_rows_and_of_tables_without_keys_only_the_last_epoch_is_known() {
        let mut writes = Writes::default();
        writes.observe(0);
        writes.add(TABLE, 1, inserts(&[1]));
        writes.add(TABLE, 2, None);
        writes.add(TABLE, 3, inserts(&[1]));
        assert_eq!((writers(&writes, 1, 1), writers(&writes, 2, 1)), (None, Some(vec![3])));
        let large = rows(&[5; 1000], &"x".repeat(1000));
        for epoch in 4..20 {
            writes.add(TABLE, epoch, Some(vec![TableChange::insertions(large.clone())]));
        }
        assert_eq!(writers(&writes, 3, 1), None);
        assert_eq!(writers(&writes, 18, 5), Some(vec![19]));
        let bytes: u64 = writes.tables[&TABLE].epochs.iter().map(|epoch| epoch.bytes()).sum();
        assert!(bytes <= MOST_BYTES && bytes == writes.tables[&TABLE].bytes, "{bytes}");
    }
}
