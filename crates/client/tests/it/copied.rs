//! Batches into tables.

use std::sync::Arc;

use alluvium_client::arrow::array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray};

use super::served::served;

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter(columns).expect("a batch")
}

#[test]
fn every_type_goes_back_as_it_came() {
    served().with_client(async |client| {
        let columns = "k BIGINT, b BOOLEAN, i2 SMALLINT, i4 INTEGER, f4 REAL, f8 DOUBLE, t VARCHAR, y BYTEA, d DATE, c TIME, at TIMESTAMP,
            z TIMESTAMP WITH TIME ZONE, n DECIMAL(20, 4), l BIGINT[], tt VARCHAR[]";
        client
            .execute_batch(&format!(
                "CREATE TABLE t ({columns}); CREATE TABLE u ({columns});
                 INSERT INTO t SELECT x, x % 2 = 0, x % 100, x * 3, x / 8, x / 16, 'row ' || x, CAST('b' || x AS BYTEA),
                    DATE '2000-01-01' - CAST(x AS INTEGER), TIME '01:02:03.000004', TIMESTAMP '2024-01-01 00:00:00' + x * INTERVAL '1 hour',
                    TIMESTAMP WITH TIME ZONE '2024-01-01 00:00:00+00', x * 1.0001, [x, NULL, -x], ['a', 'b' || x]
                 FROM generate_series(1, 10000) s(x);
                 INSERT INTO t (k) VALUES (0)"
            ))
            .await
            .expect("tables");
        let rows = client.query("SELECT * FROM t", &[]).await.expect("rows").collect().await.expect("a batch");
        let mut copy = client.copy_in("u", &[]).await.expect("it begins");
        copy.send(&rows).await.expect("rows are sent");
        assert_eq!(copy.finish().await.expect("rows are taken"), 10_001);
        for sql in ["SELECT * FROM t EXCEPT SELECT * FROM u", "SELECT * FROM u EXCEPT SELECT * FROM t"] {
            let differ = client.query(sql, &[]).await.expect("rows").collect().await.expect("a batch");
            assert_eq!(differ.num_rows(), 0, "{sql}");
        }
    });
}

#[test]
fn other_types_are_cast_and_other_columns_are_named() {
    served().with_client(async |client| {
        client
            .execute_batch("CREATE TABLE t (k BIGINT PRIMARY KEY, \"a b\" VARCHAR, n DECIMAL(10, 2) DEFAULT 7)")
            .await
            .expect("a table");
        let rows = batch(vec![
            ("x", Arc::new(StringArray::from(vec![Some("one"), None])) as ArrayRef),
            ("y", Arc::new(Int32Array::from(vec![1, 2])) as ArrayRef),
        ]);
        let mut copy = client.copy_in("t", &["a b", "k"]).await.expect("it begins");
        copy.send(&rows).await.expect("rows are sent");
        assert_eq!(copy.finish().await.expect("rows are taken"), 2);
        let found = client.query("SELECT * FROM t WHERE n = 7 AND k = 1 AND \"a b\" = 'one'", &[]);
        let found = found.await.expect("rows").collect().await.expect("a batch");
        assert_eq!(found.num_rows(), 1);
        // What cannot be cast is an error here, and nothing of the COPY stays.
        let mut copy = client.copy_in("t", &["k"]).await.expect("it begins");
        let texts = batch(vec![("k", Arc::new(StringArray::from(vec!["3", "x"])) as ArrayRef)]);
        let error = copy.send(&texts).await.expect_err("no number");
        assert!(error.to_string().contains("column \"k\""), "{error}");
        drop(copy);
        assert!(client.copy_in("nothing", &[]).await.is_err());
        let left = client.query("SELECT * FROM t", &[]).await.expect("rows").collect().await;
        assert_eq!(left.expect("a batch").num_rows(), 2);
    });
}

#[test]
fn a_copy_leaves_nothing_unless_it_is_finished() {
    served().with_client(async |client| {
        client.execute_batch("CREATE TABLE t (k BIGINT PRIMARY KEY)").await.expect("a table");
        let rows =
            batch(vec![("k", Arc::new(Int64Array::from_iter_values(0..50_000)) as ArrayRef)]);
        let mut copy = client.copy_in("t", &[]).await.expect("it begins");
        copy.send(&rows).await.expect("rows are sent");
        drop(copy);
        let count = client.query("SELECT * FROM t", &[]).await.expect("rows").collect().await;
        assert_eq!(count.expect("a batch").num_rows(), 0);
        let twice = batch(vec![("k", Arc::new(Int64Array::from(vec![1, 2, 1])) as ArrayRef)]);
        let mut copy = client.copy_in("t", &[]).await.expect("it begins");
        copy.send(&twice).await.expect("rows are sent");
        let error = copy.finish().await.expect_err("a duplicate");
        assert_eq!(error.sqlstate(), Some("23505"));
        // In a transaction.
        let transaction = client.transaction().await.expect("it begins");
        let mut copy = transaction.copy_in("t", &[]).await.expect("it begins");
        copy.send(&rows).await.expect("rows are sent");
        assert_eq!(copy.finish().await.expect("rows are taken"), 50_000);
        transaction.commit().await.expect("it is committed");
        let none = batch(vec![("k", Arc::new(Int64Array::from(Vec::<i64>::new())) as ArrayRef)]);
        let mut copy = client.copy_in("t", &[]).await.expect("it begins");
        copy.send(&none).await.expect("no rows");
        assert_eq!(copy.finish().await.expect("no rows"), 0);
    });
}
