//! The deliveries of a feed that some subscriber has not taken: each is kept once, counted, and in a file if they take much
//! memory.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use alluvium_trace::Epoch;
use alluvium_trace::memory::{Charge, StateContext};
use parking_lot::Mutex;

use super::consolidate::Part;
use crate::changes::TableChange;
use crate::changes::rows::Rows;
use crate::error::Result;

/// The changes of one epoch, from all workers.
pub(super) struct Delivery {
    pub(super) epoch: Epoch,
    /// Whether they are all rows of the relation. Such a delivery is made even if it is empty.
    pub(super) is_snapshot: bool,
    pub(super) parts: Mutex<Parts>,
}

/// The changes of a delivery.
pub(super) struct Parts {
    pub(super) changes: Vec<TableChange>,
    /// Whether the same row of several workers is one row already.
    pub(super) is_consolidated: bool,
    /// The consolidated rows, once a subscriber has taken them, while they are in memory.
    pub(super) whole: Option<Part>,
}

impl Parts {
    /// Changes of different workers.
    pub(super) fn new(changes: Vec<TableChange>) -> Self {
        Self { is_consolidated: changes.len() < 2, changes, whole: None }
    }
}

/// The changes that a subscriber has not taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Lag {
    pub(super) epochs: u64,
    /// The bytes of the rows, also of those that are in files.
    pub(super) bytes: u64,
}

impl Lag {
    /// Whether another one is more than this.
    pub(super) fn is_exceeded_by(self, lag: Self) -> bool {
        lag.epochs > self.epochs || lag.bytes > self.bytes
    }
}

/// The place of a subscriber: how many deliveries there have been before the one it takes next.
pub(super) type Place = u64;

/// Deliveries in order, and the changes of epochs that are none yet.
pub(super) struct Queue {
    /// Epochs that some worker has not passed yet.
    pending: BTreeMap<Epoch, Pending>,
    deliveries: VecDeque<Queued>,
    /// How many deliveries there were before those.
    gone: Place,
    /// The bytes of all deliveries that were ever made.
    made: u64,
    /// How many subscribers will take the next delivery.
    readers: usize,
    /// The memory that the changes take.
    bytes: usize,
    charge: Charge,
    context: StateContext,
}

/// The changes of an epoch that some worker has not passed yet.
#[derive(Default)]
struct Pending {
    changes: Vec<TableChange>,
    /// Their bytes, in memory and in files.
    size: u64,
}

struct Queued {
    delivery: Arc<Delivery>,
    /// How many subscribers have not taken it.
    readers: usize,
    /// The bytes of all deliveries before it.
    before: u64,
    /// How many rows it has.
    rows: u64,
    /// When it was made.
    since: Instant,
    /// How much memory it takes.
    bytes: usize,
}

impl Queue {
    pub(super) fn new(context: &StateContext) -> Self {
        Self {
            pending: BTreeMap::new(),
            deliveries: VecDeque::new(),
            gone: 0,
            made: 0,
            readers: 0,
            bytes: 0,
            charge: context.budget().charge(0),
            context: context.clone(),
        }
    }

    /// Adds changes of an epoch. Moves all that are in memory to a file if they take too much of it.
    pub(super) fn put(&mut self, epoch: Epoch, change: TableChange) -> Result<()> {
        let bytes = change.rows().bytes();
        self.bytes += bytes;
        let pending = self.pending.entry(epoch).or_default();
        pending.size += bytes as u64;
        pending.changes.push(change);
        self.spill()?;
        self.charge.set(self.bytes);
        Ok(())
    }

    /// The epoch that comes next, if there are changes of it.
    pub(super) fn pending(&self) -> Option<Epoch> {
        self.pending.keys().next().copied()
    }

    /// Makes the changes of an epoch a delivery; there may be none.
    pub(super) fn deliver(&mut self, epoch: Epoch, is_snapshot: bool) {
        let Pending { changes, size } = self.pending.remove(&epoch).unwrap_or_default();
        let bytes = bytes_of(&changes);
        let rows = changes.iter().map(|change| change.rows().len() as u64).sum();
        let parts = Mutex::new(Parts::new(changes));
        let delivery = Arc::new(Delivery { epoch, is_snapshot, parts });
        let (readers, before, since) = (self.readers, self.made, Instant::now());
        self.made += size;
        self.deliveries.push_back(Queued { delivery, readers, before, rows, since, bytes });
    }

    /// A subscriber takes all deliveries that are there, and later ones.
    pub(super) fn enter(&mut self) -> Place {
        self.readers += 1;
        self.deliveries.iter_mut().for_each(|queued| queued.readers += 1);
        self.gone
    }

    /// A subscriber takes no more.
    pub(super) fn leave(&mut self, place: Place) {
        self.readers -= 1;
        let taken = (place - self.gone) as usize;
        self.deliveries.iter_mut().skip(taken).for_each(|queued| queued.readers -= 1);
    }

    /// The delivery at a place.
    pub(super) fn peek(&self, place: Place) -> Option<&Delivery> {
        let queued = self.deliveries.get((place - self.gone) as usize);
        queued.map(|queued| &*queued.delivery)
    }

    /// The first delivery at or after a place that is of a later epoch than the subscriber has.
    pub(super) fn peek_behind(&self, place: Place, has: Option<Epoch>) -> Option<&Delivery> {
        let later = self.deliveries.iter().skip((place - self.gone) as usize);
        let mut later = later.map(|queued| &*queued.delivery);
        later.find(|delivery| has.is_none_or(|has| delivery.epoch > has))
    }

    /// Takes the delivery at the place of a subscriber, which moves past it.
    pub(super) fn take(&mut self, place: &mut Place) -> Option<Arc<Delivery>> {
        let queued = self.deliveries.get_mut((*place - self.gone) as usize)?;
        queued.readers -= 1;
        *place += 1;
        Some(queued.delivery.clone())
    }

    /// Forgets deliveries up to an epoch that no subscriber will take.
    pub(super) fn trim(&mut self, epoch: Epoch) {
        while let Some(first) = self.deliveries.front()
            && first.readers == 0
            && first.delivery.epoch <= epoch
        {
            self.bytes -= first.bytes;
            self.gone += 1;
            self.deliveries.pop_front();
        }
        self.charge.set(self.bytes);
    }

    /// How many deliveries are between a place and the end.
    pub(super) fn lag(&self, place: Place) -> Lag {
        let taken = place - self.gone;
        let bytes = self.deliveries.get(taken as usize).map_or(0, |next| self.made - next.before);
        Lag { epochs: self.deliveries.len() as u64 - taken, bytes }
    }

    /// How many rows are between a place and the end, and when the first of their deliveries was made.
    pub(super) fn rows_from(&self, place: Place) -> (u64, Option<Instant>) {
        let mut queued = self.deliveries.iter().skip((place - self.gone) as usize).peekable();
        let since = queued.peek().map(|first| first.since);
        (queued.map(|queued| queued.rows).sum(), since)
    }

    /// How far a subscriber is behind that has taken nothing of what is there.
    pub(super) fn longest_lag(&self) -> Lag {
        self.lag(self.gone)
    }

    /// Forgets the changes that no delivery has.
    pub(super) fn cut(&mut self) {
        let pending = std::mem::take(&mut self.pending).into_values();
        let changes = pending.flat_map(|pending| pending.changes);
        self.bytes -= changes.map(|change| change.rows().bytes()).sum::<usize>();
        self.charge.set(self.bytes);
    }

    /// Forgets all changes; there are no subscribers.
    pub(super) fn clear(&mut self) {
        self.pending.clear();
        self.gone += self.deliveries.len() as Place;
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
        // Deliveries that are being read, mostly the first of many, stay in memory.
        let mut delivered = Vec::with_capacity(self.deliveries.len());
        for queued in &mut self.deliveries {
            if let Some(parts) = queued.delivery.parts.try_lock() {
                delivered.push((parts, &mut queued.bytes));
            }
        }
        let changes = delivered.iter_mut().map(|(parts, _)| &mut parts.changes);
        let pending = self.pending.values_mut().map(|pending| &mut pending.changes);
        let all: Vec<&mut Vec<TableChange>> = changes.chain(pending).collect();
        let rows = all.iter().flat_map(|changes| changes.iter());
        let rows = rows.map(|change| change.rows().clone()).collect();
        let mut written = Rows::write(rows, storage, disk_full, budget)?.into_iter();
        for changes in all {
            let moved = changes.iter().zip(&mut written).flat_map(|(change, rows)| {
                rows.into_iter().map(|rows| change.with_rows(rows)).collect::<Vec<_>>()
            });
            *changes = moved.collect();
        }
        for (mut parts, bytes) in delivered {
            (parts.whole, *bytes) = (None, 0);
        }
        self.bytes = self.deliveries.iter().map(|queued| queued.bytes).sum();
        Ok(())
    }
}

/// The memory that changes take.
fn bytes_of(changes: &[TableChange]) -> usize {
    changes.iter().map(|change| change.rows().bytes()).sum()
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

    fn take(queue: &mut Queue, place: &mut Place) -> Option<(Epoch, usize)> {
        let delivery = queue.take(place)?;
        let changes = delivery.parts.lock().changes.clone();
        for change in &changes {
            let (rows, weights) = change.clone().take().unwrap();
            assert_eq!((rows.num_rows(), rows.num_columns()), (1000, 1));
            assert_eq!(weights.unwrap()[999], delivery.epoch as i64);
        }
        Some((delivery.epoch, changes.len()))
    }

    #[test]
    fn changes_that_nobody_takes_go_to_files_and_come_back_in_order() {
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        let budget = MemoryBudget::new(MEMORY);
        let context = StateContext::new(budget.clone(), Some(Arc::clone(&storage)));
        let mut queue = Queue::new(&context);
        let mut place = queue.enter();
        for epoch in 1..=200 {
            queue.put(epoch, change(epoch as i64)).unwrap();
            if epoch % 2 == 0 {
                queue.deliver(epoch - 1, false);
                queue.deliver(epoch, false);
            }
            assert!(budget.used() <= MEMORY / 8, "{} bytes after {epoch} epochs", budget.used());
        }
        assert!(!storage.list("").unwrap().is_empty());
        let lag = queue.lag(place);
        assert!(lag.epochs == 200 && lag.bytes >= 200 * 16_000, "files count too: {lag:?}");
        for epoch in 1..=200 {
            assert_eq!(take(&mut queue, &mut place), Some((epoch, 1)));
            queue.trim(epoch);
        }
        assert_eq!(take(&mut queue, &mut place), None);
        assert_eq!((budget.used(), queue.lag(place)), (0, Lag::default()));
        assert!(storage.list("").unwrap().is_empty(), "files go with their changes");
        queue.put(201, change(201)).unwrap();
        assert!(budget.used() > 0);
        queue.leave(place);
        queue.clear();
        assert_eq!((budget.used(), queue.pending()), (0, None));
    }

    #[test]
    fn a_delivery_is_kept_once_until_the_last_subscriber_has_taken_it() {
        let budget = MemoryBudget::unlimited();
        let mut queue = Queue::new(&StateContext::new(budget.clone(), None));
        let deliver = |queue: &mut Queue, epoch| {
            queue.put(epoch, change(epoch as i64)).unwrap();
            queue.deliver(epoch, false);
        };
        let mut places = [queue.enter(), queue.enter()];
        deliver(&mut queue, 1);
        let one = budget.used();
        deliver(&mut queue, 2);
        assert_eq!(budget.used(), 2 * one, "two subscribers do not count twice");
        assert_eq!(take(&mut queue, &mut places[0]), Some((1, 1)));
        queue.trim(2);
        assert_eq!((budget.used(), queue.lag(places[1]).epochs), (2 * one, 2));
        let mut late = queue.enter();
        queue.leave(places[1]);
        assert_eq!(take(&mut queue, &mut late), Some((1, 1)));
        queue.trim(2);
        assert_eq!((budget.used(), queue.lag(late).epochs), (one, 1));
        assert_eq!(take(&mut queue, &mut places[0]), Some((2, 1)));
        assert_eq!(take(&mut queue, &mut late), Some((2, 1)));
        queue.trim(1);
        assert_eq!(budget.used(), one, "epochs that are not complete stay for who comes now");
        let mut last = queue.enter();
        assert_eq!(take(&mut queue, &mut last), Some((2, 1)));
        queue.trim(2);
        assert_eq!(budget.used(), 0);
    }
}
