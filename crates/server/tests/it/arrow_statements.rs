//! Statements that take their parameters and give their rows as Arrow.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Float64Array, Int64Array, RecordBatch};
use arrow::compute::concat_batches;
use arrow::datatypes::{Float64Type, Int64Type};
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;
use futures::TryStreamExt;
use tokio_postgres::types::{FromSql, IsNull, Kind, ToSql, Type, to_sql_checked};
use tokio_postgres::{Client, Error};

use super::served::served;

/// The bytes of a parameter, of whichever type it is.
#[derive(Debug)]
struct Raw(Option<Vec<u8>>);

impl ToSql for Raw {
    fn to_sql(
        &self,
        _: &Type,
        out: &mut bytes::BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        out.extend_from_slice(self.0.as_deref().unwrap_or_default());
        Ok(if self.0.is_some() { IsNull::No } else { IsNull::Yes })
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

fn of<const N: usize>(columns: [ArrayRef; N]) -> Raw {
    let columns = columns.into_iter().enumerate().map(|(place, array)| (place.to_string(), array));
    let rows = RecordBatch::try_from_iter(columns).expect("rows");
    let mut writer = StreamWriter::try_new(Vec::new(), &rows.schema()).expect("a stream");
    writer.write(&rows).expect("rows");
    Raw(Some(writer.into_inner().expect("bytes")))
}

fn numbers(numbers: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(numbers))
}

/// Runs a statement; returns its rows, if it returns some, and how many it has returned or changed.
async fn run(client: &Client, sql: &str, values: Raw) -> Result<(Option<RecordBatch>, u64), Error> {
    let of = Type::new("arrow".to_owned(), 0xa110_0001, Kind::Simple, String::new());
    let rows = client.query_typed_raw(sql, [(values, of)]).await?;
    let mut rows = std::pin::pin!(rows);
    let (mut batches, mut schema) = (Vec::new(), None);
    while let Some(row) = rows.try_next().await? {
        assert_eq!(row.columns()[0].type_(), &Type::BYTEA);
        let stream = <&[u8]>::from_sql(&Type::BYTEA, row.get(0)).expect("bytes");
        let reader = StreamReader::try_new(stream, None).expect("a stream");
        schema.get_or_insert(reader.schema());
        batches.extend(reader.map(|batch| batch.expect("rows")));
    }
    let batch = schema.map(|schema| concat_batches(&schema, &batches).expect("a batch"));
    Ok((batch, rows.rows_affected().unwrap_or(0)))
}

#[test]
fn values_have_their_types_and_rows_theirs() {
    served().with_client(async |client| {
        let half: ArrayRef = Arc::new(Float64Array::from(vec![1.5]));
        let (rows, _) = run(client, "SELECT $1 + 1 AS a", of([half])).await.expect("rows");
        assert_eq!(rows.expect("rows").column(0).as_primitive::<Float64Type>().values(), &[2.5]);
        let sql = "SELECT {'a': range} AS s FROM range(20000)";
        let (rows, count) = run(client, sql, Raw(None)).await.expect("rows");
        let rows = rows.expect("rows");
        assert_eq!((rows.num_rows(), count), (20_000, 20_000));
        let inner = rows.column(0).as_struct().column(0).as_primitive::<Int64Type>();
        assert_eq!((inner.value(0), inner.value(19_999)), (0, 19_999));
        let (rows, count) =
            run(client, "SELECT 1 AS a WHERE false", Raw(None)).await.expect("rows");
        assert_eq!((rows.expect("columns").num_columns(), count), (1, 0));
        // Statements of the other kind are as they were.
        let error = client.query_typed("SELECT $1 + 1", &[(&1.5_f64, Type::FLOAT8)]).await;
        assert!(error.is_err());
    });
}

#[test]
fn a_statement_runs_for_each_row_of_values() {
    served().with_client(async |client| {
        let (rows, _) =
            run(client, "CREATE TABLE t (k BIGINT PRIMARY KEY)", Raw(None)).await.expect("a table");
        assert!(rows.is_none());
        let insert = "INSERT INTO t VALUES ($1)";
        let (_, count) = run(client, insert, of([numbers(0..1_000)])).await.expect("rows");
        assert_eq!(count, 1_000);
        let error = run(client, insert, of([numbers([2_000, 2_001, 5, 2_002])])).await;
        let error = error.expect_err("a duplicate");
        let error = error.as_db_error().expect("the server's");
        assert_eq!((error.code().code(), error.where_()), ("23505", Some("parameters of row 2")));
        // Each is a transaction of its own, unless one is open.
        let count = async || {
            client.query_one("SELECT count(*) FROM t", &[]).await.expect("a row").get::<_, i64>(0)
        };
        assert_eq!(count().await, 1_002);
        client.batch_execute("BEGIN").await.expect("a transaction");
        run(client, insert, of([numbers([3_000, 5])])).await.expect_err("a duplicate");
        client.batch_execute("ROLLBACK").await.expect("it ends");
        assert_eq!(count().await, 1_002);
        let error =
            run(client, "INSERT INTO t VALUES ($1) RETURNING k", of([numbers([4_000, 4_001])]))
                .await;
        assert_eq!(error.expect_err("rows").code().expect("a code").code(), "0A000");
    });
}

#[test]
fn what_is_no_stream_is_an_error() {
    served().with_client(async |client| {
        let Raw(Some(stream)) = of([numbers(0..3)]) else { panic!("bytes") };
        let cut = stream[..stream.len() / 2].to_vec();
        for bytes in [Vec::new(), b"no stream".to_vec(), vec![0xff; 64], cut] {
            let error =
                run(client, "SELECT $1 AS a", Raw(Some(bytes))).await.expect_err("it is none");
            assert_eq!(error.code().expect("a code").code(), "08P01");
        }
        let none: ArrayRef = numbers([]);
        run(client, "SELECT $1 AS a", of([none])).await.expect_err("no row");
        for (sql, values) in [("SELECT $1 + $2 AS a", 1), ("SELECT $1 + 1 AS a", 2)] {
            let values = (0..values).map(|place| (place.to_string(), numbers([1])));
            let rows = RecordBatch::try_from_iter(values).expect("rows");
            let mut writer = StreamWriter::try_new(Vec::new(), &rows.schema()).expect("a stream");
            writer.write(&rows).expect("rows");
            let values = Raw(Some(writer.into_inner().expect("bytes")));
            run(client, sql, values).await.expect_err("another number of values");
        }
        client.query_one("SELECT 1", &[]).await.expect("the connection is there");
    });
}
