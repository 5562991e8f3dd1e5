//! Spines that are pruned: needed rows are there, and others go.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use alluvium_storage::Storage;
use alluvium_trace::memory::StateContext;
use alluvium_trace::page::PageLimits;
use alluvium_trace::{
    Batch, BatchBuilder, Bound, BoundColumn, Epoch, Merging, Pruning, RowBuffer, Schedule, Spine,
    StateTrace,
};
use differential_dataflow::trace::{Description, Trace, TraceReader};
use proptest::prelude::*;
use timely::progress::Antichain;

use crate::mapped::MappedMemory;
use crate::reference::{World, any_world, at, contents_of, reference, with_storage};

/// From epoch `e` on all changes have at least `e * STEP - SLACK`, or NULL.
const STEP: i64 = 10;
const SLACK: i64 = 25;

fn least(epoch: Epoch) -> i64 {
    epoch as i64 * STEP - SLACK
}

/// Prunes below the least value of changes that can come, but for some of the last rows.
#[derive(Clone, Copy, Debug)]
struct Below {
    column: BoundColumn,
    last: usize,
}

impl Below {
    fn at(self, epoch: Epoch) -> Bound {
        Bound { column: self.column, least: least(epoch), last: self.last }
    }
}

impl Pruning for Below {
    fn column(&self) -> BoundColumn {
        self.column
    }

    fn bound(&self, epoch: Epoch) -> Option<Bound> {
        Some(self.at(epoch))
    }

    fn describe(&self, least: i64) -> String {
        least.to_string()
    }
}

/// Where rows have their number.
#[derive(Clone, Copy, Debug)]
enum Place {
    FirstInKey,
    BehindInKey,
    Value,
    /// The order of values.
    Order {
        descending: bool,
    },
}

impl Place {
    fn column(self) -> BoundColumn {
        match self {
            Place::FirstInKey => BoundColumn::Key { at: 0, width: 8 },
            Place::BehindInKey => BoundColumn::Key { at: 1, width: 8 },
            Place::Value => BoundColumn::Value { at: 1, width: 8, null: 0 },
            Place::Order { descending } => BoundColumn::Order { width: 8, descending },
        }
    }

    fn is_order(self) -> bool {
        matches!(self, Place::Order { .. })
    }

    /// A row with a number or NULL.
    fn row(self, number: Option<i64>, other: u8) -> (Vec<u8>, Vec<u8>) {
        let mut sorted = vec![u8::from(number.is_some())];
        sorted.extend((number.unwrap_or_default() ^ i64::MIN).to_be_bytes());
        let mut plain = vec![u8::from(number.is_none())];
        plain.extend(number.unwrap_or_default().to_le_bytes());
        match self {
            Place::FirstInKey => ([sorted, vec![other]].concat(), vec![other % 2]),
            Place::BehindInKey => ([vec![other], sorted].concat(), Vec::new()),
            Place::Value => (vec![other], plain),
            Place::Order { descending } => {
                if descending && number.is_some() {
                    sorted[1..].iter_mut().for_each(|byte| *byte = !*byte);
                }
                (vec![other], sorted)
            }
        }
    }
}

/// A change: how far its number is above the least one or `None` for NULL, what else is in the row, and the weight.
type Change = (Option<u8>, u8, bool);

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let number = prop_oneof![12 => (0..60u8).prop_map(Some), 1 => Just(None)];
    proptest::collection::vec((number, 0..5u8, any::<bool>()), 0..30)
}

fn until(epoch: Epoch) -> Antichain<Epoch> {
    Antichain::from_elem(epoch)
}

/// A spine and all that was ever inserted into it.
struct Trial {
    place: Place,
    by: Below,
    context: StateContext,
    limits: PageLimits,
    spine: Spine<Epoch>,
    inserted: Vec<(Vec<u8>, Vec<u8>, Epoch, i64)>,
}

impl Trial {
    fn new(place: Place, last: usize, world: &World) -> Self {
        let by = Below { column: place.column(), last };
        let context = world.context.with_pruning(Arc::new(by));
        let spine = Spine::in_context(&context);
        Self { place, by, context, limits: world.limits, spine, inserted: Vec::new() }
    }

    fn insert(&mut self, epoch: Epoch, changes: &[Change]) {
        let mut rows = Vec::new();
        for &(above, other, is_inserted) in changes {
            let number = above.map(|above| least(epoch) + i64::from(above));
            let (key, value) = self.place.row(number, other);
            // Where the last rows are needed none is deleted.
            let weight = if is_inserted || self.by.last > 0 { 1 } else { -1 };
            rows.push((key, value, epoch, weight));
        }
        rows.sort();
        let mut builder = BatchBuilder::with_limits(self.limits, &self.context);
        for (key, value, time, weight) in &rows {
            builder.push(key, value, time, *weight);
        }
        self.inserted.append(&mut rows);
        let description = Description::new(until(epoch), until(epoch + 1), until(0));
        self.spine.insert(builder.finish(description));
    }

    /// A reader for changes at `from` or later finds all that it may need, and nothing else than what was inserted.
    fn check(&mut self, from: Epoch, now: Epoch) {
        let all = at(&reference(&self.inserted), &now);
        let batches: Vec<Batch<Epoch>> = self.spine.version().batches().cloned().collect();
        let found = at(&contents_of(&batches), &now);
        let bound = self.by.at(from);
        let descending = matches!(self.place, Place::Order { descending: true });
        let is_needed = |row: &(Vec<u8>, Vec<u8>)| {
            let is_after = |other: &&(Vec<u8>, Vec<u8>)| {
                let is_after = if descending { other.1 < row.1 } else { other.1 > row.1 };
                is_after && other.0 == row.0 && bound.forgets(&other.0, &other.1)
            };
            !bound.forgets(&row.0, &row.1) || all.keys().filter(is_after).count() < self.by.last
        };
        for (row, weight) in &all {
            assert!(
                !is_needed(row) || found.get(row) == Some(weight),
                "{row:?} is missing, which changes at {from} may need"
            );
        }
        for (row, weight) in &found {
            let is_right = all.get(row) == Some(weight);
            assert!(is_right || !is_needed(row), "{row:?} has a wrong weight");
        }
    }
}

proptest! {
    /// Holds whatever the merges do, and wherever the number is in a row.
    #[test]
    fn what_later_changes_may_need_is_never_pruned(
        world in any_world(),
        (place, last) in proptest::sample::select(&PLACES[..])
            .prop_flat_map(|place| (Just(place), 0..if place.is_order() { 4_usize } else { 1 })),
        epochs in proptest::collection::vec((changes(), 0..4u64, 0..4u64), 1..25),
    ) {
        let mut trial = Trial::new(place, last, &world);
        let (mut logical, mut physical) = (0, 0);
        for (epoch, (changes, logical_lag, physical_lag)) in epochs.iter().enumerate() {
            let epoch = epoch as u64;
            trial.insert(epoch, changes);
            logical = logical.max((epoch + 1).saturating_sub(*logical_lag));
            physical = physical.max((epoch + 1).saturating_sub(*physical_lag));
            trial.spine.set_logical_compaction(until(logical).borrow());
            trial.spine.set_physical_compaction(until(physical).borrow());
            if let Some(erratic) = &world.erratic {
                erratic.step(2);
            }
            trial.check(logical, epoch + 1);
        }
        if let Some(erratic) = &world.erratic {
            erratic.finish();
        }
        trial.spine.exert();
        trial.check(logical, epochs.len() as u64);
    }
}

/// The state of a spine does not grow with the number of epochs that have passed.
#[test]
fn a_pruned_spine_stays_as_large_as_what_is_needed() {
    let orders = PLACES.into_iter().filter(|place| place.is_order());
    for (place, last) in PLACES.map(|place| (place, 0)).into_iter().chain(orders.map(|it| (it, 2)))
    {
        let by = Below { column: place.column(), last };
        let context = StateContext::default().with_pruning(Arc::new(by));
        let mut spine = Spine::in_context(&context);
        let mut most = [0, 0];
        for epoch in 0..4_000 {
            let mut buffer = RowBuffer::new(&context);
            for number in 0..20 {
                let (key, value) = place.row(Some(least(epoch) + number * 3), number as u8);
                buffer.push(&key, &value, &epoch, 1);
            }
            spine.insert(buffer.seal(Description::new(until(epoch), until(epoch + 1), until(0))));
            spine.set_logical_compaction(until(epoch + 1).borrow());
            spine.set_physical_compaction(until(epoch + 1).borrow());
            let rows: usize = spine.version().batches().map(Batch::len).sum();
            let half = &mut most[usize::from(epoch >= 2_000)];
            *half = rows.max(*half);
        }
        // About a hundred rows are needed at any time, and two more of each key, and 80,000 were inserted.
        assert!(most[1] <= most[0] + 40 && most[1] < 1_000, "{place:?}, {last}: {most:?} rows");
    }
}

/// A merge took a page over as it was if its first row was needed, though that was one with NULL and others on it were not. The
/// spine saw that they were still there, and wrote the page again for ever.
#[test]
fn rows_behind_null_on_a_page_are_dropped() {
    let place = Place::FirstInKey;
    let least = Arc::new(Least::new(place.column()));
    let context = StateContext::default().with_pruning(least.clone());
    let mut spine = Spine::in_context(&context);
    let mut buffer = RowBuffer::new(&context);
    for number in [None, Some(1), Some(2), Some(3), Some(9)] {
        let (key, value) = place.row(number, 0);
        buffer.push(&key, &value, &0, 1);
    }
    spine.insert(buffer.seal(Description::new(until(0), until(1), until(0))));
    least.1.store(5, Ordering::Relaxed);
    spine.set_logical_compaction(until(1).borrow());
    spine.set_physical_compaction(until(1).borrow());
    assert_eq!(spine.version().batches().map(Batch::len).sum::<usize>(), 2);
}

/// Prunes below a value that a test moves.
#[derive(Debug)]
pub struct Least(BoundColumn, AtomicI64, usize);

impl Least {
    /// Below nothing at first.
    pub fn new(column: BoundColumn) -> Self {
        Self(column, AtomicI64::new(i64::MIN), 0)
    }
}

impl Pruning for Least {
    fn column(&self) -> BoundColumn {
        self.0
    }

    fn bound(&self, _: Epoch) -> Option<Bound> {
        Some(Bound { column: self.0, least: self.1.load(Ordering::Relaxed), last: self.2 })
    }

    fn describe(&self, least: i64) -> String {
        least.to_string()
    }
}

/// A spine whose bound a test moves, with state on the heap or in files that count what is read of them.
struct Moved {
    place: Place,
    least: Arc<Least>,
    storage: Arc<MappedMemory>,
    context: StateContext,
    spine: Spine<Epoch>,
    epoch: Epoch,
}

impl Moved {
    fn new(place: Place, memory: usize, merging: Merging) -> Self {
        Self::keeping(Least::new(place.column()), place, memory, merging)
    }

    fn keeping(least: Least, place: Place, memory: usize, merging: Merging) -> Self {
        let (least, storage) = (Arc::new(least), Arc::new(MappedMemory::default()));
        let schedule = Schedule { merging, ..Schedule::default() };
        let context = with_storage(memory, Arc::clone(&storage) as Arc<dyn Storage>);
        let context =
            context.with_schedule(schedule).with_pruning(Arc::clone(&least) as Arc<dyn Pruning>);
        let spine = Spine::in_context(&context);
        Self { place, least, storage, context, spine, epoch: 0 }
    }

    /// Inserts rows of these numbers, with values of some length.
    fn insert(&mut self, numbers: Range<i64>) {
        let mut buffer = RowBuffer::new(&self.context);
        for number in numbers {
            let (mut key, mut value) = self.place.row(Some(number), (number % 251) as u8);
            key.extend(number.to_be_bytes());
            value.resize(100, 7);
            buffer.push(&key, &value, &self.epoch, 1);
        }
        let (from, to) = (until(self.epoch), until(self.epoch + 1));
        self.spine.insert(buffer.seal(Description::new(from, to, until(0))));
        self.epoch += 1;
        self.settle();
    }

    fn settle(&mut self) {
        self.spine.set_logical_compaction(until(self.epoch).borrow());
        self.spine.set_physical_compaction(until(self.epoch).borrow());
    }

    /// Moves the bound. Returns the bytes that are read of files because of that.
    fn move_to(&mut self, least: i64) -> u64 {
        let before = self.storage.read.load(Ordering::Relaxed);
        self.least.1.store(least, Ordering::Relaxed);
        self.settle();
        self.storage.read.load(Ordering::Relaxed) - before
    }

    fn rows(&self) -> usize {
        self.spine.version().batches().map(Batch::len).sum()
    }

    fn files(&self) -> usize {
        self.storage.list("").unwrap().len()
    }
}

const PLACES: [Place; 5] = [
    Place::FirstInKey,
    Place::BehindInKey,
    Place::Value,
    Place::Order { descending: false },
    Place::Order { descending: true },
];

/// Batches of which nothing is needed go as a whole: nothing is read or written, and files are deleted.
#[test]
fn batches_below_a_bound_go_unread() {
    for place in PLACES {
        for memory in [1, usize::MAX] {
            let mut moved = Moved::new(place, memory, Merging::Never);
            for number in 0..8 {
                moved.insert(number * 1_000..(number + 1) * 1_000);
            }
            let files = if memory == 1 { 8 } else { 0 };
            assert_eq!((moved.rows(), moved.files()), (8_000, files));
            assert_eq!(moved.move_to(5_000), 0, "{place:?}: nothing is read");
            assert_eq!((moved.rows(), moved.files()), (3_000, files * 3 / 8), "{place:?}");
            // A reader that has pinned them keeps them.
            let pinned = moved.spine.version().clone();
            assert_eq!(moved.move_to(8_000), 0);
            assert_eq!((moved.rows(), moved.files()), (0, files * 3 / 8));
            drop(pinned);
            assert_eq!(moved.files(), 0);
        }
    }
}

/// A file says itself what it has, also when it is opened again.
#[test]
fn a_batch_that_is_opened_again_goes_unread() {
    let mut moved = Moved::new(Place::Value, 1, Merging::Never);
    moved.insert(0..1_000);
    let names = moved.storage.list("").unwrap();
    let blob = moved.storage.open(&names[0]).unwrap();
    let batch = Batch::open(blob, moved.context.budget()).unwrap();
    let mut again = Moved { spine: Spine::in_context(&moved.context), ..moved };
    again.epoch = 1;
    again.spine.insert(batch);
    again.settle();
    assert_eq!(again.rows(), 1_000);
    assert_eq!((again.move_to(1_000), again.rows()), (0, 0));
}

/// A bound that moves is followed without new changes. Pages of which nothing is needed are not read.
#[test]
fn pages_below_an_aligned_bound_are_not_read() {
    let mut moved = Moved::new(Place::FirstInKey, 1, Merging::InProportion);
    moved.insert(0..100_000);
    let all: usize = moved.spine.version().batches().map(Batch::bytes).sum();
    assert_eq!((moved.move_to(10_000), moved.rows()), (0, 100_000), "a tenth is not worth a merge");
    let read = moved.move_to(95_000);
    assert!((5_000..5_200).contains(&moved.rows()), "{} rows", moved.rows());
    // Reads are windows of 256 KiB at most.
    assert!(read < all as u64 / 20 + (256 << 10), "{read} bytes of {all}");
    assert!(read < all as u64 / 12, "{read} bytes of {all}");
}

/// Wherever the number is, a bound that has passed half of the rows of a batch causes a merge of it, and none before.
#[test]
fn a_bound_that_moves_costs_few_merges_and_leaves_little() {
    for place in PLACES {
        for memory in [1, usize::MAX] {
            let mut moved = Moved::new(place, memory, Merging::InProportion);
            moved.insert(0..20_000);
            let before = moved.context.installed();
            for least in (0..=19_800).step_by(200) {
                moved.move_to(least);
                let needed = 20_000 - least as usize;
                let rows = moved.rows();
                assert!(rows <= 3 * needed + 200, "{place:?}: {rows} rows, {needed} needed");
            }
            let merges = moved.context.installed() - before;
            assert!((3..=14).contains(&merges), "{place:?}: {merges} merges");
        }
    }
}

/// Rows that are below a bound, and the last ones of their keys, stay; they are not written again whenever the bound moves.
#[test]
fn rows_that_stay_below_a_bound_cost_few_merges() {
    for descending in [false, true] {
        for memory in [1, usize::MAX] {
            let place = Place::Order { descending };
            let least = Least(place.column(), AtomicI64::new(i64::MIN), 1);
            let mut moved = Moved::keeping(least, place, memory, Merging::InProportion);
            // Each has a key of its own.
            moved.insert(0..20_000);
            let before = moved.context.installed();
            for least in (0..=20_000).step_by(100) {
                moved.move_to(least);
            }
            assert_eq!(moved.rows(), 20_000);
            let merges = moved.context.installed() - before;
            assert!(merges <= 1, "{place:?}: {merges} merges");
        }
    }
}

/// Of many rows below a bound only the last of each key stay, though nothing is inserted meanwhile.
#[test]
fn a_bound_that_moves_leaves_the_last_rows() {
    for (descending, last) in [(false, 1), (false, 3), (true, 1), (true, 3)] {
        let place = Place::Order { descending };
        let least = Arc::new(Least(place.column(), AtomicI64::new(i64::MIN), last));
        let context = StateContext::default().with_pruning(Arc::clone(&least) as Arc<dyn Pruning>);
        let mut spine = Spine::in_context(&context);
        let mut buffer = RowBuffer::new(&context);
        for number in 0..10_000 {
            let (key, value) = place.row(Some(number), (number % 10) as u8);
            buffer.push(&key, &value, &0, 1);
        }
        spine.insert(buffer.seal(Description::new(until(0), until(1), until(0))));
        least.1.store(9_000, Ordering::Relaxed);
        spine.set_logical_compaction(until(1).borrow());
        spine.set_physical_compaction(until(1).borrow());
        let rows: usize = spine.version().batches().map(Batch::len).sum();
        assert_eq!(rows, 1_000 + 10 * last, "{place:?}, {last}");
    }
}
