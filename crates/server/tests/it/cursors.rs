//! Cursors over SUBSCRIBE: changes as they are fetched.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use alluvium_server::Limits;
use futures::TryStreamExt;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, NoTls, Row, SimpleQueryMessage};

use super::secure::{log_in, quick, with_roles};
use super::served::{served, served_with};

/// Sums of weights by key.
type Sums = BTreeMap<i64, i64>;

/// Adds changes with the columns epoch, weight and a key; returns how many there were.
fn add(sums: &mut Sums, rows: &[Row]) -> usize {
    for row in rows {
        let sum = sums.entry(row.get(2)).or_default();
        *sum += row.get::<_, i64>(1);
        if *sum == 0 {
            sums.remove(&row.get(2));
        }
    }
    rows.len()
}

async fn keys(client: &Client) -> Sums {
    let rows = client.query("SELECT k FROM t", &[]).await.expect("rows");
    rows.iter().map(|row| (row.get(0), 1)).collect()
}

/// How many rows a statement of the simple protocol returns.
async fn count(client: &Client, sql: &str) -> usize {
    let messages = client.simple_query(sql).await.expect("rows");
    messages.iter().filter(|message| matches!(message, SimpleQueryMessage::Row(_))).count()
}

async fn code(client: &Client, sql: &str) -> Option<SqlState> {
    client.batch_execute(sql).await.err().and_then(|error| error.code().cloned())
}

#[test]
fn changes_that_are_cut_between_fetches_are_the_rows_of_the_relation() {
    let served = served();
    served.with_client(async |client| {
        client
            .batch_execute(
                "CREATE TABLE t (k BIGINT PRIMARY KEY); INSERT INTO t SELECT * FROM range(10)",
            )
            .await
            .expect("a table");
        let (writer, _task) = served.connect().await;
        let writes = tokio::spawn(async move {
            for round in 0..40_i64 {
                let first = 100 + 10 * round;
                let insert = format!("INSERT INTO t SELECT * FROM range({first}, {})", first + 10);
                writer.batch_execute(&insert).await.expect("rows");
                let delete = format!("DELETE FROM t WHERE k % 7 = {}", round % 7);
                writer.batch_execute(&delete).await.expect("rows");
            }
            writer
        });
        client.batch_execute("BEGIN; DECLARE c CURSOR FOR SUBSCRIBE t").await.expect("a cursor");
        let mut sums = Sums::new();
        let some = client.prepare("FETCH 3 c WITH (timeout = '300ms')").await.expect("a statement");
        let all = client.prepare("FETCH ALL c WITH (timeout '300 ms')").await.expect("a statement");
        for _ in 0..30 {
            let rows = client.query(&some, &[]).await.expect("rows");
            assert!(add(&mut sums, &rows) <= 3);
        }
        let writer = writes.await.expect("a writer");
        while add(&mut sums, &client.query(&all, &[]).await.expect("rows")) > 0 {}
        assert_eq!(sums, keys(&writer).await);
        client.batch_execute("COMMIT").await.expect("the end");
        assert_eq!(code(client, "FETCH c").await, Some(SqlState::INVALID_CURSOR_NAME));
    });
}

#[test]
fn a_fetch_waits_for_a_row_or_until_its_timeout() {
    let served = served();
    served.with_client(async |client| {
        client.batch_execute("CREATE TABLE t (k BIGINT PRIMARY KEY)").await.expect("a table");
        let (writer, _task) = served.connect().await;
        client
            .batch_execute("BEGIN; DECLARE c CURSOR FOR SUBSCRIBE t WITH (SNAPSHOT = false)")
            .await
            .expect("a cursor");
        let begin = Instant::now();
        assert_eq!(count(client, "FETCH ALL c WITH (TIMEOUT = '0s')").await, 0);
        assert!(begin.elapsed() < Duration::from_secs(5));
        let begin = Instant::now();
        assert_eq!(count(client, "FETCH 10 FROM c WITH (timeout = '700 milliseconds')").await, 0);
        assert!(begin.elapsed() >= Duration::from_millis(650));
        let (fetched, ()) = tokio::join!(count(client, "FETCH 10 c"), async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            writer.batch_execute("INSERT INTO t VALUES (1), (2)").await.expect("rows");
        });
        assert_eq!(fetched, 2);
        // One that has as many rows as it wants does not wait.
        let begin = Instant::now();
        writer.batch_execute("INSERT INTO t VALUES (3), (4)").await.expect("rows");
        assert_eq!(count(client, "FETCH FORWARD 1 FROM c WITH (timeout = '60s')").await, 1);
        assert_eq!(count(client, "FETCH c").await, 1);
        assert!(begin.elapsed() < Duration::from_secs(30));
        for wrong in ["'soon'", "'-1s'", "'1 month'"] {
            client.batch_execute("SAVEPOINT s").await.expect("a savepoint");
            let sql = format!("FETCH c WITH (timeout = {wrong})");
            assert_eq!(
                code(client, &sql).await,
                Some(SqlState::INVALID_PARAMETER_VALUE),
                "{wrong}"
            );
            client.batch_execute("ROLLBACK TO s").await.expect("as before");
        }
        client.batch_execute("CLOSE c").await.expect("it is closed");
        assert_eq!(code(client, "FETCH c").await, Some(SqlState::INVALID_CURSOR_NAME));
    });
}

#[test]
fn a_fetch_that_waits_can_be_cancelled() {
    let served = served();
    served.with_client(async |client| {
        client.batch_execute("CREATE TABLE t (k BIGINT PRIMARY KEY)").await.expect("a table");
        let declare = "BEGIN; DECLARE c CURSOR FOR SUBSCRIBE t";
        client.batch_execute(declare).await.expect("a cursor");
        let token = client.cancel_token();
        let (cancelled, ()) = tokio::join!(code(client, "FETCH c"), async {
            tokio::time::sleep(Duration::from_millis(200)).await;
            token.cancel_query(NoTls).await.expect("a request");
        });
        assert_eq!(cancelled, Some(SqlState::QUERY_CANCELED));
        let aborted = Some(SqlState::IN_FAILED_SQL_TRANSACTION);
        assert_eq!(code(client, "FETCH c").await, aborted);
        client.batch_execute("ROLLBACK").await.expect("the end");
        // A statement's own time counts as well.
        let limited = format!("SET statement_timeout = '200ms'; {declare}");
        client.batch_execute(&limited).await.expect("a cursor");
        assert_eq!(code(client, "FETCH c").await, Some(SqlState::QUERY_CANCELED));
        client.batch_execute("ROLLBACK").await.expect("the end");
    });
}

#[test]
fn a_cursor_that_nobody_fetches_holds_up_nobody() {
    let mut limits = Limits::default();
    limits.subscription_changes = 64;
    let served = served_with(limits);
    served.with_client(async |client| {
        client.batch_execute("CREATE TABLE t (k BIGINT PRIMARY KEY)").await.expect("a table");
        let (writer, _task) = served.connect().await;
        client.batch_execute("BEGIN; DECLARE c CURSOR FOR SUBSCRIBE t").await.expect("a cursor");
        for k in 0..200 {
            writer.batch_execute(&format!("INSERT INTO t VALUES ({k})")).await.expect("a row");
        }
        writer.batch_execute("CREATE TABLE u (k BIGINT)").await.expect("a definition");
        assert_eq!(
            code(client, "FETCH ALL c").await,
            Some(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE)
        );
        client.batch_execute("ROLLBACK").await.expect("the end");
    });
}

#[test]
fn a_cursor_ends_with_its_relation() {
    let served = served();
    served.with_client(async |client| {
        client.batch_execute("CREATE TABLE t (k BIGINT PRIMARY KEY)").await.expect("a table");
        let (writer, _task) = served.connect().await;
        client.batch_execute("BEGIN; DECLARE c CURSOR FOR SUBSCRIBE t").await.expect("a cursor");
        let (fetched, ()) = tokio::join!(count(client, "FETCH c"), async {
            tokio::time::sleep(Duration::from_millis(200)).await;
            writer.batch_execute("DROP TABLE t").await.expect("no table");
        });
        assert_eq!(fetched, 0);
        client.batch_execute("COMMIT").await.expect("the end");
    });
}

#[test]
fn progress_is_fetched_as_rows() {
    let served = served();
    served.with_client(async |client| {
        client
            .batch_execute("CREATE TABLE t (k BIGINT PRIMARY KEY); INSERT INTO t VALUES (1)")
            .await
            .expect("a table");
        client
            .batch_execute("BEGIN; DECLARE c CURSOR FOR SUBSCRIBE t WITH (PROGRESS)")
            .await
            .expect("a cursor");
        let rows = client.query("FETCH 2 c", &[]).await.expect("rows");
        let names: Vec<&str> = rows[0].columns().iter().map(|column| column.name()).collect();
        assert_eq!(names, ["epoch", "progressed", "weight", "k"]);
        let begins: (i64, bool, Option<i64>) = (rows[0].get(0), rows[0].get(1), rows[0].get(2));
        assert_eq!((begins.1, begins.2, rows[0].get::<_, Option<i64>>(3)), (true, None, None));
        let row: (i64, bool, Option<i64>) = (rows[1].get(0), rows[1].get(1), rows[1].get(2));
        assert_eq!(row, (begins.0, false, Some(1)));
        // It wakes nobody, and is there within two seconds.
        let rows = client.query("FETCH 1 c WITH (timeout = '10s')", &[]).await.expect("rows");
        assert_eq!((rows[0].get::<_, i64>(0), rows[0].get(1)), (begins.0 + 1, true));
    });
}

#[test]
fn what_a_cursor_over_changes_does_not_do_is_refused() {
    let served = served();
    served.with_client(async |client| {
        client.batch_execute("CREATE TABLE t (k BIGINT PRIMARY KEY)").await.expect("a table");
        let refused = Some(SqlState::FEATURE_NOT_SUPPORTED);
        let holds = "DECLARE c CURSOR WITH HOLD FOR SUBSCRIBE t";
        assert_eq!(code(client, holds).await, refused);
        let outside = "DECLARE c CURSOR FOR SUBSCRIBE t";
        assert_eq!(code(client, outside).await, Some(SqlState::NO_ACTIVE_SQL_TRANSACTION));
        client.batch_execute("BEGIN; DECLARE c CURSOR FOR SUBSCRIBE t").await.expect("a cursor");
        assert_eq!(code(client, "MOVE ALL IN c").await, refused);
        client.batch_execute("ROLLBACK").await.expect("the end");
    });
}

#[test]
fn large_rows_are_fetched_through_portals_with_a_limit() {
    let served = served();
    served.with_client(async |client| {
        client
            .batch_execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v VARCHAR)")
            .await
            .expect("a table");
        client
            .batch_execute("INSERT INTO t SELECT k, repeat('x', 1000000) FROM range(5) r(k)")
            .await
            .expect("rows");
        let transaction = client.transaction().await.expect("a transaction");
        transaction.batch_execute("DECLARE c CURSOR FOR SUBSCRIBE t").await.expect("a cursor");
        let portal = transaction.bind("FETCH ALL c", &[]).await.expect("a portal");
        let first = transaction.query_portal(&portal, 2).await.expect("rows");
        assert_eq!(first.len(), 2);
        let rest = transaction.query("FETCH ALL c", &[]).await.expect("rows");
        assert_eq!(rest.len(), 3);
        assert!(first.iter().chain(&rest).all(|row| row.get::<_, &str>(3).len() == 1_000_000));
    });
}

#[test]
fn rights_are_asked_before_a_description() {
    let roles =
        ["CREATE ROLE root SUPERUSER LOGIN PASSWORD 'x'", "CREATE ROLE ada LOGIN PASSWORD 'x'"];
    let served = with_roles(quick(), None, &roles);
    served.clients.block_on(async {
        let root = log_in(served.address(), "root", "x").await.expect("a login");
        root.batch_execute("CREATE TABLE secret (word VARCHAR); CREATE TABLE open (k BIGINT); GRANT SELECT ON open TO ada").await.expect("tables");
        let ada = log_in(served.address(), "ada", "x").await.expect("a login");
        let denied = Some(SqlState::INSUFFICIENT_PRIVILEGE);
        ada.batch_execute("PREPARE p AS SELECT * FROM open; BEGIN").await.expect("a statement");
        for sql in [
            "DECLARE c CURSOR FOR SELECT * FROM secret",
            "DECLARE c CURSOR FOR SELECT nothing FROM secret",
            "DECLARE c CURSOR FOR SUBSCRIBE secret",
            "SUBSCRIBE secret",
        ] {
            let error = ada.prepare(sql).await.err();
            assert_eq!(error.and_then(|error| error.code().cloned()), denied, "{sql}");
            ada.batch_execute("ROLLBACK; BEGIN").await.expect("another transaction");
        }
        ada.batch_execute("DECLARE c CURSOR FOR SUBSCRIBE open; FETCH ALL c WITH (timeout '0s')")
            .await
            .expect("a cursor");
        root.batch_execute("INSERT INTO open VALUES (1), (2)").await.expect("rows");
        let one = ada.query("FETCH 1 c", &[]).await.expect("a row");
        assert_eq!(one.len(), 1);
        root.batch_execute("REVOKE SELECT ON open FROM ada").await.expect("no right");
        // The rest of a change is no more than the next one.
        assert_eq!(code(&ada, "FETCH 1 c").await, denied);
        ada.batch_execute("ROLLBACK").await.expect("the end");
        let error = ada.prepare("EXECUTE p").await.err();
        assert_eq!(error.and_then(|error| error.code().cloned()), denied);
        let rows = ada.query_raw("SELECT 1", Vec::<i32>::new()).await.expect("rows");
        assert_eq!(rows.try_collect::<Vec<_>>().await.expect("rows").len(), 1);
    });
}
