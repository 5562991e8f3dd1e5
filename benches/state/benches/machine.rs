//! The speed of the machine itself, to hold the other figures against: memory to memory, to a file, from a file.
//!
//! Files are written and read in pieces of a mebibyte; *cold* is read from the disk and *hot* from the system's
//! cache.

use std::fs::File;
use std::hint::black_box;
use std::io::{Read, Write};

use alluvium_state_benches::{Folder, chill};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};

const LENGTH: usize = 128 << 20;
const PIECE: usize = 1 << 20;

fn memory(criterion: &mut Criterion) {
    let from = vec![1_u8; LENGTH];
    let mut to = vec![0_u8; LENGTH];
    let mut group = criterion.benchmark_group("memory");
    group.sample_size(10).throughput(Throughput::Bytes(LENGTH as u64));
    group.bench_function("copy", |bencher| {
        bencher.iter(|| black_box(&mut to).copy_from_slice(black_box(&from)));
    });
    group.bench_function("copy to fresh memory", |bencher| {
        bencher.iter(|| black_box(from.clone()));
    });
    group.finish();
}

fn disk(criterion: &mut Criterion) {
    let folder = Folder::new(env!("CARGO_TARGET_TMPDIR"));
    let path = folder.path().join("file");
    let piece = vec![7_u8; PIECE];
    let write = || {
        let mut file = File::create(&path).expect("a file is made");
        for _ in 0..LENGTH / PIECE {
            file.write_all(&piece).expect("it is written");
        }
        file
    };
    let read = || {
        let mut file = File::open(&path).expect("the file is there");
        let mut piece = vec![0_u8; PIECE];
        while file.read(&mut piece).expect("it is read") > 0 {
            black_box(&piece);
        }
    };
    let mut group = criterion.benchmark_group("disk");
    group.sample_size(10).throughput(Throughput::Bytes(LENGTH as u64));
    group.bench_function("write", |bencher| bencher.iter(&write));
    group.bench_function("write and sync", |bencher| {
        bencher.iter(|| write().sync_all().expect("it is synced"));
    });
    write().sync_all().expect("it is synced");
    group.bench_function("read hot", |bencher| bencher.iter(&read));
    group.bench_function("read cold", |bencher| {
        let cold = || chill(&path).expect("the system takes advice");
        bencher.iter_batched(cold, |()| read(), BatchSize::PerIteration);
    });
    group.finish();
}

criterion_group!(benches, memory, disk);
criterion_main!(benches);
