//! Texts of statements.

use tokio_postgres::SimpleQueryMessage as Message;
use tokio_postgres::error::SqlState;

use super::served::{field, message, read_until_ready, served};
use std::io::Write;

/// The rows of an answer, and the numbers in the tags of its statements.
fn shown(messages: Vec<Message>) -> (Vec<Vec<Option<String>>>, Vec<u64>) {
    let (mut rows, mut counts) = (Vec::new(), Vec::new());
    for message in messages {
        match message {
            Message::Row(row) => {
                rows.push(
                    (0..row.len()).map(|column| row.get(column).map(str::to_owned)).collect(),
                );
            }
            Message::CommandComplete(count) => counts.push(count),
            _ => (),
        }
    }
    (rows, counts)
}

#[test]
fn statements_are_answered_in_order() {
    served().with_client(async |client| {
        let sql = "CREATE TABLE t (k BIGINT PRIMARY KEY, v VARCHAR); \
            INSERT INTO t VALUES (1, 'one'), (2, NULL); \
            CREATE MATERIALIZED VIEW total AS SELECT COUNT(*) AS n FROM t; \
            SELECT * FROM t ORDER BY k; SELECT n FROM total";
        let (rows, counts) = shown(client.simple_query(sql).await.expect("answers"));
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(rows, [vec![text("1"), text("one")], vec![text("2"), None], vec![text("2")],]);
        assert_eq!(counts, [0, 2, 0, 2, 1]);
    });
}

#[test]
fn several_statements_are_one_transaction() {
    served().with_client(async |client| {
        client.batch_execute("CREATE TABLE t (k BIGINT PRIMARY KEY)").await.expect("a table");
        let failed =
            client.batch_execute("INSERT INTO t VALUES (1); INSERT INTO t VALUES (1)").await;
        let error = failed.expect_err("a duplicate");
        assert_eq!(error.code(), Some(&SqlState::UNIQUE_VIOLATION));
        let (rows, _) = shown(client.simple_query("SELECT * FROM t").await.expect("no rows"));
        assert!(rows.is_empty(), "{rows:?}");
        client
            .batch_execute("INSERT INTO t VALUES (1); COMMIT; INSERT INTO t VALUES (1)")
            .await
            .expect_err("a duplicate");
        let (rows, _) = shown(client.simple_query("SELECT * FROM t").await.expect("a row"));
        assert_eq!(rows.len(), 1);
    });
}

#[test]
fn a_text_with_an_error_of_syntax_does_nothing() {
    served().with_client(async |client| {
        let error =
            client.batch_execute("CREATE TABLE t (k BIGINT); SELEKT 1").await.expect_err("no SQL");
        assert_eq!(error.code(), Some(&SqlState::SYNTAX_ERROR));
        let error = client.batch_execute("SELECT * FROM t").await.expect_err("no table");
        assert_eq!(error.code(), Some(&SqlState::UNDEFINED_TABLE));
    });
}

#[test]
fn errors_point_at_their_place() {
    let served = served();
    let mut stream = served.raw_logged_in();
    stream.write_all(&message(b'Q', "SELECT 'ä',\n  nothing\0".as_bytes())).expect("a query");
    let answers = read_until_ready(&mut stream);
    let (kind, body) = &answers[0];
    assert_eq!(*kind, b'E');
    assert_eq!(field(body, b'P').as_deref(), Some("15"));
    assert_eq!(field(body, b'S').as_deref(), Some("ERROR"));
}

#[test]
fn an_empty_text_is_answered() {
    let served = served();
    let mut stream = served.raw_logged_in();
    for empty in ["\0", " ; ;\0", "-- nothing\0"] {
        stream.write_all(&message(b'Q', empty.as_bytes())).expect("a query");
        let kinds: Vec<u8> = read_until_ready(&mut stream).iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, b"IZ", "{empty:?}");
    }
}

#[test]
fn a_result_of_many_rows_comes_whole() {
    served().with_client(async |client| {
        client
            .batch_execute("CREATE TABLE t (k BIGINT, v VARCHAR); INSERT INTO t SELECT k, 'row ' || k FROM generate_series(1, 300000) s(k)")
            .await
            .expect("rows");
        let (rows, counts) = shown(client.simple_query("SELECT * FROM t").await.expect("rows"));
        assert_eq!((rows.len(), counts), (300_000, vec![300_000]));
    });
}

/// The text of an explanation used to end the connection.
#[test]
fn an_explanation_has_a_row_for_each_line() {
    served().with_client(async |client| {
        client
            .batch_execute("CREATE TABLE t (k BIGINT); CREATE MATERIALIZED VIEW v AS SELECT max(k) AS m FROM t")
            .await
            .expect("definitions");
        for sql in ["EXPLAIN VIEW v", "EXPLAIN STATE v", "EXPLAIN SELECT * FROM v"] {
            let (rows, _) = shown(client.simple_query(sql).await.expect("an explanation"));
            assert!(!rows.is_empty(), "{sql}");
            assert_eq!(client.query(sql, &[]).await.expect("the same").len(), rows.len());
        }
    });
}

/// From its third time on such a text runs on the connection's own task.
#[test]
fn a_text_that_reads_by_key_has_the_same_answers_however_often_it_runs() {
    let served = served();
    served.clients.block_on(async {
        let (writer, _task) = served.connect().await;
        let (reader, _task) = served.connect().await;
        writer
            .batch_execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v VARCHAR); INSERT INTO t VALUES (0, NULL), (1, 'one')")
            .await
            .expect("a table");
        let ask = async |k: i64| {
            let sql = format!("SELECT v, k FROM t WHERE k = {k};");
            shown(reader.simple_query(&sql).await.expect("an answer"))
        };
        for round in 0..20 {
            writer
                .batch_execute(&format!("UPDATE t SET v = 'of {round}' WHERE k = 1"))
                .await
                .expect("an update");
            let row = |v: Option<String>, k: &str| vec![v, Some(k.to_owned())];
            let changed = row(Some(format!("of {round}")), "1");
            assert_eq!(ask(1).await, (vec![changed], vec![1]));
            assert_eq!(ask(0).await, (vec![row(None, "0")], vec![1]));
            assert_eq!(ask(2).await, (Vec::new(), vec![0]));
        }
        // A transaction reads what it has written.
        reader.batch_execute("BEGIN; UPDATE t SET v = 'own' WHERE k = 1").await.expect("a change");
        assert_eq!(ask(1).await.0[0][0].as_deref(), Some("own"));
        reader.batch_execute("ROLLBACK").await.expect("the end");
        writer
            .batch_execute("DROP TABLE t; CREATE TABLE t (k INTEGER PRIMARY KEY, v DATE)")
            .await
            .expect("another table");
        for _ in 0..4 {
            assert_eq!(ask(1).await, (Vec::new(), vec![0]));
        }
        let missing = "SELECT v FROM t WHERE k = 'x'";
        for _ in 0..4 {
            let error = reader.simple_query(missing).await.expect_err("no integer");
            assert!(error.as_db_error().is_some_and(|error| error.position().is_some()), "{error}");
        }
    });
}
