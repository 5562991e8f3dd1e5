//! Indexes that statements create: what queries, views and restarts make of them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::Path;
use std::time::{Duration, Instant};

use alluvium::{Engine, Outcome};

use crate::support::{PATIENCE, batch_lines, engine_with, query, settled};

const TABLES: &str = "
    CREATE TABLE orders (id BIGINT PRIMARY KEY, customer BIGINT, day DATE, note VARCHAR);
    CREATE TABLE heap (a BIGINT, b BIGINT NOT NULL, c VARCHAR);
    CREATE MATERIALIZED VIEW sums AS SELECT customer, COUNT(*) AS n, MAX(note) AS last FROM orders GROUP BY customer;
    CREATE INDEX by_customer ON orders (customer, day);
    CREATE INDEX by_day ON orders (day);
    CREATE INDEX heap_by_a ON heap (a, b);
    CREATE INDEX heap_by_b ON heap (b);
    CREATE INDEX sums_by_n ON sums (n);";

fn open(directory: &Path, workers: usize) -> Engine {
    let state = format!("file:{}", directory.display());
    let builder = Engine::builder().workers(workers);
    builder.state(state).checkpoints(Duration::MAX, u64::MAX).open().unwrap()
}

fn plan(engine: &Engine, sql: &str) -> String {
    match engine.execute(&format!("EXPLAIN {sql}")).unwrap().pop() {
        Some(Outcome::Text(plan)) => plan,
        other => panic!("EXPLAIN has a text, not {other:?}"),
    }
}

fn failure(engine: &Engine, sql: &str) -> String {
    engine.execute(sql).unwrap_err().to_string()
}

#[test]
fn queries_seek_in_the_index_that_their_conditions_restrict_most() {
    let engine = engine_with(2, TABLES);
    for (sql, expected) in [
        ("SELECT * FROM orders WHERE customer = 3", "index=by_customer, seek=[customer], ranges=1"),
        (
            "SELECT note FROM orders WHERE customer IN (3, 4) AND day > DATE '2020-01-01'",
            "index=by_customer, seek=[customer, day], ranges=2",
        ),
        (
            "SELECT * FROM orders WHERE day BETWEEN DATE '2020-01-01' AND DATE '2020-02-01'",
            "index=by_day, seek=[day], ranges=1",
        ),
        // A date plus an interval is an instant, and falls on a day.
        (
            "SELECT * FROM orders WHERE day >= DATE '2020-01-31' + INTERVAL '1' MONTH",
            "index=by_day, seek=[day], ranges=1",
        ),
        // The key has at most one row.
        (
            "SELECT * FROM orders WHERE id = 1 AND customer = 3",
            "columns=[id, customer, day, note], seek=[id]",
        ),
        (
            "SELECT * FROM orders WHERE id > 1 AND customer = 3",
            "index=by_customer, seek=[customer]",
        ),
        (
            "SELECT * FROM orders WHERE id > 1 AND customer > 3",
            "columns=[id, customer, day, note], seek=[id]",
        ),
        ("SELECT * FROM heap WHERE a IS NULL", "index=heap_by_a, seek=[a], ranges=1"),
        ("SELECT * FROM heap WHERE b = 3 AND a = 2", "index=heap_by_a, seek=[a, b], ranges=1"),
        ("SELECT * FROM heap WHERE b = 3 AND a > 2", "index=heap_by_b, seek=[b], ranges=1"),
        ("SELECT * FROM sums WHERE n > 100", "index=sums_by_n, seek=[n], ranges=1"),
        ("SELECT * FROM sums WHERE customer = 100", "seek=[customer], ranges=1"),
        // The order of an index, with a limit, is where a scan ends.
        ("SELECT * FROM heap ORDER BY b LIMIT 3", "index=heap_by_b, by key, limit=3"),
        ("SELECT * FROM heap ORDER BY a LIMIT 3", "index=heap_by_a, by key, NULL last, limit=3"),
        (
            "SELECT * FROM heap ORDER BY a NULLS FIRST, b LIMIT 3",
            "index=heap_by_a, by key, limit=3",
        ),
        (
            "SELECT * FROM heap WHERE a >= 7 ORDER BY a, b LIMIT 3",
            "seek=[a], ranges=1, by key, NULL last",
        ),
        (
            "SELECT * FROM orders WHERE customer = 7 ORDER BY day LIMIT 3",
            "index=by_customer, seek=[customer], ranges=1, by key, NULL last",
        ),
    ] {
        let plan = plan(&engine, sql);
        assert!(plan.contains(expected), "{sql}\n{plan}");
        assert!(!plan.contains("SortExec"), "{sql}\n{plan}");
    }
    for sql in ["SELECT * FROM heap WHERE c = 'x'", "SELECT * FROM heap WHERE a + 0 = 1"] {
        assert!(!plan(&engine, sql).contains("index="), "{sql}");
    }
    // NULL comes last, and an index by several columns has it first in the second.
    for sql in ["SELECT * FROM orders ORDER BY customer, day", "SELECT * FROM heap ORDER BY b DESC"]
    {
        assert!(plan(&engine, sql).contains("SortExec"), "{sql}");
    }
    engine.execute("DROP INDEX heap_by_b").unwrap();
    assert!(!plan(&engine, "SELECT * FROM heap WHERE b = 3").contains("index="));
}

/// Of two paths that filters restrict the one is taken of which they leave less.
#[test]
fn an_index_with_few_values_gives_way_to_a_range_of_the_key() {
    let engine = engine_with(
        1,
        "CREATE TABLE t (id BIGINT PRIMARY KEY, few BIGINT);
         INSERT INTO t SELECT n, n % 2 FROM generate_series(1, 50000) AS s(n);
         CREATE INDEX by_few ON t (few)",
    );
    let narrow = "SELECT COUNT(*) FROM t WHERE few = 1 AND id > 49990";
    assert!(!plan(&engine, narrow).contains("index="), "{}", plan(&engine, narrow));
    assert_eq!(query(&engine, narrow), ["5"]);
    let wide = "SELECT COUNT(*) FROM t WHERE few = 7 AND id > 10";
    assert!(plan(&engine, wide).contains("index=by_few"), "{}", plan(&engine, wide));
    assert_eq!(query(&engine, wide), ["0"]);
}

#[test]
fn nulls_come_last_out_of_an_index_or_first() {
    for workers in 1..=3 {
        let engine = engine_with(
            workers,
            "CREATE TABLE t (a BIGINT, b VARCHAR);
             CREATE INDEX by_a ON t (a, b);
             INSERT INTO t VALUES (2, 'x'), (NULL, 'y'), (1, NULL), (NULL, NULL), (1, 'z'), (2, NULL), (1, 'a')",
        );
        let ordered = |sql: &str| {
            let rows = engine.query(sql).unwrap();
            rows.iter().flat_map(batch_lines).collect::<Vec<_>>()
        };
        assert_eq!(
            ordered("SELECT a FROM t ORDER BY a"),
            ["1", "1", "1", "2", "2", "NULL", "NULL"]
        );
        assert_eq!(ordered("SELECT a FROM t ORDER BY a LIMIT 6")[5], "NULL");
        assert_eq!(
            ordered("SELECT a FROM t ORDER BY a NULLS FIRST LIMIT 3"),
            ["NULL", "NULL", "1"]
        );
        let within = "SELECT b FROM t WHERE a = 1 ORDER BY b";
        assert!(!plan(&engine, within).contains("SortExec"));
        assert_eq!(ordered(within), ["a", "z", "NULL"]);
        assert_eq!(
            ordered("SELECT b FROM t WHERE a = 1 ORDER BY b LIMIT 2 OFFSET 1"),
            ["z", "NULL"]
        );
        assert_eq!(ordered("SELECT b FROM t WHERE a IS NULL ORDER BY b"), ["y", "NULL"]);
        assert_eq!(ordered("SELECT b FROM t WHERE a IN (1, 2) ORDER BY a, b")[2..4], ["NULL", "x"]);
    }
}

/// The reads of UPDATE and DELETE, and what a transaction has written and not committed.
#[test]
fn a_transaction_sees_its_own_writes_through_an_index() {
    for workers in 1..=2 {
        let engine = engine_with(workers, TABLES);
        let mut session = engine.session();
        session
            .execute(
                "INSERT INTO orders VALUES (1, 7, DATE '2020-01-01', 'a'), (2, 7, NULL, 'b'), (3, 8, NULL, 'c');
                 INSERT INTO heap VALUES (1, 1, 'x'), (1, 1, 'x'), (2, 2, 'y');
                 BEGIN;
                 INSERT OR REPLACE INTO orders VALUES (4, 7, NULL, 'new'), (2, 9, NULL, 'moved');
                 DELETE FROM heap WHERE a = 2;
                 INSERT INTO heap VALUES (1, 1, 'x'), (5, 5, 'z');
                 UPDATE heap SET a = 6 WHERE b = 5",
            )
            .unwrap();
        let mut seen = |sql: &str| match session.execute(sql).unwrap().pop() {
            Some(Outcome::Rows(rows)) => {
                let mut lines: Vec<_> = rows.flat_map(|rows| batch_lines(&rows.unwrap())).collect();
                lines.sort();
                lines
            }
            other => panic!("{other:?}"),
        };
        let sevens = "SELECT id FROM orders WHERE customer = 7";
        assert_eq!(seen(sevens), ["1", "4"]);
        assert_eq!(seen("SELECT note FROM orders WHERE customer = 9"), ["moved"]);
        assert_eq!(seen("SELECT c FROM heap WHERE a = 1"), ["x", "x", "x"]);
        assert_eq!(seen("SELECT a FROM heap WHERE b >= 2"), ["6"]);
        assert_eq!(query(&engine, sevens), ["1", "2"]);
        session.execute("DELETE FROM orders WHERE customer = 7; COMMIT").unwrap();
        assert_eq!(query(&engine, "SELECT id, customer FROM orders"), ["2 9", "3 8"]);
        assert_eq!(query(&engine, "SELECT id FROM orders WHERE customer < 100"), ["2", "3"]);
        assert_eq!(query(&engine, sevens), [""; 0]);
    }
}

/// How many rows all arrangements of a kind keep on all workers.
fn kept(engine: &Engine, condition: &str) -> Vec<String> {
    settled(
        engine,
        &format!(
            "SELECT view, SUM(rows) FROM alluvium.arrangements WHERE {condition} GROUP BY view"
        ),
    )
}

/// Workers let go of what is dropped when they next run.
fn assert_nothing_is_kept(engine: &Engine) {
    let begin = Instant::now();
    while !kept(engine, "operator = 'Index'").is_empty() {
        assert!(begin.elapsed() < PATIENCE, "{:?}", kept(engine, "operator = 'Index'"));
        std::thread::sleep(Duration::from_millis(20));
    }
}

const JOIN: &str = "CREATE MATERIALIZED VIEW joined AS
    SELECT h.c, o.note FROM heap h JOIN orders o ON o.id = h.a AND o.customer = h.b WHERE o.id IS NOT NULL";

/// A join drops rows with NULL in its keys, on both sides. An index has them, and one side may be an index.
#[test]
fn rows_with_null_in_an_index_meet_nothing_in_a_join() {
    const JOINS: [&str; 7] = [
        "SELECT l.x, r.y FROM l JOIN r ON l.k = r.k",
        "SELECT l.x, r.y FROM l LEFT JOIN r ON l.k = r.k",
        "SELECT l.x, r.y FROM l RIGHT JOIN r ON l.k = r.k",
        "SELECT l.x, r.y FROM l FULL JOIN r ON l.k = r.k",
        "SELECT l.x FROM l WHERE l.k IN (SELECT k FROM r)",
        "SELECT l.x FROM l WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.k = l.k)",
        "SELECT p.x, q.y FROM (SELECT * FROM l WHERE k IS NOT NULL) p LEFT JOIN r q ON p.k = q.k",
    ];
    const TABLES: &str = "
        CREATE TABLE l (k BIGINT, x VARCHAR, w BIGINT); CREATE TABLE r (y VARCHAR, k BIGINT, v VARCHAR);";
    const CHANGES: [&str; 3] = [
        "INSERT INTO l VALUES (1, 'a', 0), (NULL, 'b', 0), (2, 'c', 0), (2, 'd', 0), (4, 'e', 0);
         INSERT INTO r VALUES ('p', 1, ''), ('q', NULL, ''), ('r', 2, ''), ('s', 3, ''), ('t', NULL, '')",
        "UPDATE l SET k = NULL WHERE x = 'c'; UPDATE r SET k = 2 WHERE y = 'q'",
        "DELETE FROM l WHERE k IS NULL; UPDATE r SET k = NULL WHERE k = 1; INSERT INTO l VALUES (NULL, 'f', 1)",
    ];
    for workers in 1..=2 {
        for which in 0..4 {
            let engine = engine_with(workers, TABLES);
            if which & 1 > 0 {
                engine.execute("CREATE INDEX l_by_k ON l (k)").unwrap();
            }
            if which & 2 > 0 {
                engine.execute("CREATE INDEX r_by_k ON r (k)").unwrap();
            }
            engine.execute(CHANGES[0]).unwrap();
            for (number, join) in JOINS.iter().enumerate() {
                engine.execute(&format!("CREATE MATERIALIZED VIEW v{number} AS {join}")).unwrap();
            }
            for change in CHANGES {
                engine.execute(change).unwrap();
                for (number, join) in JOINS.iter().enumerate() {
                    let found = settled(&engine, &format!("SELECT * FROM v{number}"));
                    assert_eq!(found, query(&engine, join), "{join}, indexes {which}, {change}");
                }
            }
            // The inner join takes an index of one side, where there is one.
            let names: Vec<_> =
                engine.relations().unwrap().into_iter().flat_map(|info| info.indexes).collect();
            for name in names {
                engine.execute(&format!("DROP INDEX {}", name.name)).unwrap();
            }
        }
    }
    let engine = engine_with(1, TABLES);
    engine.execute("CREATE INDEX r_by_k ON r (k)").unwrap();
    engine.execute(&format!("CREATE MATERIALIZED VIEW v AS {}", JOINS[0])).unwrap();
    engine.execute(CHANGES[0]).unwrap();
    assert_eq!(kept(&engine, "operator = 'Index'").len(), 2);
    assert!(kept(&engine, "operator = 'Index'").contains(&"r_by_k 5".to_owned()));
}

/// The join needs two of three columns, and has no index of its own.
#[test]
fn a_join_by_the_columns_of_an_index_shares_its_rows() {
    const VIEW: &str = "CREATE MATERIALIZED VIEW pairs AS SELECT x.id, y.c FROM orders x JOIN heap y ON x.customer = y.b";
    const AGAIN: &str = "CREATE MATERIALIZED VIEW others AS SELECT y.a, x.note FROM heap y LEFT JOIN orders x ON x.customer = y.b";
    for workers in 1..=3 {
        let engine = engine_with(
            workers,
            "CREATE TABLE orders (id BIGINT PRIMARY KEY, customer BIGINT NOT NULL, note VARCHAR);
             CREATE TABLE heap (a BIGINT, b BIGINT NOT NULL, c VARCHAR);
             INSERT INTO orders VALUES (1, 7, 'a'), (2, 7, 'b'), (3, 8, 'c');
             CREATE INDEX by_customer ON orders (customer);",
        );
        engine.execute(VIEW).unwrap();
        engine.execute("INSERT INTO heap VALUES (1, 7, 'x'), (2, 8, 'y'), (3, 9, 'z')").unwrap();
        engine
            .execute("CREATE INDEX heap_by_b ON heap (b); CREATE INDEX twice ON heap (b)")
            .unwrap();
        engine.execute(AGAIN).unwrap();
        let checked = || {
            let pairs = "SELECT x.id, y.c FROM orders x JOIN heap y ON x.customer = y.b";
            assert_eq!(settled(&engine, "SELECT * FROM pairs"), query(&engine, pairs));
            let others = "SELECT y.a, x.note FROM heap y LEFT JOIN orders x ON x.customer = y.b";
            assert_eq!(settled(&engine, "SELECT * FROM others"), query(&engine, others));
        };
        checked();
        // The first view came before the index of `heap`, and has one of its own.
        let indexes = "operator = 'Index'";
        let counted = kept(&engine, indexes);
        assert_eq!(counted.len(), 3, "{counted:?}");
        assert!(counted.contains(&"by_customer 3".to_owned()), "{counted:?}");
        assert!(counted.contains(&"heap_by_b, twice 3".to_owned()), "{counted:?}");
        engine
            .execute("DELETE FROM orders WHERE id = 2; UPDATE heap SET b = 7 WHERE b = 8")
            .unwrap();
        checked();
        // Indexes that views use stay, without their names.
        engine.execute("DROP INDEX by_customer; DROP INDEX twice; DROP INDEX heap_by_b").unwrap();
        engine
            .execute("INSERT INTO orders VALUES (9, 7, 'i'); DELETE FROM heap WHERE a = 1")
            .unwrap();
        checked();
        assert!(kept(&engine, indexes).iter().all(|line| line.starts_with("index ")));
        engine.execute("DROP VIEW pairs; DROP VIEW others").unwrap();
        assert_nothing_is_kept(&engine);
    }
}

#[test]
fn indexes_are_there_again_with_other_workers_and_without_their_names() {
    for checkpoint in ["", "CHECKPOINT"] {
        let directory = tempfile::tempdir().unwrap();
        let engine = open(directory.path(), 2);
        engine.execute(TABLES).unwrap();
        engine
            .execute(
                "CREATE SCHEMA s; CREATE TABLE s.t (a BIGINT, b BIGINT); CREATE INDEX i ON s.t (b);
                 CREATE INDEX gone ON s.t (a); CREATE INDEX \"Two words\" ON s.t (a, b);
                 INSERT INTO s.t VALUES (1, 2), (3, 4);
                 INSERT INTO orders SELECT n, n % 10, NULL, 'note ' || n FROM generate_series(1, 500) AS g(n);
                 INSERT INTO heap SELECT n % 7, n % 10, 'c' FROM generate_series(1, 100) AS g(n)",
            )
            .unwrap();
        engine.execute(JOIN).unwrap();
        engine
            .execute(
                "CREATE INDEX joined_first ON heap (a); CREATE INDEX used ON orders (customer);
                 CREATE MATERIALIZED VIEW uses AS
                     SELECT o.id, h.c FROM orders o JOIN heap h ON o.customer = h.b WHERE h.c IS NOT NULL;
                 CREATE MATERIALIZED VIEW after AS SELECT o.id, h.a FROM orders o LEFT JOIN heap h ON o.customer = h.a",
            )
            .unwrap();
        engine.execute(checkpoint).unwrap();
        // The views that use them are made without them when the engine is opened again.
        engine.execute("DROP INDEX used; DROP INDEX s.gone; DROP INDEX joined_first").unwrap();
        if checkpoint.is_empty() {
            engine.execute("UPDATE orders SET customer = 3 WHERE customer = 4").unwrap();
        } else {
            engine
                .execute("UPDATE orders SET customer = 3 WHERE customer = 4; CHECKPOINT")
                .unwrap();
        }
        let shown = |engine: &Engine| {
            [
                "SELECT id FROM orders WHERE customer = 3",
                "SELECT a FROM heap WHERE b = 3",
                "SELECT customer, last FROM sums WHERE n > 50",
                "SELECT a FROM s.t WHERE b = 4",
                "SELECT * FROM uses",
                "SELECT * FROM after",
                "SELECT * FROM joined",
            ]
            .map(|sql| query(engine, sql))
        };
        let mut before = shown(&engine);
        drop(engine);
        for workers in [2, 3, 1] {
            let engine = open(directory.path(), workers);
            assert_eq!(shown(&engine), before, "{workers} workers");
            let found = plan(&engine, "SELECT id FROM orders WHERE customer = 3");
            assert!(found.contains("index=by_customer"), "{found}");
            let found = plan(&engine, "SELECT a FROM s.t WHERE b = 4");
            assert!(found.contains("index=s.i"), "{found}");
            assert!(failure(&engine, "DROP INDEX used").contains("there is no index \"used\""));
            let all: Vec<_> =
                engine.relations().unwrap().into_iter().flat_map(|info| info.indexes).collect();
            let mut names: Vec<_> = all.iter().map(|index| index.name.as_str()).collect();
            names.sort_unstable();
            let expected = [
                "by_customer",
                "by_day",
                "heap_by_a",
                "heap_by_b",
                "s.Two words",
                "s.i",
                "sums_by_n",
            ];
            assert_eq!(names, expected);
            engine
                .execute(&format!(
                    "INSERT INTO orders VALUES ({0}, 3, NULL, 'again'); DELETE FROM orders WHERE id = {workers};
                     INSERT INTO heap VALUES (3, 3, 'more'); DELETE FROM heap WHERE a = {workers}",
                    1000 + workers
                ))
                .unwrap();
            before = shown(&engine);
            let judge = "SELECT o.id, h.a FROM orders o LEFT JOIN heap h ON o.customer = h.a";
            assert_eq!(query(&engine, judge), query(&engine, "SELECT * FROM after"));
            let judge = "SELECT o.id, h.c FROM orders o JOIN heap h ON o.customer = h.b";
            assert_eq!(query(&engine, judge), query(&engine, "SELECT * FROM uses"));
        }
    }
}

#[test]
fn indexes_go_with_their_relations_and_keep_them_as_they_are() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path(), 1);
    engine.execute(TABLES).unwrap();
    let refused = failure(&engine, "ALTER TABLE heap RENAME COLUMN a TO x");
    assert!(refused.contains("DROP INDEX \"heap_by_a\", \"heap_by_b\", ALTER"), "{refused}");
    assert!(failure(&engine, "ALTER TABLE heap DROP COLUMN c").contains("heap_by_a"));
    engine.execute("ALTER TABLE heap RENAME TO pile; ALTER VIEW sums RENAME TO s").unwrap();
    engine.execute("ALTER TABLE pile RENAME TO heap; ALTER VIEW s RENAME TO sums").unwrap();
    assert!(
        failure(&engine, "CREATE TABLE by_day (a INT)").contains("already an index \"by_day\"")
    );
    assert!(
        failure(&engine, "CREATE INDEX sums ON heap (a)").contains("already a materialized view")
    );
    assert!(failure(&engine, "CREATE INDEX by_day ON heap (a)").contains("already an index"));
    engine.execute("CREATE INDEX IF NOT EXISTS by_day ON heap (a)").unwrap();
    assert!(failure(&engine, "DROP TABLE by_day").contains("is an index of \"orders\""));
    assert!(failure(&engine, "DROP INDEX heap").contains("is a table, not an index"));
    engine.execute("DROP INDEX IF EXISTS nowhere").unwrap();
    engine.execute("CREATE OR REPLACE TABLE heap (a BIGINT, b BIGINT)").unwrap();
    engine.execute("CREATE TABLE heap_by_a (a BIGINT)").unwrap();
    engine
        .execute("CREATE OR REPLACE MATERIALIZED VIEW sums AS SELECT customer AS n FROM orders")
        .unwrap();
    assert!(failure(&engine, "DROP INDEX sums_by_n").contains("there is no index"));
    engine.execute("CREATE INDEX sums_by_n ON sums (n)").unwrap();
    // Indexes are no users of a table.
    engine
        .execute("DROP TABLE orders CASCADE; CREATE TABLE orders (id BIGINT, customer BIGINT)")
        .unwrap();
    assert_nothing_is_kept(&engine);
    drop(engine);
    let engine = open(directory.path(), 1);
    assert!(engine.relations().unwrap().iter().all(|info| info.indexes.is_empty()));
    engine
        .execute("CREATE INDEX by_day ON orders (customer); INSERT INTO orders VALUES (1, 2)")
        .unwrap();
    assert_eq!(query(&engine, "SELECT id FROM orders WHERE customer = 2"), ["1"]);
}

#[test]
fn what_keeps_no_rows_has_no_index() {
    let engine = engine_with(
        1,
        "CREATE TABLE stream (a BIGINT) WITH ('materialized' = 'false');
         CREATE TABLE t (a BIGINT, l BIGINT[], m MAP<VARCHAR, BIGINT>);
         CREATE VIEW plain AS SELECT a FROM t; CREATE LOCAL VIEW local AS SELECT a FROM t",
    );
    for (sql, expected) in [
        ("CREATE INDEX i ON stream (a)", "\"stream\" keeps no rows that an index could have"),
        ("CREATE INDEX i ON plain (a)", "write CREATE MATERIALIZED VIEW"),
        ("CREATE INDEX i ON local (a)", "write CREATE MATERIALIZED VIEW"),
        ("CREATE INDEX i ON nowhere (a)", "there is no table or view \"nowhere\""),
        ("CREATE INDEX i ON t (b)", "no column \"b\" in \"t\""),
        ("CREATE INDEX i ON t (m)", "cannot be keys"),
        ("CREATE INDEX i ON alluvium.errors (view)", "engine's own"),
    ] {
        let error = failure(&engine, sql);
        assert!(error.contains(expected), "{sql}: {error}");
        let error = engine.session().execute(&format!("BEGIN; {sql}")).unwrap_err().to_string();
        assert!(error.contains(expected), "in a transaction, {sql}: {error}");
    }
}
