//! Storage that fails while batches are built, spilled and merged, at every call.

use std::sync::Arc;

use alluvium_storage::{Failing, LocalStorage, MemoryStorage, Storage};
use alluvium_trace::StateTrace;
use alluvium_trace::memory::{MemoryBudget, StateContext};
use alluvium_trace::page::PageLimits;
use alluvium_trace::{Batch, BatchBuilder, Spine, merge};
use differential_dataflow::trace::{Description, Trace, TraceReader};
use timely::progress::Antichain;

use crate::outcome::outcome;
use crate::reference::*;

const EPOCHS: u64 = 7;

/// Little enough that some batches are built in files and others are spilled.
const MEMORY: usize = 5_000;

/// The rows of an epoch: insertions, and deletions of rows of the epoch before.
fn rows(epoch: u64) -> Vec<Update<u64>> {
    let row = |number: u64, weight| (number.to_be_bytes().to_vec(), vec![7; 20], epoch, weight);
    let new = (0..40).map(|number| row(number * 13 + epoch, 1));
    let old = (0..10).filter(|_| epoch > 0).map(|number| row(number * 13 + epoch - 1, -1));
    let mut rows: Vec<_> = new.chain(old).collect();
    rows.sort();
    rows
}

fn build(epoch: u64, context: &StateContext) -> Batch<u64> {
    let mut builder =
        BatchBuilder::with_limits(PageLimits { bytes: 400, updates: 1 << 16 }, context);
    for (key, value, time, weight) in rows(epoch) {
        builder.push(&key, &value, &time, weight);
    }
    let [lower, upper, since] = [epoch, epoch + 1, 0].map(Antichain::from_elem);
    builder.finish(Description::new(lower, upper, since))
}

/// Does `work`, and if it fails repairs the storage and does it again. Whether it failed.
fn twice<S: Storage, R>(storage: &Failing<S>, mut work: impl FnMut() -> R) -> (R, bool) {
    match outcome(&mut work) {
        Ok(done) => (done, false),
        Err(error) => {
            assert!(error.starts_with("state cannot be written to a file: "), "{error}");
            assert!(error.contains("failing:batch-"), "{error}");
            assert!(error.contains("fails on command"), "{error}");
            storage.fail_from(u64::MAX);
            (work(), true)
        }
    }
}

fn batches_of(spine: &Spine<u64>) -> Vec<Batch<u64>> {
    let mut batches = Vec::new();
    spine.map_batches(|batch| batches.push(batch.clone()));
    batches
}

/// Checks that the spine has all rows of these epochs.
fn shows(spine: &mut Spine<u64>, epochs: u64) {
    let all: Vec<_> = (0..epochs).flat_map(rows).collect();
    let through = spine.batches_through(Antichain::from_elem(epochs).borrow()).unwrap();
    let found = contents_of(&through);
    assert_eq!(at(&found, &epochs), at(&reference(&all), &epochs));
}

/// Fills a spine epoch by epoch. Returns the number of failures.
fn run<S: Storage>(storage: &Failing<S>, context: &StateContext) -> usize {
    let mut spine = Spine::<u64>::in_context(context);
    let mut failures = 0;
    for epoch in 0..EPOCHS {
        let (batch, failed) = twice(storage, || build(epoch, context));
        failures += usize::from(failed);
        // The spine has the batch, whatever fails.
        let mut batch = Some(batch);
        let (_, failed) = twice(storage, || {
            if let Some(batch) = batch.take() {
                spine.insert(batch);
            }
        });
        failures += usize::from(failed);
        shows(&mut spine, epoch + 1);
        spine.set_logical_compaction(Antichain::from_elem(epoch).borrow());
        let physical = Antichain::from_elem(epoch + 1);
        let (_, failed) = twice(storage, || spine.set_physical_compaction(physical.borrow()));
        failures += usize::from(failed);
        shows(&mut spine, epoch + 1);
        if epoch % 2 == 1 {
            // Something else takes the memory: what is there goes to files.
            let taken = context.budget().charge(MEMORY);
            let (_, failed) = twice(storage, || spine.exert());
            failures += usize::from(failed);
            assert!(batches_of(&spine).iter().all(|batch| batch.is_file() || batch.is_empty()));
            drop(taken);
            shows(&mut spine, epoch + 1);
        }
    }
    let batches = batches_of(&spine);
    let (merged, failed) = twice(storage, || {
        merge(&batches, Antichain::from_elem(EPOCHS).borrow(), all_times(), context)
    });
    failures += usize::from(failed);
    let all: Vec<_> = (0..EPOCHS).flat_map(rows).collect();
    assert_eq!(at(&contents(&merged), &EPOCHS), at(&reference(&all), &EPOCHS));
    failures
}

/// Makes each call of a run fail, with all later calls until the failure is noticed.
fn every_call_fails_once<S: Storage + Clone + 'static>(new: impl Fn() -> S) {
    let attempt = |call: u64| {
        let storage = Failing::new(new());
        storage.fail_from(call);
        let context = with_storage(MEMORY, Arc::new(storage.clone()));
        let failures = run(&storage, &context);
        assert_eq!(
            (context.budget().used(), context.budget().files()),
            (0, 0),
            "everything is released"
        );
        (failures, storage)
    };
    let (failures, whole) = attempt(u64::MAX);
    assert_eq!(failures, 0);
    assert!(whole.list("").unwrap().is_empty());
    assert!(whole.calls() > 100, "{} calls", whole.calls());
    let mut noticed = 0;
    for call in 1..=whole.calls() {
        let (failures, storage) = attempt(call);
        assert!(failures <= 1);
        noticed += failures;
        // Files of which the deletion failed are left to those who remove the storage.
        if storage.list("").unwrap().is_empty() {
            assert_eq!(failures, 1, "call {call} failed, and nobody said so");
        }
    }
    assert!(noticed > 50, "{noticed}");
}

#[test]
fn a_failure_at_any_call_is_reported_and_loses_nothing() {
    every_call_fails_once(MemoryStorage::new);
}

#[test]
fn a_failure_at_any_call_on_a_disk_is_reported_and_loses_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let number = std::cell::Cell::new(0);
    every_call_fails_once(|| {
        number.set(number.get() + 1);
        LocalStorage::open(directory.path().join(number.get().to_string())).unwrap()
    });
}

#[test]
fn a_file_that_was_cut_short_is_an_error_of_the_merge_that_reads_it() {
    let directory = tempfile::tempdir().unwrap();
    let storage = Arc::new(LocalStorage::open(directory.path()).unwrap());
    let limits = PageLimits::default();
    let world = World { context: with_storage(1, storage.clone()), limits, erratic: None };
    let rows: Vec<Update<u64>> =
        (0..5_000_u64).map(|row| (row.to_be_bytes().to_vec(), vec![7; 20], 0, 1)).collect();
    let _written = batch_in(&world, &rows);
    let name = storage.list("").unwrap().remove(0);
    let blob = storage.open(&name).unwrap();
    assert!(blob.is_mapped());
    let file = Batch::<u64>::open(blob, &MemoryBudget::unlimited()).unwrap();
    let path = directory.path().join(&name);
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(70_000).unwrap();
    let merged = outcome(|| {
        merge(&[file], Antichain::new().borrow(), all_times(), &StateContext::default())
    });
    let error = merged.unwrap_err();
    assert!(error.contains(path.to_str().unwrap()), "{error}");
    assert!(error.contains("read") && error.contains("failed to fill whole buffer"), "{error}");
}

#[test]
fn writers_wait_while_the_disk_is_full() {
    let storage = Failing::new(MemoryStorage::new());
    let context = with_storage(1, Arc::new(storage.clone()));
    let rows: Vec<_> =
        (0..500_u64).map(|row| (row.to_be_bytes().to_vec(), vec![7; 20], 0, 1)).collect();
    let limits = PageLimits { bytes: 1000, updates: 1 << 16 };
    let world = World { context: context.clone(), limits, erratic: None };
    storage.limit(7000);
    let disk_full = context.disk_full().clone();
    let frees = std::thread::spawn({
        let storage = storage.clone();
        move || {
            while disk_full.reason().is_none() {
                std::thread::yield_now();
            }
            let reason = disk_full.reason().unwrap_or_default();
            storage.free();
            reason
        }
    });
    let written = batch_in(&world, &rows);
    let reason = frees.join().unwrap();
    assert!(
        reason.contains("cannot append to failing:batch-") && reason.contains("no room"),
        "{reason}"
    );
    assert!(written.is_file());
    assert_eq!(contents(&written), reference(&rows));
    assert_eq!(context.disk_full().reason(), None);

    // A gate that has given up returns the error.
    storage.limit(storage.used() + 100);
    context.disk_full().give_up();
    let message = outcome(|| batch_in(&world, &rows)).unwrap_err();
    assert!(message.contains("no room is left"), "{message}");
}
