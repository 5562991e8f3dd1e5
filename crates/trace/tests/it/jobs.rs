//! Merges in the background: what a spine shows meanwhile, what it waits for, and what is left in the end.

use std::ops::Range;
use std::sync::Arc;

use alluvium_storage::{Compaction, Failing, MemoryStorage, MergePool};
use alluvium_trace::memory::{MemoryBudget, StateContext};
use alluvium_trace::{Batch, Epoch, Metrics, Pace, RowBuffer, Schedule, Spine, StateTrace};
use differential_dataflow::trace::{Description, Trace, TraceReader};
use timely::progress::Antichain;

use crate::erratic::Erratic;
use crate::mapped::MappedMemory;
use crate::outcome::outcome;
use crate::reference::{at, contents_of};

fn until(epoch: Epoch) -> Antichain<Epoch> {
    Antichain::from_elem(epoch)
}

/// A batch of one epoch that gives a weight to each of these numbers.
fn numbers(context: &StateContext, epoch: Epoch, numbers: Range<u64>, weight: i64) -> Batch<Epoch> {
    let mut buffer = RowBuffer::new(context);
    for number in numbers {
        // In no order, so that merges copy all rows.
        let key = number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes();
        buffer.push(&key, &number.to_be_bytes(), &epoch, weight);
    }
    buffer.seal(Description::new(until(epoch), until(epoch + 1), until(0)))
}

/// Inserts the numbers of an epoch, which readers never ask for apart.
fn insert(spine: &mut Spine<Epoch>, context: &StateContext, epoch: Epoch, range: Range<u64>) {
    spine.insert(numbers(context, epoch, range, 1));
    spine.set_logical_compaction(until(epoch + 1).borrow());
    spine.set_physical_compaction(until(epoch + 1).borrow());
}

fn batches(spine: &Spine<Epoch>) -> Vec<Batch<Epoch>> {
    spine.version().batches().cloned().collect()
}

fn rows(spine: &Spine<Epoch>, epoch: Epoch) -> usize {
    at(&contents_of(&batches(spine)), &epoch).values().filter(|weight| **weight == 1).count()
}

fn settle(spine: &mut Spine<Epoch>) {
    while !spine.is_settled() {
        std::thread::yield_now();
        spine.exert();
    }
}

/// A context whose jobs are done by this compaction, however small they are.
fn background(context: &StateContext, compaction: Arc<dyn Compaction>) -> StateContext {
    let schedule = Schedule { smallest_job: 0, ..Schedule::default() };
    context.with_schedule(schedule).with_compaction(compaction)
}

fn in_slices(context: &StateContext) -> StateContext {
    let schedule = Schedule { smallest_job: 0, pace: Pace::InSlices, ..Schedule::default() };
    context.with_schedule(schedule)
}

#[test]
fn inputs_stay_until_the_owner_runs_after_the_job_is_done() {
    let erratic = Erratic::new(1);
    let context = background(&StateContext::default(), erratic.clone());
    let mut spine = Spine::in_context(&context);
    (0..4).for_each(|epoch| insert(&mut spine, &context, epoch, epoch * 500..epoch * 500 + 500));
    assert_eq!((batches(&spine).len(), spine.is_settled()), (4, false));
    erratic.finish();
    assert_eq!(batches(&spine).len(), 4);
    spine.exert();
    assert_eq!((batches(&spine).len(), spine.is_settled()), (1, true));
    assert_eq!(rows(&spine, 4), 2000);
}

#[test]
fn jobs_of_other_layers_go_on_meanwhile_and_end_in_any_order() {
    for seed in 0..20 {
        let erratic = Erratic::new(seed);
        let context = background(&StateContext::default(), erratic.clone());
        let mut spine = Spine::in_context(&context);
        let (mut most, mut end) = (0, 0);
        for epoch in 0..200 {
            // The first jobs are large beside what comes later, so that several fit beside each other.
            let size = if epoch < 4 { 20_000 } else { 50 };
            insert(&mut spine, &context, epoch, end..end + size);
            end += size;
            most = most.max(batches(&spine).len());
            erratic.step(1);
        }
        while !spine.is_settled() {
            erratic.finish();
            spine.exert();
        }
        assert_eq!(rows(&spine, 200), end as usize);
        assert!(most > 4 && batches(&spine).len() <= 12, "{most}, {}", batches(&spine).len());
    }
}

#[test]
fn a_result_has_the_same_bytes_wherever_its_job_runs() {
    let pages = |context: &StateContext, between: &dyn Fn()| -> Vec<Vec<u8>> {
        let mut spine = Spine::in_context(context);
        insert(&mut spine, context, 0, 0..5000);
        spine.insert(numbers(context, 1, 4000..9000, -1));
        spine.set_logical_compaction(until(2).borrow());
        spine.set_physical_compaction(until(2).borrow());
        while !spine.is_settled() {
            between();
            spine.exert();
        }
        let batches = batches(&spine);
        assert_eq!(batches.len(), 1);
        (0..batches[0].pages()).map(|page| batches[0].page(page).bytes().to_vec()).collect()
    };
    for memory in [usize::MAX, 600_000] {
        let storage = || Arc::new(MemoryStorage::new());
        let base = || StateContext::new(MemoryBudget::new(memory), Some(storage()));
        let expected = pages(&base(), &|| unreachable!("all is done at once"));
        assert!(expected.len() > 10);
        assert_eq!(pages(&in_slices(&base()), &|| ()), expected);
        let pool = Arc::new(MergePool::start(2).unwrap());
        assert_eq!(pages(&background(&base(), pool), &std::thread::yield_now), expected);
        let erratic = Erratic::new(3);
        let step = || {
            erratic.step(1);
        };
        assert_eq!(pages(&background(&base(), erratic.clone()), &step), expected);
    }
}

#[test]
fn threads_do_the_jobs_of_many_spines() {
    let pool: Arc<MergePool> = Arc::new(MergePool::start(3).unwrap());
    std::thread::scope(|scope| {
        for worker in 0..3 {
            let context = background(&StateContext::default(), pool.clone());
            let context = context.for_worker(Arc::default());
            scope.spawn(move || {
                let mut spines: Vec<_> = (0..5).map(|_| Spine::in_context(&context)).collect();
                for epoch in 0..60 {
                    for (number, spine) in spines.iter_mut().enumerate() {
                        let start = epoch * 1000;
                        let size = 10 + (epoch * 7 + number as u64 * 13 + worker) % 600;
                        insert(spine, &context, epoch, start..start + size);
                        if epoch % 10 == 9 {
                            assert!(rows(spine, epoch + 1) > 0);
                        }
                    }
                    if epoch == 30 {
                        spines.pop();
                    }
                }
                let size = |epoch: u64, number: u64| 10 + (epoch * 7 + number * 13 + worker) % 600;
                for (number, spine) in spines.iter_mut().enumerate() {
                    settle(spine);
                    let all: u64 = (0..60).map(|epoch| size(epoch, number as u64)).sum();
                    assert_eq!(rows(spine, 60), all as usize);
                }
                drop(spines);
                assert_eq!((context.budget().debt(), context.budget().used()), (0, 0));
            });
        }
    });
    pool.close();
}

#[test]
fn a_dropped_spine_releases_its_jobs() {
    for slices in [0, 1, 5] {
        let erratic = Erratic::new(7);
        let storage = Arc::new(MemoryStorage::new());
        let base = StateContext::new(MemoryBudget::new(4 << 20), Some(storage.clone()));
        let context = background(&base, erratic.clone());
        let mut spine = Spine::in_context(&context);
        for epoch in 0..4 {
            insert(&mut spine, &context, epoch, epoch * 10_000..(epoch + 1) * 10_000);
        }
        erratic.step(slices);
        assert!(context.budget().debt() > 0 && !spine.is_settled());
        drop(spine);
        assert_eq!((context.budget().debt(), context.budget().used()), (0, 0));
        assert_eq!(context.budget().files(), 0);
        // Nothing is left for threads to do.
        erratic.finish();
        assert_eq!(context.budget().used(), 0);
    }
}

#[test]
fn a_job_that_fails_is_a_failure_of_its_owner_and_its_inputs_stay() {
    let storage = Failing::new(MemoryStorage::new());
    // Merges of files go to files.
    let base = StateContext::new(MemoryBudget::new(100_000), Some(Arc::new(storage.clone())));
    let erratic = Erratic::new(5);
    let mut failures = 0;
    for call in 0..40 {
        let context = background(&base, erratic.clone());
        let mut spine = Spine::in_context(&context);
        for epoch in 0..9 {
            let batch = numbers(&context, epoch, epoch * 1000..(epoch + 1) * 1000, 1);
            let mut batch = Some(batch);
            storage.fail_from(storage.calls() + call);
            let steps = outcome(|| {
                if let Some(batch) = batch.take() {
                    spine.insert(batch);
                }
                spine.set_physical_compaction(until(epoch + 1).borrow());
                erratic.finish();
                spine.exert();
            });
            storage.fail_from(u64::MAX);
            if let Err(error) = steps {
                assert!(error.contains("fails on command"), "{error}");
                failures += 1;
            }
            spine.set_physical_compaction(until(epoch + 1).borrow());
        }
        erratic.finish();
        spine.exert();
        assert_eq!(rows(&spine, 9), 9_000);
    }
    assert!(failures > 10, "{failures}");
}

/// The bytes of all batches, and what is left to merge of them.
fn bytes_and_debt(spine: &Spine<Epoch>, metrics: &Metrics) -> (u64, u64) {
    let all = batches(spine).iter().map(|batch| batch.bytes() as u64).sum();
    (all, metrics.spines()[0].debt)
}

#[test]
fn debt_is_bounded_though_nobody_does_the_jobs() {
    let (metrics, idle) = (Arc::new(Metrics::default()), Erratic::new(0));
    let base = StateContext::default().for_worker(metrics.clone());
    for context in [in_slices(&base), background(&base, idle)] {
        let mut spine = Spine::in_context(&context);
        let mut most = 0;
        for epoch in 0..1000 {
            insert(&mut spine, &context, epoch, epoch * 100..epoch * 100 + 100);
            let (bytes, debt) = bytes_and_debt(&spine, &metrics);
            // A job of everything, one of an eighth, and so on.
            assert!(debt <= bytes + bytes / 2 + 100_000, "{debt} of {bytes}");
            most = most.max(batches(&spine).len());
        }
        assert!((3..=40).contains(&most), "{most} batches");
        assert_eq!(rows(&spine, 1000), 100_000);
    }
}

#[test]
fn an_insertion_does_little_though_the_spine_is_large() {
    let (metrics, idle) = (Arc::new(Metrics::default()), Erratic::new(0));
    let base = StateContext::default().for_worker(metrics.clone());
    let context = background(&base, idle);
    let mut spine = Spine::in_context(&context);
    let mut before = 0_u64;
    for epoch in 0..400 {
        insert(&mut spine, &context, epoch, epoch * 500..epoch * 500 + 500);
        let counters = &metrics.spines()[0];
        let (bytes, debt) = bytes_and_debt(&spine, &metrics);
        // Merged bytes are written, or are no longer owed.
        let done = before.saturating_sub(debt);
        before = debt;
        assert!(done <= 500_000, "{done} bytes at once, of {bytes}; {counters:?}");
    }
}

#[test]
fn where_memory_is_short_jobs_are_completed_before_the_owner_goes_on() {
    for memory in [1, 100_000, 1 << 20] {
        let storage = Arc::new(MappedMemory::default());
        let base = StateContext::new(MemoryBudget::new(memory), Some(storage));
        for context in [in_slices(&base), background(&base, Erratic::new(0))] {
            let mut spine = Spine::in_context(&context);
            for epoch in 0..300 {
                insert(&mut spine, &context, epoch, epoch * 200..epoch * 200 + 200);
                let used = context.budget().used();
                assert!(used <= memory + 200_000, "{used} of {memory} bytes at {epoch}");
            }
            assert_eq!(rows(&spine, 300), 60_000);
        }
        assert_eq!(base.budget().used(), 0);
    }
}
