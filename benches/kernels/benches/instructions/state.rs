//! Kernels of the state: rows become batches, batches are merged and read.

use std::hint::black_box;

use alluvium_trace::memory::{MemoryBudget, StateContext};
use alluvium_trace::{Batch, Cursors, Epoch, RowBuffer, merge};
use differential_dataflow::trace::Description;
use fastrand::Rng;
use gungraun::{library_benchmark, library_benchmark_group};
use timely::progress::Antichain;

use crate::baseline::thousands;

/// Rows of a batch.
const ROWS: u64 = 10_000;

fn context() -> StateContext {
    StateContext::new(MemoryBudget::unlimited(), None)
}

/// From `lower` to the next epoch.
fn description(lower: Epoch) -> Description<Epoch> {
    let at = |epoch| Antichain::from_elem(epoch);
    Description::new(at(lower), at(lower + 1), at(0))
}

/// Keys of eight bytes below `below`, in random order, each with a value of 24 bytes.
fn buffer(epoch: Epoch, below: u64) -> RowBuffer<Epoch> {
    let mut random = Rng::with_seed(epoch);
    let mut buffer = RowBuffer::new(&context());
    for _ in 0..ROWS {
        let key = random.u64(0..below).to_be_bytes();
        let value = [random.u64(0..1_000).to_be_bytes(); 3];
        buffer.push(&key, value.as_flattened(), &epoch, 1);
    }
    buffer
}

fn sealed(epoch: Epoch, below: u64) -> Batch<Epoch> {
    buffer(epoch, below).seal(description(epoch))
}

/// Batches whose keys lie between each other's.
fn mixed() -> Vec<Batch<Epoch>> {
    (0..4).map(|epoch| sealed(epoch, u64::MAX)).collect()
}

/// Batches whose keys follow each other, as those of rows that are kept by arrival.
fn in_turn() -> Vec<Batch<Epoch>> {
    let of = |epoch: Epoch| {
        let mut buffer = RowBuffer::new(&context());
        for row in 0..ROWS {
            let key = (epoch * ROWS + row).to_be_bytes();
            buffer.push(&key, &[7; 24], &epoch, 1);
        }
        buffer.seal(description(epoch))
    };
    (0..4).map(of).collect()
}

/// Cursors over batches, and keys to seek, in order.
fn seeking() -> (Cursors<Epoch>, Vec<[u8; 8]>) {
    let mut random = Rng::with_seed(9);
    let mut keys: Vec<u64> = (0..1_000).map(|_| random.u64(..)).collect();
    keys.sort_unstable();
    (Cursors::new(mixed()), keys.into_iter().map(u64::to_be_bytes).collect())
}

#[library_benchmark(setup = buffer)]
#[bench::distinct_keys(args = (0, u64::MAX), config = thousands(7_681))]
#[bench::hundred_rows_a_key(args = (0, ROWS / 100), config = thousands(8_092))]
fn seal(mut buffer: RowBuffer<Epoch>) -> Batch<Epoch> {
    black_box(buffer.seal(description(0)))
}

#[library_benchmark]
#[bench::mixed(args = (), setup = mixed, config = thousands(55_236))]
#[bench::in_turn(args = (), setup = in_turn, config = thousands(88))]
fn merge_four(batches: Vec<Batch<Epoch>>) -> Batch<Epoch> {
    let since = Antichain::from_elem(4);
    let at = |epoch| Antichain::from_elem(epoch);
    let description = Description::new(at(0), at(4), since.clone());
    black_box(merge(&batches, since.borrow(), description, &context()))
}

#[library_benchmark]
#[bench::thousand_keys(args = (), setup = seeking, config = thousands(2_973))]
fn seek((mut cursors, keys): (Cursors<Epoch>, Vec<[u8; 8]>)) -> usize {
    let found = keys.iter().filter(|key| {
        cursors.seek_key(key.as_slice());
        cursors.key().is_some_and(|found| found == key.as_slice())
    });
    black_box(found.count())
}

#[library_benchmark]
#[bench::four_batches(args = (), setup = mixed, config = thousands(28_234))]
fn scan(batches: Vec<Batch<Epoch>>) -> i64 {
    let mut cursors = Cursors::scan(batches);
    let mut sum = 0;
    while cursors.key().is_some() {
        while cursors.val().is_some() {
            cursors.updates(|_, weight| sum += weight);
            cursors.step_val();
        }
        cursors.step_key();
    }
    black_box(sum)
}

library_benchmark_group!(name = of_state, benchmarks = [seal, merge_four, seek, scan]);
