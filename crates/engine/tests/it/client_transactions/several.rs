//! TRUNCATE, DROP of several, REFRESH, and types and options that clients write.

use alluvium::{Engine, Outcome, SqlState};

use super::{error, fails, rows, run, sessions};

#[test]
fn tables_are_truncated_together_and_rollback_brings_their_rows_back() {
    let (_engine, mut strict, mut lenient) = sessions();
    let fill =
        "INSERT INTO part VALUES (1, 'bolt'), (2, 'nut'); INSERT INTO sale VALUES (1, 'day')";
    let count = "SELECT (SELECT count(*) FROM part), (SELECT count(*) FROM sale)";
    for session in [&mut strict, &mut lenient] {
        run(session, fill);
        run(session, "BEGIN; TRUNCATE TABLE part, sale RESTART IDENTITY CASCADE");
        assert_eq!(rows(session, count), ["0 0"]);
        run(session, "INSERT INTO part VALUES (3, 'cog')");
        assert_eq!(rows(session, count), ["1 0"]);
        run(session, "ROLLBACK");
        assert_eq!(rows(session, count), ["2 1"]);
        run(session, "BEGIN; SAVEPOINT a; TRUNCATE part; ROLLBACK TO a; COMMIT");
        assert_eq!(rows(session, count), ["2 1"]);
        let truncated = run(session, "TRUNCATE sale, part");
        assert!(
            matches!(truncated[..], [Outcome::Changed { rows: 3, epoch: Some(_), .. }]),
            "{truncated:?}"
        );
        assert_eq!(rows(session, count), ["0 0"]);
    }
}

#[test]
fn a_truncate_of_several_that_fails_deletes_nothing() {
    let (_engine, _, mut session) = sessions();
    run(&mut session, "CREATE TABLE log (line VARCHAR) WITH ('append_only' = 'true')");
    run(&mut session, "INSERT INTO part VALUES (1, 'bolt'); INSERT INTO log VALUES ('x')");
    for begin in ["", "BEGIN; INSERT INTO part VALUES (2, 'nut'); "] {
        let (_, message) = error(&mut session, &format!("{begin}TRUNCATE part, log"));
        assert_eq!(message, "DELETE: \"log\" is 'append_only': rows only enter it");
        fails(&mut session, "TRUNCATE part, absent", SqlState::NO_RELATION);
    }
    assert_eq!(rows(&mut session, "SELECT id FROM part"), ["1", "2"]);
    run(&mut session, "COMMIT; BEGIN READ ONLY");
    fails(&mut session, "TRUNCATE part, sale", SqlState::READ_ONLY);
    run(
        &mut session,
        "ROLLBACK; CREATE SCHEMA shop; CREATE TABLE shop.part (a INT); CREATE TABLE shop.list (a INT)",
    );
    run(
        &mut session,
        "INSERT INTO shop.part VALUES (1); SET search_path = shop, public; TRUNCATE list, part, sale",
    );
    assert_eq!(rows(&mut session, "SELECT count(*) FROM shop.part"), ["0"]);
    assert_eq!(rows(&mut session, "SELECT count(*) FROM public.part"), ["2"]);
}

#[test]
fn several_relations_are_dropped_or_none() {
    let (_engine, _, mut session) = sessions();
    run(
        &mut session,
        "CREATE VIEW a AS SELECT * FROM part; CREATE MATERIALIZED VIEW b AS SELECT * FROM a",
    );
    run(&mut session, "CREATE VIEW c AS SELECT * FROM b");
    for (sql, code) in [
        ("DROP TABLE sale, part", SqlState::WRONG),
        ("DROP VIEW a, b", SqlState::WRONG),
        ("DROP TABLE sale, absent", SqlState::NO_RELATION),
        ("DROP VIEW c, part", SqlState::WRONG),
        ("BEGIN; DROP TABLE sale, absent", SqlState::NO_RELATION),
    ] {
        fails(&mut session, sql, code);
    }
    run(&mut session, "ROLLBACK");
    assert_eq!(rows(&mut session, "SHOW TABLES").len(), 5);
    run(&mut session, "DROP VIEW a, b, c, a");
    assert_eq!(rows(&mut session, "SHOW TABLES"), ["part", "sale"]);
    run(
        &mut session,
        "CREATE VIEW a AS SELECT * FROM part, sale; DROP TABLE IF EXISTS sale, absent, part CASCADE",
    );
    assert!(rows(&mut session, "SHOW TABLES").is_empty());
}

#[test]
fn refreshing_a_materialized_view_does_nothing() {
    let (_engine, mut session, _) = sessions();
    run(
        &mut session,
        "CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM part; CREATE VIEW p AS SELECT 1 AS x",
    );
    run(&mut session, "INSERT INTO part VALUES (1, 'bolt'); REFRESH MATERIALIZED VIEW v");
    run(&mut session, "BEGIN; REFRESH MATERIALIZED VIEW CONCURRENTLY public.v WITH DATA; COMMIT");
    assert_eq!(rows(&mut session, "SELECT n FROM v"), ["1"]);
    fails(&mut session, "REFRESH MATERIALIZED VIEW p", SqlState::WRONG_KIND);
    fails(&mut session, "REFRESH MATERIALIZED VIEW absent", SqlState::NO_RELATION);
}

#[test]
fn char_of_a_length_is_text_and_storage_parameters_say_nothing() {
    let state = tempfile::tempdir().expect("a folder");
    let open = || {
        let builder =
            Engine::builder().workers(1).state(format!("file:{}", state.path().display()));
        builder.open().expect("an engine starts")
    };
    let engine = open();
    let mut session = engine.session();
    run(
        &mut session,
        "CREATE TABLE t (a CHAR(3) DEFAULT 'x', b CHARACTER(2), c bpchar) WITH (fillfactor=100)",
    );
    run(&mut session, "INSERT INTO t (b, c) VALUES ('longer', 'y')");
    drop((session, engine));
    let engine = open();
    // As in DuckDB: neither padded nor cut.
    assert_eq!(
        rows(&mut engine.session(), "SELECT a || '|', b, c, typeof(a) FROM t"),
        ["x| longer y VARCHAR"]
    );
}
