//! The same work by redb, an embedded store of sorted keys: loading sorted rows, and looking lists of keys up.
//!
//! redb does more: its files are durable and can be changed. Costs of that are switched off where redb allows it.

use std::hint::black_box;

use alluvium_state_benches::{Folder, ROW, batch, key, keys, rows, value};
use alluvium_trace::Batch;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use redb::{Database, Durability, ReadableDatabase, TableDefinition};

const TABLE: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("rows");

fn load(database: &Database, rows: &[(u64, [u8; 56])]) {
    let mut transaction = database.begin_write().expect("a transaction begins");
    transaction.set_durability(Durability::None).expect("it need not last");
    {
        let mut table = transaction.open_table(TABLE).expect("the table is made");
        for (row, value) in rows {
            table.insert(key(*row).as_slice(), value.as_slice()).expect("a row is taken");
        }
    }
    transaction.commit().expect("all rows are");
}

fn look_up(database: &Database, delta: &Batch<u64>) -> usize {
    let transaction = database.begin_read().expect("a transaction begins");
    let table = transaction.open_table(TABLE).expect("the table is there");
    let mut keys = delta.cursor();
    let mut found = 0;
    while let Some(key) = keys.key() {
        let value = table.get(key).expect("the key is looked up");
        found += usize::from(black_box(value.map(|value| value.value().len())).is_some());
        keys.step_key();
    }
    found
}

fn against_redb(criterion: &mut Criterion) {
    let folder = Folder::new(env!("CARGO_TARGET_TMPDIR"));
    let sorted: Vec<_> = (0..rows()).map(|row| (row, value(row))).collect();
    let path = folder.path().join("redb");
    let create = || {
        let _ = std::fs::remove_file(&path);
        let mut builder = Database::builder();
        // All of it: what is compared is the work, not the cache.
        builder.set_cache_size(sorted.len() * ROW * 4);
        builder.create(&path).expect("a database is made")
    };
    let mut group = criterion.benchmark_group("load sorted rows");
    group.sample_size(10).throughput(Throughput::Bytes(rows() * ROW as u64));
    let little = folder.context(16 << 20);
    group.bench_function("alluvium", |bencher| {
        bencher.iter(|| batch(sorted.iter().copied(), &little));
    });
    group.bench_function("redb", |bencher| {
        bencher.iter_batched(
            create,
            |database| {
                load(&database, &sorted);
                database
            },
            criterion::BatchSize::PerIteration,
        );
    });
    group.finish();

    folder.keep(batch(sorted.iter().copied(), &little), "kept");
    let file = folder.open("kept", &folder.context(usize::MAX));
    let database = create();
    load(&database, &sorted);
    for count in [1_000, 30_000] {
        let delta = keys(count, rows(), 0);
        let mut group = criterion.benchmark_group(format!("seek {count} keys, resident"));
        group.sample_size(10).throughput(Throughput::Elements(delta.len() as u64));
        group.bench_function("alluvium", |bencher| {
            bencher.iter(|| {
                let (mut cursor, mut keys) = (file.cursor(), delta.cursor());
                let mut found = 0;
                while let Some(key) = keys.key() {
                    cursor.seek_key(key);
                    found += usize::from(cursor.key() == Some(key));
                    black_box(cursor.val());
                    keys.step_key();
                }
                assert_eq!(found, delta.len());
            });
        });
        group.bench_function("redb", |bencher| {
            bencher.iter(|| assert_eq!(look_up(&database, &delta), delta.len()));
        });
        group.finish();
    }
}

criterion_group!(benches, against_redb);
criterion_main!(benches);
