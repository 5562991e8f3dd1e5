//! What clients may take, and what they are told beyond it.

use std::time::Duration;

use alluvium_server::Limits;
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
        // The transaction that they wait for needs no place.
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
