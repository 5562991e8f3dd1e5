//! Changes that wait for a subscriber: counted, and in files if they take much memory.

use std::collections::{BTreeMap, VecDeque};

use alluvium_trace::Epoch;
use alluvium_trace::memory::{Charge, StateContext};

use crate::error::Result;
use crate::transaction::change::TableChange;
use crate::transaction::rows::Rows;

/// The changes of one epoch, from all workers.
pub(super) struct Delivery {
    pub(super) epoch: Epoch,
    pub(super) parts: Vec<TableChange>,
    /// Whether it is the first one, which is delivered even if it is empty.
    pub(super) first: bool,
}

/// The changes of one subscription that have not been taken.
pub(super) struct Waiting {
    /// Epochs that some worker has not passed yet.
    pending: BTreeMap<Epoch, Vec<TableChange>>,
    deliveries: VecDeque<Delivery>,
    /// The memory they take.
    bytes: usize,
    charge: Charge,
    context: StateContext,
}

impl Waiting {
    pub(super) fn new(context: &StateContext) -> Self {
        Self {
            pending: BTreeMap::new(),
            deliveries: VecDeque::new(),
            bytes: 0,
            charge: context.budget().charge(0),
            context: context.clone(),
        }
    }

    /// How many deliveries there are.
    pub(super) fn len(&self) -> usize {
        self.deliveries.len()
    }

    /// Adds changes of an epoch. Moves all that are in memory to a file if they take too much of it.
    pub(super) fn put(&mut self, epoch: Epoch, change: TableChange) -> Result<()> {
        self.bytes += change.rows().bytes();
        self.pending.entry(epoch).or_default().push(change);
        self.spill()?;
        self.charge.set(self.bytes);
        Ok(())
    }

    /// The epoch that comes next, if there are changes of it.
    pub(super) fn next(&self) -> Option<Epoch> {
        self.pending.keys().next().copied()
    }

    /// Makes the changes of an epoch a delivery; there may be none.
    pub(super) fn deliver(&mut self, epoch: Epoch, first: bool) {
        let parts = self.pending.remove(&epoch).unwrap_or_default();
        self.deliveries.push_back(Delivery { epoch, parts, first });
    }

    /// The epoch of the oldest delivery.
    pub(super) fn first(&self) -> Option<Epoch> {
        self.deliveries.front().map(|delivery| delivery.epoch)
    }

    /// Takes the oldest delivery, which is no longer counted.
    pub(super) fn take(&mut self) -> Option<Delivery> {
        let delivery = self.deliveries.pop_front()?;
        self.bytes -= delivery.parts.iter().map(|part| part.rows().bytes()).sum::<usize>();
        self.charge.set(self.bytes);
        Some(delivery)
    }

    /// Forgets the changes that no delivery has.
    pub(super) fn cut(&mut self) {
        let parts = std::mem::take(&mut self.pending).into_values().flatten();
        self.bytes -= parts.map(|part| part.rows().bytes()).sum::<usize>();
        self.charge.set(self.bytes);
    }

    /// Forgets all changes.
    pub(super) fn clear(&mut self) {
        self.cut();
        self.deliveries.clear();
        self.bytes = 0;
        self.charge.set(0);
    }

    fn spill(&mut self) -> Result<()> {
        let (budget, disk_full) = (self.context.budget(), self.context.disk_full());
        let Some(storage) = self.context.storage() else { return Ok(()) };
        if !budget.is_large_buffer(self.bytes) || self.bytes < budget.policy().smallest_file {
            return Ok(());
        }
        let delivered = self.deliveries.iter_mut().map(|delivery| &mut delivery.parts);
        let all: Vec<&mut Vec<TableChange>> = delivered.chain(self.pending.values_mut()).collect();
        let rows = all.iter().flat_map(|parts| parts.iter()).map(|part| part.rows().clone());
        let mut written = Rows::write(rows.collect(), storage, disk_full, budget)?.into_iter();
        for parts in all {
            let moved = parts.iter().zip(&mut written).flat_map(|(part, rows)| {
                rows.into_iter().map(|rows| part.with_rows(rows)).collect::<Vec<_>>()
            });
            *parts = moved.collect();
        }
        self.bytes = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use alluvium_storage::{MemoryStorage, Storage};
    use alluvium_trace::memory::MemoryBudget;
    use arrow::array::{ArrayRef, Int64Array, RecordBatch};

    use super::*;

    const MEMORY: usize = 1 << 20;

    fn change(epoch: i64) -> TableChange {
        let column: ArrayRef = Arc::new(Int64Array::from(vec![epoch; 1000]));
        let rows = RecordBatch::try_from_iter([("n", column)]).unwrap();
        TableChange::weighted(&rows, vec![epoch; 1000].into()).unwrap()
    }

    #[test]
    fn changes_that_nobody_takes_go_to_files_and_come_back_in_order() {
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        let budget = MemoryBudget::new(MEMORY);
        let context = StateContext::new(budget.clone(), Some(Arc::clone(&storage)));
        let mut waiting = Waiting::new(&context);
        for epoch in 1..=200 {
            waiting.put(epoch, change(epoch as i64)).unwrap();
            if epoch % 2 == 0 {
                waiting.deliver(epoch - 1, false);
                waiting.deliver(epoch, false);
            }
            assert!(budget.used() <= MEMORY / 8, "{} bytes after {epoch} epochs", budget.used());
        }
        assert!(!storage.list("").unwrap().is_empty());
        for epoch in 1..=200 {
            let delivery = waiting.take().unwrap();
            assert_eq!((delivery.epoch, delivery.parts.len()), (epoch, 1));
            for part in delivery.parts {
                let (rows, weights) = part.take().unwrap();
                assert_eq!((rows.num_rows(), rows.num_columns()), (1000, 1));
                assert_eq!(weights.unwrap()[999], epoch as i64);
            }
        }
        assert!(waiting.take().is_none());
        assert_eq!(budget.used(), 0);
        assert!(storage.list("").unwrap().is_empty(), "files go with their changes");
        waiting.put(201, change(201)).unwrap();
        assert!(budget.used() > 0);
        waiting.clear();
        assert_eq!((budget.used(), waiting.next()), (0, None));
    }
}
