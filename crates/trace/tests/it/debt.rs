//! How much may wait to be merged in all, and that no thread waits for ever where all limits are at their lowest.

use std::sync::Arc;

use alluvium_storage::{Compaction, Haphazard, MergePool};
use alluvium_trace::memory::{MemoryBudget, StateContext};
use alluvium_trace::{Batch, Epoch, Pace, RowBuffer, Schedule, Spine, StateTrace};
use differential_dataflow::trace::{Description, Trace, TraceReader};
use timely::progress::Antichain;

use crate::erratic::Erratic;
use crate::mapped::MappedMemory;
use crate::reference::{at, contents_of};

const MIB: usize = 1 << 20;

/// The rows of an epoch, and the bytes of their values: a MiB, which takes no time to sort.
const ROWS: u64 = 128;
const VALUE: usize = 8 << 10;

/// A budget with which the limit of what waits is at its lowest.
const MEMORY: usize = 4 * MIB;

fn until(epoch: Epoch) -> Antichain<Epoch> {
    Antichain::from_elem(epoch)
}

fn batch(context: &StateContext, epoch: Epoch) -> Batch<Epoch> {
    let mut buffer = RowBuffer::new(context);
    for number in epoch * ROWS..(epoch + 1) * ROWS {
        // In no order, so that merges copy all rows.
        let key = number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes();
        buffer.push(&key, &[7; VALUE], &epoch, 1);
    }
    buffer.seal(Description::new(until(epoch), until(epoch + 1), until(0)))
}

fn insert(spine: &mut Spine<Epoch>, context: &StateContext, epoch: Epoch) {
    spine.insert(batch(context, epoch));
    spine.set_logical_compaction(until(epoch + 1).borrow());
    spine.set_physical_compaction(until(epoch + 1).borrow());
}

fn rows(spine: &Spine<Epoch>, epoch: Epoch) -> usize {
    let batches: Vec<_> = spine.version().batches().cloned().collect();
    at(&contents_of(&batches), &epoch).values().filter(|weight| **weight == 1).count()
}

/// A context with files for all that exceeds the memory.
fn with_files(memory: usize) -> StateContext {
    StateContext::new(MemoryBudget::new(memory), Some(Arc::new(MappedMemory::default())))
}

fn in_slices(context: &StateContext) -> StateContext {
    context.with_schedule(Schedule { pace: Pace::InSlices, ..Schedule::default() })
}

/// Lets spines owe a merge of eight files each, one after the other, and come to rest.
fn many_spines_owe(context: &StateContext, spines: usize) -> (usize, Vec<Spine<Epoch>>) {
    let budget = context.budget();
    let mut most = 0;
    let spines = (0..spines).map(|_| {
        let mut spine = Spine::in_context(context);
        for epoch in 0..8 {
            insert(&mut spine, context, epoch);
            most = most.max(budget.debt());
            assert!(budget.debt() <= budget.policy().most_debt, "{} bytes wait", budget.debt());
        }
        spine
    });
    let spines = spines.collect();
    (most, spines)
}

#[test]
fn what_waits_in_all_spines_is_bounded_though_nobody_does_the_jobs() {
    for is_background in [false, true] {
        let base = in_slices(&with_files(MEMORY));
        let context = match is_background {
            true => base.with_compaction(Erratic::new(0)),
            false => base,
        };
        assert_eq!(context.budget().policy().most_debt, 64 * MIB);
        let (most, spines) = many_spines_owe(&context, 12);
        assert!(most > 48 * MIB, "{most}");
        // Those that came too late have done their merges themselves.
        let owing = spines.iter().filter(|spine| !spine.is_settled()).count();
        assert!((6..=8).contains(&owing), "{owing} of 12 spines owe a merge");
        assert!(spines.iter().all(|spine| rows(spine, 8) as u64 == 8 * ROWS));
        drop(spines);
        assert_eq!(context.budget().debt(), 0);
    }
}

#[test]
fn spines_at_rest_go_on_beside_a_busy_worker_if_too_much_waits() {
    let context = in_slices(&with_files(MEMORY));
    context.set_busy(true);
    let most = context.budget().policy().most_debt;
    let (_, mut spines) = many_spines_owe(&context, 12);
    assert!(context.budget().debt() > most / 2);
    for _ in 0..100 {
        spines.iter_mut().for_each(Trace::exert);
    }
    let left = context.budget().debt();
    assert!(left > 0 && left <= most / 2, "{left} bytes wait");
}

#[test]
fn where_all_limits_are_at_their_lowest_nobody_waits_for_ever() {
    for memory in [1, MEMORY] {
        let base = with_files(memory);
        work_of_a_worker(&in_slices(&base), 0);
        work_of_a_worker(&base.with_compaction(Erratic::new(1)), 0);
        let pools: [Arc<dyn Compaction>; 2] =
            [Arc::new(MergePool::start(1).unwrap()), Arc::new(Haphazard::new(3))];
        for pool in pools {
            let context = base.with_compaction(Arc::clone(&pool));
            std::thread::scope(|scope| {
                for worker in 0..2 {
                    let context = context.for_worker(Arc::default());
                    scope.spawn(move || work_of_a_worker(&context, worker));
                }
            });
            pool.close();
        }
        assert_eq!((base.budget().used(), base.budget().debt()), (0, 0));
    }
}

/// Fills ten spines in turn, and lets them end their merges.
fn work_of_a_worker(context: &StateContext, worker: u64) {
    let mut spines: Vec<_> = (0..10).map(|_| Spine::in_context(context)).collect();
    for epoch in 0..9 {
        spines.iter_mut().for_each(|spine| insert(spine, context, epoch));
    }
    // As those of an engine that ends, some are dropped before their merges are over.
    spines.truncate(6 + worker as usize);
    for spine in &spines {
        assert_eq!(rows(spine, 9) as u64, 9 * ROWS);
    }
}
