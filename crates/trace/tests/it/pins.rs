//! The cost of versions that readers pin for long.

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium_storage::Compaction;
use alluvium_trace::memory::{MemoryBudget, StateContext};
use alluvium_trace::page::Page;
use alluvium_trace::{Batch, Epoch, RowBuffer, Schedule, Spine, StateTrace, Version};
use differential_dataflow::trace::{Description, Trace, TraceReader};
use timely::progress::Antichain;

use crate::erratic::Erratic;
use crate::mapped::MappedMemory;
use crate::reference::{at, contents_of};

/// How many rows the spine holds, and how many of them each epoch replaces.
const ROWS: u64 = 500;
const REPLACED: u64 = 10;

/// The memory of a page of more than half as many bytes.
const SLOT: usize = 16 << 10;

fn until(epoch: Epoch) -> Antichain<Epoch> {
    Antichain::from_elem(epoch)
}

/// The numbers of the rows as of an epoch.
fn rows_of(epoch: Epoch) -> std::ops::Range<u64> {
    let end = ROWS + epoch * REPLACED;
    end - ROWS..end
}

/// Inserts an epoch: its new rows, and the deletion of the oldest ones.
fn insert(spine: &mut Spine<Epoch>, context: &StateContext, epoch: Epoch) {
    let mut buffer = RowBuffer::new(context);
    let mut push = |number: u64, weight| {
        // In no order, so that merges copy all rows.
        let key = number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes();
        buffer.push(&key, &number.to_be_bytes(), &epoch, weight);
    };
    match epoch.checked_sub(1) {
        None => rows_of(0).for_each(|number| push(number, 1)),
        Some(before) => {
            (rows_of(before).end..rows_of(epoch).end).for_each(|number| push(number, 1));
            (rows_of(before).start..rows_of(epoch).start).for_each(|number| push(number, -1));
        }
    }
    spine.insert(buffer.seal(Description::new(until(epoch), until(epoch + 1), until(0))));
    spine.set_logical_compaction(until(epoch + 1).borrow());
    spine.set_physical_compaction(until(epoch + 1).borrow());
}

/// The bytes of all pages on the heap that these versions have, and the sizes of all files, each counted once.
fn distinct<'a>(versions: impl Iterator<Item = &'a Version<Epoch>>) -> (usize, Vec<u64>) {
    let (mut pages, mut files) = (BTreeMap::new(), BTreeMap::new());
    let batches = versions.flat_map(Version::batches).filter(|batch| !batch.is_empty());
    for batch in batches {
        // Batches with different descriptions may share their pages.
        let first = batch.page(0).bytes().as_ptr();
        if batch.is_file() {
            files.insert(first, batch.bytes() as u64);
            continue;
        }
        for page in (0..batch.pages()).map(|number| batch.page(number).bytes()) {
            let memory = if page.len() > SLOT / 2 { page.len().max(SLOT) } else { page.len() };
            pages.insert(page.as_ptr(), memory + size_of::<Page>());
        }
    }
    (pages.into_values().sum(), files.into_values().collect())
}

/// Versions that are pinned every tenth epoch, over ten thousand epochs.
fn a_thousand_versions_cost_what_they_keep_alive(
    context: &StateContext,
    erratic: Option<&Erratic>,
) {
    let budget = context.budget();
    let mut spine = Spine::in_context(context);
    let mut pinned: Vec<Option<(Epoch, Version<Epoch>)>> = Vec::new();
    let settle = |spine: &mut Spine<Epoch>| {
        while !spine.is_settled() {
            erratic.expect("somebody does the jobs").finish();
            spine.exert();
        }
    };
    let check = |spine: &Spine<Epoch>, pinned: &[Option<(Epoch, Version<Epoch>)>]| {
        let versions = pinned.iter().flatten().map(|(_, version)| version);
        let (pages, files) = distinct(versions.chain([spine.version()]));
        assert_eq!(budget.files(), files.iter().sum::<u64>());
        // A file has a list of its pages.
        let beside = budget.used() - pages;
        assert!(beside <= files.len() * 512, "{beside} bytes beside {} files", files.len());
    };
    for epoch in 0..10_000 {
        insert(&mut spine, context, epoch);
        if epoch % 10 == 0 {
            pinned.push(Some((epoch, spine.version().clone())));
        }
        if let Some(erratic) = erratic {
            erratic.step(1);
        }
        if epoch % 1000 == 999 {
            settle(&mut spine);
            check(&spine, &pinned);
        }
    }
    assert_eq!(pinned.len(), 1000);
    let alive = budget.used() as u64 + budget.files();
    let lists: usize = pinned.iter().flatten().map(|(_, version)| version.batches().count()).sum();
    let of_spine = spine.version().batches().map(Batch::bytes).sum::<usize>() as u64;
    assert!(alive > 100 * of_spine, "{alive} bytes, {of_spine} in the spine: most is pinned");
    // The lists are not counted; they have no more than 64 bytes per batch.
    assert!(lists * 64 < alive as usize / 10, "{lists} batches in lists, {alive} bytes in pages");
    for number in (0..1000).step_by(111) {
        let (epoch, version) = pinned[number].as_ref().expect("still pinned");
        let batches: Vec<_> = version.batches().cloned().collect();
        // Times were advanced to the next epoch at most.
        let found = at(&contents_of(&batches), &(epoch + 1));
        let mut numbers: Vec<_> = found.into_keys().map(|(_, number)| number).collect();
        numbers.sort_unstable();
        let expected: Vec<_> = rows_of(*epoch).map(|row| row.to_be_bytes().to_vec()).collect();
        assert_eq!(numbers, expected);
    }
    // Whichever are let go, only what the others keep alive is left.
    for number in 0..1000 {
        pinned[number * 7 % 1000] = None;
        if number % 200 == 0 {
            check(&spine, &pinned);
        }
    }
    check(&spine, &[]);
    drop(spine);
    assert_eq!((budget.used(), budget.files()), (0, 0));
}

#[test]
fn a_thousand_versions_on_the_heap_cost_what_they_keep_alive() {
    a_thousand_versions_cost_what_they_keep_alive(&StateContext::default(), None);
}

#[test]
fn a_thousand_versions_cost_what_they_keep_alive_though_merges_end_at_any_time() {
    let erratic = Erratic::new(11);
    let schedule = Schedule { smallest_job: 0, ..Schedule::default() };
    let compaction = erratic.clone() as Arc<dyn Compaction>;
    let context = StateContext::default().with_schedule(schedule).with_compaction(compaction);
    a_thousand_versions_cost_what_they_keep_alive(&context, Some(&erratic));
}

#[test]
fn a_thousand_versions_in_files_cost_the_files_that_they_keep_alive() {
    let storage = Arc::new(MappedMemory::default());
    let context = StateContext::new(MemoryBudget::new(1), Some(storage));
    a_thousand_versions_cost_what_they_keep_alive(&context, None);
}
