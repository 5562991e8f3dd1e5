//! Spines that are pruned: what is needed is there, and what is not goes.

use std::sync::Arc;

use alluvium_trace::memory::StateContext;
use alluvium_trace::{
    Batch, Bound, BoundColumn, Epoch, Pruning, RowBuffer, Spine, StateTrace, Version,
};
use differential_dataflow::trace::{Description, Trace, TraceReader};
use proptest::prelude::*;
use timely::progress::Antichain;

use crate::reference::{World, any_world, at, contents_of, reference};

/// From epoch `e` on all changes have at least `e * STEP - SLACK`, or NULL.
const STEP: i64 = 10;
const SLACK: i64 = 25;

fn least(epoch: Epoch) -> i64 {
    epoch as i64 * STEP - SLACK
}

/// Prunes below the least value of changes that can come.
#[derive(Debug)]
struct Below(BoundColumn);

impl Pruning for Below {
    fn bound(&self, epoch: Epoch) -> Option<Bound> {
        Some(Bound { column: self.0, least: least(epoch) })
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
}

impl Place {
    fn column(self) -> BoundColumn {
        match self {
            Place::FirstInKey => BoundColumn::Key { at: 0, width: 8 },
            Place::BehindInKey => BoundColumn::Key { at: 1, width: 8 },
            Place::Value => BoundColumn::Value { at: 1, width: 8, null: 0 },
        }
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
    context: StateContext,
    spine: Spine<Epoch>,
    inserted: Vec<(Vec<u8>, Vec<u8>, Epoch, i64)>,
}

impl Trial {
    fn new(place: Place, world: &World) -> Self {
        let context = world.context.with_pruning(Arc::new(Below(place.column())));
        let spine = Spine::in_context(&context);
        Self { place, context, spine, inserted: Vec::new() }
    }

    fn insert(&mut self, epoch: Epoch, changes: &[Change]) {
        let mut buffer = RowBuffer::new(&self.context);
        for &(above, other, is_inserted) in changes {
            let number = above.map(|above| least(epoch) + i64::from(above));
            let (key, value) = self.place.row(number, other);
            let weight = if is_inserted { 1 } else { -1 };
            buffer.push(&key, &value, &epoch, weight);
            self.inserted.push((key, value, epoch, weight));
        }
        let batch = buffer.seal(Description::new(until(epoch), until(epoch + 1), until(0)));
        self.spine.insert(batch);
    }

    /// A reader for changes at `from` or later finds all that it may need, and nothing else than what was inserted.
    fn check(&mut self, from: Epoch, now: Epoch) {
        let all = at(&reference(&self.inserted), &now);
        let batches: Vec<Batch<Epoch>> = self.spine.version().batches().cloned().collect();
        let found = at(&contents_of(&batches), &now);
        let bound = Bound { column: self.place.column(), least: least(from) };
        for (row, weight) in &all {
            assert!(
                bound.forgets(&row.0, &row.1) || found.get(row) == Some(weight),
                "{row:?} is missing, which changes at {from} may need"
            );
        }
        for (row, weight) in &found {
            let is_right = all.get(row) == Some(weight);
            assert!(is_right || bound.forgets(&row.0, &row.1), "{row:?} has a wrong weight");
        }
    }
}

proptest! {
    /// Whatever the merges do, and wherever the number is in a row.
    #[test]
    fn what_later_changes_may_need_is_never_pruned(
        world in any_world(),
        place in prop_oneof![
            Just(Place::FirstInKey), Just(Place::BehindInKey), Just(Place::Value),
        ],
        epochs in proptest::collection::vec((changes(), 0..4u64, 0..4u64), 1..25),
    ) {
        let mut trial = Trial::new(place, &world);
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

/// What a spine keeps does not grow with the number of epochs that have passed.
#[test]
fn a_pruned_spine_stays_as_large_as_what_is_needed() {
    for place in [Place::FirstInKey, Place::BehindInKey, Place::Value] {
        let context = StateContext::default().with_pruning(Arc::new(Below(place.column())));
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
        // About a hundred rows are needed at any time, and 80,000 were inserted.
        assert!(most[1] <= most[0] && most[1] < 1_000, "{place:?}: {most:?} rows");
    }
}

/// A bound that moves is followed without new changes, where rows are sorted by the column.
#[test]
fn an_aligned_bound_frees_pages_at_once() {
    let place = Place::FirstInKey;
    let context = StateContext::default().with_pruning(Arc::new(Below(place.column())));
    let mut spine: Spine<Epoch> = Spine::in_context(&context);
    let mut buffer = RowBuffer::new(&context);
    for number in 0..100_000 {
        let (key, value) = place.row(Some(number), 0);
        buffer.push(&key, &value, &0, 1);
    }
    spine.insert(buffer.seal(Description::new(until(0), until(1), until(0))));
    let rows = |version: &Version<Epoch>| version.batches().map(Batch::len).sum::<usize>();
    let advance = |spine: &mut Spine<Epoch>, epoch| {
        spine.set_logical_compaction(until(epoch).borrow());
        spine.set_physical_compaction(until(epoch).borrow());
    };
    advance(&mut spine, 1_000);
    assert_eq!(rows(spine.version()), 100_000, "a tenth is not worth a merge");
    advance(&mut spine, 9_000);
    let left = rows(spine.version());
    assert!((10_025..10_100).contains(&left), "{left} rows");
}
