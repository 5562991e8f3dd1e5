//! Transactions that clients begin and end.

use arrow_flight::sql::EndTransaction;
use bytes::Bytes;
use tonic::Code;

use super::client::{Client, Door, numbers_of, query, state};

async fn update(client: &mut Client, sql: &str, transaction: Option<&Bytes>) -> Option<String> {
    let done = client.execute_update(sql.to_owned(), transaction.cloned()).await;
    done.err().map(|error| state(&error).1)
}

#[test]
fn statements_name_their_transaction() {
    let door = Door::open();
    door.engine.execute("CREATE TABLE t (a BIGINT PRIMARY KEY)").expect("a table");
    door.with_client(async |client| {
        let id = client.begin_transaction().await.expect("a transaction");
        assert_eq!(update(client, "INSERT INTO t VALUES (1)", Some(&id)).await, None);
        assert_eq!(
            update(client, "INSERT INTO t VALUES (2)", None).await.as_deref(),
            Some("25001")
        );
        assert!(client.begin_transaction().await.is_err());
        let mut other = door.client().await;
        assert_eq!(numbers_of(&mut other, "SELECT COUNT(*) FROM t").await, [0]);
        client.end_transaction(id.clone(), EndTransaction::Commit).await.expect("a commit");
        assert_eq!(numbers_of(&mut other, "SELECT COUNT(*) FROM t").await, [1]);
        assert_eq!(update(client, "DELETE FROM t", Some(&id)).await.as_deref(), Some("25P01"));

        let id = client.begin_transaction().await.expect("a transaction");
        assert_eq!(update(client, "DELETE FROM t", Some(&id)).await, None);
        client.end_transaction(id, EndTransaction::Rollback).await.expect("a rollback");
        assert_eq!(numbers_of(client, "SELECT COUNT(*) FROM t").await, [1]);
    });
}

#[test]
fn a_statement_that_fails_aborts_its_transaction() {
    let door = Door::open();
    door.engine.execute("CREATE TABLE t (a BIGINT PRIMARY KEY)").expect("a table");
    door.with_client(async |client| {
        let id = client.begin_transaction().await.expect("a transaction");
        assert_eq!(update(client, "INSERT INTO t VALUES (1)", Some(&id)).await, None);
        assert!(update(client, "INSERT INTO nothing VALUES (1)", Some(&id)).await.is_some());
        let code = update(client, "INSERT INTO t VALUES (2)", Some(&id)).await;
        assert_eq!(code.as_deref(), Some("25P02"));
        let error = client.end_transaction(id, EndTransaction::Commit).await;
        assert_eq!(state(&error.expect_err("it is rolled back")).0, Code::Aborted);
        assert_eq!(numbers_of(client, "SELECT COUNT(*) FROM t").await, [0]);
        assert!(query(client, "SELECT 1").await.is_ok());
    });
}
