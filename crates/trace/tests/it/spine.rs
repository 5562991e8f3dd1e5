//! The rows that a spine shows and holds.

use std::sync::Arc;

use alluvium_trace::StateTrace;
use alluvium_trace::memory::StateContext;
use alluvium_trace::page::{Page, PageLimits};
use alluvium_trace::{Batch, Cursors, Metrics, RowBuffer, Spine, Version};
use differential_dataflow::trace::{Batch as _, BatchReader, Description, Trace, TraceReader};
use proptest::prelude::*;
use timely::PartialOrder;
use timely::order::Product;
use timely::progress::Antichain;

use crate::reference::*;

#[derive(Clone, Debug)]
enum Operation {
    /// Inserts a batch of so many times; the time of each update is taken modulo that.
    Insert(u64, Vec<Update<u64>>),
    /// Advances a compaction frontier to so many times below the upper frontier.
    Logical(u64),
    Physical(u64),
    Exert,
    /// A reader pins what is there.
    Pin,
    /// The reader of this number, modulo the readers, lets go.
    LetGo(usize),
    /// So many slices of jobs are done in the background.
    Background(usize),
}

fn any_operation() -> impl Strategy<Value = Operation> {
    let updates = || any_updates(12);
    prop_oneof![
        4 => (1..4u64, updates()).prop_map(|(times, updates)| Operation::Insert(times, updates)),
        1 => (1..3u64).prop_map(|times| Operation::Insert(times, vec![])),
        2 => (0..4u64).prop_map(Operation::Logical),
        2 => (0..4u64).prop_map(Operation::Physical),
        1 => Just(Operation::Exert),
        1 => Just(Operation::Pin),
        1 => (0..10usize).prop_map(Operation::LetGo),
        2 => (1..20usize).prop_map(Operation::Background),
    ]
}

fn until(epoch: u64) -> Antichain<u64> {
    Antichain::from_elem(epoch)
}

/// Seals these updates, which lie in the interval, into a batch.
fn sealed<T: TestTime>(lower: u64, upper: u64, updates: &[Update<T>], world: &World) -> Batch<T> {
    let mut buffer = RowBuffer::with_limits(world.limits, &world.context);
    for (key, val, time, weight) in updates {
        buffer.push(key, val, time, *weight);
    }
    buffer.seal(Description::new(T::until(lower), T::until(upper), T::until(0)))
}

fn batches<T: TestTime>(spine: &Spine<T>) -> Vec<Batch<T>> {
    let mut batches = Vec::new();
    spine.map_batches(|batch| batches.push(batch.clone()));
    batches
}

/// A spine, and everything that was done to it. A frontier is given as the number of the first time beyond it.
struct Story<T: TestTime> {
    spine: Spine<T>,
    history: Vec<Update<T>>,
    bounds: Vec<u64>,
    logical: u64,
    physical: u64,
    pins: Vec<Pin<T>>,
}

/// The version that a reader has pinned, and when: the compaction frontier, and how much had been inserted.
struct Pin<T: TestTime> {
    version: Version<T>,
    logical: u64,
    updates: usize,
}

impl<T: TestTime> Story<T> {
    fn new(world: &World) -> Self {
        let spine = Spine::in_context(&world.context);
        let (history, bounds, pins) = (Vec::new(), vec![0], Vec::new());
        Story { spine, history, bounds, logical: 0, physical: 0, pins }
    }

    fn upper(&self) -> u64 {
        self.bounds.last().copied().unwrap_or(0)
    }

    fn go(&mut self, operation: Operation, world: &World) {
        let upper = self.upper();
        match operation {
            Operation::Insert(times, updates) => {
                let updates: Vec<Update<T>> = updates
                    .into_iter()
                    .map(|(key, val, time, weight)| {
                        (key, val, T::time(upper + time % times), weight)
                    })
                    .collect();
                self.spine.insert(sealed(upper, upper + times, &updates, world));
                self.history.extend(updates);
                self.bounds.push(upper + times);
            }
            Operation::Logical(behind) => {
                self.logical = self.logical.max(upper.saturating_sub(behind));
                self.spine.set_logical_compaction(T::until(self.logical).borrow());
            }
            Operation::Physical(behind) => {
                self.physical = self.physical.max(upper.saturating_sub(behind));
                self.spine.set_physical_compaction(T::until(self.physical).borrow());
            }
            Operation::Exert => self.spine.exert(),
            Operation::Pin => {
                let version = self.spine.version().clone();
                let updates = self.history.len();
                self.pins.push(Pin { version, logical: self.logical, updates });
            }
            Operation::LetGo(_) if self.pins.is_empty() => {}
            Operation::LetGo(number) => drop(self.pins.swap_remove(number % self.pins.len())),
            Operation::Background(slices) => {
                if let Some(erratic) = &world.erratic {
                    erratic.step(slices);
                }
            }
        }
    }

    /// Lets all merges end.
    fn settle(&mut self, world: &World) {
        while !self.spine.is_settled() {
            if let Some(erratic) = &world.erratic {
                erratic.finish();
            }
            self.spine.exert();
        }
    }

    /// The spine has every bound it may be asked for, and through each, at all times at or beyond its
    /// compaction, what the history before that bound comes to.
    fn check(&mut self) {
        let upper = self.upper();
        let mut edge = T::until(0);
        for batch in batches(&self.spine) {
            assert_eq!(batch.lower(), &edge, "batches are contiguous");
            edge = batch.upper().clone();
        }
        assert_eq!(edge, T::until(upper));
        for &bound in self.bounds.iter().filter(|bound| **bound >= self.physical) {
            let bound = T::until(bound);
            let through = self.spine.batches_through(bound.borrow());
            let through = through.expect("a bound at or beyond physical compaction is a clean cut");
            let inside = |batch: &Batch<T>| PartialOrder::less_equal(batch.upper(), &bound);
            assert!(through.iter().all(inside));
            let history = self.history.iter();
            let before: Vec<_> =
                history.filter(|update| !bound.less_equal(&update.2)).cloned().collect();
            let (through, expected) = (contents_of(&through), reference(&before));
            for time in (0..upper + 5).map(T::time) {
                if T::until(self.logical).less_equal(&time) {
                    let (found, expected) = (at(&through, &time), at(&expected, &time));
                    assert_eq!(found, expected, "through {bound:?} at {time:?}");
                }
            }
        }
    }
}

/// Pinned versions still show the rows of their time, whatever has become of the spine.
fn check_pins<T: TestTime>(pins: &[Pin<T>], history: &[Update<T>]) {
    for Pin { version, logical, updates } in pins {
        let batches: Vec<_> = version.batches().cloned().collect();
        let (found, expected) = (contents_of(&batches), reference(&history[..*updates]));
        for time in times::<T>().filter(|time| T::until(*logical).less_equal(time)) {
            assert_eq!(at(&found, &time), at(&expected, &time), "pinned, at {time:?}");
        }
    }
}

/// A spine that is dropped in the middle of its jobs leaves nothing but what readers have pinned.
fn a_dropped_spine_leaves_its_pins<T: TestTime>(operations: Vec<Operation>, world: World) {
    let mut story = Story::<T>::new(&world);
    operations.into_iter().for_each(|operation| story.go(operation, &world));
    let Story { spine, history, pins, .. } = story;
    drop(spine);
    let budget = world.context.budget();
    assert_eq!(budget.debt(), 0);
    check_pins(&pins, &history);
    drop(pins);
    assert_eq!((budget.used(), budget.files()), (0, 0));
}

fn a_spine_shows_its_history<T: TestTime>(operations: Vec<Operation>, world: World) {
    let mut story = Story::<T>::new(&world);
    for operation in operations {
        story.go(operation, &world);
        story.check();
    }
    story.settle(&world);
    story.check();
    assert_eq!(world.context.budget().debt(), 0);
    check_pins(&story.pins, &story.history);
    let mut spine = story.spine;
    spine.close();
    assert!(spine.batches_through(Antichain::new().borrow()).is_some());
    let closed = batches(&spine).len();
    spine.close();
    assert_eq!(batches(&spine).len(), closed, "a trace is closed once");
}

proptest! {
    #[test]
    fn a_spine_of_epochs_shows_its_history_whatever_was_merged(
        operations in prop::collection::vec(any_operation(), 0..30), world in any_world(),
    ) {
        a_spine_shows_its_history::<u64>(operations, world);
    }

    #[test]
    fn a_spine_of_iterations_shows_its_history_whatever_was_merged(
        operations in prop::collection::vec(any_operation(), 0..30), world in any_world(),
    ) {
        a_spine_shows_its_history::<Product<u64, u64>>(operations, world);
    }

    #[test]
    fn a_spine_of_epochs_leaves_only_its_pins_whenever_it_is_dropped(
        operations in prop::collection::vec(any_operation(), 0..30), world in any_world(),
    ) {
        a_dropped_spine_leaves_its_pins::<u64>(operations, world);
    }

    #[test]
    fn a_spine_of_iterations_leaves_only_its_pins_whenever_it_is_dropped(
        operations in prop::collection::vec(any_operation(), 0..30), world in any_world(),
    ) {
        a_dropped_spine_leaves_its_pins::<Product<u64, u64>>(operations, world);
    }
}

/// A batch of one epoch that gives a weight to each of these numbers as a key.
fn numbers(epoch: u64, numbers: std::ops::Range<u32>, weight: i64) -> Batch<u64> {
    numbers_in(&memory(), epoch, numbers, weight)
}

/// As [`numbers`], in this world.
fn numbers_in(world: &World, epoch: u64, numbers: std::ops::Range<u32>, weight: i64) -> Batch<u64> {
    let updates: Vec<_> =
        numbers.map(|number| (number.to_be_bytes().to_vec(), vec![0; 8], epoch, weight)).collect();
    sealed(epoch, epoch + 1, &updates, world)
}

fn memory() -> World {
    World::in_memory(PageLimits::default())
}

/// Advances both compaction frontiers to the epoch.
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
    let mut spine = Spine::in_context(&StateContext::default());
    for epoch in 0..1000u64 {
        let start = epoch as u32 * 10;
        spine.insert(numbers(epoch, start..start + 10, 1));
        spine.set_physical_compaction(until(epoch + 1).borrow());
        assert!(batches(&spine).len() <= 14);
    }
    assert_eq!(held(&spine), 10_000);
}

#[test]
fn contents_that_cancel_release_their_memory() {
    let mut spine = Spine::in_context(&StateContext::default());
    spine.insert(numbers(0, 0..10_000, 1));
    follow(&mut spine, 1);
    for epoch in 1..=10u64 {
        let start = (epoch as u32 - 1) * 1000;
        spine.insert(numbers(epoch, start..start + 1000, -1));
        spine.set_physical_compaction(until(epoch + 1).borrow());
    }
    // Readers at epoch 1 and beyond can tell it all apart, but for what came at 0 and at 1.
    assert_eq!(held(&spine), 20_000);
    follow(&mut spine, 11);
    assert_eq!(held(&spine), 0);
    assert!(batches(&spine).iter().all(|batch| batch.bytes() == 0));
}

#[test]
fn a_single_batch_that_cancels_releases_its_memory() {
    let mut spine = Spine::in_context(&StateContext::default());
    let limits = PageLimits { bytes: 1, updates: 1 };
    spine.insert(sealed(
        0,
        2,
        &[(vec![], vec![], 0, 1), (vec![], vec![], 1, -1)],
        &World::in_memory(limits),
    ));
    follow(&mut spine, 1);
    assert_eq!(held(&spine), 2);
    follow(&mut spine, 2);
    assert_eq!(held(&spine), 0);
}

/// The addresses of the first pages: a merge would change them.
fn places<T: TestTime>(spine: &Spine<T>) -> Vec<*const Page> {
    let places = batches(spine).into_iter();
    places.map(|batch| &raw const *batch.page(0)).collect()
}

#[test]
fn a_spine_at_rest_is_not_merged_again() {
    type Iteration = Product<u64, u64>;
    let mut spine = Spine::in_context(&StateContext::default());
    // Two times that stay two: iteration 3 of epoch 1 can tell them apart.
    let updates: Vec<_> = [0, 3].map(|number| (vec![], vec![], Iteration::time(number), 1)).into();
    spine.insert(sealed(0, 7, &updates, &memory()));
    spine.set_logical_compaction(Iteration::until(7).borrow());
    spine.set_physical_compaction(Iteration::until(7).borrow());
    let _kept = batches(&spine);
    let before = places(&spine);
    spine.exert();
    assert_eq!(batches(&spine)[0].len(), 2);
    assert_eq!(places(&spine), before);
}

#[test]
fn churn_that_a_reader_holds_back_is_released_when_the_reader_advances() {
    let mut spine = Spine::in_context(&StateContext::default());
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
fn a_spine_under_churn_stays_in_proportion_to_its_contents() {
    let mut spine = Spine::in_context(&StateContext::default());
    for epoch in 0..2000u64 {
        let start = epoch as u32;
        let mut updates = vec![(start.to_be_bytes().to_vec(), vec![], epoch, 1)];
        if let Some(old) = start.checked_sub(100) {
            updates.push((old.to_be_bytes().to_vec(), vec![], epoch, -1));
        }
        spine.insert(sealed(epoch, epoch + 1, &updates, &memory()));
        follow(&mut spine, epoch + 1);
        assert!(held(&spine) <= 400, "{} at {epoch}", held(&spine));
    }
}

#[test]
fn empty_batches_take_no_layers() {
    let mut spine = Spine::in_context(&StateContext::default());
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
fn no_batch_is_before_all_times() {
    let mut spine = Spine::in_context(&StateContext::default());
    spine.insert(numbers(0, 0..10, 1));
    follow(&mut spine, 1);
    assert!(spine.batches_through(until(0).borrow()).unwrap().is_empty());
}

#[test]
fn no_batch_straddles_the_bound_asked_for() {
    let mut spine = Spine::in_context(&StateContext::default());
    spine.insert(sealed(0, 4, &[(vec![], vec![], 1, 1)], &memory()));
    assert!(spine.batches_through(until(2).borrow()).is_none());
    assert_eq!(spine.batches_through(until(4).borrow()).unwrap().len(), 1);
}

#[test]
#[should_panic(expected = "a batch starts where the last one ended")]
fn a_gap_is_refused() {
    Spine::in_context(&StateContext::default()).insert(Batch::<u64>::empty(until(1), until(5)));
}

#[test]
fn batches_of_any_sizes_make_few_layers() {
    let mut spine = Spine::in_context(&StateContext::default());
    // Each a little smaller than the last: no two neighbours are alike, yet they must not pile up.
    for epoch in 0..100u64 {
        let start = epoch as u32 * 1000;
        spine.insert(numbers(epoch, start..start + 200 - epoch as u32, 1));
        spine.set_physical_compaction(until(epoch + 1).borrow());
        assert!(batches(&spine).len() <= 10);
    }
}

/// If layers were merged two at a time, each update would be written seven times here.
#[test]
fn layers_in_files_are_rewritten_seldom_and_stay_few() {
    let world = World::in_files(PageLimits::default());
    let mut spine = Spine::in_context(&world.context);
    let mut entered = 0;
    for epoch in 0..64u64 {
        let start = epoch as u32 * 1000;
        spine.insert(numbers_in(&world, epoch, start..start + 1000, 1));
        entered = entered.max(world.context.budget().files() / (epoch + 1));
        spine.set_physical_compaction(until(epoch + 1).borrow());
        assert!(batches(&spine).iter().all(Batch::is_file));
        assert!(batches(&spine).len() <= 14, "{} layers", batches(&spine).len());
    }
    assert_eq!(held(&spine), 64_000);
    let (written, once) = (world.context.budget().written(), 64 * entered);
    assert!(written <= 3 * once, "{written} bytes of {once}");
}

#[test]
fn layers_are_in_proportion_after_the_oldest_has_shrunk() {
    let mut spine = Spine::in_context(&StateContext::default());
    spine.insert(numbers(0, 0..1000, 1));
    spine.insert(numbers(1, 0..600, -1));
    spine.insert(numbers(2, 2000..2300, 1));
    spine.insert(numbers(3, 3000..3280, 1));
    spine.insert(numbers(4, 4000..4260, 1));
    spine.set_physical_compaction(until(5).borrow());
    let sizes = |spine: &Spine<u64>| -> Vec<_> { batches(spine).iter().map(Batch::len).collect() };
    assert_eq!(sizes(&spine), [1000, 600, 300, 280, 260]);
    spine.set_logical_compaction(until(2).borrow());
    spine.exert();
    // It has as many updates as the next three each, and is merged with them.
    assert_eq!(sizes(&spine), [1240]);
}

#[test]
fn a_spine_that_is_read_has_fewer_layers_than_one_that_is_only_written() {
    let layers_and_merges = |look_ups: u64| {
        let metrics = Arc::new(Metrics::default());
        let context = StateContext::default().for_worker(metrics.clone());
        let mut spine = Spine::in_context(&context);
        let (mut layers, mut sought) = (0, 0);
        for epoch in 0..100u64 {
            // Each layer has keys everywhere.
            let row = |row: u64| ((row * 100 + epoch).to_be_bytes().to_vec(), vec![], epoch, 1);
            let rows: Vec<_> = (0..100).map(row).collect();
            spine.insert(sealed(epoch, epoch + 1, &rows, &memory()));
            spine.set_physical_compaction(until(epoch + 1).borrow());
            let mut cursors = Cursors::new(batches(&spine));
            for key in 0..look_ups {
                cursors.seek_key(&(key * 100 + 1).to_be_bytes());
                sought += 1;
            }
            layers += batches(&spine).len();
        }
        let spine = metrics.spines().swap_remove(0);
        assert!(spine.seeks >= sought * 9 / 10, "{} of {sought} seeks", spine.seeks);
        (layers, spine.merges, spine.merges_for_reads)
    };
    let (unread, merges, for_reads) = layers_and_merges(0);
    assert!(merges > 20 && for_reads == 0);
    let (read, merges, for_reads) = layers_and_merges(100);
    assert!(for_reads > merges / 2, "{for_reads} of {merges} merges");
    assert!(read < unread * 2 / 3, "{read} layers instead of {unread}");
}
