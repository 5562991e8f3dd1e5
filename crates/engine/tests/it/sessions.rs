//! SQL, statement by statement.

use std::io::Write;
use std::path::Path;

use alluvium::arrow::array::RecordBatch;
use alluvium::{Engine, Outcome, Session, Sink, SinkRequest, SinkWriter};

use crate::support::{batch_lines, engine_with, lines, query};

const TABLES: &str = "
    CREATE TABLE part (id BIGINT PRIMARY KEY, name VARCHAR NOT NULL, price BIGINT);
    CREATE TABLE sale (part BIGINT, day VARCHAR);";

fn session(workers: usize) -> (Engine, Session) {
    let engine = engine_with(workers, TABLES);
    let session = engine.session();
    (engine, session)
}

/// The answer to the last of some statements as sorted lines.
fn rows(session: &mut Session, sql: &str) -> Vec<String> {
    match session.execute(sql).expect("the statements are right").pop() {
        Some(Outcome::Rows(rows)) => lines(&rows.into_batches().expect("rows")),
        other => panic!("rows are expected, not {other:?}"),
    }
}

fn error(session: &mut Session, sql: &str) -> String {
    session.execute(sql).expect_err("the statement is wrong").to_string()
}

#[test]
fn a_session_reads_what_it_has_committed() {
    for workers in 1..=3 {
        let (_engine, mut session) = session(workers);
        let outcomes = session.execute("INSERT INTO part VALUES (1, 'bolt', 5), (2, 'nut', 3)");
        let outcomes = outcomes.expect("it inserts");
        assert!(
            matches!(outcomes[..], [Outcome::Changed { rows: 2, epoch: Some(1), .. }]),
            "{outcomes:?}"
        );
        assert_eq!(rows(&mut session, "SELECT name, price FROM part"), ["bolt 5", "nut 3"]);
    }
}

#[test]
fn update_and_delete_read_the_writes_of_their_own_transaction() {
    for workers in 1..=3 {
        let (engine, mut session) = session(workers);
        session
            .execute("INSERT INTO part VALUES (1, 'bolt', 5), (2, 'nut', 3)")
            .expect("it inserts");
        let outcomes = session.execute(
            "BEGIN;
             INSERT INTO part VALUES (3, 'cog', 10);
             UPDATE part SET price = price * 2 WHERE price > 4;
             DELETE FROM part WHERE price = 20;
             INSERT INTO sale SELECT id, name FROM part;
             INSERT INTO sale VALUES (9, 'x'), (9, 'x');
             DELETE FROM sale WHERE part = 9;",
        );
        let changed =
            outcomes.expect("the statements are right").into_iter().filter_map(|outcome| {
                match outcome {
                    Outcome::Changed { rows, epoch: None, .. } => Some(rows),
                    _ => None,
                }
            });
        assert_eq!(changed.collect::<Vec<_>>(), [1, 2, 1, 2, 2, 2]);
        assert_eq!(rows(&mut session, "SELECT * FROM part"), ["1 bolt 10", "2 nut 3"]);
        assert_eq!(
            lines(&engine.query("SELECT * FROM part").expect("the query is right")),
            ["1 bolt 5", "2 nut 3"]
        );
        assert_eq!(rows(&mut session, "COMMIT; SELECT * FROM sale"), ["1 bolt", "2 nut"]);
        assert_eq!(rows(&mut session, "SELECT * FROM part"), ["1 bolt 10", "2 nut 3"]);
    }
}

#[test]
fn an_update_can_move_rows_to_each_others_keys() {
    let (_engine, mut session) = session(2);
    session
        .execute("INSERT INTO part VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3)")
        .expect("it inserts");
    assert_eq!(
        rows(&mut session, "UPDATE part SET id = id + 1; SELECT * FROM part"),
        ["2 a 1", "3 b 2", "4 c 3"]
    );
}

#[test]
fn rollback_leaves_nothing() {
    let (_engine, mut session) = session(1);
    let left = rows(
        &mut session,
        "BEGIN; INSERT INTO sale VALUES (1, 'mon'); ROLLBACK; SELECT * FROM sale",
    );
    assert!(left.is_empty());
}

#[test]
fn a_failed_statement_leaves_nothing_and_the_transaction_open() {
    let (_engine, mut session) = session(1);
    session.execute("BEGIN; INSERT INTO part VALUES (1, 'bolt', 5)").expect("it inserts");
    let message = error(&mut session, "INSERT INTO part VALUES (2, 'nut', 1), (3, NULL, 1)");
    assert_eq!(message, "NULL is not allowed in column \"name\" of \"part\"");
    error(&mut session, "UPDATE part SET price = 1 / (price - 5)");
    assert_eq!(rows(&mut session, "COMMIT; SELECT * FROM part"), ["1 bolt 5"]);
}

#[test]
fn begin_and_commit_come_in_pairs() {
    let (_engine, mut session) = session(1);
    assert_eq!(error(&mut session, "COMMIT"), "COMMIT without BEGIN: no transaction is open");
    assert_eq!(error(&mut session, "ROLLBACK"), "ROLLBACK without BEGIN: no transaction is open");
    session.execute("BEGIN").expect("none is open");
    assert!(session.in_transaction());
    assert_eq!(
        error(&mut session, "BEGIN"),
        "a transaction is open already; COMMIT or ROLLBACK it first"
    );
    assert_eq!(
        error(&mut session, "DROP FUNCTION f"),
        "DROP FUNCTION inside a transaction is not supported; COMMIT first"
    );
}

#[test]
fn arithmetic_in_queries_fails_instead_of_wrapping_around() {
    let (_engine, mut session) = session(1);
    session
        .execute("INSERT INTO part VALUES (1, 'a', 9223372036854775807), (2, 'b', 1)")
        .expect("it inserts");
    for wrong in [
        "SELECT price + 1 FROM part WHERE id = 1",
        "SELECT -2 - price FROM part WHERE id = 1",
        "SELECT price * 2 FROM part WHERE id = 1",
        "SELECT SUM(price) FROM part",
        "SELECT id FROM part WHERE price + 1 > 0 AND id < 2",
        "SELECT 9223372036854775807 + 1",
        "UPDATE part SET price = price + 1",
    ] {
        let message = error(&mut session, wrong).to_lowercase();
        assert!(
            message.contains("overflow") || message.contains("is outside bigint"),
            "{wrong}: {message}"
        );
    }
    assert_eq!(
        rows(&mut session, "SELECT SUM(price) - 1 FROM part WHERE id = 1"),
        ["9223372036854775806"]
    );
    assert_eq!(rows(&mut session, "SELECT price + 1 FROM part WHERE id = 2"), ["2"]);
    assert_eq!(rows(&mut session, "SELECT SUM(price) FROM part WHERE id > 5"), ["NULL"]);
}

#[test]
fn queries_may_order_limit_and_aggregate() {
    let (_engine, mut session) = session(3);
    session
        .execute("INSERT INTO part VALUES (1, 'a', 4), (2, 'b', 4), (3, 'c', 1)")
        .expect("it inserts");
    assert_eq!(
        rows(&mut session, "SELECT name FROM part ORDER BY price, name DESC LIMIT 2"),
        ["b", "c"]
    );
    assert_eq!(
        rows(&mut session, "SELECT price, COUNT(*) FROM part GROUP BY price"),
        ["1 1", "4 2"]
    );
    assert_eq!(
        rows(&mut session, "SELECT name, ROW_NUMBER() OVER (ORDER BY price, name) FROM part"),
        ["a 2", "b 3", "c 1"]
    );
}

#[test]
fn a_view_that_is_not_materialized_can_be_queried() {
    let (_engine, mut session) = session(2);
    session
        .execute(
            "CREATE LOCAL VIEW dear AS SELECT id, name FROM part WHERE price > 3;
             CREATE VIEW names AS SELECT name FROM dear;
             INSERT INTO part VALUES (1, 'a', 4), (2, 'b', 1)",
        )
        .expect("the statements are right");
    assert_eq!(rows(&mut session, "SELECT * FROM names"), ["a"]);
    assert_eq!(rows(&mut session, "SELECT id FROM dear"), ["1"]);
}

#[test]
fn explain_tells_how() {
    let (_engine, mut session) = session(1);
    session
        .execute("CREATE VIEW v AS SELECT price, COUNT(*) AS n FROM part GROUP BY price")
        .expect("a view");
    for sql in ["EXPLAIN VIEW v", "EXPLAIN SELECT name FROM part"] {
        match session.execute(sql).expect("it can be explained").pop() {
            Some(Outcome::Text(text)) => assert!(!text.is_empty()),
            other => panic!("text is expected, not {other:?}"),
        }
    }
    assert_eq!(error(&mut session, "EXPLAIN VIEW part"), "\"part\" is a table, not a view");
}

#[test]
fn errors_say_where_they_are() {
    let (_engine, mut session) = session(1);
    let at = |session: &mut Session, sql: &str| {
        session.execute(sql).expect_err("it is wrong").position()
    };
    assert_eq!(at(&mut session, "SELECT *\n  FROM parts"), Some((2, 8)));
    assert_eq!(at(&mut session, "BEGIN;\nINSERT INTO part VALUES (1, NULL, 1)"), Some((2, 1)));
    assert_eq!(at(&mut session, "ROLLBACK;\n  ROLLBACK"), Some((2, 3)));
}

#[test]
fn a_query_sees_what_any_handle_committed_before() {
    let folder = tempfile::tempdir().expect("a folder");
    let builder = Engine::builder().workers(2).sink(Lines);
    let engine = builder.open_in_memory().expect("an engine starts");
    engine
        .execute(
            "CREATE TABLE n (i BIGINT);
             CREATE MATERIALIZED VIEW counted AS SELECT COUNT(*) AS n, MAX(i) AS most FROM n",
        )
        .expect("a table and a view");
    let mut writer = engine.session();
    let mut reader = engine.session();
    for round in 1..=300 {
        // One after the other through a handle, a session, and a transaction.
        let insert = format!("INSERT INTO n VALUES ({round})");
        match round % 3 {
            0 => drop(engine.execute(&insert).expect("a row")),
            1 => drop(writer.execute(&insert).expect("a row")),
            _ => drop(writer.execute(&format!("BEGIN; {insert}; COMMIT")).expect("a row")),
        }
        let expected = [format!("{round} {round}")];
        assert_eq!(rows(&mut reader, "SELECT * FROM counted"), expected);
        if round % 10 != 0 {
            continue;
        }
        assert_eq!(query(&engine.clone(), "SELECT COUNT(*), MAX(i) FROM n"), expected);
        let mut changes = engine.subscribe("counted").expect("a view");
        let first = changes.next().expect("a snapshot").expect("no error");
        assert_eq!(lines(&[first.rows]), expected);
        let path = folder.path().join(format!("{round}.lines"));
        let copy = format!("COPY (SELECT * FROM counted) TO '{}'", path.display());
        reader.execute(&copy).expect("it is written");
        assert_eq!(std::fs::read_to_string(path).expect("a file"), format!("{}\n", expected[0]));
    }
}

/// A sink that writes a line for each row.
struct Lines;

struct LinesWriter(std::fs::File);

impl Sink for Lines {
    fn name(&self) -> &str {
        "lines"
    }

    fn handles(&self, path: &Path) -> bool {
        path.extension().is_some_and(|extension| extension == "lines")
    }

    fn create(&self, request: &SinkRequest) -> alluvium::Result<Box<dyn SinkWriter>> {
        Ok(Box::new(LinesWriter(std::fs::File::create(&request.path).expect("a new file"))))
    }
}

impl SinkWriter for LinesWriter {
    fn write(&mut self, rows: &RecordBatch) -> alluvium::Result<()> {
        for line in batch_lines(rows) {
            writeln!(self.0, "{line}").expect("the file can be written");
        }
        Ok(())
    }

    fn flush(&mut self) -> alluvium::Result<()> {
        Ok(())
    }

    fn finish(self: Box<Self>) -> alluvium::Result<()> {
        Ok(())
    }
}

#[test]
fn a_query_groups_by_whether_a_condition_is_true() {
    let (_engine, mut session) = session(1);
    session.execute("INSERT INTO part VALUES (1, 'a', 1), (2, 'b', 5)").expect("it inserts");
    session
        .execute("CREATE LOCAL VIEW dear AS SELECT DISTINCT (price > 2) IS TRUE AS c FROM part")
        .expect("a view");
    assert_eq!(rows(&mut session, "SELECT c FROM dear ORDER BY c"), ["false", "true"]);
}
