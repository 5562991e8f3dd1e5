//! Queries of more rows than they have memory for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use alluvium::Engine;
use alluvium::arrow::array::AsArray;
use alluvium::arrow::datatypes::Int64Type;
use alluvium::unstable::BuilderParts;
use alluvium_storage::{Blob, BlobWriter, MemoryStorage, Storage};

use crate::support::lines;

/// Two tables of 40 MiB. Queries have 32 MiB, or 16 GiB.
const TABLES: &str = "
    CREATE TABLE big (id BIGINT PRIMARY KEY, k BIGINT, word VARCHAR, f DOUBLE, pad VARCHAR);
    CREATE TABLE other (id BIGINT PRIMARY KEY, k BIGINT, word VARCHAR, f DOUBLE, pad VARCHAR);
    INSERT INTO big
        SELECT x, CASE WHEN x % 11 <> 0 THEN x * 7919 % 150000 END, 'w' || (x * 31 % 1000),
            CASE x % 5 WHEN 0 THEN 'NaN'::DOUBLE WHEN 1 THEN -0.0 WHEN 2 THEN 0.0 ELSE x / 2.0 END,
            repeat('p', 150) || (x * 48271 % 200003)
        FROM range(200000) AS r (x);
    INSERT INTO other
        SELECT x, CASE WHEN x % 13 <> 0 THEN x * 104729 % 170000 END, 'w' || (x * 17 % 1500),
            CASE WHEN x % 9999 = 0 THEN 'NaN'::DOUBLE WHEN x % 9998 = 1 THEN -0.0 ELSE x / 3.0 END,
            repeat('q', 150) || (x % 1000)
        FROM range(200000) AS r (x)";

/// Queries that have to keep rows.
const QUERIES: &[&str] = &[
    "SELECT id FROM big ORDER BY pad, id",
    "SELECT id FROM big ORDER BY f DESC NULLS LAST, word, k NULLS FIRST, id",
    "SELECT pad, COUNT(*), SUM(k) FROM big GROUP BY pad",
    "SELECT COUNT(*) FROM (SELECT DISTINCT pad, f FROM big)",
    "SELECT COUNT(*), SUM(a.id), SUM(b.id), MIN(a.pad || b.pad) FROM big AS a JOIN other AS b ON a.k = b.k",
    "SELECT COUNT(*), SUM(a.id), SUM(b.id), MAX(b.pad) FROM big AS a LEFT JOIN other AS b ON a.k = b.k",
    "SELECT COUNT(*), SUM(a.id), SUM(b.id), MAX(a.pad) FROM big AS a RIGHT JOIN other AS b ON a.k = b.k",
    "SELECT COUNT(*), COUNT(a.id), SUM(b.id), MAX(a.pad || b.pad) FROM big AS a FULL JOIN other AS b
        ON a.k = b.k AND a.id % 2 = b.id % 2",
    "SELECT COUNT(*), SUM(a.id), MAX(b.pad) FROM big AS a LEFT JOIN other AS b ON a.k = b.k AND a.pad < b.pad AND a.id > b.id",
    "SELECT COUNT(*), SUM(a.id), MAX(b.pad) FROM big AS a JOIN other AS b ON a.k = b.k AND a.word = b.word",
    "SELECT COUNT(*), SUM(a.id), MAX(a.pad || b.pad) FROM big AS a JOIN other AS b
        ON a.k IS NOT DISTINCT FROM b.k AND a.id / 100 = b.id / 100",
    "SELECT COUNT(*), SUM(id), MAX(pad) FROM big WHERE pad IN (SELECT 'p' || substr(pad, 2) FROM big WHERE id % 2 = 0)",
    "SELECT COUNT(*), SUM(id), MAX(pad) FROM big AS a
        WHERE EXISTS (SELECT 1 FROM other AS b WHERE a.k = b.k AND b.pad <> a.pad AND b.id > a.id)",
    "SELECT COUNT(*), SUM(id), MAX(pad) FROM big AS a
        WHERE NOT EXISTS (SELECT 1 FROM other AS b WHERE a.k = b.k AND b.id > a.id)",
    "SELECT COUNT(*), SUM(id) FROM big WHERE k NOT IN (SELECT k FROM other WHERE k IS NOT NULL)",
    "SELECT COUNT(*) FROM big WHERE k NOT IN (SELECT k FROM other)",
    "SELECT COUNT(*), SUM(a.id), SUM(b.id) FROM big AS a JOIN other AS b ON a.f = b.f AND a.id % 100 = b.id % 100",
    "SELECT a.word, COUNT(*), MAX(b.pad) FROM big AS a JOIN other AS b ON a.k = b.k GROUP BY a.word",
    "SELECT id FROM big UNION ALL SELECT id + 1000000 FROM other ORDER BY 1",
];

/// Storage that counts the files that queries write, and may have no room for them.
#[derive(Clone, Debug, Default)]
struct Counted {
    storage: Arc<MemoryStorage>,
    spilled: Arc<AtomicUsize>,
    is_full: Arc<AtomicBool>,
}

impl Storage for Counted {
    fn create(&self, name: &str) -> alluvium_storage::Result<Box<dyn BlobWriter>> {
        if name.starts_with("spilled") {
            self.spilled.fetch_add(1, Ordering::SeqCst);
            if self.is_full.load(Ordering::SeqCst) {
                return Err(alluvium_storage::Error::Full {
                    place: name.to_owned(),
                    operation: "write",
                    cause: std::io::ErrorKind::StorageFull.into(),
                });
            }
        }
        self.storage.create(name)
    }

    fn open(&self, name: &str) -> alluvium_storage::Result<Arc<dyn Blob>> {
        self.storage.open(name)
    }

    fn list(&self, prefix: &str) -> alluvium_storage::Result<Vec<String>> {
        self.storage.list(prefix)
    }

    fn delete(&self, name: &str) -> alluvium_storage::Result<()> {
        self.storage.delete(name)
    }

    fn barrier(&self, names: &[&str]) -> alluvium_storage::Result<()> {
        self.storage.barrier(names)
    }
}

/// An engine with both tables.
fn engine(memory: usize, storage: &Counted) -> Engine {
    let engine = Engine::builder().workers(1).memory(memory).storage(storage.clone());
    let engine = engine.open_in_memory().expect("an engine");
    engine.execute(TABLES).expect("the statements are right");
    engine
}

/// How many rows there are, and numbers that differ if they, or their order, do; or why there are none. Rows that are not in
/// order are sorted.
fn digest(engine: &Engine, sql: &str) -> String {
    let rows = engine.query_rows(sql, &[]).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let batches = match rows {
        Ok(batches) => batches,
        Err(error) => return error.to_string(),
    };
    let mix =
        |all: u64, value: u64| (all.rotate_left(5) ^ value).wrapping_mul(0x517c_c1b7_2722_0a95);
    if sql.contains("ORDER BY") {
        let values =
            batches.iter().flat_map(|rows| rows.column(0).as_primitive::<Int64Type>().values());
        let count: usize = batches.iter().map(|rows| rows.num_rows()).sum();
        return format!("{count} {}", values.fold(0, |all, &value| mix(all, value as u64)));
    }
    let lines = lines(&batches);
    let bytes = lines.iter().flat_map(|line| line.bytes());
    format!("{} {}", lines.len(), bytes.fold(0, |all, byte| mix(all, u64::from(byte))))
}

#[test]
fn answers_do_not_depend_on_the_memory_of_queries() {
    let (rich, poor) = (Counted::default(), Counted::default());
    let (much, little) = (engine(64 << 30, &rich), engine(64 << 20, &poor));
    let (mut spilling, mut wrong) = (0, Vec::new());
    for sql in QUERIES {
        let expected = digest(&much, sql);
        let before = poor.spilled.load(Ordering::SeqCst);
        let found = digest(&little, sql);
        if found != expected {
            wrong.push(format!("{sql}: {found} instead of {expected}"));
        }
        spilling += usize::from(poor.spilled.load(Ordering::SeqCst) > before);
        assert!(poor.list("spilled").expect("a list").is_empty(), "{sql} leaves files");
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(rich.spilled.load(Ordering::SeqCst), 0);
    assert!(spilling > QUERIES.len() / 2, "{spilling} queries spill");
}

#[test]
fn a_full_disk_is_an_error_of_the_query_and_files_go_with_it() {
    let storage = Counted::default();
    let engine = engine(64 << 20, &storage);
    let sql = "SELECT id, pad FROM big ORDER BY pad";
    let mut rows = engine.query_rows(sql, &[]).expect("rows");
    assert!(rows.next().expect("a batch").is_ok());
    assert!(!storage.list("spilled").expect("a list").is_empty());
    drop(rows);
    assert!(storage.list("spilled").expect("a list").is_empty());
    storage.is_full.store(true, Ordering::SeqCst);
    let error = engine.query_rows(sql, &[]).expect_err("no room").to_string();
    assert!(
        error.starts_with(
            "the query has more rows than memory, and the file for them cannot be written"
        ),
        "{error}"
    );
    storage.is_full.store(false, Ordering::SeqCst);
    assert_eq!(
        engine
            .query_rows(sql, &[])
            .expect("rows")
            .map(|rows| rows.expect("rows").num_rows())
            .sum::<usize>(),
        200_000
    );
}
