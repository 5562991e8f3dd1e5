//! Views that need what others have forgotten.
//!
//! A view prunes its own state below what it needs. Shared state and the contents of tables are not pruned: a
//! reader that comes later, or needs more, still finds all rows.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use alluvium::{Builder, Engine};

use crate::support::query;

const TABLE: &str = "CREATE TABLE t (n BIGINT, ts TIMESTAMP LATENESS INTERVAL '2' MINUTES)";

/// It prunes both sides.
const NEAR: &str = "SELECT a.n, a.ts, b.ts AS other FROM t AS a JOIN t AS b ON a.n = b.n
    AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '10' SECOND";

/// Views over the same table, of which each needs all of its rows.
const ALL: [(&str, &str); 3] = [
    (
        "pairs",
        "SELECT a.n, COUNT(*) AS c, MIN(b.ts) AS first FROM t AS a JOIN t AS b ON a.n = b.n GROUP BY a.n",
    ),
    ("firsts", "SELECT n, MIN(ts) AS first, COUNT(*) AS c FROM t GROUP BY n"),
    (
        "missed",
        "SELECT a.n, a.ts FROM t AS a WHERE NOT EXISTS
         (SELECT 1 FROM t AS b WHERE b.n = a.n AND b.ts < a.ts)",
    ),
];

/// Views that forget, with the rows that enter their states each minute.
const FORGETTING: [(&str, &str, u32); 3] = [
    ("near", NEAR, 42),
    ("minutely", "SELECT DATE_TRUNC('minute', ts) AS m, n, COUNT(*) AS c FROM t GROUP BY 1, 2", 5),
    (
        "unmatched",
        "SELECT a.n, a.ts, b.n AS other FROM t AS a LEFT JOIN t AS b ON a.ts = b.ts AND a.n < b.n",
        42,
    ),
];

/// Inserts 21 rows for each of these minutes, one transaction a minute; some times occur twice.
fn minutes(engine: &Engine, from: u32, to: u32) {
    for minute in from..to {
        let row = |row: u32| {
            let second = row.min(19) * 3;
            format!("({}, '2024-01-01 {:02}:{:02}:{second:02}')", row % 5, minute / 60, minute % 60)
        };
        let rows: Vec<String> = (0..21).map(row).collect();
        engine.execute(&format!("INSERT INTO t VALUES {}", rows.join(", "))).unwrap();
    }
    engine.wait(engine.progress().committed).unwrap();
}

/// All views.
fn views() -> impl Iterator<Item = (&'static str, &'static str)> {
    FORGETTING.iter().map(|(name, sql, _)| (*name, *sql)).chain(ALL)
}

fn create(engine: &Engine, prefix: &str) {
    for (name, sql) in views() {
        engine.execute(&format!("CREATE MATERIALIZED VIEW {prefix}{name} AS {sql}")).unwrap();
    }
}

/// Asserts that each view has what its query gives over the table, which has all rows.
fn assert_complete(engine: &Engine, prefixes: &[&str]) {
    for (name, sql) in views() {
        let expected = query(engine, sql);
        assert!(!expected.is_empty(), "{name} has rows");
        for prefix in prefixes {
            let found = query(engine, &format!("SELECT * FROM {prefix}{name}"));
            assert_eq!(found.len(), expected.len(), "{prefix}{name}");
            assert!(found == expected, "{prefix}{name}");
        }
    }
}

/// The rows of the pruned states of a view.
fn pruned_rows(engine: &Engine, view: &str) -> u64 {
    let rows = query(
        engine,
        &format!(
            "SELECT COALESCE(SUM(rows), 0) FROM alluvium.arrangements
             WHERE view = '{view}' AND operator <> 'Contents' AND bound IS NOT NULL"
        ),
    );
    rows[0].parse().unwrap()
}

/// Asserts that views have forgotten rows of so many minutes, and that no index has.
fn assert_forgotten(engine: &Engine, minutes: u32) {
    for (name, _, each) in FORGETTING {
        let (kept, entered) = (pruned_rows(engine, name), u64::from(each * minutes));
        assert!(0 < kept && kept < entered, "{name} keeps {kept} of {entered} rows");
    }
    let indexes = query(
        engine,
        "SELECT COUNT(*) FROM alluvium.arrangements WHERE (view LIKE 'index%' OR view = 't') AND bound IS NOT NULL",
    );
    assert_eq!(indexes, ["0"], "what is shared is not pruned");
}

fn assert_siblings_see_all(builder: impl Fn() -> Builder) {
    let engine = builder().open().unwrap();
    engine.execute(TABLE).unwrap();
    create(&engine, "");
    minutes(&engine, 0, 60);
    assert_forgotten(&engine, 60);
    assert_complete(&engine, &[""]);
    // The same queries, from now on, and over the rows that the others have forgotten.
    create(&engine, "later_");
    assert_complete(&engine, &["", "later_"]);
    minutes(&engine, 60, 80);
    assert_forgotten(&engine, 80);
    assert_complete(&engine, &["", "later_"]);
}

#[test]
fn siblings_and_later_views_see_what_a_view_has_forgotten() {
    for workers in [1, 2] {
        assert_siblings_see_all(|| Engine::builder().workers(workers));
    }
}

#[test]
fn siblings_and_later_views_see_what_a_view_has_forgotten_in_files() {
    assert_siblings_see_all(|| Engine::builder().workers(2).memory(1 << 20));
}

#[test]
fn siblings_and_later_views_see_what_a_view_has_forgotten_before_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let state = format!("file:{}", directory.path().display());
    let open = || Engine::builder().workers(2).memory(1 << 20).state(&state).open().unwrap();
    let engine = open();
    engine.execute(TABLE).unwrap();
    create(&engine, "");
    minutes(&engine, 0, 50);
    engine.execute("CHECKPOINT").unwrap();
    minutes(&engine, 50, 60);
    drop(engine);

    // From the checkpoint, in which the forgotten rows are missing, and the journal.
    let engine = open();
    assert_complete(&engine, &[""]);
    create(&engine, "later_");
    assert_complete(&engine, &["", "later_"]);
    minutes(&engine, 60, 80);
    assert_forgotten(&engine, 80);
    assert_complete(&engine, &["", "later_"]);
    drop(engine);

    // A view that replaces one that forgets is made of the table's rows, not of what is left of them.
    let engine = open();
    engine.execute(&format!("CREATE OR REPLACE MATERIALIZED VIEW near AS {NEAR}")).unwrap();
    assert_complete(&engine, &["", "later_"]);
}
