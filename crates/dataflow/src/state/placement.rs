//! Which worker keeps a row of a trace, and repartitioning when the number of workers changes.

use alluvium_trace::memory::StateContext;
use alluvium_trace::{Batch, Epoch, deal};
use timely::progress::Antichain;

use crate::fault::{self, Fault};
use crate::movement::exchange::{shard_of, worker_of};

/// Which worker keeps a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// That of the shard of its key.
    #[default]
    Key,
    /// That of the shard of its value.
    Value,
    /// That of the partition that its key is the number of.
    Partition,
    /// Every worker.
    All,
}

/// One of several workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Its number.
    pub worker: usize,
    /// How many there are.
    pub workers: usize,
}

impl Placement {
    /// The batches of a worker, in the order of their times, made of those that other workers kept, which have all rows before
    /// `upper`.
    pub(crate) fn deal(
        self,
        mut kept: Vec<Vec<Batch<Epoch>>>,
        share: Share,
        upper: Epoch,
        context: &StateContext,
    ) -> Vec<Batch<Epoch>> {
        let sources = kept.concat();
        if sources.is_empty() {
            return sources;
        }
        let Share { worker, workers } = share;
        let is_own = |bytes: &[u8]| share.has(shard_of(bytes));
        let all = |_: &[u8]| true;
        let upper = Antichain::from_elem(upper);
        let batch = match self {
            Placement::All => return kept.swap_remove(0),
            Placement::Key => deal(&sources, upper, workers, is_own, all, context),
            Placement::Value => deal(&sources, upper, workers, all, is_own, context),
            Placement::Partition => {
                let is_own = |key: &[u8]| number_in(key) % workers == worker;
                deal(&sources, upper, workers, is_own, all, context)
            }
        };
        if batch.is_empty() { Vec::new() } else { vec![batch] }
    }
}

impl Share {
    fn has(self, shard: u8) -> bool {
        // Some shards go to all workers, and others to none.
        let shifted = fault::armed(Fault::DealUnevenly) && shard.is_multiple_of(7);
        worker_of(shard, self.workers) == if shifted { 0 } else { self.worker }
    }
}

/// The number of the partition whose key this is.
fn number_in(key: &[u8]) -> usize {
    key.first().copied().unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use alluvium_trace::RowBuffer;
    use alluvium_trace::memory::MemoryBudget;
    use proptest::prelude::*;
    use timely::progress::frontier::AntichainRef;

    use super::*;
    use crate::movement::batcher::describe;

    /// A key, a value and a time.
    type Place = (Vec<u8>, Vec<u8>, Epoch);

    /// An update: its place, its weight, and the worker that keeps it.
    type Kept = (Place, i64, usize);

    fn kept() -> impl Strategy<Value = Vec<Kept>> {
        let key = prop_oneof![
            prop::collection::vec(0..3_u8, 0..3),
            prop::collection::vec(any::<u8>(), 1..2)
        ];
        let place = (key, prop::collection::vec(0..4_u8, 0..3), 0..8_u64);
        prop::collection::vec((place, prop_oneof![Just(-1), 1..3_i64], 0..4_usize), 0..400)
    }

    fn add(sums: &mut BTreeMap<Place, i64>, place: Place, weight: i64) {
        *sums.entry(place).or_default() += weight;
    }

    /// The batches of each of four workers, some of which may have advanced times to 3.
    fn batches(
        kept: &[Kept],
        advanced: [bool; 4],
        context: &StateContext,
    ) -> Vec<Vec<Batch<Epoch>>> {
        let batches = |worker: usize| {
            let mut buffer = RowBuffer::new(context);
            for ((key, value, time), weight, _) in kept.iter().filter(|kept| kept.2 == worker) {
                buffer.push(key, value, time, *weight);
            }
            let mut lower = Antichain::from_elem(0);
            let sealed = [5, 8].into_iter().map(|upper| {
                let upper = Antichain::from_elem(upper);
                let lower = std::mem::replace(&mut lower, upper.clone());
                let batch = buffer.seal(describe(&lower, &upper));
                let since = Antichain::from_elem(if advanced[worker] { 3 } else { 0 });
                batch.spanning(lower, upper, since)
            });
            sealed.filter(|batch| !batch.is_empty()).collect()
        };
        (0..4).map(batches).collect()
    }

    /// All updates, with times advanced to `since`.
    fn sums(batches: &[Batch<Epoch>], since: Epoch) -> BTreeMap<Place, i64> {
        let mut sums = BTreeMap::new();
        for batch in batches {
            let mut cursor = batch.cursor();
            while let Some(key) = cursor.key().map(<[u8]>::to_vec) {
                while let Some(value) = cursor.val().map(<[u8]>::to_vec) {
                    for (time, weight) in cursor.updates() {
                        add(&mut sums, (key.clone(), value.clone(), time.max(since)), weight);
                    }
                    cursor.step_val();
                }
                cursor.step_key();
            }
        }
        sums.retain(|_, weight| *weight != 0);
        sums
    }

    /// Whether all rows are there once, on their workers.
    fn is_dealt(kept: &[Vec<Batch<Epoch>>], placement: Placement, workers: usize) -> bool {
        let context = StateContext::default();
        let since = kept
            .concat()
            .iter()
            .filter_map(|batch| batch.description().since().first().copied())
            .max();
        let since = since.unwrap_or_default();
        let mut all = BTreeMap::new();
        for worker in 0..workers {
            let share = Share { worker, workers };
            let dealt = placement.deal(kept.to_vec(), share, 8, &context);
            assert!(dealt.len() <= 1);
            for batch in &dealt {
                let description = batch.description();
                assert_eq!(description.upper().borrow(), AntichainRef::new(&[8]));
                assert_eq!(description.since().borrow(), AntichainRef::new(&[since]));
            }
            for ((key, value, time), weight) in sums(&dealt, 0) {
                let bytes = if placement == Placement::Value { &value } else { &key };
                let own = match placement {
                    Placement::Partition => number_in(&key) % workers,
                    _ => worker_of(shard_of(bytes), workers),
                };
                if own != worker {
                    return false;
                }
                add(&mut all, (key, value, time), weight);
            }
        }
        all == sums(&kept.concat(), since)
    }

    proptest! {
        #[test]
        fn every_row_is_dealt_to_its_worker_and_to_no_other(
            kept in kept(),
            advanced in any::<[bool; 4]>(),
            workers in 1..7_usize,
        ) {
            let files = alluvium_storage::MemoryStorage::default();
            let files = StateContext::new(MemoryBudget::new(1), Some(std::sync::Arc::new(files)));
            for context in [StateContext::default(), files] {
                let batches = batches(&kept, advanced, &context);
                for placement in [Placement::Key, Placement::Value, Placement::Partition] {
                    prop_assert!(is_dealt(&batches, placement, workers), "{placement:?}");
                }
            }
        }
    }

    #[test]
    fn what_every_worker_has_is_dealt_to_every_worker() {
        let context = StateContext::default();
        let place = |n: u8| (vec![n], vec![], 1);
        let kept: Vec<Kept> =
            (0..4).flat_map(|worker| (0..9).map(move |n| (place(n), 1, worker))).collect();
        let batches = batches(&kept, [false; 4], &context);
        for worker in 0..6 {
            let share = Share { worker, workers: 6 };
            let dealt = Placement::All.deal(batches.clone(), share, 8, &context);
            assert_eq!(sums(&dealt, 0), (0..9).map(|n| (place(n), 1)).collect());
        }
    }

    #[test]
    fn rows_that_are_dealt_unevenly_are_found() {
        let context = StateContext::default();
        let kept: Vec<Kept> =
            (0..=255).map(|n| ((vec![n], vec![n], 1), 1, usize::from(n % 4))).collect();
        let batches = batches(&kept, [false; 4], &context);
        assert!(is_dealt(&batches, Placement::Key, 3));
        fault::arm(Some(Fault::DealUnevenly));
        let found = [Placement::Key, Placement::Value].map(|by| !is_dealt(&batches, by, 3));
        fault::arm(None);
        assert_eq!(found, [true, true]);
    }
}
