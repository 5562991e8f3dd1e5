//! Values of parameters that have types of their own.

use std::sync::Arc;

use alluvium_client::arrow::array::AsArray;
use alluvium_client::arrow::array::RecordBatch;
use alluvium_client::arrow::array::{
    Array, ArrayRef, Date32Array, Decimal128Array, Int64Array, ListArray, StringArray, StructArray,
    UInt64Array,
};
use alluvium_client::arrow::compute::concat_batches;
use alluvium_client::arrow::datatypes::{DataType, Field, Float64Type, Int64Type};
use alluvium_client::{Client, Parameter, SubscribeOptions};
use futures::TryStreamExt;

use super::served::served;

fn value(array: impl Array + 'static) -> Parameter {
    Parameter::of(&(Arc::new(array) as ArrayRef), 0)
}

async fn rows(client: &Client, sql: &str, values: &[Parameter]) -> RecordBatch {
    let rows = client.query_typed(sql, values).await.expect(sql);
    rows.collect().await.expect("a batch")
}

#[test]
fn a_value_keeps_its_type_and_becomes_that_of_its_place() {
    served().with_client(async |client| {
        let setup = "CREATE TABLE t (k BIGINT PRIMARY KEY, d DATE, n DECIMAL(10, 2));
            INSERT INTO t VALUES (1, '2024-01-01', 1.5), (2, NULL, 2.25)";
        client.execute_batch(setup).await.expect("a table");
        let decimal = Decimal128Array::from(vec![225_000]).with_precision_and_scale(20, 5);
        for (sql, of) in [
            ("SELECT k FROM t WHERE k = $1", value(StringArray::from(vec!["1"]))),
            ("SELECT k FROM t WHERE d = $1", value(StringArray::from(vec!["2024-01-01"]))),
            ("SELECT k FROM t WHERE d = $1", value(Date32Array::from(vec![19_723]))),
            ("SELECT k FROM t WHERE n < $1", value(Int64Array::from(vec![2]))),
            ("SELECT k FROM t WHERE k = $1", value(UInt64Array::from(vec![1]))),
            ("SELECT 3 - k AS k FROM t WHERE n = $1", value(decimal.expect("digits"))),
        ] {
            let found = rows(client, sql, &[of]).await;
            assert_eq!(found.column(0).as_primitive::<Int64Type>().values(), &[1], "{sql}");
        }
        // Where none is expected it has its own.
        let alone = rows(client, "SELECT $1 AS a", &[value(Int64Array::from(vec![-7]))]).await;
        assert_eq!(alone.column(0).as_primitive::<Int64Type>().value(0), -7);
        let decimal = Decimal128Array::from(vec![15]).with_precision_and_scale(2, 1);
        let sum =
            rows(client, "SELECT CAST($1 + 1 AS DOUBLE) AS a", &[value(decimal.expect("digits"))])
                .await;
        assert_eq!(sum.column(0).as_primitive::<Float64Type>().value(0), 2.5);
        let none = rows(client, "SELECT k FROM t WHERE d = $1", &[Parameter::null()]).await;
        assert_eq!(none.num_rows(), 0);
        let list = ListArray::from_iter_primitive::<Int64Type, _, _>([Some([Some(1), None])]);
        let found = rows(client, "SELECT k FROM t WHERE k = ANY($1)", &[value(list)]).await;
        assert_eq!(found.num_rows(), 1);
        let of = Field::new("a", DataType::Int64, true);
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1]));
        let nested = StructArray::from(vec![(Arc::new(of), numbers)]);
        let found = rows(client, "SELECT $1 AS s, ($1).a + 1 AS b", &[value(nested.clone())]).await;
        assert_eq!(found.column(0).as_struct().column(0), nested.column(0));
        assert_eq!(found.column(1).as_primitive::<Int64Type>().value(0), 2);
    });
}

#[test]
fn a_statement_runs_for_each_row_in_their_order() {
    served().with_client(async |client| {
        client
            .execute_batch("CREATE TABLE t (k BIGINT PRIMARY KEY, v VARCHAR)")
            .await
            .expect("a table");
        let text = |text: &str| value(StringArray::from(vec![text]));
        let number = |number: i64| value(Int64Array::from(vec![number]));
        let mut values: Vec<_> = (0..500).map(|k| vec![number(k), text("a")]).collect();
        // Of other types, and NULL.
        values.push(vec![text("500"), text("b")]);
        values.push(vec![number(501), Parameter::null()]);
        values.push(vec![number(7), number(8)]);
        let sql = "INSERT OR REPLACE INTO t VALUES ($1, CAST($2 AS VARCHAR))";
        let changed = client.execute_each(sql, &values).await.expect("rows");
        assert_eq!(changed, 503);
        let found =
            rows(client, "SELECT k FROM t WHERE v = '8' OR v IS NULL ORDER BY k", &[]).await;
        assert_eq!(found.column(0).as_primitive::<Int64Type>().values(), &[7, 501]);
        assert_eq!(client.execute_each(sql, &[]).await.expect("no rows"), 0);
        let transaction = client.transaction().await.expect("it begins");
        transaction.rollback().await.expect("it ends");
        client.execute_batch("BEGIN").await.expect("it begins");
        let values: Vec<_> = [601, 602, 603, 602, 604].map(|k| vec![number(k)]).into();
        let error = client.execute_each("INSERT INTO t (k) VALUES ($1)", &values).await;
        let error = error.expect_err("a duplicate");
        assert_eq!((error.row, error.error.sqlstate()), (3, Some("23505")));
        client.execute_batch("ROLLBACK").await.expect("it ends");
        let left = rows(client, "SELECT k FROM t WHERE k > 600", &[]).await;
        assert_eq!(left.num_rows(), 0);
    });
}

#[test]
fn rows_have_the_types_of_the_engine() {
    let served = served();
    served.with_client(async |client| {
        client
            .execute_batch("CREATE TABLE n (k BIGINT, s STRUCT(a INTEGER, b VARCHAR[]), m MAP(VARCHAR, DECIMAL(10, 2)), l STRUCT(x DATE)[])")
            .await
            .expect("a table");
        client
            .execute_batch("INSERT INTO n VALUES (1, {'a': 1, 'b': ['x', NULL]}, MAP {'k': 1.25}, [{'x': DATE '2024-01-01'}, NULL]), (2, NULL, NULL, NULL)")
            .await
            .expect("rows");
        for sql in [
            "SELECT * FROM n ORDER BY k",
            "SELECT [[1], [2, 3], NULL] AS ragged, NULL AS nothing, CAST(1 AS UTINYINT) AS small",
            "SELECT range AS x, repeat('x', 100) AS t FROM range(30000) ORDER BY x",
            "DESCRIBE n",
            "EXPLAIN SELECT 1",
        ] {
            let given = rows(client, sql, &[]).await;
            let Ok(expected) = served.engine.query(sql) else { continue };
            let expected = concat_batches(&expected[0].schema(), &expected).expect("a batch");
            assert_eq!(given, expected, "{sql}");
        }
        let none = rows(client, "SELECT * FROM n WHERE false", &[]).await;
        let all = rows(client, "SELECT * FROM n", &[]).await;
        assert_eq!((none.num_rows(), none.schema()), (0, all.schema()));
        // They go back as they came.
        let all = rows(client, "SELECT * FROM n ORDER BY k", &[]).await;
        let changed = client.execute_rows("INSERT INTO n VALUES ($1, $2, $3, $4)", &all).await;
        assert_eq!(changed.expect("rows"), 2);
        let twice = rows(client, "SELECT * FROM n WHERE k = 1", &[]).await;
        assert_eq!(twice.slice(1, 1), all.slice(0, 1));
        // As changes they are the same.
        let mut changes = client.subscribe("n", SubscribeOptions::new()).await.expect("it begins");
        let snapshot = changes.try_next().await.expect("a change").expect("a change");
        let types = |rows: &RecordBatch| -> Vec<DataType> {
            rows.columns().iter().map(|column| column.data_type().clone()).collect()
        };
        assert_eq!(types(&snapshot.rows), types(&all));
        assert_eq!(snapshot.weights.iter().sum::<i64>(), 4);
        let cursor = "BEGIN; DECLARE c CURSOR FOR SELECT * FROM n ORDER BY k";
        client.execute_batch(cursor).await.expect("a cursor");
        assert_eq!(rows(client, "FETCH 1 FROM c", &[]).await, all.slice(0, 1));
        client.execute_batch("ROLLBACK").await.expect("it ends");
    });
}

#[test]
fn a_statement_without_rows_has_no_columns() {
    served().with_client(async |client| {
        for sql in ["CREATE TABLE t (k BIGINT)", "", "-- nothing", "SET application_name = 'x'"] {
            let mut batches = client.query_typed(sql, &[]).await.expect(sql);
            assert!(batches.schema().fields().is_empty());
            assert!(batches.try_next().await.expect(sql).is_none());
        }
        let mut batches =
            client.query_typed("INSERT INTO t VALUES (1), (2)", &[]).await.expect("rows");
        assert!(batches.try_next().await.expect("no rows").is_none());
        assert_eq!(batches.rows_affected(), Some(2));
        let error = client.query_typed("SELECT k FROM t WHERE k = $2", &[]).await;
        assert!(error.err().expect("values are missing").to_string().contains("parameter"));
        let error = client.query_typed("SELECT 1;\n SELECT k FROM nowhere", &[]).await;
        assert!(error.is_err());
        let error = client.query_typed("SELECT k\n FROM nowhere", &[]).await;
        assert_eq!(error.err().expect("no such table").position(), Some(16));
    });
}
