//! Statements that are prepared.

use std::io::Write;

use futures::{StreamExt, TryStreamExt};
use tokio_postgres::SimpleQueryMessage;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;

use super::served::{message, read_until_ready, served};

#[test]
fn parameters_and_rows_are_binary() {
    served().with_client(async |client| {
        client
            .batch_execute(
                "CREATE TABLE t (k BIGINT PRIMARY KEY, i INTEGER, d DOUBLE, s VARCHAR, b BOOLEAN)",
            )
            .await
            .expect("a table");
        let insert =
            client.prepare("INSERT INTO t VALUES ($1, $2, $3, $4, $5)").await.expect("a statement");
        assert_eq!(insert.params(), [Type::INT8, Type::INT4, Type::FLOAT8, Type::TEXT, Type::BOOL]);
        for k in 0..10_i64 {
            let text = (k % 2 == 0).then(|| format!("row {k}"));
            let count = client
                .execute(&insert, &[&k, &(k as i32), &(k as f64 / 2.0), &text, &(k > 4)])
                .await;
            assert_eq!(count.expect("a row"), 1);
        }
        let select = client.prepare("SELECT * FROM t WHERE k = $1").await.expect("a statement");
        for k in 0..10_i64 {
            let row = client.query_one(&select, &[&k]).await.expect("a row");
            assert_eq!(row.get::<_, i64>("k"), k);
            assert_eq!(row.get::<_, i32>("i"), k as i32);
            assert_eq!(row.get::<_, f64>("d"), k as f64 / 2.0);
            assert_eq!(row.get::<_, Option<String>>("s"), (k % 2 == 0).then(|| format!("row {k}")));
            assert_eq!(row.get::<_, bool>("b"), k > 4);
        }
    });
}

#[test]
fn errors_of_prepared_statements_leave_the_connection() {
    served().with_client(async |client| {
        let error = client.prepare("SELECT * FROM nothing").await.expect_err("no table");
        assert_eq!(error.code(), Some(&SqlState::UNDEFINED_TABLE));
        client.batch_execute("CREATE TABLE t (k INTEGER PRIMARY KEY)").await.expect("a table");
        let insert = client.prepare("INSERT INTO t VALUES ($1)").await.expect("a statement");
        client.execute(&insert, &[&1_i32]).await.expect("a row");
        let error = client.execute(&insert, &[&1_i32]).await.expect_err("a duplicate");
        assert_eq!(error.code(), Some(&SqlState::UNIQUE_VIOLATION));
        client.execute(&insert, &[&2_i32]).await.expect("a row");
    });
}

#[test]
fn a_portal_gives_rows_as_they_are_asked_for() {
    served().with_client(async |client| {
        client
            .batch_execute("CREATE TABLE t (k BIGINT); INSERT INTO t SELECT k FROM generate_series(1, 10000) s(k)")
            .await
            .expect("rows");
        let transaction = client.transaction().await.expect("a transaction");
        let portal = transaction.bind("SELECT k FROM t ORDER BY k", &[]).await.expect("a portal");
        let mut seen = 0;
        loop {
            let rows = transaction.query_portal(&portal, 999).await.expect("rows");
            if rows.is_empty() {
                break;
            }
            for row in rows {
                seen += 1;
                assert_eq!(row.get::<_, i64>(0), seen);
            }
        }
        assert_eq!(seen, 10_000);
    });
}

#[test]
fn statements_can_be_pipelined() {
    served().with_client(async |client| {
        client.batch_execute("CREATE TABLE t (k INTEGER PRIMARY KEY)").await.expect("a table");
        let insert = client.prepare("INSERT INTO t VALUES ($1)").await.expect("a statement");
        let client = &*client;
        let counts: Vec<u64> = futures::stream::iter(0..1_000_i32)
            .map(|k| {
                let insert = &insert;
                async move { client.execute(insert, &[&k]).await }
            })
            .buffered(100)
            .try_collect()
            .await
            .expect("rows");
        assert_eq!(counts.iter().sum::<u64>(), 1_000);
        let count = client.query_one("SELECT COUNT(*) FROM t", &[]).await.expect("a count");
        assert_eq!(count.get::<_, i64>(0), 1_000);
    });
}

#[test]
fn deallocate_removes_what_messages_have_prepared() {
    let served = served();
    let mut stream = served.raw_logged_in();
    let mut messages = message(b'P', b"one\0SELECT 1\0\0\0");
    messages.extend(message(b'P', b"two\0SELECT 2\0\0\0"));
    messages.extend(message(b'S', b""));
    stream.write_all(&messages).expect("statements");
    read_until_ready(&mut stream);
    let bind = |name: &str| [b"\0", name.as_bytes(), b"\0\0\0\0\0\0\0"].concat();
    for (sql, one, two) in
        [("SELECT 0", b'2', b'2'), ("DEALLOCATE one", b'E', b'2'), ("DEALLOCATE ALL", b'E', b'E')]
    {
        stream.write_all(&message(b'Q', format!("{sql}\0").as_bytes())).expect("a query");
        let answers = read_until_ready(&mut stream);
        assert!(answers.iter().all(|(kind, _)| *kind != b'E'), "{sql}");
        for (name, kind) in [("one", one), ("two", two)] {
            let messages = [message(b'B', &bind(name)), message(b'S', b"")].concat();
            stream.write_all(&messages).expect("a portal");
            assert_eq!(read_until_ready(&mut stream)[0].0, kind, "{name} after {sql}");
        }
    }
    stream.write_all(&message(b'Q', b"DEALLOCATE one\0")).expect("a query");
    assert_eq!(read_until_ready(&mut stream)[0].0, b'E');
}

#[test]
fn a_statement_whose_columns_have_changed_is_prepared_again() {
    served().with_client(async |client| {
        client.batch_execute("CREATE TABLE t (k INTEGER)").await.expect("a table");
        let query = client.prepare("SELECT * FROM t").await.expect("a statement");
        client.query(&query, &[]).await.expect("no rows");
        client.batch_execute("ALTER TABLE t ADD COLUMN v VARCHAR").await.expect("a column");
        let error = client.query(&query, &[]).await.expect_err("other columns");
        let error = error.as_db_error().expect("an error of the server");
        assert_eq!(*error.code(), SqlState::FEATURE_NOT_SUPPORTED);
        // Drivers look for these words, and prepare the statement again.
        assert!(error.message().contains("cached plan must not change result type"), "{error}");
        client.query("SELECT * FROM t", &[]).await.expect("no rows");
    });
}

#[test]
fn a_text_that_is_prepared_again_means_what_it_does_by_then() {
    served().with_client(async |client| {
        client
            .batch_execute(
                "CREATE TABLE t (k INTEGER PRIMARY KEY, v INTEGER); INSERT INTO t VALUES (1, 10); CREATE SCHEMA s;
                 CREATE TABLE s.t (k INTEGER PRIMARY KEY, v VARCHAR); INSERT INTO s.t VALUES (1, 'of s')",
            )
            .await
            .expect("tables");
        const SQL: &str = "SELECT v FROM t WHERE k = $1";
        // A text that runs again is prepared anew by the driver each time.
        let ask = async || {
            let row = client.query_one(SQL, &[&1_i32]).await.expect("a row");
            (row.columns()[0].type_().clone(), row.try_get::<_, i32>(0).ok(), row.try_get::<_, String>(0).ok())
        };
        for _ in 0..3 {
            assert_eq!(ask().await, (Type::INT4, Some(10), None));
        }
        client.batch_execute("SET search_path = s, public").await.expect("a path");
        for _ in 0..3 {
            assert_eq!(ask().await, (Type::TEXT, None, Some("of s".to_owned())));
        }
        client.batch_execute("RESET search_path").await.expect("a path");
        assert_eq!(ask().await, (Type::INT4, Some(10), None));
        client
            .batch_execute("DROP TABLE t; CREATE TABLE t (k INTEGER PRIMARY KEY, v VARCHAR); INSERT INTO t VALUES (1, 'new')")
            .await
            .expect("another table");
        for _ in 0..2 {
            assert_eq!(ask().await, (Type::TEXT, None, Some("new".to_owned())));
        }
        client.batch_execute("BEGIN").await.expect("a transaction");
        client.batch_execute("SELECT 1 FROM nothing").await.expect_err("no table");
        let error = client.query_one(SQL, &[&1_i32]).await.expect_err("it is aborted");
        assert_eq!(error.code(), Some(&SqlState::IN_FAILED_SQL_TRANSACTION));
    });
}

#[test]
fn transactions_consist_of_prepared_statements() {
    served().with_client(async |client| {
        client
            .batch_execute(
                "CREATE TABLE t (k INTEGER PRIMARY KEY, v BIGINT); INSERT INTO t VALUES (1, 0), (2, 0)",
            )
            .await
            .expect("a table");
        let mut prepared = Vec::new();
        for text in [
            "BEGIN",
            "UPDATE t SET v = v + $1 WHERE k = $2",
            "SELECT v FROM t WHERE k = $1",
            "INSERT INTO t VALUES ($1, 7)",
            "COMMIT",
            "ROLLBACK",
        ] {
            prepared.push(client.prepare(text).await.expect("a statement"));
        }
        let [begin, update, select, insert, commit, rollback] = &prepared[..] else {
            panic!("six statements")
        };
        let value = async |k: i32| {
            client.query_one(select, &[&k]).await.expect("a row").get::<_, i64>(0)
        };
        for round in 0..8_i64 {
            client.execute(begin, &[]).await.expect("a transaction");
            for k in [1_i32, 2] {
                let changed = client.execute(update, &[&1_i64, &k]).await.expect("a change");
                assert_eq!((changed, value(k).await), (1, round + 1));
            }
            client.execute(commit, &[]).await.expect("it is committed");
            client.execute(begin, &[]).await.expect("a transaction");
            client.execute(update, &[&100_i64, &1_i32]).await.expect("a change");
            let error = client.execute(insert, &[&2_i32]).await.expect_err("the key is taken");
            assert_eq!(error.code(), Some(&SqlState::UNIQUE_VIOLATION));
            let error = client.query(select, &[&1_i32]).await.expect_err("it is aborted");
            assert_eq!(error.code(), Some(&SqlState::IN_FAILED_SQL_TRANSACTION));
            client.execute(rollback, &[]).await.expect("it ends");
            assert_eq!((value(1).await, value(2).await), (round + 1, round + 1));
        }
    });
}

#[test]
fn transactions_consist_of_texts() {
    served().with_client(async |client| {
        client
            .batch_execute(
                "CREATE TABLE t (k INTEGER PRIMARY KEY, v BIGINT); INSERT INTO t VALUES (1, 0)",
            )
            .await
            .expect("a table");
        for round in 1..=8_i64 {
            for text in ["BEGIN", "UPDATE t SET v = v + 1 WHERE k = 1"] {
                client.batch_execute(text).await.expect("a statement");
            }
            let row = client.simple_query("SELECT v FROM t WHERE k = 1").await.expect("a row");
            let shown = row.iter().find_map(|message| match message {
                SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
                _ => None,
            });
            assert_eq!(shown, Some(round.to_string()));
            client
                .batch_execute("INSERT INTO t VALUES (1, 1)")
                .await
                .expect_err("the key is taken");
            let error = client.batch_execute("DELETE FROM t WHERE k = 1").await;
            let code = error.expect_err("it is aborted").code().cloned();
            assert_eq!(code, Some(SqlState::IN_FAILED_SQL_TRANSACTION));
            client.batch_execute("ROLLBACK").await.expect("it ends");
            client.batch_execute("UPDATE t SET v = v + 1 WHERE k = 1").await.expect("a change");
        }
    });
}
