//! Values of every type, compared with those of the engine.

use alluvium::Engine;
use alluvium_client::Client;
use alluvium_client::arrow::array::RecordBatch;
use alluvium_client::arrow::compute::cast;

use super::served::served;

/// A query of several rows with every type, its ends among them.
const EVERY_TYPE: &str = "SELECT * FROM (VALUES
    (1, true, CAST(1 AS SMALLINT), CAST(1 AS BIGINT), CAST(0.5 AS REAL), CAST(0.25 AS DOUBLE), 'text', X'00FF', DATE '2024-02-29',
        TIME '23:59:59.999999', TIMESTAMP '1969-12-31 23:59:59.999999', TIMESTAMP WITH TIME ZONE '2024-01-01 00:00:00+02',
        INTERVAL '1 year 2 months 3 days 4 hours 5.000006 seconds', CAST(12345.6789 AS DECIMAL(20, 4)), CAST('0.33333333333333333333333333333333333333' AS DECIMAL(38, 38))),
    (2, false, CAST(-32768 AS SMALLINT), CAST('-9223372036854775808' AS BIGINT), CAST('NaN' AS REAL), CAST('-Infinity' AS DOUBLE), '', X'', DATE '0001-01-01',
        TIME '00:00:00', TIMESTAMP '9999-12-31 00:00:00', TIMESTAMP WITH TIME ZONE '1900-01-01 00:00:00+00',
        INTERVAL '-1 month', CAST(-0.0001 AS DECIMAL(20, 4)), CAST('-0.00000000000000000000000000000000000001' AS DECIMAL(38, 38))),
    (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)
    ) AS v (k, boolean, int2, int8, float4, float8, text, bytes, day, clock, at, instant, span, number, long)
    ORDER BY k";

async fn compared(engine: &Engine, client: &Client, sql: &str) -> RecordBatch {
    let given = client.query(sql, &[]).await.expect("rows").collect().await.expect("a batch");
    let expected = engine.query(sql).expect("rows");
    let schema = expected[0].schema();
    let expected =
        alluvium_client::arrow::compute::concat_batches(&schema, &expected).expect("a batch");
    assert_eq!(given.num_columns(), expected.num_columns(), "{sql}");
    for (number, (given, expected)) in given.columns().iter().zip(expected.columns()).enumerate() {
        let name = schema.field(number).name();
        // Views of texts, and zones that are called otherwise.
        let plain = cast(expected, given.data_type()).expect("a type of the same values");
        assert_eq!(given, &plain, "{name}: {} of {sql}", expected.data_type());
    }
    given
}

#[test]
fn every_type_comes_as_the_engine_has_it() {
    let served = served();
    served.with_client(async |client| {
        compared(&served.engine, client, EVERY_TYPE).await;
        let types = client.query(EVERY_TYPE, &[]).await.expect("rows");
        let types: Vec<_> =
            types.schema().fields().iter().map(|field| field.data_type().to_string()).collect();
        assert!(types.iter().any(|name| name.starts_with("Decimal128(20, 4)")), "{types:?}");
    });
}

#[test]
fn lists_come_with_their_dimensions() {
    let served = served();
    served.with_client(async |client| {
        for sql in [
            "SELECT [1, NULL, 3] AS a",
            "SELECT * FROM (VALUES (1, [1, 2]), (2, NULL), (3, [NULL])) AS v (k, a) ORDER BY k",
            "SELECT [['a', 'b'], ['c', NULL]] AS a",
            "SELECT [[[1], [2]], [[3], [4]]] AS a",
            "SELECT [1.5, -2.25] AS a, [DATE '2024-01-01'] AS d, ['x', ''] AS t",
        ] {
            compared(&served.engine, client, sql).await;
        }
        let empty = client.query("SELECT [] AS a, [1] AS b WHERE false", &[]).await.expect("rows");
        assert_eq!(empty.schema().fields().len(), 2);
    });
}

#[test]
fn the_catalog_has_its_own_types() {
    served().with_client(async |client| {
        for sql in [
            "SELECT oid, relname, relkind FROM pg_catalog.pg_class",
            "SELECT indkey, indexrelid FROM pg_catalog.pg_index",
            "SELECT * FROM alluvium.relations",
            "SHOW TABLES",
        ] {
            let rows = client.query(sql, &[]).await.expect("rows");
            rows.collect().await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        }
    });
}

#[test]
fn integers_that_postgres_does_not_have_keep_their_type() {
    let served = served();
    served.with_client(async |client| {
        let sql = "SELECT CAST(-128 AS TINYINT) AS a, CAST(255 AS UTINYINT) AS b, CAST(65535 AS USMALLINT) AS c,
            CAST(4294967295 AS UINTEGER) AS d, CAST('18446744073709551615' AS UBIGINT) AS e, [CAST(1 AS UTINYINT), NULL] AS f, CAST(1 AS DECIMAL(20, 0)) AS g";
        let given = compared(&served.engine, client, sql).await;
        let expected = served.engine.query(sql).expect("rows");
        let types = |batch: &RecordBatch| {
            let fields = batch.schema();
            fields.fields().iter().map(|field| field.data_type().clone()).collect::<Vec<_>>()
        };
        assert_eq!(types(&given), types(&expected[0]));
        // They go back as they came.
        client
            .execute_batch("CREATE TABLE t (a TINYINT, b UTINYINT, c USMALLINT, d UINTEGER, e UBIGINT, f UTINYINT[], g DECIMAL(20, 0))")
            .await
            .expect("a table");
        let mut copy = client.copy_in("t", &[]).await.expect("it begins");
        copy.send(&given).await.expect("rows are sent");
        copy.finish().await.expect("rows are taken");
        let back = compared(&served.engine, client, "SELECT * FROM t").await;
        assert_eq!(back.columns(), given.columns());
    });
}
