//! Writers beside each other: an open transaction blocks only those who write its rows, and what it has read holds when
//! it commits.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use alluvium::arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use alluvium::arrow::datatypes::Int64Type;
use alluvium::{Conflict, Engine, Error, Result, Session};

use crate::support::{engine_with, query, without_hanging};

const TABLES: &str = "
    CREATE TABLE accounts (id BIGINT PRIMARY KEY, v BIGINT);
    CREATE TABLE entries (n BIGINT, v BIGINT);
    CREATE TABLE other (n BIGINT PRIMARY KEY);
    CREATE MATERIALIZED VIEW total AS SELECT SUM(v) AS v FROM accounts;
    INSERT INTO accounts VALUES (1, 10), (2, 20), (3, 30);
    INSERT INTO entries VALUES (1, 1), (2, 2);";

fn kind<R: std::fmt::Debug>(result: Result<R>) -> Conflict {
    match result {
        Err(Error::Conflict { kind, .. }) => kind,
        other => panic!("{other:?}"),
    }
}

fn rows(session: &mut Session, sql: &str) -> Vec<String> {
    let outcome = session.execute(sql).unwrap().pop();
    let Some(alluvium::Outcome::Rows(rows)) = outcome else { panic!("{sql} has no rows") };
    let batches: Vec<RecordBatch> = rows.collect::<Result<_>>().unwrap();
    crate::support::lines(&batches)
}

fn account(id: i64, v: i64) -> RecordBatch {
    let column = |value: i64| Arc::new(Int64Array::from(vec![value])) as ArrayRef;
    RecordBatch::try_from_iter([("id", column(id)), ("v", column(v))]).unwrap()
}

#[test]
fn an_idle_transaction_holds_up_only_writers_of_its_rows() {
    let directory = tempfile::tempdir().unwrap();
    let state = format!("file:{}", directory.path().join("state").display());
    let engine = Engine::builder().workers(2).state(state).open().unwrap();
    engine.execute(TABLES).unwrap();
    let mut idle = engine.session();
    idle.execute("BEGIN; SELECT * FROM entries; UPDATE accounts SET v = 11 WHERE id = 1").unwrap();
    let others = engine.clone();
    without_hanging(move || {
        assert_eq!(query(&others, "SELECT v FROM accounts WHERE id = 1"), ["10"]);
        assert_eq!(query(&others, "SELECT v FROM total"), ["60"]);
        others
            .execute("UPDATE accounts SET v = 21 WHERE id = 2; DELETE FROM accounts WHERE id = 3")
            .unwrap();
        others
            .execute("INSERT INTO accounts VALUES (4, 40); INSERT INTO entries VALUES (3, 3)")
            .unwrap();
        // As a connector does.
        let mut transaction = others.begin().unwrap();
        transaction.upsert("accounts", account(5, 50)).unwrap();
        transaction.commit().unwrap();
        others.execute("CREATE MATERIALIZED VIEW more AS SELECT MAX(n) AS n FROM entries").unwrap();
        others
            .execute("DROP VIEW more; ALTER TABLE other ADD COLUMN b INT; DROP TABLE other")
            .unwrap();
        others.checkpoint().unwrap();
        let mut session = others.session();
        session.execute("SET lock_timeout = '20ms'").unwrap();
        let refused = session.execute("UPDATE accounts SET v = 12 WHERE id = 1");
        let text = refused.as_ref().unwrap_err().to_string();
        assert!(text.contains("\"accounts\"") && text.contains("lock_timeout"), "{text}");
        assert_eq!(kind(refused), Conflict::Locked);
    });
    // It has seen the entries before another one was added.
    assert_eq!(kind(idle.execute("COMMIT")), Conflict::Serialization);
    assert!(!idle.in_transaction());
    assert_eq!(query(&engine, "SELECT v FROM accounts"), ["10", "21", "40", "50"]);
}

#[test]
fn what_a_transaction_reads_is_one_version_with_its_own_writes() {
    for workers in 1..=2 {
        let engine = engine_with(workers, TABLES);
        let mut session = engine.session();
        session.execute("BEGIN").unwrap();
        assert_eq!(rows(&mut session, "SELECT v FROM accounts WHERE id = 1"), ["10"]);
        for n in 0..20 {
            engine
                .execute(&format!(
                    "UPDATE accounts SET v = {n} WHERE id > 1; INSERT INTO entries VALUES (9, 9)"
                ))
                .unwrap();
        }
        // Neither was read before.
        assert_eq!(rows(&mut session, "SELECT v FROM total"), ["60"]);
        assert_eq!(rows(&mut session, "SELECT COUNT(*) FROM entries"), ["2"]);
        // A row that no other transaction has written can be written.
        session.execute("UPDATE accounts SET v = v + 1 WHERE id = 1").unwrap();
        assert_eq!(rows(&mut session, "SELECT SUM(v) FROM accounts"), ["61"]);
        // All three accounts were read by now, and two of them are others.
        assert_eq!(kind(session.execute("COMMIT")), Conflict::Serialization);
        let mut session = engine.session();
        session.execute("BEGIN; UPDATE accounts SET v = v + 1 WHERE id = 1").unwrap();
        engine.execute("UPDATE accounts SET v = 7 WHERE id = 2").unwrap();
        session.execute("COMMIT").unwrap();
        assert_eq!(query(&engine, "SELECT v FROM accounts"), ["11", "19", "7"]);
    }
}

#[test]
fn only_reading_never_fails() {
    let engine = engine_with(2, TABLES);
    let mut session = engine.session();
    session.execute("BEGIN").unwrap();
    for n in 0..10 {
        assert_eq!(rows(&mut session, "SELECT v FROM accounts"), ["10", "20", "30"]);
        assert_eq!(rows(&mut session, "SELECT v FROM total"), ["60"]);
        engine
            .execute(&format!("UPDATE accounts SET v = {n}; INSERT INTO entries VALUES ({n}, 0)"))
            .unwrap();
    }
    session.execute("COMMIT").unwrap();
}

/// Runs `act` on so many threads. Repeats it while others stand in its way. Returns how often they did.
fn each(
    engine: &Engine,
    threads: usize,
    act: impl Fn(&mut Session, usize) -> Result<()> + Sync,
) -> usize {
    thread::scope(|scope| {
        let run = |number| {
            let act = &act;
            scope.spawn(move || {
                let mut session = engine.session();
                let mut conflicts = 0;
                loop {
                    match act(&mut session, number) {
                        Ok(()) => return conflicts,
                        Err(Error::Conflict { .. }) => conflicts += 1,
                        Err(error) => panic!("{error}"),
                    }
                    if session.in_transaction() {
                        session.execute("ROLLBACK").unwrap();
                    }
                }
            })
        };
        let threads: Vec<_> = (0..threads).map(run).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    })
}

#[test]
fn no_increment_is_lost_and_none_fails_for_having_waited() {
    for workers in 1..=2 {
        let engine = engine_with(workers, TABLES);
        let conflicts = each(&engine, 16, |session, _| {
            for _ in 0..10 {
                session.execute("UPDATE accounts SET v = v + 1 WHERE id = 1")?;
            }
            Ok(())
        });
        assert_eq!(
            (query(&engine, "SELECT v FROM accounts WHERE id = 1"), conflicts),
            (vec!["170".to_owned()], 0)
        );
        // As pgbench does: the rows of all are locked in one order.
        let conflicts = each(&engine, 16, |session, number| {
            session.execute("BEGIN")?;
            session.execute(&format!("INSERT INTO entries VALUES ({number}, 1)"))?;
            session.execute("UPDATE accounts SET v = v + 1 WHERE id = 2")?;
            session.execute("UPDATE accounts SET v = v - 1 WHERE id = 3")?;
            session.execute("COMMIT").map(drop)
        });
        assert_eq!(conflicts, 0);
        assert_eq!(query(&engine, "SELECT v FROM accounts"), ["14", "170", "36"]);
    }
}

#[test]
fn what_was_read_to_write_something_else_still_holds() {
    let engine = engine_with(2, TABLES);
    engine.execute("UPDATE accounts SET v = 1").unwrap();
    // At least one account keeps something: a client that takes one has seen that there is another.
    for _ in 0..10 {
        each(&engine, 2, |session, number| {
            session.execute("BEGIN")?;
            let sum = rows(session, "SELECT SUM(v) FROM accounts WHERE id <= 2");
            if sum == ["2"] {
                session.execute(&format!("UPDATE accounts SET v = 0 WHERE id = {}", number + 1))?;
            }
            session.execute("COMMIT").map(drop)
        });
        assert_eq!(query(&engine, "SELECT SUM(v) FROM accounts WHERE id <= 2"), ["1"]);
        engine.execute("UPDATE accounts SET v = 1").unwrap();
    }
    // A row that is not there yet, in a table with a key and in one without.
    for (count, insert) in [
        (
            "SELECT COUNT(*) FROM accounts WHERE id BETWEEN 10 AND 20",
            "INSERT INTO accounts VALUES (1$, 0)",
        ),
        ("SELECT COUNT(*) FROM entries WHERE n = 77", "INSERT INTO entries VALUES (77, 0)"),
        ("SELECT v FROM total", "UPDATE accounts SET v = v + 1 WHERE id = $ + 1"),
    ] {
        let before = query(&engine, count);
        each(&engine, 4, |session, number| {
            session.execute("BEGIN")?;
            if rows(session, count) == before {
                thread::sleep(Duration::from_millis(1));
                session.execute(&insert.replace('$', &number.min(2).to_string()))?;
            }
            session.execute("COMMIT").map(drop)
        });
        let after: i64 = query(&engine, count)[0].parse().unwrap();
        assert_eq!(after, before[0].parse::<i64>().unwrap() + 1, "{count}");
    }
}

#[test]
fn a_view_that_changes_back_has_not_changed() {
    let engine = engine_with(2, TABLES);
    let mut session = engine.session();
    for (sql, holds) in [
        (
            "UPDATE accounts SET v = v + 1 WHERE id = 1; UPDATE accounts SET v = v - 1 WHERE id = 2",
            true,
        ),
        ("UPDATE accounts SET v = v + 1 WHERE id = 1", false),
        ("INSERT INTO entries VALUES (0, 0)", true),
    ] {
        session
            .execute("BEGIN; SELECT * FROM total; INSERT OR REPLACE INTO other VALUES (1)")
            .unwrap();
        engine.execute(sql).unwrap();
        assert_eq!(session.execute("COMMIT").is_ok(), holds, "{sql}");
    }
}

#[test]
fn those_who_wait_for_each_other_are_told() {
    let engine = engine_with(1, TABLES);
    let (mut one, mut other) = (engine.session(), engine.session());
    one.execute("BEGIN; UPDATE accounts SET v = 0 WHERE id = 1").unwrap();
    other.execute("BEGIN; UPDATE accounts SET v = 0 WHERE id = 2").unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| one.execute("UPDATE accounts SET v = 1 WHERE id = 2"));
        thread::sleep(Duration::from_millis(30));
        let refused = other.execute("UPDATE accounts SET v = 1 WHERE id = 1");
        assert!(refused.as_ref().unwrap_err().to_string().contains("deadlock"));
        assert_eq!(kind(refused), Conflict::Deadlock);
        other.execute("ROLLBACK").unwrap();
        waiting.join().unwrap().unwrap();
    });
    one.execute("COMMIT").unwrap();
    assert_eq!(query(&engine, "SELECT v FROM accounts"), ["0", "1", "30"]);
}

#[test]
fn a_statement_of_its_own_is_run_again_while_connectors_commit() {
    let engine = engine_with(2, TABLES);
    let feeder = engine.clone();
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let feeding = thread::spawn(move || {
        let mut written = 0;
        while ended.try_recv().is_err() {
            let mut transaction = feeder.begin().unwrap();
            transaction.upsert("accounts", account(100 + written % 7, 1)).unwrap();
            transaction.commit().unwrap();
            written += 1;
        }
        written
    });
    for _ in 0..30 {
        // It reads everything.
        engine.execute("UPDATE accounts SET v = v + 1 WHERE v > 1").unwrap();
    }
    end.send(()).unwrap();
    assert!(feeding.join().unwrap() > 30);
    assert_eq!(query(&engine, "SELECT v FROM accounts WHERE id < 100"), ["40", "50", "60"]);
}

/// A statement is done as a whole: none of its rows is left out because it comes too late when the transaction commits.
#[test]
fn a_row_that_comes_too_late_by_now_fails_its_transaction() {
    let engine = engine_with(
        2,
        "CREATE TABLE events (id BIGINT PRIMARY KEY, at BIGINT LATENESS 10);
         INSERT INTO events VALUES (1, 100), (2, 105)",
    );
    let mut session = engine.session();
    for (sql, holds) in [
        ("UPDATE events SET id = id + 10 WHERE id = 1", false),
        ("INSERT INTO events VALUES (3, 101)", false),
        ("INSERT INTO events VALUES (4, 1000)", true),
    ] {
        session.execute(&format!("BEGIN; {sql}")).unwrap();
        engine.execute("INSERT INTO events VALUES (7, 500)").unwrap();
        match holds {
            true => drop(session.execute("COMMIT").unwrap()),
            false => assert_eq!(kind(session.execute("COMMIT")), Conflict::Serialization, "{sql}"),
        }
        if holds {
            break;
        }
        engine.execute("DROP TABLE events").unwrap();
        let again = "CREATE TABLE events (id BIGINT PRIMARY KEY, at BIGINT LATENESS 10);
            INSERT INTO events VALUES (1, 100), (2, 105)";
        engine.execute(again).unwrap();
    }
    assert_eq!(query(&engine, "SELECT id FROM events"), ["1", "2", "4", "7"]);
}

/// The waterline may rise between the moment a statement begins and that as of which it reads.
#[test]
fn no_row_is_changed_that_was_late_in_the_version_that_is_read() {
    const LATENESS: i64 = 5;
    let engine = engine_with(
        2,
        "CREATE TABLE events (at BIGINT LATENESS 5, x BIGINT); INSERT INTO events VALUES (0, 0)",
    );
    let is_over = AtomicBool::new(false);
    let changed = thread::scope(|scope| {
        scope.spawn(|| {
            for at in 1.. {
                let column = Arc::new(Int64Array::from(vec![at])) as ArrayRef;
                let rows = RecordBatch::try_from_iter([("at", column.clone()), ("x", column)]);
                let mut transaction = engine.begin().unwrap();
                transaction.insert("events", rows.unwrap()).unwrap();
                transaction.commit().unwrap();
                thread::sleep(Duration::from_millis(at.cast_unsigned() % 8));
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        let mut session = engine.session();
        let mut changed = Vec::new();
        for _ in 0..400 {
            let newest = rows(&mut session, "SELECT MAX(at) FROM events").remove(0);
            let from = newest.parse::<i64>().unwrap() - LATENESS;
            session.execute("BEGIN").unwrap();
            let update = format!("UPDATE events SET x = x + 1 WHERE at >= {from} RETURNING at");
            if let Ok(mut outcomes) = session.execute(&update)
                && let Some(alluvium::Outcome::Rows(rows)) = outcomes.pop()
                && let Ok(rows) = rows.collect::<Result<Vec<_>>>()
            {
                let at = rows
                    .iter()
                    .flat_map(|rows| rows.column(0).as_primitive::<Int64Type>().values().to_vec());
                let (first, last) =
                    at.fold((i64::MAX, 0), |(low, high), at| (low.min(at), high.max(at)));
                changed.push((first, last));
            }
            session.execute("ROLLBACK").unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
        changed
    });
    // On a busy machine others may be in the way of each of them.
    let late: Vec<_> = changed.iter().filter(|(first, last)| first < &(last - LATENESS)).collect();
    assert!(late.is_empty(), "rows of these times are changed at once: {late:?}");
}

#[test]
fn what_queries_read_below_serializable_is_not_validated() {
    let engine = engine_with(2, TABLES);
    let mut session = engine.session();
    for (level, seen) in
        [("REPEATABLE READ", "60"), ("READ COMMITTED", "61"), ("SERIALIZABLE", "62")]
    {
        session.execute(&format!("BEGIN ISOLATION LEVEL {level}; SELECT * FROM accounts")).unwrap();
        engine.execute("UPDATE accounts SET v = v + 1 WHERE id = 1").unwrap();
        let sum = rows(&mut session, "SELECT SUM(v) FROM accounts");
        session.execute("UPDATE accounts SET v = v + 0 WHERE id = 2").unwrap();
        let committed = session.execute("COMMIT");
        match level {
            "SERIALIZABLE" => assert_eq!(kind(committed), Conflict::Serialization),
            _ => drop(committed.unwrap()),
        }
        let expected = match level {
            "READ COMMITTED" => "62",
            _ => seen,
        };
        assert_eq!(sum, [expected], "{level}");
    }
    // The reads of an UPDATE are validated at each of them.
    session
        .execute("BEGIN ISOLATION LEVEL READ COMMITTED; UPDATE accounts SET v = 0 WHERE v > 25")
        .unwrap();
    engine.execute("INSERT INTO accounts VALUES (9, 90)").unwrap();
    assert_eq!(kind(session.execute("COMMIT")), Conflict::Serialization);
}

/// Its rows enter an altered table in an epoch of their own.
#[test]
fn a_table_that_was_altered_has_its_rows_or_the_transaction_goes_on() {
    let engine = engine_with(2, TABLES);
    for (read, holds) in [("SELECT * FROM accounts", true), ("SELECT * FROM other", false)] {
        let mut session = engine.session();
        session.execute("BEGIN").unwrap();
        rows(&mut session, read);
        engine.execute("ALTER TABLE entries ADD COLUMN w BIGINT").unwrap();
        if !holds {
            engine.execute("INSERT INTO other VALUES (1)").unwrap();
        }
        let sum = session.execute("SELECT SUM(v) FROM entries");
        match holds {
            true => {
                assert!(sum.is_ok());
                assert_eq!(rows(&mut session, "SELECT SUM(v) FROM entries"), ["3"]);
            }
            false => assert_eq!(kind(sum), Conflict::Serialization),
        }
        drop(session);
        engine.execute("ALTER TABLE entries DROP COLUMN w").unwrap();
    }
}

/// A statement fails because the version cannot move; what was read before it is still validated when the transaction commits.
#[test]
fn a_transaction_whose_statement_met_a_conflict_still_depends_on_what_it_has_read() {
    let engine = engine_with(2, TABLES);
    let mut session = engine.session();
    session.execute("BEGIN").unwrap();
    rows(&mut session, "SELECT * FROM accounts");
    engine.execute("UPDATE accounts SET v = 0; ALTER TABLE entries ADD COLUMN w BIGINT").unwrap();
    assert_eq!(kind(session.execute("SELECT * FROM entries")), Conflict::Serialization);
    session.execute("INSERT INTO other VALUES (1)").unwrap();
    assert_eq!(kind(session.execute("COMMIT")), Conflict::Serialization);
    assert!(query(&engine, "SELECT * FROM other").is_empty());
}
