//! Transactions.

use super::served::served;

#[test]
fn a_transaction_is_committed_or_rolled_back() {
    let served = served();
    served.with_client(async |client| {
        client.execute_batch("CREATE TABLE t (k BIGINT PRIMARY KEY)").await.expect("a table");
        let count = |of: alluvium_client::Batches| async {
            of.collect().await.expect("a count").column(0).to_data().buffer::<i64>(0)[0]
        };
        let transaction = client.transaction().await.expect("it begins");
        transaction.execute("INSERT INTO t VALUES (1)", &[]).await.expect("a row");
        transaction.commit().await.expect("it is committed");
        let transaction = client.transaction().await.expect("it begins");
        transaction.execute("INSERT INTO t VALUES (2)", &[]).await.expect("a row");
        let own = transaction.query("SELECT COUNT(*) FROM t", &[]).await.expect("a count");
        assert_eq!(count(own).await, 2);
        transaction.rollback().await.expect("it is rolled back");
        // Dropped.
        let transaction = client.transaction().await.expect("it begins");
        transaction.execute("INSERT INTO t VALUES (3)", &[]).await.expect("a row");
        drop(transaction);
        let rows = client.query("SELECT COUNT(*) FROM t", &[]).await.expect("a count");
        assert_eq!(count(rows).await, 1);
        let transaction = client.transaction().await.expect("it begins");
        transaction.execute("INSERT INTO t VALUES (1)", &[]).await.expect_err("a duplicate");
        let error = transaction.execute("SELECT 1", &[]).await.expect_err("it is aborted");
        assert_eq!(error.sqlstate(), Some("25P02"));
    });
}
