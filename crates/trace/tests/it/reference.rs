//! The reference, and the small worlds that tests are drawn from.

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium_storage::{MemoryStorage, Storage};
use alluvium_trace::memory::{MemoryBudget, StateContext, context};
use alluvium_trace::page::PageLimits;
use alluvium_trace::{Batch, BatchBuilder, Cursors, PageTime};
use differential_dataflow::trace::Description;
use proptest::prelude::*;
use timely::order::Product;
use timely::progress::Antichain;

use crate::mapped::MappedMemory;

pub type Row = (Vec<u8>, Vec<u8>);
pub type Update<T> = (Vec<u8>, Vec<u8>, T, i64);

/// The sum of all updates by key, value and time, without zeros.
pub type Reference<T> = BTreeMap<(Vec<u8>, Vec<u8>, T), i64>;

/// A time that tests are run with: small, so that times meet.
pub trait TestTime: PageTime {
    const RANGE: u64;
    /// The times of the test world, numbered so that a later number is never an earlier time.
    fn time(number: u64) -> Self;
    /// The frontier that has the times of all smaller numbers before it, and those alone.
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

/// All times of the test world, and one beyond.
pub fn times<T: TestTime>() -> impl Iterator<Item = T> {
    (0..T::RANGE + 4).map(T::time)
}

pub fn any_time<T: TestTime>() -> impl Strategy<Value = T> {
    (0..T::RANGE).prop_map(T::time)
}

pub fn any_frontier<T: TestTime>() -> impl Strategy<Value = Antichain<T>> {
    prop::collection::vec(any_time::<T>(), 1..3).prop_map(Antichain::from)
}

/// Byte strings that meet often: empty, sharing prefixes with each other, or longer than a small page.
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

/// Pages from one update to more than a test has; what is made of them stays in memory, goes to files, mapped or
/// not, or does either, as it happens to be.
pub fn any_limits() -> impl Strategy<Value = PageLimits> {
    (
        prop_oneof![Just(1usize), Just(120), Just(256), Just(16 << 10)],
        prop_oneof![Just(1usize), Just(2), Just(3), Just(65_536)],
        prop_oneof![Just(usize::MAX), Just(1), 500..30_000usize],
        any::<bool>(),
    )
        .prop_map(|(bytes, updates, memory, is_mapped)| {
            if is_mapped {
                surround_with(memory, Arc::new(MappedMemory::default()));
            } else {
                surround(memory);
            }
            PageLimits { bytes, updates }
        })
}

/// Gives the batches that this thread makes from now on so many bytes of memory, and a storage for the rest.
pub fn surround(memory: usize) -> StateContext {
    surround_with(memory, Arc::new(MemoryStorage::new()))
}

/// As [`surround`], with this storage.
pub fn surround_with(memory: usize, storage: Arc<dyn Storage>) -> StateContext {
    let budget = MemoryBudget::new(memory);
    let around = StateContext::new(budget, Some(storage));
    context::enter(around.clone());
    around
}

pub fn reference<T: TestTime>(updates: &[Update<T>]) -> Reference<T> {
    let mut sums = Reference::new();
    for (key, val, time, weight) in updates {
        *sums.entry((key.clone(), val.clone(), *time)).or_default() += weight;
    }
    sums.retain(|_, weight| *weight != 0);
    sums
}

/// An interval that has all times of the test world in it.
pub fn all_times<T: TestTime>() -> Description<T> {
    let minimum = Antichain::from_elem(T::minimum());
    Description::new(minimum.clone(), Antichain::new(), minimum)
}

/// A batch made by the builder from updates in any order.
pub fn batch<T: TestTime>(updates: &[Update<T>], limits: PageLimits) -> Batch<T> {
    let mut sorted = updates.to_vec();
    sorted.sort();
    let mut builder = BatchBuilder::with_limits(limits, &context::current());
    for (key, val, time, weight) in &sorted {
        builder.push(key, val, time, *weight);
    }
    builder.finish(all_times())
}

/// All updates of a batch, read with its cursor; checks that nothing comes twice or out of order.
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

/// What rows come to at a time.
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

/// All updates of several batches, read with their cursors and added up.
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
