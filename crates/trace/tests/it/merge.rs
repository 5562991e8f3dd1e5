use std::collections::BTreeSet;

use alluvium_trace::memory::{StateContext, context};
use alluvium_trace::page::PageLimits;
use alluvium_trace::{Batch, merge};
use differential_dataflow::trace::{Batch as _, Description, Merger};
use proptest::prelude::*;
use timely::order::Product;
use timely::progress::Antichain;

use crate::outcome::outcome;
use crate::reference::*;

/// A merge has the contents of its sources at each time at or beyond `since`, and is consolidated.
fn a_merge_has_the_contents_of_its_sources<T: TestTime>(
    batches: Vec<(Vec<Update<T>>, World)>,
    since: Antichain<T>,
    into: World,
) {
    let all: Vec<Update<T>> = batches.iter().flat_map(|(updates, _)| updates.clone()).collect();
    let sources: Vec<_> = batches.iter().map(|(updates, world)| batch_in(world, updates)).collect();
    let merged = merge(&sources, since.borrow(), all_times(), &into.context);
    let (merged, expected) = (contents(&merged), reference(&all));
    for time in times::<T>().filter(|time| since.less_equal(time)) {
        assert_eq!(at(&merged, &time), at(&expected, &time), "at {time:?}");
    }
    let mut seen = BTreeSet::new();
    for (key, val, time) in merged.keys() {
        let mut advanced = *time;
        differential_dataflow::lattice::Lattice::advance_by(&mut advanced, since.borrow());
        assert!(seen.insert((key, val, advanced)), "updates of a row that are one are added up");
    }
}

/// A merge in small steps has the result of one at once, and reports when it is complete.
fn fuel_makes_no_difference<T: TestTime>(
    earlier: Vec<Update<T>>,
    later: Vec<Update<T>>,
    world: World,
    since: Antichain<T>,
    portion: isize,
) {
    let minimum = Antichain::from_elem(T::minimum());
    let middle = Antichain::from_elem(T::time(T::RANGE));
    let describe =
        |lower: &Antichain<T>, upper| Description::new(lower.clone(), upper, minimum.clone());
    let earlier = batch_in(&world, &earlier).described(describe(&minimum, middle.clone()));
    let later = batch_in(&world, &later).described(describe(&middle, Antichain::new()));
    context::enter(world.context.clone());
    let mut merger = earlier.begin_merge(&later, since.borrow());
    let mut calls = 0;
    loop {
        let mut fuel = portion;
        merger.work(&earlier, &later, &mut fuel);
        if fuel > 0 {
            break;
        }
        calls += 1;
        assert!(calls <= earlier.len() + later.len(), "each call makes some progress");
    }
    let merged = merger.done();
    assert_eq!(merged.description().lower(), &minimum);
    assert_eq!(merged.description().upper(), &Antichain::new());
    assert_eq!(merged.description().since(), &since);
    // A cursor advances times to the since of its batch, so both batches have the same.
    let description = merged.description().clone();
    let at_once = merge(&[earlier, later], since.borrow(), description, &world.context);
    assert_eq!(contents(&merged), contents(&at_once));
}

proptest! {
    #[test]
    fn a_merge_of_epochs_has_the_contents_of_its_sources(
        batches in prop::collection::vec((any_updates(30), any_world()), 0..5), since in any_frontier(),
        into in any_world(),
    ) {
        a_merge_has_the_contents_of_its_sources::<u64>(batches, since, into);
    }

    #[test]
    fn a_merge_of_iterations_has_the_contents_of_its_sources(
        batches in prop::collection::vec((any_updates(30), any_world()), 0..5), since in any_frontier(),
        into in any_world(),
    ) {
        a_merge_has_the_contents_of_its_sources::<Product<u64, u64>>(batches, since, into);
    }

    #[test]
    fn fuel_makes_no_difference_to_epochs(
        earlier in any_updates(30), later in any_updates(30), world in any_world(), since in any_frontier(),
        portion in 1isize..20,
    ) {
        fuel_makes_no_difference::<u64>(earlier, later, world, since, portion);
    }

    #[test]
    fn fuel_makes_no_difference_to_iterations(
        earlier in any_updates(30), later in any_updates(30), world in any_world(), since in any_frontier(),
        portion in 1isize..20,
    ) {
        fuel_makes_no_difference::<Product<u64, u64>>(earlier, later, world, since, portion);
    }
}

#[test]
fn rows_that_cancel_leave_no_page() {
    let insert = batch(&[(vec![1], vec![], 1u64, 1), (vec![2], vec![], 1, 1)], Default::default());
    let delete =
        batch(&[(vec![1], vec![], 2u64, -1), (vec![2], vec![], 3, -1)], Default::default());
    let merged = merge(
        &[insert, delete],
        Antichain::from_elem(3).borrow(),
        all_times(),
        &StateContext::default(),
    );
    assert!(merged.is_empty() && merged.pages() == 0);
}

#[test]
fn with_an_empty_since_times_stay() {
    let updates = [(vec![1], vec![], 1u64, 1), (vec![1], vec![], 2, -1)];
    let source = batch(&updates, Default::default());
    let merged = merge(&[source], Antichain::new().borrow(), all_times(), &StateContext::default());
    assert_eq!(contents(&merged), reference(&updates));
}

#[test]
fn a_weight_that_overflows_in_a_merge_is_an_error() {
    let one = batch(&[(vec![], vec![], 1u64, i64::MIN)], Default::default());
    let other = batch(&[(vec![], vec![], 2u64, -1)], Default::default());
    let since = Antichain::from_elem(5);
    let merged = || merge(&[one, other], since.borrow(), all_times(), &StateContext::default());
    let error = outcome(merged).map(drop).unwrap_err();
    assert!(error.contains("left the range of a 64-bit integer"), "{error}");
}

#[test]
fn pages_behind_a_small_page_are_taken_over_whole() {
    let rows = |range: std::ops::Range<u32>| {
        let rows: Vec<Update<u64>> =
            range.map(|row| (row.to_be_bytes().to_vec(), vec![7; 20], 0, 1)).collect();
        batch(&rows, PageLimits { bytes: 1000, updates: 1 << 16 })
    };
    let on_a_page = rows(0..100).page(0).updates() as u32;
    let [first, second] = [rows(0..10 * on_a_page + 3), rows(1000..2000)];
    assert_eq!(first.page(10).updates(), 3, "the first ends in a small page");
    let merged = merge(
        &[first.clone(), second.clone()],
        Antichain::new().borrow(),
        all_times(),
        &StateContext::default(),
    );
    let pages = |batch: &Batch<u64>| -> BTreeSet<*const u8> {
        (0..batch.pages()).map(|page| batch.page(page).bytes().as_ptr()).collect()
    };
    let stayed = pages(&merged).intersection(&(&pages(&first) | &pages(&second))).count();
    assert_eq!(stayed, first.pages() + second.pages() - 2, "but for the small one and the next");
    assert!(merged.pages() <= first.pages() + second.pages());
    assert_eq!(merged.len(), first.len() + second.len());
}
