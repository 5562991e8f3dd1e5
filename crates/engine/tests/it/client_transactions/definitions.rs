//! Definitions inside of BEGIN and COMMIT: all or nothing, and not visible to others before.

use std::thread;

use alluvium::{Engine, Error, Outcome, Session, SqlState};
use alluvium_storage::SimulatedDisk;

use super::{error, fails, rows, run};
use crate::checkpoints::on_with;
use crate::crashes::Crashes;
use crate::support::{engine_with, query, without_hanging};

const TABLES: &str = "
    CREATE TABLE t (id BIGINT PRIMARY KEY, v VARCHAR); INSERT INTO t VALUES (1, 'one'), (2, 'two');
    CREATE MATERIALIZED VIEW counted AS SELECT COUNT(*) AS c FROM t;";

/// Two sessions of an engine.
fn two() -> (Engine, Session, Session) {
    let engine = engine_with(2, TABLES);
    let (one, other) = (engine.session(), engine.session());
    (engine, one, other)
}

fn names(engine: &Engine) -> Vec<String> {
    query(engine, "SELECT name FROM alluvium.relations ORDER BY name")
}

fn is_conflict(outcome: &alluvium::Result<Vec<Outcome>>, name: &str) -> bool {
    matches!(outcome, Err(Error::Conflict { message, .. }) if message.contains(name))
}

#[test]
fn a_table_is_seen_inside_and_by_others_once_it_is_committed() {
    let (engine, mut one, mut other) = two();
    let before = names(&engine);
    run(
        &mut one,
        "BEGIN; CREATE TABLE made (id BIGINT PRIMARY KEY, v VARCHAR DEFAULT 'none') WITH ('on_conflict' = 'error')",
    );
    assert!(rows(&mut one, "SELECT * FROM made").is_empty());
    run(&mut one, "INSERT INTO made SELECT * FROM t; INSERT INTO made (id) VALUES (7)");
    fails(&mut one, "INSERT INTO made VALUES (7, 'again')", SqlState::UNIQUE);
    run(&mut one, "UPDATE made SET v = v || '!' WHERE id > 1; DELETE FROM made WHERE id = 1");
    run(
        &mut one,
        "INSERT INTO made VALUES (2, 'x'), (3, 'y') ON CONFLICT (id) DO UPDATE SET v = excluded.v",
    );
    let made = ["2 x", "3 y", "7 none!"];
    assert_eq!(rows(&mut one, "SELECT * FROM made"), made);
    assert_eq!(rows(&mut one, "SELECT made.v, t.v FROM made JOIN t USING (id)"), ["x two"]);
    assert_eq!(rows(&mut one, "SELECT v FROM made WHERE id = 3"), ["y"]);
    let listed = "SELECT kind, state FROM alluvium.relations WHERE name = 'made'";
    assert_eq!(rows(&mut one, listed), ["table running"]);
    assert_eq!(rows(&mut one, "DESCRIBE made").len(), 2);
    // No other session sees any of it.
    assert_eq!(names(&engine), before);
    fails(&mut other, "SELECT * FROM made", SqlState::NO_RELATION);
    let shown = "SELECT COUNT(*) FROM information_schema.tables WHERE table_name = 'made'";
    assert_eq!(rows(&mut other, shown), ["0"]);
    assert_eq!(rows(&mut one, shown), ["1"]);
    run(&mut one, "COMMIT");
    assert_eq!(rows(&mut other, "SELECT * FROM made"), made);
    fails(&mut other, "INSERT INTO made VALUES (7, 'again')", SqlState::UNIQUE);
    run(&mut other, "CREATE MATERIALIZED VIEW of_made AS SELECT COUNT(*) AS c FROM made");
    assert_eq!(query(&engine, "SELECT * FROM of_made"), ["3"]);
}

#[test]
fn what_is_rolled_back_leaves_nothing() {
    let (engine, mut one, mut other) = two();
    let before = names(&engine);
    run(&mut one, "BEGIN; CREATE TABLE made (n BIGINT); INSERT INTO made VALUES (1)");
    run(
        &mut one,
        "CREATE MATERIALIZED VIEW of_made AS SELECT SUM(n) AS s FROM made; DROP TABLE t CASCADE",
    );
    fails(&mut one, "SELECT * FROM t", SqlState::NO_RELATION);
    fails(&mut one, "SELECT * FROM counted", SqlState::NO_RELATION);
    assert_eq!(rows(&mut other, "SELECT * FROM counted"), ["2"]);
    run(&mut one, "ROLLBACK");
    assert_eq!(names(&engine), before);
    assert_eq!(rows(&mut one, "SELECT * FROM counted"), ["2"]);
    run(&mut one, "CREATE TABLE made (v VARCHAR)");
}

#[test]
fn savepoints_cut_definitions() {
    let (engine, mut one, _) = two();
    run(&mut one, "BEGIN; CREATE TABLE a (n BIGINT); INSERT INTO a VALUES (1); SAVEPOINT s");
    run(&mut one, "CREATE TABLE b (n BIGINT); INSERT INTO b VALUES (1); INSERT INTO a VALUES (2)");
    run(&mut one, "DROP TABLE t CASCADE; DROP TABLE a; CREATE TABLE a (v VARCHAR)");
    run(&mut one, "ROLLBACK TO s");
    fails(&mut one, "SELECT * FROM b", SqlState::NO_RELATION);
    assert_eq!(rows(&mut one, "SELECT * FROM a"), ["1"]);
    assert_eq!(rows(&mut one, "SELECT c FROM counted"), ["2"]);
    run(&mut one, "CREATE TABLE b (v VARCHAR); COMMIT");
    assert_eq!(query(&engine, "SELECT * FROM a"), ["1"]);
    assert!(query(&engine, "SELECT * FROM b WHERE v = 'x'").is_empty());
}

#[test]
fn views_inside_are_read_by_their_queries_and_are_full_when_committed() {
    let (engine, mut one, mut other) = two();
    run(&mut one, "BEGIN; CREATE TABLE made (id BIGINT PRIMARY KEY, n BIGINT)");
    run(&mut one, "INSERT INTO made VALUES (1, 10), (2, 20)");
    run(&mut one, "CREATE VIEW named AS SELECT v, n FROM t JOIN made USING (id)");
    run(&mut one, "CREATE MATERIALIZED VIEW sums AS SELECT SUM(n) AS s FROM named");
    run(&mut one, "CREATE MATERIALIZED VIEW above AS SELECT s + c AS x FROM sums, counted");
    run(&mut one, "INSERT INTO t VALUES (3, 'three'); INSERT INTO made VALUES (3, 30)");
    assert_eq!(rows(&mut one, "SELECT * FROM sums"), ["60"]);
    assert_eq!(rows(&mut one, "SELECT * FROM named"), ["one 10", "three 30", "two 20"]);
    fails(&mut other, "SELECT * FROM sums", SqlState::NO_RELATION);
    run(&mut one, "COMMIT");
    assert_eq!(rows(&mut other, "SELECT s, x FROM sums, above"), ["60 63"]);
    run(&mut other, "UPDATE made SET n = 0 WHERE id = 1; DELETE FROM t WHERE id = 2");
    assert_eq!(query(&engine, "SELECT s, x FROM sums, above"), ["30 32"]);
    let replaced = "BEGIN; CREATE OR REPLACE MATERIALIZED VIEW above AS SELECT c FROM counted;
        CREATE OR REPLACE TABLE u (n BIGINT); CREATE TABLE IF NOT EXISTS made (x VARCHAR); COMMIT";
    run(&mut one, replaced);
    assert_eq!(query(&engine, "SELECT * FROM above"), ["2"]);
    run(
        &mut one,
        "BEGIN; CREATE OR REPLACE TABLE u (v VARCHAR); INSERT INTO u VALUES ('x'); COMMIT",
    );
    assert_eq!(query(&engine, "SELECT * FROM u"), ["x"]);
}

#[test]
fn a_table_of_a_query_has_its_rows() {
    let (engine, mut one, mut other) = two();
    run(
        &mut one,
        "BEGIN; INSERT INTO t VALUES (3, 'three'); CREATE TABLE copied AS SELECT * FROM t",
    );
    assert_eq!(rows(&mut one, "SELECT COUNT(*) FROM copied"), ["3"]);
    let (code, _) = error(&mut one, "CREATE TABLE failing AS SELECT 1 / (id - 1) AS n FROM t");
    assert_eq!(code.as_str(), "22012");
    fails(&mut one, "SELECT * FROM failing", SqlState::NO_RELATION);
    run(&mut one, "CREATE TABLE failing AS SELECT id FROM copied WHERE id > 1");
    run(&mut other, "INSERT INTO t VALUES (4, 'four')");
    // It depends on what it has read.
    fails(&mut one, "COMMIT", SqlState::SERIALIZATION);
    fails(&mut one, "SELECT * FROM copied", SqlState::NO_RELATION);
    run(&mut one, "BEGIN; CREATE TABLE copied AS SELECT * FROM t; COMMIT");
    assert_eq!(query(&engine, "SELECT COUNT(*) FROM copied"), ["3"]);
}

#[test]
fn of_two_that_create_a_name_the_second_fails() {
    let (engine, mut one, mut other) = two();
    run(&mut one, "BEGIN; CREATE TABLE made (n BIGINT); INSERT INTO made VALUES (1)");
    run(&mut other, "BEGIN; CREATE TABLE made (v VARCHAR); CREATE TABLE more (n BIGINT); COMMIT");
    run(&mut one, "INSERT INTO made VALUES (2)");
    assert!(is_conflict(&one.execute("COMMIT"), "made"));
    assert!(query(&engine, "SELECT * FROM made WHERE v = ''").is_empty());
    // So does who drops, or reads, what is another one by now.
    run(&mut one, "BEGIN; DROP TABLE more; CREATE TABLE last (n BIGINT)");
    run(&mut other, "DROP TABLE more; CREATE TABLE more (n BIGINT)");
    assert!(is_conflict(&one.execute("COMMIT"), "more"));
    run(&mut one, "BEGIN; CREATE MATERIALIZED VIEW v AS SELECT n FROM more");
    run(&mut other, "ALTER TABLE more ADD COLUMN x BIGINT");
    assert!(is_conflict(&one.execute("COMMIT"), "more"));
    run(&mut one, "BEGIN; DROP TABLE more");
    run(&mut other, "CREATE MATERIALIZED VIEW v AS SELECT n FROM more");
    assert!(is_conflict(&one.execute("COMMIT"), "more"));
    assert!(!names(&engine).contains(&"last".to_owned()));
}

#[test]
fn an_idle_transaction_with_definitions_holds_nobody_up() {
    let disk = SimulatedDisk::new(3);
    let engine = on_with(&disk, 2).unwrap();
    engine.execute(TABLES).unwrap();
    let mut one = engine.session();
    run(&mut one, "BEGIN; CREATE TABLE made (n BIGINT); INSERT INTO made VALUES (1)");
    run(&mut one, "CREATE MATERIALIZED VIEW of_made AS SELECT SUM(n) AS s FROM made");
    let others = engine.clone();
    without_hanging(move || {
        others
            .execute("INSERT INTO t VALUES (3, 'three'); CHECKPOINT; CREATE TABLE u (n BIGINT)")
            .unwrap();
        others
            .execute("ALTER TABLE u RENAME TO w; DROP TABLE w; DROP TABLE t CASCADE; CHECKPOINT")
            .unwrap();
    });
    run(&mut one, "COMMIT");
    assert_eq!(query(&engine, "SELECT * FROM of_made"), ["1"]);
    drop((one, engine));
    let engine = on_with(&disk, 2).unwrap();
    assert_eq!(query(&engine, "SELECT s, n FROM of_made, made"), ["1 1"]);
    assert_eq!(names(&engine).len(), 2);
}

#[test]
fn a_commit_can_be_interrupted_while_views_fill_and_leaves_nothing() {
    let (engine, mut one, mut other) = two();
    run(&mut other, "CREATE TABLE many (n BIGINT); INSERT INTO many SELECT UNNEST(range(0, 2000))");
    let before = names(&engine);
    let long = "BEGIN; CREATE TABLE made (n BIGINT); INSERT INTO made VALUES (1);
        CREATE MATERIALIZED VIEW long AS SELECT COUNT(*) AS c FROM many a, many b, many c, made
        WHERE a.n + b.n + c.n = 7";
    run(&mut one, long);
    let interrupt = engine.interrupt();
    let watched = interrupt.clone();
    let committing = thread::spawn(move || {
        let committed = watched.watch(|| one.execute("COMMIT"));
        (one, committed)
    });
    // Others continue meanwhile, but for the names that are being built.
    without_hanging(move || {
        // It fails in any case.
        let sql = "CREATE VIEW made AS SELECT * FROM missing";
        while !is_conflict(&other.execute(sql), "made") {
            thread::yield_now();
        }
        run(&mut other, "INSERT INTO t VALUES (9, 'nine'); SELECT * FROM counted");
    });
    interrupt.request();
    let (mut one, committed) = committing.join().expect("it does not panic");
    assert!(matches!(committed, Err(Error::Interrupted)), "{committed:?}");
    assert_eq!(names(&engine), before);
    run(&mut one, "BEGIN; CREATE TABLE made (n BIGINT); COMMIT");
}

#[test]
fn a_view_that_cannot_be_filled_fails_the_commit() {
    let (engine, mut one, _) = two();
    run(
        &mut one,
        "CREATE TABLE many (k BIGINT); INSERT INTO many SELECT 7 FROM generate_series(1, 8192)",
    );
    let before = names(&engine);
    // Its rows have more copies than can be counted.
    let view = "CREATE MATERIALIZED VIEW bad AS SELECT a.k FROM many a JOIN many b ON a.k = b.k
        JOIN many c ON b.k = c.k JOIN many d ON c.k = d.k JOIN many e ON d.k = e.k";
    for _ in 0..2 {
        run(&mut one, "BEGIN; CREATE TABLE made (n BIGINT); DROP TABLE t CASCADE");
        run(&mut one, view);
        let (_, message) = error(&mut one, "COMMIT");
        assert!(message.contains("\"bad\" cannot be filled"), "{message}");
        assert!(!one.in_transaction());
        assert_eq!(names(&engine), before);
    }
    run(&mut one, "DELETE FROM many; BEGIN; CREATE TABLE made (n BIGINT)");
    run(&mut one, view);
    run(&mut one, "COMMIT; SELECT * FROM bad");
}

#[test]
fn a_crash_leaves_all_of_a_transaction_or_nothing() {
    const STATEMENTS: [&str; 4] = [
        "BEGIN; CREATE TABLE made (n BIGINT); CREATE MATERIALIZED VIEW of_made AS SELECT SUM(n) AS s FROM made;
         INSERT INTO made SELECT * FROM range(3000); DROP TABLE gone; DELETE FROM kept; COMMIT",
        "CHECKPOINT",
        "BEGIN; DROP TABLE made CASCADE; CREATE TABLE made (v VARCHAR PRIMARY KEY); INSERT INTO made VALUES ('x');
         CREATE TABLE more AS SELECT v || 'y' AS v FROM made; COMMIT",
        "INSERT INTO more VALUES ('z')",
    ];
    let crashes = Crashes {
        workers: 1,
        before: "CREATE TABLE gone (n BIGINT); CREATE TABLE kept (n BIGINT); INSERT INTO kept VALUES (1)",
        statements: &STATEMENTS,
        step: 5,
    };
    let calls = crashes.each(|call, disk, done| {
        for workers in [2, 1] {
            let engine =
                on_with(disk, workers).unwrap_or_else(|error| panic!("call {call}: {error}"));
            let names = names(&engine);
            let state = match &*names.iter().map(String::as_str).collect::<Vec<_>>() {
                ["gone", "kept"] => {
                    assert_eq!(query(&engine, "SELECT * FROM kept"), ["1"]);
                    0
                }
                ["kept", "made", "of_made"] => {
                    assert_eq!(
                        query(&engine, "SELECT COUNT(*), MAX(s) FROM made, of_made"),
                        ["3000 4498500"]
                    );
                    assert!(query(&engine, "SELECT * FROM kept").is_empty());
                    2
                }
                ["kept", "made", "more"] => {
                    assert_eq!(query(&engine, "SELECT * FROM made"), ["x"]);
                    let more = query(&engine, "SELECT * FROM more");
                    assert!(more == ["xy"] || more == ["xy", "z"], "{more:?}");
                    3
                }
                other => panic!("call {call}: {other:?}"),
            };
            assert!(
                state >= done.min(3) && (done != 1 || state >= 1),
                "call {call}: {done} were acknowledged, {names:?}"
            );
        }
    });
    assert!(calls > 20, "{calls}");
}

/// More rows than one record has: the parts come before the record that defines their table.
#[test]
fn many_rows_of_a_new_table_are_there_after_a_restart() {
    let disk = SimulatedDisk::new(5);
    for restart in 0..3 {
        let engine = on_with(&disk, 2).unwrap();
        let mut session = engine.session();
        if restart == 0 {
            run(&mut session, "CREATE TABLE made (v VARCHAR); INSERT INTO made VALUES ('before')");
            run(&mut session, "BEGIN; DROP TABLE made; CREATE TABLE made (n BIGINT, m BIGINT)");
            run(&mut session, "INSERT INTO made SELECT r, r % 7 FROM range(300000) AS x(r)");
            run(&mut session, "CREATE TABLE made2 AS SELECT n FROM made WHERE m = 3; COMMIT");
        }
        let sums = "SELECT COUNT(*), SUM(n), (SELECT SUM(n) FROM made2) FROM made";
        assert_eq!(query(&engine, sums), ["300000 44999850000 6428507143"], "{restart}");
        if restart == 1 {
            engine.execute("CHECKPOINT").unwrap();
        }
    }
}

#[test]
fn generated_keys_go_on_after_a_restart() {
    let disk = SimulatedDisk::new(6);
    let engine = on_with(&disk, 2).unwrap();
    let mut session = engine.session();
    run(&mut session, "BEGIN; CREATE TABLE made (id SERIAL PRIMARY KEY, v VARCHAR)");
    run(&mut session, "INSERT INTO made (v) VALUES ('lost'); ROLLBACK");
    run(&mut session, "BEGIN; CREATE TABLE made (id SERIAL PRIMARY KEY, v VARCHAR)");
    run(&mut session, "INSERT INTO made (v) VALUES ('a'), ('b')");
    assert_eq!(rows(&mut session, "SELECT * FROM made"), ["1 a", "2 b"]);
    run(&mut session, "COMMIT; INSERT INTO made (v) VALUES ('c')");
    assert_eq!(rows(&mut session, "SELECT * FROM made"), ["1 a", "2 b", "3 c"]);
    drop((session, engine));
    let engine = on_with(&disk, 2).unwrap();
    engine.execute("INSERT INTO made (v) VALUES ('d')").unwrap();
    assert_eq!(query(&engine, "SELECT COUNT(*), COUNT(DISTINCT id) FROM made"), ["4 4"]);
}

#[test]
fn relations_change_names_together() {
    let disk = SimulatedDisk::new(7);
    let engine = on_with(&disk, 2).unwrap();
    let (mut one, mut other) = (engine.session(), engine.session());
    run(&mut one, "CREATE TABLE a (n BIGINT PRIMARY KEY); INSERT INTO a VALUES (1)");
    run(&mut one, "CREATE TABLE b (n BIGINT, m BIGINT); INSERT INTO b VALUES (2, 3)");
    run(&mut one, "CREATE MATERIALIZED VIEW counted AS SELECT 7 AS c");
    run(&mut one, "BEGIN; INSERT INTO a VALUES (4); ALTER TABLE a RENAME TO c");
    run(
        &mut one,
        "ALTER TABLE b RENAME TO a; ALTER TABLE c RENAME TO b; DELETE FROM b WHERE n = 1",
    );
    run(&mut one, "ALTER TABLE a RENAME COLUMN m TO x; ALTER VIEW counted RENAME TO counts");
    fails(&mut one, "SELECT * FROM c", SqlState::NO_RELATION);
    fails(&mut one, "SELECT m FROM a", SqlState::NO_COLUMN);
    assert_eq!(rows(&mut one, "SELECT a.n, a.x, b.n, c FROM a, b, counts"), ["2 3 4 7"]);
    assert_eq!(rows(&mut other, "SELECT a.n, b.m, c FROM a, b, counted"), ["1 3 7"]);
    fails(&mut one, "ALTER TABLE a ADD COLUMN y BIGINT", SqlState::ACTIVE_TRANSACTION);
    run(&mut one, "COMMIT");
    let all = "SELECT a.n, a.x, b.n, c FROM a, b, counts";
    assert_eq!(rows(&mut other, all), ["2 3 4 7"]);
    run(
        &mut other,
        "INSERT INTO b VALUES (5); CREATE MATERIALIZED VIEW over AS SELECT SUM(n) AS s FROM b",
    );
    fails(&mut other, "INSERT INTO b VALUES (4)", SqlState::UNIQUE);
    drop((one, other, engine));
    for restart in 0..2 {
        let engine = on_with(&disk, 2).unwrap();
        assert_eq!(query(&engine, "SELECT a.n, a.x, s, c FROM a, over, counts"), ["2 3 9 7"]);
        assert_eq!(query(&engine, "SELECT * FROM b"), ["4", "5"]);
        if restart == 0 {
            engine.execute("CHECKPOINT").unwrap();
        }
    }
}

#[test]
fn what_is_created_can_be_altered_inside() {
    let (engine, mut one, _) = two();
    run(
        &mut one,
        "BEGIN; CREATE TABLE made (n BIGINT); ALTER TABLE made ADD COLUMN v VARCHAR DEFAULT 'x'",
    );
    run(&mut one, "INSERT INTO made (n) VALUES (1); ALTER TABLE made RENAME TO renamed");
    fails(&mut one, "ALTER TABLE renamed DROP COLUMN v", SqlState::ACTIVE_TRANSACTION);
    run(
        &mut one,
        "CREATE MATERIALIZED VIEW tmp AS SELECT * FROM renamed; ALTER VIEW tmp RENAME TO v",
    );
    run(&mut one, "ALTER TABLE renamed RENAME TO again");
    run(&mut one, "COMMIT");
    assert_eq!(query(&engine, "SELECT * FROM v, again"), ["1 x 1 x"]);
    assert_eq!(names(&engine), ["again", "counted", "t", "v"]);
}

#[test]
fn schemas_and_indexes_are_part_of_a_transaction() {
    let disk = SimulatedDisk::new(8);
    let engine = on_with(&disk, 2).unwrap();
    let (mut one, mut other) = (engine.session(), engine.session());
    run(
        &mut one,
        "CREATE TABLE t (n BIGINT, m BIGINT); CREATE INDEX by_m ON t (m); INSERT INTO t VALUES (1, 2)",
    );
    run(&mut one, "BEGIN; CREATE SCHEMA s; CREATE TABLE s.made (n BIGINT, m BIGINT)");
    run(&mut one, "CREATE INDEX i ON s.made (m); INSERT INTO s.made VALUES (1, 5), (2, 6)");
    run(&mut one, "DROP INDEX by_m; CREATE INDEX by_m ON t (n); CREATE SCHEMA IF NOT EXISTS s");
    assert_eq!(rows(&mut one, "SELECT n FROM s.made WHERE m = 6"), ["2"]);
    fails(&mut one, "CREATE INDEX i ON s.made (n)", SqlState::WRONG);
    fails(&mut other, "CREATE TABLE s.x (n BIGINT)", SqlState::NO_SCHEMA);
    run(&mut one, "COMMIT");
    let indexes = "SELECT name, state FROM alluvium.relations WHERE kind = 'index'";
    assert_eq!(rows(&mut other, indexes).len(), 2);
    assert_eq!(rows(&mut other, "SELECT n FROM s.made WHERE m = 6"), ["2"]);
    run(&mut one, "BEGIN; DROP TABLE t; CREATE TABLE t (m BIGINT); CREATE INDEX by_m ON t (m)");
    run(&mut one, "INSERT INTO t VALUES (9); COMMIT");
    drop((one, other, engine));
    for restart in 0..2 {
        let engine = on_with(&disk, 2).unwrap();
        assert_eq!(
            query(&engine, "SELECT name FROM alluvium.relations WHERE kind = 'index'").len(),
            2
        );
        assert_eq!(
            query(&engine, "SELECT t.m, n FROM t, s.made x WHERE x.m = 5 AND t.m = 9"),
            ["9 1"]
        );
        if restart == 0 {
            engine.execute("CHECKPOINT").unwrap();
        }
    }
}

#[test]
fn several_are_dropped_together() {
    let (engine, mut one, _) = two();
    run(&mut one, "CREATE TABLE a (n BIGINT); CREATE TABLE b (n BIGINT)");
    run(&mut one, "CREATE MATERIALIZED VIEW v AS SELECT a.n FROM a, b");
    fails(&mut one, "DROP TABLE a, b", SqlState::WRONG);
    run(&mut one, "BEGIN; DROP TABLE a, b CASCADE; DROP TABLE IF EXISTS a, b; ROLLBACK");
    assert_eq!(names(&engine).len(), 5);
    run(&mut one, "DROP TABLE a, t, b CASCADE");
    assert!(names(&engine).is_empty());
}

#[test]
fn what_cannot_be_in_a_transaction_is_refused() {
    let (_engine, mut one, _) = two();
    run(&mut one, "BEGIN");
    for sql in [
        "CREATE TABLE c (n BIGINT) WITH ('connector' = 'file', 'path' = 'x.csv', 'format' = 'csv')",
        "DECLARE RECURSIVE VIEW r (n BIGINT)",
        "CREATE FUNCTION f(x BIGINT) AS x + 1",
        "START",
    ] {
        let (code, message) = error(&mut one, sql);
        assert_eq!(code, SqlState::ACTIVE_TRANSACTION, "{sql}: {message}");
    }
    run(&mut one, "ROLLBACK; BEGIN READ ONLY");
    fails(&mut one, "CREATE TABLE made (n BIGINT)", SqlState::READ_ONLY);
    run(&mut one, "ROLLBACK; BEGIN; CREATE TABLE a (n BIGINT)");
    fails(&mut one, "CREATE TABLE a (n BIGINT)", SqlState::DUPLICATE_RELATION);
    fails(&mut one, "DROP TABLE counted", SqlState::WRONG);
    fails(&mut one, "DROP TABLE t", SqlState::WRONG);
    run(&mut one, "DROP TABLE a; DROP TABLE IF EXISTS a; COMMIT");
}
