//! The reference model, and strategies for small inputs whose rows and times meet often.

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium_storage::{Compaction, MemoryStorage, Storage};
use alluvium_trace::memory::{MemoryBudget, StateContext};
use alluvium_trace::page::PageLimits;
use alluvium_trace::{Batch, BatchBuilder, Cursors, Merging, Pace, PageTime, Schedule};
use differential_dataflow::trace::Description;
use proptest::prelude::*;
use timely::order::Product;
use timely::progress::Antichain;

use crate::erratic::Erratic;
use crate::mapped::MappedMemory;

pub type Row = (Vec<u8>, Vec<u8>);
pub type Update<T> = (Vec<u8>, Vec<u8>, T, i64);

/// The sum of all updates by key, value and time, without zeros.
pub type Reference<T> = BTreeMap<(Vec<u8>, Vec<u8>, T), i64>;

/// A time of the tests, from a small range so that times meet.
pub trait TestTime: PageTime {
    const RANGE: u64;
    /// The times of the tests, numbered so that a larger number is never an earlier time.
    fn time(number: u64) -> Self;
    /// The frontier that has exactly the times of all smaller numbers before it.
    fn until(number: u64) -> Antichain<Self>;
}

impl TestTime for u64 {
    const RANGE: u64 = 8;
    fn time(number: u64) -> Self {
        number
    }
    fn until(number: u64) -> Antichain<Self> {
        Antichain::from_elem(number)
    }
}

impl TestTime for Product<u64, u64> {
    const RANGE: u64 = 16;
    fn time(number: u64) -> Self {
        Product::new(number / 4, number % 4)
    }
    fn until(number: u64) -> Antichain<Self> {
        Antichain::from(vec![Self::time(number), Product::new(number / 4 + 1, 0)])
    }
}

/// All times of the tests, and some beyond.
pub fn times<T: TestTime>() -> impl Iterator<Item = T> {
    (0..T::RANGE + 4).map(T::time)
}

pub fn any_time<T: TestTime>() -> impl Strategy<Value = T> {
    (0..T::RANGE).prop_map(T::time)
}

pub fn any_frontier<T: TestTime>() -> impl Strategy<Value = Antichain<T>> {
    prop::collection::vec(any_time::<T>(), 1..3).prop_map(Antichain::from)
}

/// Byte strings that are often equal: empty, with common prefixes, or longer than a small page.
pub fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        1 => Just(vec![]),
        4 => (0u8..4).prop_map(|last| vec![last]),
        4 => (0u8..6).prop_map(|last| [b"a shared prefix".as_slice(), &[last]].concat()),
        1 => (0u8..2, 0usize..3).prop_map(|(last, zeros)| {
            [[7; 8].as_slice(), &vec![0; zeros], &[last]].concat()
        }),
        1 => (0u8..2).prop_map(|last| [vec![b'x'; 300], vec![last]].concat()),
    ]
}

pub fn any_weight() -> impl Strategy<Value = i64> {
    prop_oneof![4 => Just(1), 3 => Just(-1), 1 => -3..4i64]
}

pub fn any_update<T: TestTime>() -> impl Strategy<Value = Update<T>> {
    (any_bytes(), any_bytes(), any_time::<T>(), any_weight())
}

pub fn any_updates<T: TestTime>(most: usize) -> impl Strategy<Value = Vec<Update<T>>> {
    prop::collection::vec(any_update::<T>(), 0..most)
}

/// Where a test builds its batches: the context, and the limits of pages.
#[derive(Clone, Debug)]
pub struct World {
    pub context: StateContext,
    pub limits: PageLimits,
    /// The compaction that does the merges of its spines, if they do not do so themselves.
    pub erratic: Option<Arc<Erratic>>,
}

impl World {
    /// In memory, with pages within these limits.
    pub fn in_memory(limits: PageLimits) -> Self {
        World { context: StateContext::default(), limits, erratic: None }
    }

    /// In files, with pages within these limits.
    pub fn in_files(limits: PageLimits) -> Self {
        World { context: with_memory(1), limits, erratic: None }
    }
}

/// Pages of one update, of more than a test has, and sizes in between; batches in memory, in files, mapped or not, or in
/// both places; merges at different times.
pub fn any_world() -> impl Strategy<Value = World> {
    (
        prop_oneof![Just(1usize), Just(120), Just(256), Just(16 << 10)],
        prop_oneof![Just(1usize), Just(2), Just(3), Just(65_536)],
        prop_oneof![Just(usize::MAX), Just(1), 500..30_000usize],
        any::<bool>(),
        prop_oneof![
            4 => Just(Merging::InProportion), 1 => Just(Merging::Always), 1 => Just(Merging::Never),
        ],
        any_background(),
        prop_oneof![Just(0usize), Just(128 << 10)],
    )
        .prop_map(|(bytes, updates, memory, is_mapped, merging, background, smallest_job)| {
            let context = match is_mapped {
                true => with_storage(memory, Arc::new(MappedMemory::default())),
                false => with_memory(memory),
            };
            let (pace, erratic) = background;
            let schedule = Schedule { merging, pace, smallest_job, ..Schedule::default() };
            let mut context = context.with_schedule(schedule);
            if let Some(erratic) = &erratic {
                context = context.with_compaction(Arc::clone(erratic) as Arc<dyn Compaction>);
            }
            World { context, limits: PageLimits { bytes, updates }, erratic }
        })
}

/// Merges at once, in slices, and in the background in any order.
fn any_background() -> impl Strategy<Value = (Pace, Option<Arc<Erratic>>)> {
    prop_oneof![
        Just((Pace::AtOnce, None)),
        Just((Pace::InSlices, None)),
        any::<u64>().prop_map(|seed| (Pace::AtOnce, Some(Erratic::new(seed)))),
    ]
}

/// A context with so many bytes of memory, and a storage in memory for the rest.
pub fn with_memory(memory: usize) -> StateContext {
    with_storage(memory, Arc::new(MemoryStorage::new()))
}

/// A context with so many bytes of memory, and this storage for the rest.
pub fn with_storage(memory: usize, storage: Arc<dyn Storage>) -> StateContext {
    StateContext::new(MemoryBudget::new(memory), Some(storage))
}

pub fn reference<T: TestTime>(updates: &[Update<T>]) -> Reference<T> {
    let mut sums = Reference::new();
    for (key, val, time, weight) in updates {
        *sums.entry((key.clone(), val.clone(), *time)).or_default() += weight;
    }
    sums.retain(|_, weight| *weight != 0);
    sums
}

/// A description of all times.
pub fn all_times<T: TestTime>() -> Description<T> {
    let minimum = Antichain::from_elem(T::minimum());
    Description::new(minimum.clone(), Antichain::new(), minimum)
}

/// A batch in memory, made by the builder from updates in any order.
pub fn batch<T: TestTime>(updates: &[Update<T>], limits: PageLimits) -> Batch<T> {
    batch_in(&World::in_memory(limits), updates)
}

/// As [`batch`], in this world.
pub fn batch_in<T: TestTime>(world: &World, updates: &[Update<T>]) -> Batch<T> {
    let mut sorted = updates.to_vec();
    sorted.sort();
    let mut builder = BatchBuilder::with_limits(world.limits, &world.context);
    for (key, val, time, weight) in &sorted {
        builder.push(key, val, time, *weight);
    }
    builder.finish(all_times())
}

/// All updates of a batch, read with a cursor. Checks that they are sorted and distinct.
pub fn contents<T: TestTime>(batch: &Batch<T>) -> Reference<T> {
    let mut found = Vec::new();
    let mut cursor = batch.cursor();
    while let Some(key) = cursor.key().map(<[u8]>::to_vec) {
        assert!(cursor.val().is_some(), "a key has a value");
        while let Some(val) = cursor.val().map(<[u8]>::to_vec) {
            let before = found.len();
            for (time, weight) in cursor.updates() {
                assert_ne!(weight, 0);
                found.push(((key.clone(), val.clone(), time), weight));
            }
            assert!(found.len() > before, "a value has an update");
            cursor.step_val();
        }
        cursor.step_key();
    }
    assert!(found.is_sorted_by(|a, b| a.0 < b.0), "updates are sorted and distinct");
    assert_eq!(found.len(), batch.len());
    found.into_iter().collect()
}

/// The sums of weights by row as of a time.
pub fn at<T: TestTime>(updates: &Reference<T>, time: &T) -> BTreeMap<Row, i64> {
    let mut rows = BTreeMap::new();
    for ((key, val, earlier), weight) in updates {
        if earlier.less_equal(time) {
            *rows.entry((key.clone(), val.clone())).or_default() += weight;
        }
    }
    rows.retain(|_, weight| *weight != 0);
    rows
}

/// All updates of several batches, read with cursors and added up.
pub fn contents_of<T: TestTime>(batches: &[Batch<T>]) -> Reference<T> {
    let mut sums = Reference::new();
    let mut cursors = Cursors::new(batches.iter().cloned());
    while let Some(key) = cursors.key().map(<[u8]>::to_vec) {
        while let Some(val) = cursors.val().map(<[u8]>::to_vec) {
            cursors.updates(|time, weight| {
                *sums.entry((key.clone(), val.clone(), time)).or_default() += weight;
            });
            cursors.step_val();
        }
        cursors.step_key();
    }
    sums.retain(|_, weight| *weight != 0);
    sums
}
