//! Bulk ingestion.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, Decimal128Array, DictionaryArray, RecordBatch, TimestampNanosecondArray,
};
use arrow::datatypes::Int8Type;
use arrow_flight::error::FlightError;
use arrow_flight::sql::{
    CommandStatementIngest, TableDefinitionOptions, TableExistsOption, TableNotExistOption,
};
use futures::{StreamExt, stream};

use super::client::{Client, Door, batch, numbers_of, query, state};

fn command(
    table: &str,
    if_not_exist: TableNotExistOption,
    if_exists: TableExistsOption,
) -> CommandStatementIngest {
    CommandStatementIngest {
        table_definition_options: Some(TableDefinitionOptions {
            if_not_exist: if_not_exist.into(),
            if_exists: if_exists.into(),
        }),
        table: table.to_owned(),
        ..Default::default()
    }
}

async fn ingest(
    client: &mut Client,
    command: CommandStatementIngest,
    rows: Vec<RecordBatch>,
) -> Result<i64, FlightError> {
    client.execute_ingest(command, stream::iter(rows.into_iter().map(Ok))).await
}

#[test]
fn tables_are_created_appended_to_and_replaced() {
    use TableExistsOption::{Append, Fail as Refuse, Replace};
    use TableNotExistOption::{Create, Fail};
    let door = Door::open();
    door.with_client(async |client| {
        let rows = || vec![batch(0, 1_000), batch(1_000, 1_000)];
        let error = ingest(client, command("T", Fail, Append), rows()).await.expect_err("no table");
        assert_eq!(state(&error).1, "42P01");
        assert_eq!(ingest(client, command("T", Create, Refuse), rows()).await.ok(), Some(2_000));
        let error = ingest(client, command("T", Create, Refuse), rows()).await;
        assert_eq!(state(&error.expect_err("it is there")).1, "42P07");
        assert_eq!(ingest(client, command("T", Fail, Append), rows()).await.ok(), Some(2_000));
        assert_eq!(ingest(client, command("T", Create, Append), rows()).await.ok(), Some(2_000));
        assert_eq!(numbers_of(client, "SELECT COUNT(*) FROM \"T\"").await, [6_000]);
        let few = vec![batch(0, 3)];
        assert_eq!(ingest(client, command("T", Create, Replace), few.clone()).await.ok(), Some(3));
        assert_eq!(ingest(client, command("T", Fail, Replace), few).await.ok(), Some(3));
        assert_eq!(numbers_of(client, "SELECT a FROM \"T\" ORDER BY a").await, [0, 1, 2]);
        let unspecified = command("T", TableNotExistOption::Unspecified, Append);
        assert_eq!(
            state(&ingest(client, unspecified, rows()).await.expect_err("unsaid")).1,
            "08P01"
        );
        let nowhere =
            CommandStatementIngest { catalog: Some("x".to_owned()), ..command("T", Fail, Append) };
        assert_eq!(
            state(&ingest(client, nowhere, rows()).await.expect_err("no catalog")).1,
            "3D000"
        );
    });
}

#[test]
fn an_ingestion_that_ends_early_inserts_nothing() {
    let door = Door::open();
    door.engine.execute("CREATE TABLE t (a BIGINT PRIMARY KEY, b VARCHAR)").expect("a table");
    door.with_client(async |client| {
        let options = command("t", TableNotExistOption::Fail, TableExistsOption::Append);
        let twice = vec![batch(0, 1_000), batch(500, 1_000)];
        assert_eq!(
            state(&ingest(client, options.clone(), twice).await.expect_err("twice")).1,
            "23505"
        );
        // Its client goes while it is sent.
        let sending = stream::iter([Ok(batch(0, 10))]).chain(stream::pending());
        let mut gone = door.client().await;
        let ingesting = gone.execute_ingest(options.clone(), sending);
        let waited = tokio::time::timeout(std::time::Duration::from_millis(300), ingesting).await;
        assert!(waited.is_err());
        drop(gone);
        assert_eq!(numbers_of(client, "SELECT COUNT(*) FROM t").await, [0]);
        assert_eq!(ingest(client, options, vec![batch(0, 10)]).await.ok(), Some(10));
    });
}

#[test]
fn types_are_kept_or_refused() {
    let door = Door::open();
    door.with_client(async |client| {
        let options = command("t", TableNotExistOption::Create, TableExistsOption::Fail);
        let dictionary: DictionaryArray<Int8Type> = [Some("x"), None].into_iter().collect();
        let decimals =
            Decimal128Array::from(vec![Some(-150), None]).with_precision_and_scale(20, 2);
        let moments =
            TimestampNanosecondArray::from(vec![1_000, 2_000]).with_timezone("Asia/Tokyo");
        let columns: [(_, ArrayRef, _); 3] = [
            ("text", Arc::new(dictionary), true),
            ("amount", Arc::new(decimals.expect("a type")), true),
            ("moment", Arc::new(moments), true),
        ];
        let rows = RecordBatch::try_from_iter_with_nullable(columns).expect("rows");
        assert_eq!(ingest(client, options, vec![rows]).await.ok(), Some(2));
        let sql = "SELECT COUNT(*) FROM t WHERE text = 'x' AND amount = -1.50
            AND moment = TIMESTAMP WITH TIME ZONE '1970-01-01 00:00:00.000001+00'";
        assert_eq!(numbers_of(client, sql).await, [1]);
        let between: ArrayRef = Arc::new(TimestampNanosecondArray::from(vec![1_001]));
        let between = RecordBatch::try_from_iter([("moment", between)]).expect("rows");
        let options = command("u", TableNotExistOption::Create, TableExistsOption::Fail);
        let error = ingest(client, options, vec![between]).await.expect_err("nanoseconds");
        assert!(error.to_string().contains("nanoseconds"), "{error}");
        // Nor is its table created.
        assert_eq!(
            state(&query(client, "SELECT * FROM u").await.expect_err("no table")).1,
            "42P01"
        );
    });
}

#[test]
fn a_temporary_table_is_of_its_session() {
    let door = Door::open();
    door.with_client(async |client| {
        let options = CommandStatementIngest {
            temporary: true,
            ..command("t", TableNotExistOption::Create, TableExistsOption::Fail)
        };
        assert_eq!(ingest(client, options, vec![batch(0, 2)]).await.ok(), Some(2));
        assert_eq!(numbers_of(client, "SELECT COUNT(*) FROM t").await, [2]);
        let mut other = door.client().await;
        assert!(query(&mut other, "SELECT COUNT(*) FROM t").await.is_err());
    });
}
