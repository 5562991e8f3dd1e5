use std::sync::Arc;

use alluvium_trace::RowBuffer;
use alluvium_trace::memory::{MemoryBudget, StateContext};
use differential_dataflow::trace::Description;
use proptest::prelude::*;
use timely::order::Product;
use timely::progress::Antichain;

use crate::mapped::MappedMemory;
use crate::reference::*;

/// The buffer holds these updates, of which equal ones may have been added up.
fn check<T: TestTime>(buffer: &RowBuffer<T>, inside: &[Update<T>]) {
    let remaining = reference(inside);
    assert!((remaining.len()..=inside.len()).contains(&buffer.len()));
    let frontier = buffer.frontier();
    assert!(remaining.keys().all(|update| frontier.less_equal(&update.2)));
    assert!(frontier.iter().all(|time| inside.iter().any(|update| update.2 == *time)));
}

/// Pushes some updates and seals at an upper frontier, round by round, and in the end seals everything.
fn a_seal_takes_the_updates_before_its_upper<T: TestTime>(
    rounds: Vec<(Vec<Update<T>>, Antichain<T>)>,
    world: World,
) {
    let mut buffer = RowBuffer::with_limits(world.limits, &world.context);
    let mut inside: Vec<Update<T>> = Vec::new();
    let end = (Vec::new(), Antichain::new());
    for (updates, upper) in rounds.into_iter().chain([end]) {
        for (key, val, time, weight) in &updates {
            buffer.push(key, val, time, *weight);
        }
        inside.extend(updates);
        check(&buffer, &inside);
        let minimum = Antichain::from_elem(T::minimum());
        let batch = buffer.seal(Description::new(minimum.clone(), upper.clone(), minimum));
        let (kept, taken): (Vec<_>, Vec<_>) =
            inside.into_iter().partition(|update| upper.less_equal(&update.2));
        inside = kept;
        assert_eq!(contents(&batch), reference(&taken));
        check(&buffer, &inside);
    }
    assert_eq!(buffer.bytes(), 0);
}

proptest! {
    #[test]
    fn a_seal_of_epochs_takes_the_updates_before_its_upper(
        rounds in prop::collection::vec((any_updates::<u64>(30), any_frontier()), 0..4),
        world in any_world(),
    ) {
        a_seal_takes_the_updates_before_its_upper(rounds, world);
    }

    #[test]
    fn a_seal_of_iterations_takes_the_updates_before_its_upper(
        rounds in prop::collection::vec((any_updates::<Product<u64, u64>>(30), any_frontier()), 0..4),
        world in any_world(),
    ) {
        a_seal_takes_the_updates_before_its_upper(rounds, world);
    }
}

#[test]
fn short_keys_sort_before_longer_ones_with_the_same_prefix() {
    let keys: [&[u8]; 5] = [b"", b"\0", b"\0\0", b"\0\0\0\0\0\0\0\0", b"\0\0\0\0\0\0\0\0\0"];
    let mut buffer = RowBuffer::new(&StateContext::default());
    for key in keys.iter().rev() {
        buffer.push(key, b"", &0u64, 1);
    }
    let batch = buffer.seal(all_times());
    let found: Vec<_> = contents(&batch).into_keys().map(|row| row.0).collect();
    assert_eq!(found, keys);
}

#[test]
fn far_more_rows_than_memory_are_sorted_within_the_budget() {
    const MEMORY: usize = 4 << 20;
    let context = with_storage(MEMORY, Arc::new(MappedMemory::default()));
    let mut buffer = RowBuffer::new(&context);
    let rows: u64 = 200_000;
    for row in 0..rows {
        // A permutation, and the sum of two halves.
        let key = (row.wrapping_mul(7919) % rows).to_be_bytes();
        buffer.push(&key, &[7; 200], &0u64, 1);
        buffer.push(&key, &[7; 200], &0u64, 1);
    }
    let batch = buffer.seal(all_times());
    let peak = context.budget().peak();
    assert!(peak < MEMORY, "{peak}");
    let expected = (0..rows).map(|row| ((row.to_be_bytes().to_vec(), vec![7; 200], 0), 2));
    assert!(contents(&batch).into_iter().eq(expected));
    assert!(context.budget().written() as usize > 20 * MEMORY);
}

/// A single load fills large buffers. They were kept for the next seal once, which released them: the first small
/// transaction after a load of a million rows took forty times as long as the others.
#[test]
fn a_load_releases_what_it_filled_and_a_stream_of_loads_keeps_it() {
    const ROWS: u64 = 100_000;
    let context = StateContext::new(MemoryBudget::new(1 << 30), None);
    let used = || context.budget().used();
    let mut buffer = RowBuffer::new(&context);
    let mut load = |rows: u64| {
        (0..rows).for_each(|row| buffer.push(&row.to_be_bytes(), &[7; 92], &0u64, 1));
        drop(buffer.seal(all_times()));
        used()
    };
    let bytes = 100 * ROWS as usize;
    assert!(load(ROWS) < bytes, "{}", used());
    let kept = load(ROWS);
    assert!(kept >= bytes, "{kept}");
    assert_eq!(load(ROWS), kept);
    assert!(load(1) < bytes, "{}", used());
}
