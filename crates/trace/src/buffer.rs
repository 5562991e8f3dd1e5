//! Unsorted updates on their way into a batch.
//!
//! This is an external merge sort (Knuth, The Art of Computer Programming, volume 3, section 5.4). A buffer that has
//! grown large sorts its updates into a *run*, a batch that goes to a file if memory is short, and starts over. To seal
//! a batch is to merge the runs and the rest. A merge has a page of each run in memory, so some runs are merged earlier
//! if there are too many for that.

use differential_dataflow::trace::Description;
use timely::progress::Antichain;

use crate::batch::Batch;
use crate::builder::BatchBuilder;
use crate::cursors::Cursors;
use crate::file::FileScan;
use crate::memory::{BufferCharge, StateContext};
use crate::merge::merge;
use crate::page::PageLimits;
use crate::prefix::Deciding;
use crate::time::PageTime;

/// The fewest pages of a run.
const LEAST_RUN_PAGES: usize = 4;

/// The fewest updates that are sorted digit by digit; fewer are compared.
const LEAST_RADIX: usize = 256;

/// Updates in any order, which wait for the batch of their time.
///
/// The bytes of all rows are in one arena: adding a row allocates nothing of its own.
pub struct RowBuffer<T> {
    arena: Vec<u8>,
    updates: Vec<Update<T>>,
    /// The used part of both when the buffer was emptied before.
    used_before: (usize, usize),
    /// The updates that are sorted already.
    runs: Vec<Run<T>>,
    limits: PageLimits,
    context: StateContext,
    /// Counts the allocations of the arena and the updates.
    charge: BufferCharge,
}

/// Updates that were sorted before their batch was due.
struct Run<T> {
    batch: Batch<T>,
    /// All of their times, ascending.
    times: Vec<T>,
    /// How many merges the updates have been through.
    merges: u32,
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

    /// The key and then the value.
    #[inline]
    fn row<'a>(&self, arena: &'a [u8]) -> &'a [u8] {
        &arena[self.start..self.start + self.key as usize + self.val as usize]
    }

    #[inline]
    fn val<'a>(&self, arena: &'a [u8]) -> &'a [u8] {
        let start = self.start + self.key as usize;
        &arena[start..start + self.val as usize]
    }
}

impl<T: PageTime> RowBuffer<T> {
    /// An empty buffer.
    pub fn new(context: &StateContext) -> Self {
        Self::with_limits(PageLimits::default(), context)
    }

    /// An empty buffer that seals batches whose pages stay within these limits.
    pub fn with_limits(limits: PageLimits, context: &StateContext) -> Self {
        let charge = context.budget().buffer();
        let context = context.clone();
        let (arena, updates, runs) = (Vec::new(), Vec::new(), Vec::new());
        RowBuffer { arena, updates, used_before: (0, 0), runs, limits, context, charge }
    }

    /// Adds an update.
    ///
    /// # Panics
    ///
    /// If a key or a value is longer than four gigabytes.
    #[inline]
    pub fn push(&mut self, key: &[u8], val: &[u8], time: &T, weight: i64) {
        let more = key.len() + val.len();
        if self.arena.capacity() - self.arena.len() < more
            || self.updates.capacity() == self.updates.len()
        {
            self.reserve(more);
        }
        self.updates.push(Update {
            start: self.arena.len(),
            key: length(key),
            val: length(val),
            time: *time,
            weight,
        });
        self.arena.extend_from_slice(key);
        self.arena.extend_from_slice(val);
    }

    /// Reserves memory for an update of `bytes` bytes. If the buffer is large already, first sorts a run.
    #[cold]
    fn reserve(&mut self, bytes: usize) {
        if self.should_run() {
            let run = self.run();
            self.runs.push(run);
            self.merge_runs();
        }
        self.arena.reserve(bytes);
        self.updates.reserve(1);
        self.count();
    }

    /// Whether the buffer is large enough to be sorted into a run.
    fn should_run(&self) -> bool {
        let (budget, storage) = (self.context.budget(), self.context.storage());
        let (bytes, least) = (self.bytes(), LEAST_RUN_PAGES.saturating_mul(self.limits.bytes));
        storage.is_some() && bytes >= least && budget.is_large_buffer(bytes)
    }

    /// Sorts the buffered updates into a run.
    fn run(&mut self) -> Run<T> {
        let times = ascending(self.updates.iter().map(|update| update.time));
        let (batch, _) = self.sorted(|_| true, all_times());
        let used = self.used();
        self.arena.clear();
        self.updates.clear();
        if self.context.budget().is_over() {
            self.shrink(used);
        }
        Run { batch, times, merges: 0 }
    }

    /// Merges the last runs if as many as may be scanned together have been through equally many merges. So no update
    /// is merged more often than the logarithm of the number of runs.
    fn merge_runs(&mut self) {
        let most = FileScan::most_together(self.context.budget(), self.limits.bytes);
        while let Some(merges) = self.runs.last().map(|run| run.merges) {
            let alike = self.runs.iter().rev().take_while(|run| run.merges == merges).count();
            if alike < most {
                break;
            }
            let runs = self.runs.split_off(self.runs.len() - alike);
            let times = ascending(runs.iter().flat_map(|run| &run.times).copied());
            let sources: Vec<_> = runs.into_iter().map(|run| run.batch).collect();
            let batch = merge(&sources, Antichain::new().borrow(), all_times(), &self.context);
            self.runs.push(Run { batch, times, merges: merges + 1 });
        }
    }

    /// The bytes of the arena and of the updates.
    fn used(&self) -> (usize, usize) {
        (self.arena.len(), size_of_val(&*self.updates))
    }

    /// Releases allocations, except for what the policy retains of the bytes that were `used` this time and the time
    /// before: what a single load has filled is released with it, not when the next transaction waits for it.
    fn shrink(&mut self, used: (usize, usize)) {
        let budget = self.context.budget();
        let before = std::mem::replace(&mut self.used_before, used);
        self.arena.shrink_to(budget.retained(used.0.min(before.0)));
        self.updates.shrink_to(budget.retained(used.1.min(before.1)) / size_of::<Update<T>>());
        self.count();
    }

    /// Counts the allocations.
    fn count(&mut self) {
        let updates = self.updates.capacity() * size_of::<Update<T>>();
        self.charge.set(self.arena.capacity() + updates);
    }

    /// The context that its batches are made in.
    pub(crate) fn context(&self) -> &StateContext {
        &self.context
    }

    /// All updates, in a buffer of this context. This one is empty then.
    pub(crate) fn take(&mut self, context: StateContext) -> Self {
        let empty = Self::with_limits(self.limits, &self.context);
        let mut taken = std::mem::replace(self, empty);
        taken.context = context;
        taken
    }

    /// Adds all updates of another buffer.
    pub fn absorb(&mut self, mut other: Self) {
        if self.is_empty() {
            std::mem::swap(&mut other.context, &mut self.context);
            std::mem::swap(self, &mut other);
            std::mem::swap(&mut other.context, &mut self.context);
            return;
        }
        for update in &other.updates {
            let (key, val) = (update.key(&other.arena), update.val(&other.arena));
            self.push(key, val, &update.time, update.weight);
        }
        self.runs.append(&mut other.runs);
    }

    /// The number of updates. Equal ones may have been added up.
    pub fn len(&self) -> usize {
        self.updates.len() + self.runs.iter().map(|run| run.batch.len()).sum::<usize>()
    }

    /// Whether there are no updates.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of the updates that are not sorted yet.
    pub fn bytes(&self) -> usize {
        self.arena.len() + self.updates.len() * size_of::<Update<T>>()
    }

    /// The lower envelope of the times of all updates.
    pub fn frontier(&self) -> Antichain<T> {
        let sorted = self.runs.iter().flat_map(|run| &run.times).copied();
        self.updates.iter().map(|update| update.time).chain(sorted).collect()
    }

    /// Removes all updates whose times are not at or beyond the upper frontier of `description`, and returns them as a
    /// batch of that description: sorted, with equal updates added up, and without sums of zero.
    ///
    /// # Panics
    ///
    /// If the weights of one row at one time add up to more than an `i64` holds.
    pub fn seal(&mut self, description: Description<T>) -> Batch<T> {
        let upper = description.upper().clone();
        let is_due = |time: &T| !upper.less_equal(time);
        let used = self.used();
        let is_all = self.runs.is_empty();
        let (batch, due) =
            self.sorted(is_due, if is_all { description.clone() } else { all_times() });
        if due == self.updates.len() {
            self.arena.clear();
            self.updates.clear();
        } else if due > 0 {
            self.keep_from(&upper);
        }
        self.shrink(used);
        if is_all { batch } else { self.merged(batch, is_due, description) }
    }

    /// As [`RowBuffer::seal`], of all updates, whatever their times are.
    pub fn seal_all(&mut self) -> Batch<T> {
        self.seal(all_times())
    }

    /// The updates at the times that are `ready`, as a batch of this description, and how many they were. They stay in
    /// the buffer.
    fn sorted(&self, ready: impl Fn(&T) -> bool, description: Description<T>) -> (Batch<T>, usize) {
        let mut order: Vec<(u64, usize)> = Vec::with_capacity(self.updates.len());
        let numbered = self.updates.iter().enumerate();
        let _sorting = self.context.budget().charge(order.capacity() * size_of::<(u64, usize)>());
        order.extend(
            numbered.filter_map(|(index, update)| ready(&update.time).then_some((0, index))),
        );
        self.sort(&mut order);
        let mut builder = BatchBuilder::with_limits(self.limits, &self.context);
        for (_, index) in &order {
            let update = &self.updates[*index];
            let (key, val) = (update.key(&self.arena), update.val(&self.arena));
            builder.push(key, val, &update.time, update.weight);
        }
        (builder.finish(description), order.len())
    }

    /// The updates of `rest` and those of the runs that are due, as a batch of this description. Updates of these runs
    /// that are not due become one new run.
    fn merged(
        &mut self,
        rest: Batch<T>,
        is_due: impl Fn(&T) -> bool,
        description: Description<T>,
    ) -> Batch<T> {
        let mut sources = vec![rest];
        let waits = |run: &Run<T>| !run.times.iter().any(&is_due);
        let (mut waiting, due): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.runs).into_iter().partition(waits);
        let times = due.iter().flat_map(|run| &run.times).copied();
        let later = ascending(times.filter(|time| !is_due(time)));
        sources.extend(due.into_iter().map(|run| run.batch));
        let batch = if later.is_empty() {
            // With an empty frontier times stay as they are.
            merge(&sources, Antichain::new().borrow(), description, &self.context)
        } else {
            let mut now = BatchBuilder::with_limits(self.limits, &self.context);
            let mut then = BatchBuilder::with_limits(self.limits, &self.context);
            let mut cursors = Cursors::scan(sources);
            let mut updates = Vec::new();
            while let Some(key) = cursors.key() {
                let Some(val) = cursors.val() else {
                    cursors.step_key();
                    continue;
                };
                updates.clear();
                cursors.updates(|time, weight| updates.push((time, weight)));
                updates.sort_unstable_by_key(|update| update.0);
                for &(time, weight) in &updates {
                    let builder = if is_due(&time) { &mut now } else { &mut then };
                    builder.push(key, val, &time, weight);
                }
                cursors.step_val();
            }
            waiting.push(Run { batch: then.finish(all_times()), times: later, merges: 0 });
            now.finish(description)
        };
        self.runs = waiting;
        batch
    }

    /// Sorts these updates, given by number, by key, value and time, and writes [what decides](Deciding) most comparisons beside
    /// each, without an access to the arena.
    fn sort(&self, ready: &mut [(u64, usize)]) {
        let Some((_, first)) = ready.first() else {
            return;
        };
        let first = &self.updates[*first];
        let updates = || ready.iter().map(|(_, index)| &self.updates[*index]);
        // If all keys are equally long, rows sort as their bytes do, in which the value follows the key.
        let are_whole = updates().all(|update| update.key == first.key);
        let bytes = |update: &Update<T>| match are_whole {
            true => update.row(&self.arena),
            false => update.key(&self.arena),
        };
        let deciding = Deciding::of(bytes(first), || updates().map(&bytes));
        let skip = deciding.skip;
        for (head, index) in ready.iter_mut() {
            *head = deciding.head(bytes(&self.updates[*index]));
        }
        let order = |a: &(u64, usize), b: &(u64, usize)| {
            let (a, b) = (&self.updates[a.1], &self.updates[b.1]);
            let order = bytes(a)[skip..].cmp(&bytes(b)[skip..]);
            let order = match are_whole {
                true => order,
                false => order.then_with(|| a.val(&self.arena).cmp(b.val(&self.arena))),
            };
            order.then_with(|| a.time.cmp(&b.time))
        };
        if ready.len() < LEAST_RADIX {
            ready.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| order(a, b)));
            return;
        }
        let _scratch = self.context.budget().charge(size_of_val(ready));
        radsort::sort_by_key(ready, |(head, _)| *head);
        for alike in ready.chunk_by_mut(|a, b| a.0 == b.0).filter(|alike| alike.len() > 1) {
            alike.sort_unstable_by(order);
        }
    }

    /// Keeps the updates at or beyond `upper`, and compacts the arena.
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

/// These times, each once, in ascending order.
fn ascending<T: PageTime>(times: impl Iterator<Item = T>) -> Vec<T> {
    let mut ascending: Vec<T> = Vec::new();
    for time in times {
        if ascending.last() != Some(&time) {
            ascending.push(time);
        }
    }
    ascending.sort_unstable();
    ascending.dedup();
    // There are as many lists as runs, and they are not counted.
    ascending.shrink_to_fit();
    ascending
}

/// A description for updates of any time.
fn all_times<T: PageTime>() -> Description<T> {
    let minimum = Antichain::from_elem(T::minimum());
    Description::new(minimum.clone(), Antichain::new(), minimum)
}

#[inline]
fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).expect("a key or a value is longer than four gigabytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The updates of a batch, in its order.
    fn updates(batch: &Batch<u64>) -> Vec<(Vec<u8>, Vec<u8>, u64, i64)> {
        let mut cursor = batch.scan();
        let mut updates = Vec::new();
        while let Some(key) = cursor.key().map(<[u8]>::to_vec) {
            while let Some(val) = cursor.val().map(<[u8]>::to_vec) {
                let row = cursor.updates();
                updates.extend(row.map(|(time, weight)| (key.clone(), val.clone(), time, weight)));
                cursor.step_val();
            }
            cursor.step_key();
        }
        updates
    }

    #[test]
    fn few_and_many_updates_are_sorted_whatever_their_bytes() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut lengths = fastrand::Rng::with_seed(8);
        for round in 0..200 {
            let (count, letters) = (1 + random.usize(..3 * LEAST_RADIX), 1 + random.u8(..4));
            // Long common beginnings, and keys of one length or of several.
            let start = vec![9; random.usize(..50)];
            let (is_even, most) = (round % 2 == 0, random.usize(1..12));
            let mut buffer = RowBuffer::new(&StateContext::default());
            let mut expected = std::collections::BTreeMap::new();
            for _ in 0..count {
                let mut bytes = |length: usize| -> Vec<u8> {
                    (0..length).map(|_| random.u8(..letters) * 85).collect()
                };
                let mut key = start.clone();
                let length = if is_even { most } else { lengths.usize(..=most) };
                key.extend(bytes(length));
                let val = bytes(lengths.usize(..4));
                let (time, weight) = (random.u64(..3), [1, 1, -1][random.usize(..3)]);
                buffer.push(&key, &val, &time, weight);
                *expected.entry((key, val, time)).or_insert(0) += weight;
            }
            let at = |time| Antichain::from_elem(time);
            let batch = buffer.seal(Description::new(at(0), at(3), at(0)));
            let expected = expected.into_iter().filter(|(_, weight)| *weight != 0);
            let expected: Vec<_> =
                expected.map(|((key, val, time), weight)| (key, val, time, weight)).collect();
            assert_eq!(updates(&batch), expected, "{round}");
        }
    }

    #[test]
    fn a_list_of_times_takes_no_more_than_its_times() {
        let times = ascending((0..10_000_u64).map(|number| 3 - number / 1_000 % 4));
        assert_eq!(times, [0, 1, 2, 3]);
        assert!(times.capacity() < 10);
    }
}
