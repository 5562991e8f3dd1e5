//! Values of parameters that have types of their own.

use std::sync::Arc;

use alluvium_client::arrow::array::AsArray;
use alluvium_client::arrow::array::RecordBatch;
use alluvium_client::arrow::array::{
    Array, ArrayRef, Date32Array, Decimal128Array, Int64Array, ListArray, StringArray, StructArray,
    UInt64Array,
};
use alluvium_client::arrow::datatypes::{DataType, Field, Int64Type};
use alluvium_client::{Client, Parameter};

use super::served::served;

fn value(array: impl Array + 'static) -> Parameter {
    Parameter::of(&(Arc::new(array) as ArrayRef), 0).expect("a value")
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
        // Where no type is expected it is a text.
        let alone = rows(client, "SELECT $1 AS a", &[value(Int64Array::from(vec![-7]))]).await;
        assert_eq!(alone.column(0).as_string::<i32>().value(0), "-7");
        let none = rows(client, "SELECT k FROM t WHERE d = $1", &[Parameter::null()]).await;
        assert_eq!(none.num_rows(), 0);
        let list = ListArray::from_iter_primitive::<Int64Type, _, _>([Some([Some(1), None])]);
        let found = rows(client, "SELECT k FROM t WHERE k = ANY($1)", &[value(list)]).await;
        assert_eq!(found.num_rows(), 1);
        let of = Field::new("a", DataType::Int64, true);
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1]));
        let nested: ArrayRef = Arc::new(StructArray::from(vec![(Arc::new(of), numbers)]));
        assert!(Parameter::of(&nested, 0).is_err());
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
