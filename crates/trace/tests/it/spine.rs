use alluvium_trace::page::PageLimits;
use alluvium_trace::{Batch, RowBuffer, Spine};
use differential_dataflow::trace::{Batch as _, BatchReader, Description, Trace, TraceReader};
use proptest::prelude::*;
use timely::progress::Antichain;

use crate::reference::*;

#[derive(Clone, Debug)]
enum Operation {
    /// Inserts a batch over so many epochs; each update's time is taken into them.
    Insert(u64, Vec<Update<u64>>),
    /// Lets logical or physical compaction follow to so far behind the upper frontier.
    Logical(u64),
    Physical(u64),
    Exert,
}

fn any_operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        4 => (1..4u64, any_updates(12)).prop_map(|(epochs, updates)| Operation::Insert(epochs, updates)),
        1 => (1..3u64).prop_map(|epochs| Operation::Insert(epochs, vec![])),
        2 => (0..4u64).prop_map(Operation::Logical),
        2 => (0..4u64).prop_map(Operation::Physical),
        1 => Just(Operation::Exert),
    ]
}

fn until(epoch: u64) -> Antichain<u64> {
    Antichain::from_elem(epoch)
}

/// Seals these updates, which lie in the interval, into a batch.
fn sealed(lower: u64, upper: u64, updates: &[Update<u64>], limits: PageLimits) -> Batch<u64> {
    let mut buffer = RowBuffer::with_limits(limits);
    for (key, val, time, weight) in updates {
        buffer.push(key, val, time, *weight);
    }
    buffer.seal(Description::new(until(lower), until(upper), until(0)))
}

fn batches(spine: &Spine<u64>) -> Vec<Batch<u64>> {
    let mut batches = Vec::new();
    spine.map_batches(|batch| batches.push(batch.clone()));
    batches
}

/// The spine shows every bound it may be asked for, and at all times at or beyond its compaction the sums.
fn check(
    spine: &mut Spine<u64>,
    history: &[Update<u64>],
    bounds: &[u64],
    logical: u64,
    physical: u64,
) {
    let upper = *bounds.last().unwrap();
    let found = batches(spine);
    let mut edge = until(0);
    for batch in &found {
        assert_eq!(batch.lower(), &edge, "batches are contiguous");
        edge = batch.upper().clone();
    }
    assert_eq!(edge, until(upper));
    for &bound in bounds.iter().filter(|bound| **bound >= physical) {
        let through = spine.batches_through(until(bound).borrow());
        let through = through.expect("a bound at or beyond physical compaction is a clean cut");
        assert!(through.iter().all(|batch| batch.upper().borrow()[0] <= bound));
        let before: Vec<_> = history.iter().filter(|update| update.2 < bound).cloned().collect();
        let (through, expected) = (contents_of(&through), reference(&before));
        for time in logical..upper + 2 {
            assert_eq!(at(&through, &time), at(&expected, &time), "through {bound} at {time}");
        }
    }
}

proptest! {
    #[test]
    fn a_spine_shows_its_history_whatever_was_merged(
        operations in prop::collection::vec(any_operation(), 0..30), limits in any_limits(),
    ) {
        let mut spine = Spine::default();
        let (mut history, mut bounds) = (Vec::new(), vec![0]);
        let (mut logical, mut physical) = (0, 0);
        for operation in operations {
            let upper = *bounds.last().unwrap();
            match operation {
                Operation::Insert(epochs, mut updates) => {
                    for update in &mut updates {
                        update.2 = upper + update.2 % epochs;
                    }
                    spine.insert(sealed(upper, upper + epochs, &updates, limits));
                    history.extend(updates);
                    bounds.push(upper + epochs);
                }
                Operation::Logical(behind) => {
                    logical = logical.max(upper.saturating_sub(behind));
                    spine.set_logical_compaction(until(logical).borrow());
                }
                Operation::Physical(behind) => {
                    physical = physical.max(upper.saturating_sub(behind));
                    spine.set_physical_compaction(until(physical).borrow());
                }
                Operation::Exert => spine.exert(),
            }
            check(&mut spine, &history, &bounds, logical, physical);
        }
        spine.close();
        prop_assert!(spine.batches_through(Antichain::new().borrow()).is_some());
        spine.close();
    }
}

/// A batch of one epoch that gives a weight to each of these numbers as a key.
fn numbers(epoch: u64, numbers: std::ops::Range<u32>, weight: i64) -> Batch<u64> {
    let updates: Vec<_> =
        numbers.map(|number| (number.to_be_bytes().to_vec(), vec![0; 8], epoch, weight)).collect();
    sealed(epoch, epoch + 1, &updates, PageLimits::default())
}

/// Lets both compactions follow to the epoch.
fn follow(spine: &mut Spine<u64>, epoch: u64) {
    spine.set_logical_compaction(until(epoch).borrow());
    spine.set_physical_compaction(until(epoch).borrow());
    spine.exert();
}

fn held(spine: &Spine<u64>) -> usize {
    batches(spine).iter().map(Batch::len).sum()
}

#[test]
fn a_spine_has_few_batches() {
    let mut spine = Spine::default();
    for epoch in 0..1000u64 {
        let start = epoch as u32 * 10;
        spine.insert(numbers(epoch, start..start + 10, 1));
        spine.set_physical_compaction(until(epoch + 1).borrow());
        assert!(batches(&spine).len() <= 14);
    }
    assert_eq!(held(&spine), 10_000);
}

#[test]
fn contents_that_cancelled_give_their_memory_back() {
    let mut spine = Spine::default();
    spine.insert(numbers(0, 0..10_000, 1));
    follow(&mut spine, 1);
    for epoch in 1..=10u64 {
        let start = (epoch as u32 - 1) * 1000;
        spine.insert(numbers(epoch, start..start + 1000, -1));
    }
    assert_eq!(held(&spine), 20_000);
    follow(&mut spine, 11);
    assert_eq!(held(&spine), 0);
    assert!(batches(&spine).iter().all(|batch| batch.bytes() == 0));
}

#[test]
fn churn_that_waits_for_a_reader_is_given_back_when_it_goes_on() {
    let mut spine = Spine::default();
    for epoch in 0..100u64 {
        let start = (epoch / 2) as u32 * 100;
        let weight = if epoch % 2 == 0 { 1 } else { -1 };
        spine.insert(numbers(epoch, start..start + 100, weight));
        // Batches may be merged, but times may not yet be told apart less.
        spine.set_physical_compaction(until(epoch + 1).borrow());
    }
    assert_eq!(held(&spine), 10_000);
    spine.set_logical_compaction(until(100).borrow());
    spine.exert();
    assert_eq!(held(&spine), 0);
}

#[test]
fn steady_churn_keeps_a_spine_in_proportion_to_its_contents() {
    let mut spine = Spine::default();
    for epoch in 0..2000u64 {
        let start = epoch as u32;
        let mut updates = vec![(start.to_be_bytes().to_vec(), vec![], epoch, 1)];
        if let Some(old) = start.checked_sub(100) {
            updates.push((old.to_be_bytes().to_vec(), vec![], epoch, -1));
        }
        spine.insert(sealed(epoch, epoch + 1, &updates, PageLimits::default()));
        follow(&mut spine, epoch + 1);
        assert!(held(&spine) <= 400, "{} at {epoch}", held(&spine));
    }
}

#[test]
fn empty_batches_take_no_layers() {
    let mut spine = Spine::default();
    spine.insert(numbers(0, 0..10, 1));
    for epoch in 1..100 {
        spine.insert(Batch::empty(until(epoch), until(epoch + 1)));
        follow(&mut spine, epoch + 1);
    }
    assert_eq!(batches(&spine).len(), 1);
    assert_eq!(held(&spine), 10);
    let mut upper = Antichain::new();
    spine.read_upper(&mut upper);
    assert_eq!(upper, until(100));
}

#[test]
fn before_all_times_there_are_no_batches() {
    let mut spine = Spine::default();
    spine.insert(numbers(0, 0..10, 1));
    follow(&mut spine, 1);
    assert!(spine.batches_through(until(0).borrow()).unwrap().is_empty());
}

#[test]
fn no_batch_straddles_the_bound_asked_for() {
    let mut spine = Spine::default();
    spine.insert(sealed(0, 4, &[(vec![], vec![], 1, 1)], PageLimits::default()));
    assert!(spine.batches_through(until(2).borrow()).is_none());
    assert_eq!(spine.batches_through(until(4).borrow()).unwrap().len(), 1);
}

#[test]
#[should_panic(expected = "a batch starts where the last one ended")]
fn a_gap_is_refused() {
    Spine::default().insert(Batch::<u64>::empty(until(1), until(5)));
}
