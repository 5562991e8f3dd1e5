//! A cursor over typed rows moves as one of differential-dataflow over the same rows.

use alluvium_trace::typed::{Codec, Encoded, TypedBatch, Weight};
use alluvium_trace::{BatchBuilder, PageTime};
use differential_dataflow::trace::implementations::ValBuilder;
use differential_dataflow::trace::{Builder, Cursor, Description, Navigable};
use proptest::prelude::*;
use timely::order::Product;
use timely::progress::{Antichain, Timestamp};

use crate::reference::{World, any_time, any_world};

type Key = (String, u8);
type Time = Product<u64, u64>;
type Row<T, R> = ((Key, Option<i8>), T, R);

fn encoded<C: Codec>(value: &C) -> Vec<u8> {
    let mut bytes = Vec::new();
    value.encode_last(&mut bytes);
    bytes
}

fn all_times<T: Timestamp>() -> Description<T> {
    let minimum = Antichain::from_elem(T::minimum());
    Description::new(minimum.clone(), Antichain::new(), minimum)
}

/// The rows with pages as the world has them.
fn batch<T: PageTime, R: Weight>(
    rows: &[Row<T, R>],
    world: &World,
) -> TypedBatch<Key, Option<i8>, T, R> {
    let mut builder = BatchBuilder::with_limits(world.limits, &world.context);
    for ((key, value), time, weight) in rows {
        builder.push(&encoded(key), &encoded(value), time, weight.store());
    }
    TypedBatch::new(builder.finish(all_times()))
}

#[derive(Clone, Debug)]
enum Move {
    StepKey,
    SeekKey(Key),
    StepVal,
    SeekVal(Option<i8>),
    RewindKeys,
    RewindVals,
}

fn any_key() -> impl Strategy<Value = Key> {
    (prop::sample::select(vec!["", "\0", "\0\u{1}", "a", "a\0"]), 0..3u8)
        .prop_map(|(text, number)| (text.to_owned(), number))
}

fn any_value() -> impl Strategy<Value = Option<i8>> {
    prop::option::of(-2..3i8)
}

fn any_move() -> impl Strategy<Value = Move> {
    prop_oneof![
        4 => Just(Move::StepKey),
        2 => any_key().prop_map(Move::SeekKey),
        6 => Just(Move::StepVal),
        2 => any_value().prop_map(Move::SeekVal),
        1 => Just(Move::RewindKeys),
        2 => Just(Move::RewindVals),
    ]
}

/// Sorted rows, without two that are equal.
fn any_rows() -> impl Strategy<Value = Vec<Row<Time, isize>>> {
    let row = ((any_key(), any_value()), any_time::<Time>());
    prop::collection::btree_map(row, prop_oneof![Just(1), Just(-3)], 0..60).prop_map(|rows| {
        rows.into_iter().map(|((row, time), weight)| (row, time, weight)).collect()
    })
}

proptest! {
    #[test]
    fn cursors_move_alike(
        rows in any_rows(), world in any_world(), moves in prop::collection::vec(any_move(), 0..60),
    ) {
        let ours = batch(&rows, &world);
        let mut builder = ValBuilder::with_capacity(0, 0, 0);
        builder.push(&mut rows.clone());
        let theirs = builder.done(all_times());
        let (mut cursor, mut model) = (ours.cursor(), theirs.cursor());
        for step in [vec![Move::RewindKeys], moves].concat() {
            match &step {
                Move::StepKey => {
                    cursor.step_key(&ours);
                    model.step_key(&theirs);
                }
                Move::SeekKey(key) => {
                    cursor.seek_key(&ours, Encoded::new(&encoded(key)));
                    model.seek_key(&theirs, key);
                }
                Move::StepVal => {
                    cursor.step_val(&ours);
                    model.step_val(&theirs);
                }
                Move::SeekVal(value) => {
                    cursor.seek_val(&ours, Encoded::new(&encoded(value)));
                    model.seek_val(&theirs, value);
                }
                Move::RewindKeys => {
                    cursor.rewind_keys(&ours);
                    model.rewind_keys(&theirs);
                }
                Move::RewindVals => {
                    cursor.rewind_vals(&ours);
                    model.rewind_vals(&theirs);
                }
            }
            prop_assert_eq!(cursor.key_valid(&ours), model.key_valid(&theirs), "{:?}", step);
            if !model.key_valid(&theirs) {
                prop_assert!(cursor.get_key(&ours).is_none() && !cursor.val_valid(&ours));
                model.rewind_keys(&theirs);
                cursor.rewind_keys(&ours);
                continue;
            }
            prop_assert_eq!(&cursor.key(&ours).decode(), model.key(&theirs), "{:?}", step);
            prop_assert_eq!(cursor.val_valid(&ours), model.val_valid(&theirs), "{:?}", step);
            let value = cursor.get_val(&ours).map(Encoded::decode);
            prop_assert_eq!(value, model.get_val(&theirs).copied(), "{:?}", step);
            if model.val_valid(&theirs) {
                let mut updates = [vec![], vec![]];
                cursor.map_times(&ours, |time, weight| updates[0].push((*time, *weight)));
                model.map_times(&theirs, |time, weight| updates[1].push((*time, *weight)));
                prop_assert_eq!(&updates[0], &updates[1]);
            }
        }
    }
}

/// Other times and weights than the programs use.
#[test]
fn times_of_every_kind_are_read_back() {
    fn reads_back<T: PageTime, R: Weight>(times: Vec<T>, weight: R) {
        let row = |time| (((String::new(), 0), None), time, weight);
        let rows: Vec<_> = times.iter().copied().map(row).collect();
        let world = World::in_memory(Default::default());
        let batch = batch(&rows, &world);
        let read = batch.cursor().to_vec(&batch, |key| key.decode(), |value| value.decode());
        let updates: Vec<_> = times.into_iter().map(|time| (time, weight)).collect();
        assert_eq!(read.len(), 1);
        assert!(read[0].1 == updates);
    }
    reads_back(vec![()], -1_i64);
    reads_back(vec![0, 7, u8::MAX], isize::MAX);
    reads_back(vec![3, u16::MAX], i64::MIN);
    reads_back(vec![3, u32::MAX], 1_i64);
    reads_back(vec![3, usize::MAX], 1_isize);
    let deep = |round: u32| Product::new(Product::new(9_u64, round), Product::new(1_usize, 2_u64));
    reads_back(vec![deep(0), deep(u32::MAX)], 5_isize);
}
