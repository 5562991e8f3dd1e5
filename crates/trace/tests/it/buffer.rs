use std::sync::Arc;

use alluvium_trace::RowBuffer;
use alluvium_trace::memory::context;
use alluvium_trace::page::PageLimits;
use differential_dataflow::trace::Description;
use proptest::prelude::*;
use timely::order::Product;
use timely::progress::Antichain;

use crate::mapped::MappedMemory;
use crate::reference::*;

/// What is in the buffer is these updates, some of the equal ones perhaps added up.
fn check<T: TestTime>(buffer: &RowBuffer<T>, inside: &[Update<T>]) {
    let remaining = reference(inside);
    assert!((remaining.len()..=inside.len()).contains(&buffer.len()));
    let frontier = buffer.frontier();
    assert!(remaining.keys().all(|update| frontier.less_equal(&update.2)));
    assert!(frontier.iter().all(|time| inside.iter().any(|update| update.2 == *time)));
}

/// Seals at each of these uppers in turn, pushing some updates before each, and at last at the end of time.
fn seals_take_what_is_before_their_upper<T: TestTime>(
    rounds: Vec<(Vec<Update<T>>, Antichain<T>)>,
    limits: PageLimits,
) {
    let mut buffer = RowBuffer::with_limits(limits, &context::current());
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
    fn seals_of_epochs_take_what_is_before_their_upper(
        rounds in prop::collection::vec((any_updates::<u64>(30), any_frontier()), 0..4),
        limits in any_limits(),
    ) {
        seals_take_what_is_before_their_upper(rounds, limits);
    }

    #[test]
    fn seals_of_iterations_take_what_is_before_their_upper(
        rounds in prop::collection::vec((any_updates::<Product<u64, u64>>(30), any_frontier()), 0..4),
        limits in any_limits(),
    ) {
        seals_take_what_is_before_their_upper(rounds, limits);
    }
}

#[test]
fn keys_that_end_within_the_compared_prefix_sort_before_longer_ones() {
    let keys: [&[u8]; 5] = [b"", b"\0", b"\0\0", b"\0\0\0\0\0\0\0\0", b"\0\0\0\0\0\0\0\0\0"];
    let mut buffer = RowBuffer::new(&context::current());
    for key in keys.iter().rev() {
        buffer.push(key, b"", &0u64, 1);
    }
    let batch = buffer.seal(all_times());
    let found: Vec<_> = contents(&batch).into_keys().map(|row| row.0).collect();
    assert_eq!(found, keys);
}

#[test]
fn far_more_rows_than_memory_are_sorted_with_few_runs_at_a_time() {
    const MEMORY: usize = 4 << 20;
    let around = surround_with(MEMORY, Arc::new(MappedMemory::default()));
    let mut buffer = RowBuffer::new(&context::current());
    let rows: u64 = 200_000;
    for row in 0..rows {
        // A permutation, and the sum of two halves.
        let key = (row.wrapping_mul(7919) % rows).to_be_bytes();
        buffer.push(&key, &[7; 200], &0u64, 1);
        buffer.push(&key, &[7; 200], &0u64, 1);
    }
    let batch = buffer.seal(all_times());
    let peak = around.budget().peak();
    assert!(peak < MEMORY, "{peak}");
    let expected = (0..rows).map(|row| ((row.to_be_bytes().to_vec(), vec![7; 200], 0), 2));
    assert!(contents(&batch).into_iter().eq(expected));
    assert!(around.budget().written() as usize > 20 * MEMORY);
}
