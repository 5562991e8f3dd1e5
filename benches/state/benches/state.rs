//! State: building batches, spilling and opening them again, seeking lists of keys, merging.
//!
//! In a file, *cold* means that nothing of it is in memory, *hot* that all of it is in the system's cache but no page was
//! accessed since it was opened, and *resident* that every page was accessed before.

use std::hint::black_box;

use alluvium_state_benches::{Folder, ROW, all_times, batch, chill, key, keys, rows, value};
use alluvium_trace::memory::StateContext;
use alluvium_trace::{Batch, BatchBuilder, Cursors, RowBuffer, Spine, StateTrace, merge};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use differential_dataflow::trace::{Trace, TraceReader};
use timely::progress::Antichain;

/// The memory that state may take where it is meant to go to files.
const LITTLE: usize = 16 << 20;

fn all_rows() -> Vec<(u64, [u8; 56])> {
    (0..rows()).map(|row| (row, value(row))).collect()
}

fn building(criterion: &mut Criterion) {
    let folder = Folder::new(env!("CARGO_TARGET_TMPDIR"));
    let sorted = all_rows();
    let mut shuffled = sorted.clone();
    fastrand::Rng::with_seed(1).shuffle(&mut shuffled);
    let mut group = criterion.benchmark_group("build");
    group.sample_size(10).throughput(Throughput::Bytes(rows() * ROW as u64));
    group.bench_function("in memory, sorted rows", |bencher| {
        bencher.iter(|| batch(sorted.iter().copied(), &StateContext::default()));
    });
    group.bench_function("in memory, rows in no order", |bencher| {
        bencher.iter(|| {
            let mut buffer = RowBuffer::new(&StateContext::default());
            for (row, value) in &shuffled {
                buffer.push(&key(*row), value, &0_u64, 1);
            }
            buffer.seal(all_times())
        });
    });
    group.bench_function("in a file, sorted rows", |bencher| {
        let context = folder.context(LITTLE);
        bencher.iter(|| batch(sorted.iter().copied(), &context));
    });
    group.finish();
}

fn spilling(criterion: &mut Criterion) {
    let folder = Folder::new(env!("CARGO_TARGET_TMPDIR"));
    let sorted = all_rows();
    let mut group = criterion.benchmark_group("spill");
    group.sample_size(10).throughput(Throughput::Bytes(rows() * ROW as u64));
    group.bench_function("a layer of a spine", |bencher| {
        // Room for the batch, until something else takes it.
        let context = folder.context(sorted.len() * ROW * 3 / 2);
        let in_memory = batch(sorted.iter().copied(), &context);
        assert!(!in_memory.is_file());
        let setup = || {
            let mut spine = Spine::<u64>::in_context(&context);
            spine.insert(in_memory.clone());
            spine
        };
        bencher.iter_batched_ref(
            setup,
            |spine| {
                let _taken = context.budget().charge(sorted.len() * ROW);
                spine.set_physical_compaction(Antichain::new().borrow());
                spine.map_batches(|batch| assert!(batch.is_file()));
            },
            BatchSize::PerIteration,
        );
    });
    let context = folder.context(LITTLE);
    folder.keep(batch(sorted.iter().copied(), &context), "kept");
    group.bench_function("open the file again", |bencher| {
        bencher.iter(|| folder.open("kept", &context));
    });
    group.finish();
}

/// Looks the keys of `delta` up, and counts those that exist. `hinted` is whether they are given as a prefetch hint.
fn look_up(batch: &Batch<u64>, delta: &Batch<u64>, hinted: bool) -> usize {
    let mut cursors = Cursors::new([batch.clone()]);
    if hinted {
        cursors.prefetch_hint(Cursors::new([delta.clone()]));
    }
    let mut keys = delta.cursor();
    let mut found = 0;
    while let Some(key) = keys.key() {
        cursors.seek_key(key);
        if cursors.key() == Some(key) {
            found += 1;
            black_box(cursors.val());
        }
        keys.step_key();
    }
    found
}

fn seeking(criterion: &mut Criterion) {
    let folder = Folder::new(env!("CARGO_TARGET_TMPDIR"));
    let in_memory = batch(all_rows().into_iter(), &StateContext::default());
    folder.keep(batch(all_rows().into_iter(), &folder.context(LITTLE)), "kept");
    // Resident pages stay.
    let context = folder.context(usize::MAX);
    for count in [100, 1_000, 30_000] {
        for (name, beside) in [("keys that exist", 0), ("keys that do not", 1)] {
            let delta = keys(count, rows(), beside);
            let mut group = criterion.benchmark_group(format!("seek {count} {name}"));
            group.sample_size(10).throughput(Throughput::Elements(delta.len() as u64));
            for (suffix, hinted) in [("", false), (", hinted", true)] {
                group.bench_function(format!("in memory{suffix}"), |bencher| {
                    bencher.iter(|| look_up(&in_memory, &delta, hinted));
                });
                group.bench_function(format!("in a file, resident{suffix}"), |bencher| {
                    let file = folder.open("kept", &context);
                    look_up(&file, &delta, hinted);
                    bencher.iter(|| look_up(&file, &delta, hinted));
                });
                group.bench_function(format!("in a file, hot{suffix}"), |bencher| {
                    bencher.iter_batched_ref(
                        || folder.open("kept", &context),
                        |file| look_up(file, &delta, hinted),
                        BatchSize::PerIteration,
                    );
                });
                group.bench_function(format!("in a file, cold{suffix}"), |bencher| {
                    let setup = || {
                        folder.chill("kept");
                        folder.open("kept", &context)
                    };
                    bencher.iter_batched_ref(
                        setup,
                        |file| look_up(file, &delta, hinted),
                        BatchSize::PerIteration,
                    );
                });
            }
            if beside > 0 {
                let table = vec![1; rows() as usize * 9 / 8];
                group.bench_function("three bytes of a filter", |bencher| {
                    bencher.iter(|| ask_a_filter(&table, &delta));
                });
            }
            group.finish();
        }
    }
}

/// The cost of asking a binary fuse filter of all rows for these keys: it has nine bits per row, and reads three bytes.
fn ask_a_filter(table: &[u8], delta: &Batch<u64>) -> u8 {
    let mut keys = delta.cursor();
    let mut found = 0;
    while let Some(key) = keys.key() {
        let key = key.first_chunk().map_or(0, |key| u64::from_be_bytes(*key));
        let hash = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for turn in [0, 21, 42] {
            let place = (u128::from(hash.rotate_left(turn)) * table.len() as u128) >> 64;
            found ^= table[place as usize];
        }
        keys.step_key();
    }
    found
}

/// Keys as of a column of numbers: nine bytes of which the first is constant, with eight rows each.
fn seeking_groups(criterion: &mut Criterion) {
    let folder = Folder::new(env!("CARGO_TARGET_TMPDIR"));
    let groups = rows() / 8;
    let key = |group: u64| [[1].as_slice(), &group.to_be_bytes()].concat();
    let mut builder = BatchBuilder::new(&folder.context(LITTLE));
    for row in 0..8 * groups {
        // The first bytes are in order.
        let mut value = value(row);
        value[0] = (row % 8) as u8;
        builder.push(&key(row / 8), &value, &0, 1);
    }
    folder.keep(builder.finish(all_times()), "kept");
    let context = folder.context(usize::MAX);
    let mut random = fastrand::Rng::with_seed(5);
    let mut buffer = RowBuffer::new(&StateContext::default());
    (0..1000).for_each(|_| buffer.push(&key(random.u64(..groups)), &[], &0_u64, 1));
    let delta = buffer.seal(all_times());
    let mut group = criterion.benchmark_group("seek 1000 groups of eight rows");
    group.sample_size(10).throughput(Throughput::Elements(delta.len() as u64));
    group.bench_function("in a file, resident", |bencher| {
        let file = folder.open("kept", &context);
        look_up(&file, &delta, false);
        bencher.iter(|| look_up(&file, &delta, false));
    });
    for (name, hinted) in [("in a file, cold", false), ("in a file, cold, hinted", true)] {
        group.bench_function(name, |bencher| {
            let setup = || {
                folder.chill("kept");
                folder.open("kept", &context)
            };
            bencher.iter_batched_ref(
                setup,
                |file| look_up(file, &delta, hinted),
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

/// Two batches: every second row each, or the first half and the second.
fn halves(are_interleaved: bool, context: &StateContext) -> [Batch<u64>; 2] {
    let all = rows();
    [0, 1].map(|part| {
        let numbers: Box<dyn Iterator<Item = u64>> = if are_interleaved {
            Box::new((part..all).step_by(2))
        } else {
            Box::new(part * all / 2..(part + 1) * all / 2)
        };
        batch(numbers.map(|row| (row, value(row))), context)
    })
}

fn merging(criterion: &mut Criterion) {
    let folder = Folder::new(env!("CARGO_TARGET_TMPDIR"));
    let all = Antichain::from_elem(0);
    let mut group = criterion.benchmark_group("merge");
    group.sample_size(10).throughput(Throughput::Bytes(rows() * ROW as u64));
    for (name, are_interleaved) in [("interleaved rows", true), ("one behind the other", false)] {
        let sources = halves(are_interleaved, &StateContext::default());
        group.bench_function(format!("in memory, {name}"), |bencher| {
            let context = StateContext::default();
            bencher.iter(|| merge(&sources, all.borrow(), all_times(), &context));
        });
        drop(sources);
        let context = folder.context(LITTLE);
        let names =
            ["first", "second"].map(|part| format!("{part} {are_interleaved}").replace(' ', "-"));
        for (half, name) in [0, 1].into_iter().zip(&names) {
            let mut halves = Vec::from(halves(are_interleaved, &context));
            let half = halves.swap_remove(half);
            drop(halves);
            folder.keep(half, name);
        }
        let open = || -> Vec<_> { names.iter().map(|name| folder.open(name, &context)).collect() };
        group.bench_function(format!("in files, hot, {name}"), |bencher| {
            bencher.iter_batched_ref(
                open,
                |sources| merge(sources, all.borrow(), all_times(), &context),
                BatchSize::PerIteration,
            );
        });
        group.bench_function(format!("in files, cold, {name}"), |bencher| {
            let setup = || {
                names.iter().for_each(|name| {
                    chill(&folder.path().join(name)).expect("the system takes advice");
                });
                open()
            };
            bencher.iter_batched_ref(
                setup,
                |sources| merge(sources, all.borrow(), all_times(), &context),
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, building, spilling, seeking, seeking_groups, merging);
criterion_main!(benches);
