//! What clients may take, and what they are told beyond it.

use std::time::Duration;

use alluvium_server::Limits;
use tokio_postgres::SimpleQueryMessage;
use tokio_postgres::error::SqlState;

use super::secure::{log_in, quick, with_roles};
use super::served::served_with;

#[test]
fn the_last_connections_are_for_superusers() {
    let mut limits = quick();
    (limits.connections, limits.reserved) = (3, 1);
    let roles =
        ["CREATE ROLE root SUPERUSER LOGIN PASSWORD 'x'", "CREATE ROLE ada LOGIN PASSWORD 'x'"];
    let served = with_roles(limits, None, &roles);
    served.clients.block_on(async {
        let first = log_in(served.address(), "ada", "x").await.expect("a login");
        let _second = log_in(served.address(), "ada", "x").await.expect("a login");
        let error = log_in(served.address(), "ada", "x").await.expect_err("a refusal");
        let error = error.as_db_error().expect("an answer");
        assert_eq!(error.code(), &SqlState::TOO_MANY_CONNECTIONS);
        assert!(error.message().contains("kept for superusers"), "{error}");
        let _root = log_in(served.address(), "root", "x").await.expect("a login");
        let error = log_in(served.address(), "root", "x").await.expect_err("a refusal");
        let error = error.as_db_error().expect("an answer");
        assert!(error.message().contains("\"connections\""), "{error}");
        drop(first);
    });
}

#[test]
fn statements_wait_up_to_a_limit() {
    let mut limits = Limits::default();
    (limits.statements, limits.waiting) = (1, 0);
    let served = served_with(limits);
    served.clients.block_on(async {
        let (holder, _task) = served.connect().await;
        let (waiter, _task) = served.connect().await;
        let (third, _task) = served.connect().await;
        holder
            .batch_execute(
                "CREATE TABLE t (a BIGINT PRIMARY KEY, b BIGINT); INSERT INTO t VALUES (1, 1)",
            )
            .await
            .expect("a table");
        for a in 1..4 {
            let by_key = format!("SELECT b FROM t WHERE a = {a}");
            third.batch_execute(&by_key).await.expect("an answer");
        }
        holder.batch_execute("BEGIN; UPDATE t SET b = 2 WHERE a = 1").await.expect("a lock");
        // It has the only place, and waits for the lock.
        let waits = tokio::spawn(async move {
            waiter.batch_execute("UPDATE t SET b = 3 WHERE a = 1").await.expect("an update");
        });
        tokio::time::sleep(Duration::from_millis(500)).await;
        let refused = third.batch_execute("SELECT COUNT(*) FROM t").await;
        let error = refused.expect_err("a refusal");
        let error = error.as_db_error().expect("an answer");
        assert_eq!(error.code(), &SqlState::CONFIGURATION_LIMIT_EXCEEDED);
        assert!(error.message().contains("\"waiting\""), "{error}");
        // A read by key that ran before needs no place, nor does the transaction that they wait for.
        let by_key = third.simple_query("SELECT b FROM t WHERE a = 1").await.expect("an answer");
        let rows = by_key.iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0),
            _ => None,
        });
        assert_eq!(rows.collect::<Vec<_>>(), ["1"]);
        holder.batch_execute("COMMIT").await.expect("a commit");
        waits.await.expect("an update");
        third.batch_execute("SELECT COUNT(*) FROM t").await.expect("an answer");
    });
}

#[test]
fn times_are_those_of_the_server_until_a_client_sets_its_own() {
    let mut limits = Limits::default();
    limits.idle_in_transaction = Duration::from_millis(200);
    limits.statement_time = Duration::from_millis(300);
    let served = served_with(limits);
    served.clients.block_on(async {
        let (client, task) = served.connect().await;
        let (patient, _task) = served.connect().await;
        client
            .batch_execute("CREATE TABLE t (a BIGINT PRIMARY KEY); INSERT INTO t VALUES (1)")
            .await
            .expect("a table");
        patient
            .batch_execute("SET idle_in_transaction_session_timeout = 0; BEGIN; UPDATE t SET a = 2 WHERE a = 1")
            .await
            .expect("a lock");
        let error = client.batch_execute("DELETE FROM t WHERE a = 1").await.expect_err("an end");
        assert_eq!(error.code(), Some(&SqlState::QUERY_CANCELED));
        client.batch_execute("BEGIN").await.expect("a transaction");
        // The connection ends by itself.
        task.await.expect("its end");
        patient.batch_execute("COMMIT").await.expect("a commit");
    });
}

#[test]
fn what_a_connection_keeps_by_names_is_limited() {
    let mut limits = Limits::default();
    (limits.statement_bytes, limits.portal_bytes) = (20_000, 10_000);
    let served = served_with(limits);
    served.with_client(async |client| {
        let limited = Some(SqlState::CONFIGURATION_LIMIT_EXCEEDED);
        let text = format!("SELECT '{}' || $1::VARCHAR", "x".repeat(8_000));
        let first = client.prepare(&text).await.expect("a statement");
        let second = client.prepare(&text).await.expect("a statement");
        let error = client.prepare(&text).await.expect_err("a refusal");
        assert_eq!(error.code().cloned(), limited);
        let error = error.as_db_error().expect("an answer");
        assert!(error.message().contains("\"statement_bytes\""), "{error}");
        let named = format!("PREPARE p AS {text}");
        let error = client.batch_execute(&named).await.expect_err("a refusal");
        assert_eq!(error.code().cloned(), limited);
        drop(second);
        // It is closed before the next one is prepared.
        client.batch_execute("SELECT 1").await.expect("an answer");
        client.batch_execute(&named).await.expect("a statement");
        let error = client.prepare(&text).await.expect_err("a refusal");
        assert_eq!(error.code().cloned(), limited);
        client.batch_execute("DEALLOCATE p").await.expect("it is gone");
        client.prepare(&text).await.expect("a statement");
        let value = "y".repeat(6_000);
        let transaction = client.transaction().await.expect("a transaction");
        let portal = transaction.bind(&first, &[&value]).await.expect("a portal");
        let error = transaction.bind(&first, &[&value]).await.err().expect("a refusal");
        assert_eq!(error.code().cloned(), limited);
        let error = error.as_db_error().expect("an answer");
        assert!(error.message().contains("\"portal_bytes\""), "{error}");
        drop(portal);
        transaction.rollback().await.expect("the end");
        // Statements and portals without a name are one each.
        let row = client.query_one(&first, &[&"z".repeat(30_000)]).await.expect("a row");
        assert_eq!(row.get::<_, &str>(0).len(), 38_000);
    });
}
