//! Connections, and errors.

use alluvium_client::{Client, Error};
use alluvium_server::Server;
use futures::TryStreamExt;
use tempfile::TempDir;

use super::served::{served, served_by};

#[test]
fn errors_have_what_the_server_says() {
    served().with_client(async |client| {
        client.execute_batch("CREATE TABLE t (k BIGINT PRIMARY KEY)").await.expect("a table");
        let error = client.query("SELECT kk FROM t", &[]).await.err().expect("no column");
        assert_eq!((error.sqlstate(), error.position()), (Some("42703"), Some(8)));
        assert_eq!(error.refusal().and_then(|refusal| refusal.kind.as_deref()), Some("Sql"));
        assert!(error.to_string().contains("\"kk\""), "{error}");
        let error = client.execute_batch("SELECT 1; SELECT ü FROM t").await.expect_err("no column");
        assert_eq!(error.position(), Some(18));
        client.execute("INSERT INTO t VALUES ($1)", &[&1_i64]).await.expect("a row");
        let error = client.execute("INSERT INTO t VALUES (1)", &[]).await.expect_err("a duplicate");
        assert_eq!(error.sqlstate(), Some("23505"));
        // A value of another type than the statement's.
        let error = client.execute("INSERT INTO t VALUES ($1)", &[&"x"]).await.expect_err("a text");
        assert!(matches!(error, Error::Value(_)), "{error:?}");
        // Some rows come before the failure.
        let sql = "SELECT 1000000 / (150000 - x) FROM generate_series(1, 200000) s(x)";
        let rows = client.query(sql, &[]).await.expect("rows");
        let error = rows.try_collect::<Vec<_>>().await.expect_err("a division by zero");
        assert_eq!(error.sqlstate(), Some("22012"));
        assert_eq!(client.execute("DELETE FROM t", &[]).await.expect("it goes on"), 1);
    });
}

#[test]
fn results_come_in_batches_and_may_be_empty() {
    served().with_client(async |client| {
        let rows =
            client.query("SELECT x, 'row ' || x AS t FROM generate_series(1, 50000) s(x)", &[]);
        let batches: Vec<_> = rows.await.expect("rows").try_collect().await.expect("batches");
        assert!(batches.len() > 5);
        assert_eq!(batches.iter().map(|batch| batch.num_rows()).sum::<usize>(), 50_000);
        let none = client.query("SELECT 1 AS a WHERE false", &[]).await.expect("rows");
        assert_eq!(none.schema().field(0).name(), "a");
        assert_eq!(none.collect().await.expect("no rows").num_rows(), 0);
        let none = client.query("SELECT [1] AS a WHERE false", &[]).await.expect("rows");
        assert_eq!(none.schema().fields().len(), 1);
        assert_eq!(none.collect().await.expect("no rows").num_rows(), 0);
        let nothing = client.query("CREATE TABLE t (k BIGINT)", &[]).await.expect("a table");
        assert_eq!(nothing.schema().fields().len(), 0);
        assert_eq!(nothing.collect().await.expect("no rows").num_rows(), 0);
        let long = client.query("SELECT repeat('x', 5000000) AS a", &[]).await.expect("rows");
        assert_eq!(long.collect().await.expect("a row").num_rows(), 1);
    });
}

#[test]
fn a_server_is_reached_by_its_socket() {
    let folder = TempDir::new().expect("a folder");
    let served = served_by(|server: Server| server.pg_socket(folder.path().join(".s.PGSQL.5432")));
    served.run(async {
        let client = Client::connect(folder.path().to_str().expect("a path")).await;
        client.expect("a connection").execute("SELECT 1", &[]).await.expect("a row");
    });
}

#[test]
fn a_server_that_ends_says_so() {
    let served = served();
    let client = served.run(served.client());
    let url = served.url();
    let runtime = super::served::runtime();
    served.running.stop(std::time::Duration::from_millis(100));
    runtime.block_on(async {
        let error = client.execute("SELECT 1", &[]).await.expect_err("the server has ended");
        assert!(error.is_lost(), "{error:?}");
        let error = Client::connect(&url).await.err().expect("nobody listens");
        assert!(error.is_lost(), "{error:?}");
    });
}

#[test]
fn rows_are_found_by_key() {
    served().with_client(async |client| {
        client
            .execute_batch("CREATE TABLE t (k BIGINT PRIMARY KEY, v VARCHAR); INSERT INTO t VALUES (1, 'one'), (2, 'two')")
            .await
            .expect("a table");
        let by_key = client.by_key("t", &["k"]).await.expect("a key");
        let found = client.get(&by_key, &[&2_i64]).await.expect("a row");
        assert_eq!((found.num_rows(), found.num_columns()), (1, 2));
        assert_eq!(client.get(&by_key, &[&3_i64]).await.expect("no row").num_rows(), 0);
        assert!(client.by_key("t", &["no"]).await.is_err());
    });
}
