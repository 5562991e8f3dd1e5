use std::collections::{BTreeMap, BTreeSet};

use alluvium_trace::page::PageLimits;
use alluvium_trace::{Cursor, Cursors};
use proptest::prelude::*;
use timely::order::Product;

use crate::reference::*;

/// A move of a cursor.
#[derive(Clone, Debug)]
pub enum Move {
    StepKey,
    SeekKey(Vec<u8>),
    StepVal,
    SeekVal(Vec<u8>),
    RewindVals,
    SeekValBefore(Vec<u8>),
}

pub fn any_move() -> impl Strategy<Value = Move> {
    prop_oneof![
        2 => Just(Move::StepKey),
        2 => any_bytes().prop_map(Move::SeekKey),
        6 => Just(Move::StepVal),
        2 => any_bytes().prop_map(Move::SeekVal),
        1 => Just(Move::RewindVals),
        2 => any_bytes().prop_map(Move::SeekValBefore),
    ]
}

/// The key, the value and the updates at a position.
type Shown<T> = (Option<Vec<u8>>, Option<Vec<u8>>, BTreeMap<T, i64>);

/// A cursor of one batch or of several.
pub trait Moves<T> {
    fn go(&mut self, to: &Move);
    fn shown(&self) -> Shown<T>;
}

impl<T: TestTime> Moves<T> for Cursor<T> {
    fn go(&mut self, to: &Move) {
        match to {
            Move::StepKey => self.step_key(),
            Move::SeekKey(key) => self.seek_key(key),
            Move::StepVal => self.step_val(),
            Move::SeekVal(val) => self.seek_val(val),
            Move::RewindVals => self.rewind_vals(),
            Move::SeekValBefore(val) => {
                self.seek_val_before(val);
            }
        }
    }

    fn shown(&self) -> Shown<T> {
        let mut updates = BTreeMap::new();
        for (time, weight) in self.updates() {
            assert_eq!(updates.insert(time, weight), None, "a time comes once");
        }
        (self.key().map(Into::into), self.val().map(Into::into), updates)
    }
}

impl<T: TestTime> Moves<T> for Cursors<T> {
    fn go(&mut self, to: &Move) {
        match to {
            Move::StepKey => self.step_key(),
            Move::SeekKey(key) => self.seek_key(key),
            Move::StepVal => self.step_val(),
            Move::SeekVal(val) => self.seek_val(val),
            Move::RewindVals => self.rewind_vals(),
            Move::SeekValBefore(val) => {
                self.seek_val_before(val);
            }
        }
    }

    fn shown(&self) -> Shown<T> {
        let mut updates = BTreeMap::new();
        self.updates(|time, weight| *updates.entry(time).or_default() += weight);
        (self.key().map(Into::into), self.val().map(Into::into), updates)
    }
}

/// The model: the same moves over sorted maps.
struct Model<T> {
    rows: BTreeMap<Row, BTreeMap<T, i64>>,
    key: Option<Vec<u8>>,
    val: Option<Vec<u8>>,
}

impl<T: TestTime> Model<T> {
    /// At the first row. Sums of updates may be zero.
    fn new(rows: BTreeMap<Row, BTreeMap<T, i64>>) -> Self {
        let mut model = Model { rows, key: None, val: None };
        model.arrive(|_| true);
        model
    }

    fn arrive(&mut self, accept: impl Fn(&[u8]) -> bool) {
        let keys: BTreeSet<_> = self.rows.keys().map(|row| row.0.clone()).collect();
        self.key = keys.into_iter().find(|key| accept(key));
        self.arrive_val(|_| true);
    }

    fn arrive_val(&mut self, accept: impl Fn(&[u8]) -> bool) {
        let mut rows = self.rows.keys().filter(|row| Some(&row.0) == self.key.as_ref());
        self.val = rows.find(|row| accept(&row.1)).map(|row| row.1.clone());
    }

    fn go(&mut self, to: &Move) {
        let Some(key) = self.key.clone() else { return };
        match to {
            Move::StepKey => self.arrive(|other| other > &key[..]),
            Move::SeekKey(target) if target > &key => self.arrive(|other| other >= &target[..]),
            Move::SeekKey(_) => {}
            Move::RewindVals => self.arrive_val(|_| true),
            Move::SeekValBefore(target) => {
                let mut rows = self.rows.keys().filter(|row| row.0 == key);
                let last = rows.rfind(|row| row.1 < *target).map(|row| row.1.clone());
                match last {
                    Some(last) => self.val = Some(last),
                    None => self.arrive_val(|_| true),
                }
            }
            Move::StepVal => {
                if let Some(val) = self.val.clone() {
                    self.arrive_val(|other| other > &val[..]);
                }
            }
            Move::SeekVal(target) => {
                if self.val.as_ref().is_some_and(|val| target > val) {
                    self.arrive_val(|other| other >= &target[..]);
                }
            }
        }
    }

    fn shown(&self) -> Shown<T> {
        let row = self.key.clone().zip(self.val.clone());
        let updates = row.map(|row| self.rows[&row].clone()).unwrap_or_default();
        (self.key.clone(), self.val.clone(), updates)
    }
}

/// Makes all moves, and compares the position after each with the model over `references`.
pub fn agrees<T: TestTime>(
    cursor: &mut impl Moves<T>,
    references: &[Reference<T>],
    moves: &[Move],
) {
    let mut rows: BTreeMap<Row, BTreeMap<T, i64>> = BTreeMap::new();
    for ((key, val, time), weight) in references.iter().flatten() {
        let updates = rows.entry((key.clone(), val.clone())).or_default();
        *updates.entry(*time).or_default() += weight;
    }
    let mut model = Model::new(rows);
    assert_eq!(cursor.shown(), model.shown());
    for to in moves {
        cursor.go(to);
        model.go(to);
        assert_eq!(cursor.shown(), model.shown(), "after {to:?}");
    }
}

fn a_cursor_moves_as_the_model<T: TestTime>(
    updates: Vec<Update<T>>,
    world: World,
    moves: Vec<Move>,
) {
    let batch = batch_in(&world, &updates);
    agrees(&mut batch.cursor(), &[reference(&updates)], &moves);
}

proptest! {
    #[test]
    fn a_cursor_of_epochs_moves_as_the_model(
        updates in any_updates(60), world in any_world(), moves in prop::collection::vec(any_move(), 0..60),
    ) {
        a_cursor_moves_as_the_model::<u64>(updates, world, moves);
    }

    #[test]
    fn a_cursor_of_iterations_moves_as_the_model(
        updates in any_updates(60), world in any_world(), moves in prop::collection::vec(any_move(), 0..60),
    ) {
        a_cursor_moves_as_the_model::<Product<u64, u64>>(updates, world, moves);
    }
}

#[test]
fn a_key_is_found_among_many_pages() {
    let key = |number: u32| [b"common ".as_slice(), &(2 * number).to_be_bytes()].concat();
    let updates: Vec<Update<u64>> =
        (0..3000).map(|number| (key(number), vec![0; 20], 0, 1)).collect();
    let batch = batch(&updates, PageLimits { bytes: 512, updates: 100 });
    assert!(batch.pages() > 100);
    for start in [0, 1, 700, 2998] {
        for target in (start..3000).step_by(37) {
            let mut cursor = batch.cursor();
            cursor.seek_key(&key(start));
            cursor.seek_key(&key(target));
            assert_eq!(cursor.key(), Some(&key(target)[..]));
            let mut between = key(target);
            *between.last_mut().unwrap() += 1;
            cursor.seek_key(&between);
            let next = (target < 2999).then(|| key(target + 1));
            assert_eq!(cursor.key(), next.as_deref());
        }
    }
}
