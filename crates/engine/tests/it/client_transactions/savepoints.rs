//! Savepoints.

use alluvium::{Engine, SqlState};

use super::{error, fails, rows, run, sessions};

#[test]
fn rolling_back_to_a_savepoint_undoes_what_came_after_it() {
    let (_engine, mut strict, mut lenient) = sessions();
    for session in [&mut strict, &mut lenient] {
        run(session, "DELETE FROM part; DELETE FROM sale; INSERT INTO part VALUES (1, 'bolt')");
        run(session, "BEGIN; INSERT INTO part VALUES (2, 'nut'); SAVEPOINT a");
        run(session, "UPDATE part SET name = 'x'; DELETE FROM part WHERE id = 1");
        run(session, "INSERT INTO sale VALUES (1, 'day'), (1, 'day')");
        assert_eq!(rows(session, "SELECT * FROM part"), ["2 x"]);
        run(session, "ROLLBACK TO a");
        assert_eq!(rows(session, "SELECT * FROM part"), ["1 bolt", "2 nut"]);
        assert!(rows(session, "SELECT * FROM sale").is_empty());
        // It can be gone back to again.
        run(session, "DELETE FROM part; ROLLBACK WORK TO SAVEPOINT a");
        run(session, "INSERT INTO sale VALUES (2, 'day'); COMMIT");
        assert_eq!(rows(session, "SELECT * FROM part"), ["1 bolt", "2 nut"]);
        assert_eq!(rows(session, "SELECT * FROM sale"), ["2 day"]);
    }
}

#[test]
fn a_savepoint_of_the_same_name_hides_the_other_until_it_is_released() {
    let (_engine, mut session, _) = sessions();
    run(&mut session, "BEGIN; INSERT INTO sale VALUES (1, 'a'); SAVEPOINT s");
    run(&mut session, "INSERT INTO sale VALUES (2, 'b'); SAVEPOINT s");
    run(&mut session, "INSERT INTO sale VALUES (3, 'c'); ROLLBACK TO s");
    assert_eq!(rows(&mut session, "SELECT part FROM sale"), ["1", "2"]);
    run(&mut session, "INSERT INTO sale VALUES (4, 'd'); RELEASE SAVEPOINT s");
    assert_eq!(rows(&mut session, "SELECT part FROM sale"), ["1", "2", "4"]);
    run(&mut session, "ROLLBACK TO s");
    assert_eq!(rows(&mut session, "SELECT part FROM sale"), ["1"]);
    run(&mut session, "COMMIT");
    assert_eq!(rows(&mut session, "SELECT part FROM sale"), ["1"]);
}

#[test]
fn rolling_back_and_releasing_destroy_later_savepoints() {
    let (_engine, _, mut session) = sessions();
    run(&mut session, "BEGIN; SAVEPOINT a; SAVEPOINT b; SAVEPOINT c; ROLLBACK TO b");
    let (code, message) = error(&mut session, "RELEASE c");
    assert_eq!((code.as_str(), message.as_str()), ("3B001", "there is no savepoint \"c\""));
    run(&mut session, "RELEASE a");
    fails(&mut session, "ROLLBACK TO b", SqlState::NO_SAVEPOINT);
    run(&mut session, "SAVEPOINT \"A\"; SAVEPOINT a; ROLLBACK TO A; RELEASE \"A\"");
    fails(&mut session, "RELEASE a", SqlState::NO_SAVEPOINT);
    run(&mut session, "COMMIT; BEGIN");
    fails(&mut session, "ROLLBACK TO a", SqlState::NO_SAVEPOINT);
}

#[test]
fn savepoints_are_only_in_transactions() {
    let (_engine, mut strict, mut lenient) = sessions();
    for session in [&mut strict, &mut lenient] {
        for sql in ["SAVEPOINT a", "ROLLBACK TO a", "RELEASE a"] {
            fails(session, sql, SqlState::NO_TRANSACTION);
        }
    }
}

#[test]
fn an_aborted_transaction_goes_on_from_a_savepoint() {
    let (_engine, mut session, _) = sessions();
    run(&mut session, "BEGIN; INSERT INTO part VALUES (1, 'bolt'); SAVEPOINT a");
    fails(&mut session, "INSERT INTO part VALUES (2, NULL)", SqlState::NOT_NULL);
    fails(&mut session, "RELEASE a", SqlState::ABORTED);
    fails(&mut session, "ROLLBACK TO b", SqlState::NO_SAVEPOINT);
    assert!(session.is_aborted());
    run(&mut session, "ROLLBACK TO a; INSERT INTO part VALUES (3, 'cog'); COMMIT");
    assert_eq!(rows(&mut session, "SELECT * FROM part"), ["1 bolt", "3 cog"]);
    // Without a savepoint there is nothing to go back to.
    run(&mut session, "BEGIN; SAVEPOINT a; RELEASE a");
    fails(&mut session, "INSERT INTO part VALUES (2, NULL)", SqlState::NOT_NULL);
    fails(&mut session, "ROLLBACK TO a", SqlState::NO_SAVEPOINT);
    run(&mut session, "ROLLBACK");
}

#[test]
fn settings_return_to_a_savepoint() {
    let (_engine, mut session, _) = sessions();
    let name = "SHOW application_name";
    run(
        &mut session,
        "SET application_name = 'before'; BEGIN; SET LOCAL application_name = 'local'",
    );
    run(&mut session, "SAVEPOINT a; SET application_name = 'set'; SET TRANSACTION READ ONLY");
    fails(&mut session, "DELETE FROM part", SqlState::READ_ONLY);
    run(&mut session, "ROLLBACK TO a; DELETE FROM part");
    assert_eq!(rows(&mut session, name), ["local"]);
    run(&mut session, "SET LOCAL application_name = 'other'; RELEASE a");
    assert_eq!(rows(&mut session, name), ["other"]);
    run(&mut session, "COMMIT");
    assert_eq!(rows(&mut session, name), ["before"]);
    run(&mut session, "BEGIN; SAVEPOINT a; SET application_name = 'set'; ROLLBACK TO a; COMMIT");
    assert_eq!(rows(&mut session, name), ["before"]);
    run(&mut session, "BEGIN; SAVEPOINT a; SET application_name = 'set'; RELEASE a; COMMIT");
    assert_eq!(rows(&mut session, name), ["set"]);
}

#[test]
fn what_went_to_files_returns_to_a_savepoint() {
    let engine = Engine::builder().workers(2).memory(8 << 20).open_in_memory();
    let engine = engine.expect("an engine starts");
    let mut session = engine.session();
    run(&mut session, "CREATE TABLE t (id BIGINT PRIMARY KEY, text VARCHAR)");
    let insert = |from: u64, to: u64| {
        format!("INSERT INTO t SELECT x, repeat('x', 100) FROM range({from}, {to} + 1) AS s(x)")
    };
    let count = "SELECT count(*), coalesce(max(id), 0) FROM t";
    run(&mut session, "BEGIN");
    run(&mut session, &insert(1, 10));
    run(&mut session, "SAVEPOINT small");
    run(&mut session, &insert(11, 100_000));
    run(&mut session, "SAVEPOINT large");
    run(&mut session, &insert(100_001, 100_010));
    run(&mut session, "SAVEPOINT more");
    run(&mut session, &insert(100_011, 300_000));
    assert_eq!(rows(&mut session, count), ["300000 300000"]);
    run(&mut session, "ROLLBACK TO more");
    assert_eq!(rows(&mut session, count), ["100010 100010"]);
    run(&mut session, &insert(200_000, 200_000));
    run(&mut session, "ROLLBACK TO large");
    assert_eq!(rows(&mut session, count), ["100000 100000"]);
    run(&mut session, &insert(100_001, 250_000));
    run(&mut session, "ROLLBACK TO small");
    run(&mut session, &insert(20, 29));
    run(&mut session, "COMMIT");
    assert_eq!(rows(&mut session, count), ["20 29"]);
}
