//! Cursors.

use alluvium::{Engine, Interrupt, Outcome, Session, SqlState};

use super::{TABLES, error, fails, rows, run, sessions};
use crate::support::{batch_lines, engine_with};

/// The rows of a FETCH in their order.
fn fetched(session: &mut Session, sql: &str) -> Vec<String> {
    match run(session, sql).pop() {
        Some(Outcome::Rows(rows)) => {
            rows.into_batches().expect("rows").iter().flat_map(batch_lines).collect()
        }
        other => panic!("rows are expected, not {other:?}"),
    }
}

#[test]
fn rows_are_fetched_in_order_and_none_behind_the_last() {
    let (_engine, mut strict, mut lenient) = sessions();
    run(&mut strict, "INSERT INTO sale SELECT x, 'd' || x FROM range(10) AS r(x)");
    for session in [&mut strict, &mut lenient] {
        run(session, "BEGIN; DECLARE c CURSOR FOR SELECT part FROM sale ORDER BY part");
        assert_eq!(fetched(session, "FETCH c"), ["0"]);
        assert_eq!(fetched(session, "FETCH NEXT FROM c"), ["1"]);
        assert_eq!(fetched(session, "FETCH 2 IN c"), ["2", "3"]);
        assert_eq!(fetched(session, "fetch forward 1 from \"c\""), ["4"]);
        assert_eq!(fetched(session, "FETCH FORWARD FROM c"), ["5"]);
        let moved = run(session, "MOVE 2 FROM c; MOVE FORWARD IN c");
        assert!(matches!(
            moved[..],
            [Outcome::Moved { rows: 2, .. }, Outcome::Moved { rows: 1, .. }]
        ));
        assert_eq!(fetched(session, "FETCH 100 c"), ["9"]);
        assert!(fetched(session, "FETCH c; FETCH ALL FROM c").is_empty());
        assert!(matches!(run(session, "MOVE ALL c")[..], [Outcome::Moved { rows: 0, .. }]));
        run(session, "CLOSE c; DECLARE c BINARY INSENSITIVE NO SCROLL CURSOR FOR VALUES (1), (2)");
        assert_eq!(fetched(session, "MOVE c; FETCH FORWARD ALL FROM c"), ["2"]);
        assert!(matches!(run(session, "MOVE ALL IN c; COMMIT")[0], Outcome::Moved { rows: 0, .. }));
    }
}

#[test]
fn a_cursor_reads_what_there_was_when_it_was_declared() {
    let (_engine, mut session, mut other) = sessions();
    run(&mut session, "INSERT INTO part SELECT x, 'a' FROM range(20000) AS r(x)");
    run(
        &mut session,
        "BEGIN; INSERT INTO part VALUES (-1, 'own'); UPDATE part SET name = 'b' WHERE id = 0",
    );
    run(&mut session, "DECLARE c CURSOR FOR SELECT id, name FROM part");
    run(&mut session, "DELETE FROM part");
    run(&mut other, "INSERT INTO sale VALUES (1, 'x')");
    let all = fetched(&mut session, "FETCH 5 c").into_iter();
    let mut all: Vec<String> = all.chain(fetched(&mut session, "FETCH ALL c")).collect();
    all.sort();
    assert_eq!((all.len(), &*all[0], &*all[1]), (20_001, "-1 own", "0 b"));
    run(&mut session, "ROLLBACK");
}

#[test]
fn cursors_end_with_their_transaction_unless_they_hold() {
    let (_engine, mut strict, mut lenient) = sessions();
    run(&mut strict, "INSERT INTO sale SELECT x, 'd' FROM range(3) AS r(x)");
    let query = "CURSOR FOR SELECT part FROM sale ORDER BY part";
    let held = "CURSOR WITH HOLD FOR SELECT part FROM sale ORDER BY part";
    for session in [&mut strict, &mut lenient] {
        fails(session, &format!("DECLARE c {query}"), SqlState::NO_TRANSACTION);
        run(session, &format!("DECLARE o {held}; BEGIN; DECLARE c {query}; DECLARE h {held}"));
        assert_eq!(fetched(session, "FETCH h; FETCH c; FETCH o"), ["0"]);
        run(session, "COMMIT");
        fails(session, "FETCH c", SqlState::NO_CURSOR);
        assert_eq!(fetched(session, "DELETE FROM sale WHERE part = 9; FETCH h"), ["1"]);
        run(session, &format!("BEGIN; DECLARE r {held}; MOVE h; ROLLBACK"));
        fails(session, "FETCH r", SqlState::NO_CURSOR);
        assert_eq!(fetched(session, "FETCH ALL o"), ["1", "2"]);
        assert!(fetched(session, "FETCH h").is_empty());
        run(session, "CLOSE ALL");
        fails(session, "CLOSE o", SqlState::NO_CURSOR);
        run(session, &format!("DECLARE o {held}; DISCARD ALL"));
        fails(session, "FETCH o", SqlState::NO_CURSOR);
    }
}

#[test]
fn cursors_behind_a_savepoint_end_with_it() {
    let (_engine, mut session, _) = sessions();
    run(
        &mut session,
        "BEGIN; DECLARE a CURSOR FOR VALUES (1), (2); SAVEPOINT s; DECLARE b CURSOR FOR VALUES (3)",
    );
    run(&mut session, "FETCH a; CLOSE b; DECLARE b CURSOR WITH HOLD FOR VALUES (3)");
    fails(&mut session, "FETCH absent", SqlState::NO_CURSOR);
    fails(&mut session, "FETCH b", SqlState::ABORTED);
    run(&mut session, "ROLLBACK TO s");
    assert_eq!(fetched(&mut session, "FETCH a"), ["2"]);
    fails(&mut session, "FETCH b", SqlState::NO_CURSOR);
    run(&mut session, "ROLLBACK TO s; RELEASE s; COMMIT");
}

#[test]
fn what_a_cursor_cannot_do_is_said() {
    let (_engine, _, mut session) = sessions();
    run(&mut session, "BEGIN; DECLARE c CURSOR FOR SELECT 1");
    for direction in [
        "PRIOR",
        "FIRST",
        "LAST",
        "ABSOLUTE 2",
        "RELATIVE -1",
        "-1",
        "0",
        "BACKWARD 3",
        "BACKWARD ALL",
    ] {
        for statement in ["FETCH", "MOVE"] {
            let sql = format!("{statement} {direction} FROM c");
            fails(&mut session, &sql, SqlState::NOT_IN_STATE);
        }
    }
    for (sql, code) in [
        ("DECLARE c CURSOR FOR SELECT 1", SqlState::DUPLICATE_CURSOR),
        ("DECLARE d SCROLL CURSOR FOR SELECT 1", SqlState::NOT_SUPPORTED),
        ("DECLARE d CURSOR FOR DELETE FROM part", SqlState::SYNTAX),
        ("DECLARE d CURSOR SELECT 1", SqlState::SYNTAX),
        ("DECLARE d CURSOR FOR", SqlState::SYNTAX),
        ("DECLARE d CURSOR FOR SELECT * FROM absent", SqlState::NO_RELATION),
        ("FETCH 1 2 c", SqlState::SYNTAX),
        ("FETCH FROM", SqlState::NO_CURSOR),
        ("CLOSE c d", SqlState::SYNTAX),
    ] {
        fails(&mut session, sql, code);
    }
    let (_, message) = error(&mut session, "FETCH PRIOR FROM c");
    assert_eq!(message, "the cursor \"c\" goes forward only: FETCH NEXT, a number of rows, or ALL");
    let place = session.execute("DECLARE d CURSOR FOR\n  SELECT absent FROM part").unwrap_err();
    assert_eq!(place.position(), Some((2, 10)));
}

#[test]
fn a_cursor_takes_values_and_is_described() {
    let (_engine, mut session, _) = sessions();
    run(&mut session, "INSERT INTO part VALUES (1, 'bolt'), (2, 'nut'), (3, 'cog'); BEGIN");
    let declare = "DECLARE c CURSOR FOR SELECT name FROM part WHERE id > $1 ORDER BY id";
    let declare = session.prepare(declare).unwrap();
    assert_eq!(declare.description().parameters.len(), 1);
    assert!(declare.description().columns.is_none());
    session.execute_prepared(&declare, &[1_i64.into()]).unwrap();
    let columns = session.describe("FETCH 2 FROM c").unwrap().columns.unwrap();
    assert_eq!(columns.field(0).name(), "name");
    assert_eq!(fetched(&mut session, "FETCH ALL c"), ["nut", "cog"]);
}

#[test]
fn a_result_larger_than_memory_goes_through_a_cursor() {
    let engine = Engine::builder().workers(1).memory(64 << 20).open_in_memory();
    let engine = engine.expect("an engine starts");
    let mut session = engine.session();
    run(
        &mut session,
        "BEGIN; DECLARE c CURSOR FOR SELECT x, repeat('x', 2000) FROM range(100000) AS r(x)",
    );
    let mut count = 0;
    loop {
        let Some(Outcome::Rows(rows)) = run(&mut session, "FETCH 1000 FROM c").pop() else {
            panic!("rows")
        };
        let rows: usize = rows.map(|rows| rows.expect("rows").num_rows()).sum();
        count += rows;
        if rows < 1000 {
            break;
        }
    }
    assert_eq!(count, 100_000);
    run(
        &mut session,
        "DECLARE d CURSOR FOR SELECT x, repeat('x', 2000) FROM range(100000) AS r(x)",
    );
    fails(&mut session, "FETCH 100000 FROM d", SqlState::OUT_OF_MEMORY);
    run(
        &mut session,
        "DECLARE e CURSOR FOR SELECT x, repeat('x', 2000) FROM range(100000) AS r(x)",
    );
    // All that are left are pulled.
    let outcome = session.execute_with("FETCH ALL FROM e", &[]);
    let Ok(Outcome::Rows(rows)) = outcome else { panic!("{outcome:?}") };
    assert_eq!(rows.map(|rows| rows.expect("rows").num_rows()).sum::<usize>(), 100_000);
}

#[test]
fn each_fetch_has_limits_of_its_own() {
    let engine = engine_with(1, TABLES);
    let mut session = engine.session();
    let interrupt = Interrupt::default();
    let long = "DECLARE c CURSOR FOR SELECT x FROM range(1000000000) AS r(x)";
    run(&mut session, "SET statement_timeout = '2s'; BEGIN");
    interrupt.watch(|| run(&mut session, long));
    interrupt.request();
    std::thread::sleep(std::time::Duration::from_millis(2_100));
    assert_eq!(fetched(&mut session, "FETCH 20000 FROM c").len(), 20_000);
    let outcome = session.execute_with("MOVE ALL FROM c", &[]);
    assert_eq!(outcome.expect_err("it takes too long").sqlstate(), SqlState::CANCELED);
    assert_eq!(rows(&mut session, "SHOW statement_timeout"), ["2s"]);
}
