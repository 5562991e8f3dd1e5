//! Transactions, as clients see them.

use std::io::Write;

use tokio_postgres::error::SqlState;

use super::served::{message, read_until_ready, served};

#[test]
fn an_error_aborts_a_transaction() {
    served().with_client(async |client| {
        client.batch_execute("CREATE TABLE t (k INTEGER PRIMARY KEY)").await.expect("a table");
        client.batch_execute("BEGIN").await.expect("a transaction");
        client.batch_execute("INSERT INTO t VALUES (1)").await.expect("a row");
        client.batch_execute("SELECT 1 / 0").await.expect_err("a division by zero");
        let error = client.batch_execute("SELECT 1").await.expect_err("it is aborted");
        assert_eq!(error.code(), Some(&SqlState::IN_FAILED_SQL_TRANSACTION));
        client.batch_execute("COMMIT").await.expect("it is rolled back");
        let rows = client.query("SELECT * FROM t", &[]).await.expect("no rows");
        assert!(rows.is_empty());
    });
}

#[test]
fn the_status_of_a_transaction_is_sent() {
    let served = served();
    let mut stream = served.raw_logged_in();
    for (sql, status) in [
        ("BEGIN", b'T'),
        ("BEGIN", b'T'),
        ("SELECT nothing", b'E'),
        ("ROLLBACK", b'I'),
        ("ROLLBACK", b'I'),
        ("SELECT 1", b'I'),
    ] {
        let text = format!("{sql}\0");
        stream.write_all(&message(b'Q', text.as_bytes())).expect("a query");
        let answers = read_until_ready(&mut stream);
        let last = answers.last().map(|(_, body)| body.clone());
        assert_eq!(last, Some(vec![status]), "{sql}");
    }
}

#[test]
fn a_client_that_goes_leaves_nothing() {
    let served = served();
    served.with_client(async |client| {
        client.batch_execute("CREATE TABLE t (k INTEGER PRIMARY KEY)").await.expect("a table");
    });
    let mut stream = served.raw_logged_in();
    stream.write_all(&message(b'Q', b"BEGIN; INSERT INTO t VALUES (1)\0")).expect("a query");
    read_until_ready(&mut stream);
    drop(stream);
    served.wait_for_clients(0);
    served.with_client(async |client| {
        // Nobody locks the row any more.
        client.batch_execute("INSERT INTO t VALUES (1)").await.expect("a row");
    });
}
