//! Unsorted updates on their way into a batch.

use differential_dataflow::trace::Description;
use timely::progress::Antichain;

use crate::batch::Batch;
use crate::builder::BatchBuilder;
use crate::memory::{Charge, surroundings};
use crate::page::PageLimits;
use crate::prefix::{common, prefix};
use crate::time::PageTime;

/// Memory that an emptied buffer keeps for the rows to come, in bytes of each of its parts.
const RETAINED: usize = 1 << 20;

/// Updates in no order, waiting for the batch of their time.
///
/// The bytes of all rows lie in one arena; adding a row allocates nothing of its own.
pub struct RowBuffer<T> {
    arena: Vec<u8>,
    updates: Vec<Update<T>>,
    limits: PageLimits,
    /// Of what is allocated for the two.
    charge: Charge,
}

/// One update: its key and then its value lie in the arena from `start` on.
#[derive(Clone, Copy)]
struct Update<T> {
    start: usize,
    key: u32,
    val: u32,
    time: T,
    weight: i64,
}

impl<T> Update<T> {
    #[inline]
    fn key<'a>(&self, arena: &'a [u8]) -> &'a [u8] {
        &arena[self.start..self.start + self.key as usize]
    }

    #[inline]
    fn val<'a>(&self, arena: &'a [u8]) -> &'a [u8] {
        let start = self.start + self.key as usize;
        &arena[start..start + self.val as usize]
    }
}

impl<T: PageTime> Default for RowBuffer<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: PageTime> RowBuffer<T> {
    /// An empty buffer.
    pub fn new() -> Self {
        Self::with_limits(PageLimits::default())
    }

    /// An empty buffer that seals batches whose pages stay within these limits.
    pub fn with_limits(limits: PageLimits) -> Self {
        let charge = surroundings::current().budget.charge(0);
        RowBuffer { arena: Vec::new(), updates: Vec::new(), limits, charge }
    }

    /// Adds an update.
    ///
    /// # Panics
    ///
    /// If a key or a value is longer than four gigabytes.
    #[inline]
    pub fn push(&mut self, key: &[u8], val: &[u8], time: &T, weight: i64) {
        let allocated = (self.arena.capacity(), self.updates.capacity());
        self.updates.push(Update {
            start: self.arena.len(),
            key: length(key),
            val: length(val),
            time: *time,
            weight,
        });
        self.arena.extend_from_slice(key);
        self.arena.extend_from_slice(val);
        if allocated != (self.arena.capacity(), self.updates.capacity()) {
            self.count();
        }
    }

    /// Counts what is allocated.
    fn count(&mut self) {
        let updates = self.updates.capacity() * size_of::<Update<T>>();
        self.charge.set(self.arena.capacity() + updates);
    }

    /// The number of updates.
    pub fn len(&self) -> usize {
        self.updates.len()
    }

    /// Whether there are no updates.
    pub fn is_empty(&self) -> bool {
        self.updates.is_empty()
    }

    /// The bytes that the updates take.
    pub fn bytes(&self) -> usize {
        self.arena.len() + self.updates.len() * size_of::<Update<T>>()
    }

    /// The lower envelope of the times of all updates.
    pub fn frontier(&self) -> Antichain<T> {
        self.updates.iter().map(|update| update.time).collect()
    }

    /// Takes out all updates whose time is not at or beyond the upper frontier of `description`, and makes
    /// them a batch of that description: sorted, equal updates added up, and without those that come to zero.
    ///
    /// # Panics
    ///
    /// If the weights of one row at one time add up to more than an `i64` holds.
    pub fn seal(&mut self, description: Description<T>) -> Batch<T> {
        let upper = description.upper();
        let mut ready: Vec<(u64, usize)> = Vec::with_capacity(self.updates.len());
        let numbered = self.updates.iter().enumerate();
        ready.extend(
            numbered.filter_map(|(index, update)| {
                (!upper.less_equal(&update.time)).then_some((0, index))
            }),
        );
        self.sort(&mut ready);
        let mut builder = BatchBuilder::with_limits(self.limits);
        for (_, index) in &ready {
            let update = &self.updates[*index];
            let (key, val) = (update.key(&self.arena), update.val(&self.arena));
            builder.push(key, val, &update.time, update.weight);
        }
        if ready.len() == self.updates.len() {
            self.arena.clear();
            self.updates.clear();
        } else if !ready.is_empty() {
            self.keep_from(description.upper());
        }
        self.arena.shrink_to(RETAINED);
        self.updates.shrink_to(RETAINED / size_of::<Update<T>>());
        self.count();
        builder.finish(description)
    }

    /// Sorts these updates, given by number, by key, value and time; writes a prefix of its key beside each.
    ///
    /// The prefix starts behind the bytes that all keys have in common, so that eight bytes tell most keys
    /// apart without a look into the arena.
    fn sort(&self, ready: &mut [(u64, usize)]) {
        let Some((_, first)) = ready.first() else {
            return;
        };
        let first = self.updates[*first].key(&self.arena);
        let mut skip = first.len();
        for (_, index) in ready.iter() {
            skip = common(&first[..skip], self.updates[*index].key(&self.arena));
        }
        for (head, index) in ready.iter_mut() {
            *head = prefix(&self.updates[*index].key(&self.arena)[skip..]);
        }
        ready.sort_unstable_by(|a, b| {
            a.0.cmp(&b.0).then_with(|| {
                let (a, b) = (&self.updates[a.1], &self.updates[b.1]);
                let keys = a.key(&self.arena)[skip..].cmp(&b.key(&self.arena)[skip..]);
                keys.then_with(|| a.val(&self.arena).cmp(b.val(&self.arena)))
                    .then_with(|| a.time.cmp(&b.time))
            })
        });
    }

    /// Keeps the updates at or beyond `upper`, and moves their bytes together.
    fn keep_from(&mut self, upper: &Antichain<T>) {
        let mut end = 0;
        let arena = &mut self.arena;
        self.updates.retain_mut(|update| {
            let kept = upper.less_equal(&update.time);
            if kept {
                let length = update.key as usize + update.val as usize;
                arena.copy_within(update.start..update.start + length, end);
                update.start = end;
                end += length;
            }
            kept
        });
        arena.truncate(end);
    }
}

#[inline]
fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).expect("a key or a value is longer than four gigabytes")
}
