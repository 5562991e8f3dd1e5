//! Prepared statements.

use std::sync::Arc;

use arrow::array::{ArrayRef, DictionaryArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Int32Type};
use arrow_flight::FlightData;
use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::sql::{CommandPreparedStatementUpdate, DoPutUpdateResult, ProstMessageExt};
use futures::{TryStreamExt, stream};
use prost::Message;
use tonic::Code;

use super::client::{Client, Door, batch, fetch, numbers, numbers_of, query, state};

const TABLE: &str = "CREATE TABLE t (a BIGINT PRIMARY KEY, b VARCHAR)";

fn door() -> Door {
    let door = Door::open();
    door.engine.execute(TABLE).expect("a table");
    door
}

fn one(value: i64) -> RecordBatch {
    let column: ArrayRef = Arc::new(Int64Array::from(vec![value]));
    RecordBatch::try_from_iter([("0", column)]).expect("a row")
}

#[test]
fn values_are_bound_as_rows() {
    let door = door();
    door.with_client(async |client| {
        let mut insert =
            client.prepare("INSERT INTO t VALUES ($1, $2)".to_owned(), None).await.expect("one");
        let types: Vec<_> = insert
            .parameter_schema()
            .expect("parameters")
            .fields()
            .iter()
            .map(|field| field.data_type().clone())
            .collect();
        assert_eq!(types, [DataType::Int64, DataType::Utf8]);
        assert!(insert.dataset_schema().expect("columns").fields().is_empty());
        insert.set_parameters(batch(0, 1_000)).expect("values");
        assert_eq!(insert.execute_update().await.ok(), Some(1_000));
        // All rows or none.
        insert.set_parameters(batch(999, 10)).expect("values");
        assert_eq!(state(&insert.execute_update().await.expect_err("a row is there")).1, "23505");
        assert_eq!(numbers_of(client, "SELECT COUNT(*) FROM t").await, [1_000]);
        insert.close().await.expect("closed");
        let mut select =
            client.prepare("SELECT a FROM t WHERE a = $1".to_owned(), None).await.expect("one");
        for value in [3, 5] {
            select.set_parameters(one(value)).expect("a value");
            let info = select.execute().await.expect("a query");
            assert_eq!(numbers(&fetch(client, info).await.expect("rows")), [value]);
        }
        let several: ArrayRef = Arc::new(Int64Array::from(vec![7, 1_000_000, 9]));
        let several = RecordBatch::try_from_iter([("0", several)]).expect("rows");
        select.set_parameters(several).expect("values");
        let info = select.execute().await.expect("a query");
        assert_eq!(numbers(&fetch(client, info).await.expect("rows")), [7, 9]);
    });
}

#[test]
fn values_in_dictionaries_are_texts_and_wrong_ones_are_refused() {
    let door = door();
    door.with_client(async |client| {
        let mut insert =
            client.prepare("INSERT INTO t VALUES ($1, $2)".to_owned(), None).await.expect("one");
        let numbers: ArrayRef = Arc::new(StringArray::from(vec!["17"]));
        let texts: DictionaryArray<Int32Type> = [Some("x")].into_iter().collect();
        let row: [(_, ArrayRef); 2] = [("0", numbers), ("1", Arc::new(texts))];
        insert.set_parameters(RecordBatch::try_from_iter(row).expect("a row")).expect("values");
        assert_eq!(insert.execute_update().await.ok(), Some(1));
        assert_eq!(numbers_of(client, "SELECT a FROM t WHERE b = 'x'").await, [17]);
        insert.set_parameters(one(1)).expect("values");
        assert_eq!(state(&insert.execute_update().await.expect_err("one is missing")).1, "08P01");
    });
}

/// Runs an update with rows that come as the client sends them.
async fn update(client: &mut Client, handle: &[u8], rows: Vec<RecordBatch>) -> i64 {
    let command =
        CommandPreparedStatementUpdate { prepared_statement_handle: handle.to_vec().into() };
    let descriptor = arrow_flight::FlightDescriptor::new_cmd(command.as_any().encode_to_vec());
    let encoder = FlightDataEncoderBuilder::new().with_flight_descriptor(Some(descriptor));
    let data: Vec<FlightData> = encoder
        .build(stream::iter(rows.into_iter().map(Ok)))
        .try_collect()
        .await
        .expect("messages");
    let mut answer = client.do_put(stream::iter(data)).await.expect("an answer");
    let answer = answer.message().await.expect("an answer").expect("a message");
    DoPutUpdateResult::decode(&*answer.app_metadata).expect("a count").record_count
}

#[test]
fn rows_of_values_are_taken_as_they_come() {
    let door = door();
    door.with_client(async |client| {
        let action = arrow_flight::sql::ActionCreatePreparedStatementRequest {
            query: "INSERT INTO t VALUES ($1, $2)".to_owned(),
            transaction_id: None,
        };
        let action = arrow_flight::Action {
            r#type: "CreatePreparedStatement".to_owned(),
            body: action.as_any().encode_to_vec().into(),
        };
        let mut answer = client.do_action(action).await.expect("an answer");
        let answer = answer.message().await.expect("an answer").expect("a statement");
        let any = arrow_flight::sql::Any::decode(&*answer.body).expect("a statement");
        let prepared: arrow_flight::sql::ActionCreatePreparedStatementResult =
            any.unpack().expect("a statement").expect("a statement");
        let handle = prepared.prepared_statement_handle;
        let rows = (0..10).map(|number| batch(number * 100, 100)).collect();
        assert_eq!(update(client, &handle, rows).await, 1_000);
        assert_eq!(numbers_of(client, "SELECT COUNT(*) FROM t").await, [1_000]);
    });
}

#[test]
fn a_statement_is_of_its_session_and_they_are_limited() {
    let door = door();
    door.with_client(async |client| {
        let mut kept = Vec::new();
        for _ in 0..1_000 {
            kept.push(client.prepare("SELECT 1".to_owned(), None).await.expect("a statement"));
        }
        let error = client.prepare("SELECT 1".to_owned(), None).await.expect_err("one too many");
        assert!(error.to_string().contains("1000"), "{error}");
        assert!(query(client, "SELECT 1").await.is_ok());
        kept.pop().expect("one").close().await.expect("closed");
        assert!(client.prepare("SELECT 1".to_owned(), None).await.is_ok());
        let command = arrow_flight::sql::CommandPreparedStatementQuery {
            prepared_statement_handle: vec![1; 16].into(),
        };
        let descriptor = arrow_flight::FlightDescriptor::new_cmd(command.as_any().encode_to_vec());
        let error = client.inner_mut().get_flight_info(descriptor).await.expect_err("no such one");
        assert_eq!(error.code(), Code::NotFound);
    });
}
