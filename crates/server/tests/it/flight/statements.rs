//! Statements, their rows and their errors.

use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, IntervalUnit, TimeUnit};
use arrow_flight::sql::{CommandStatementQuery, ProstMessageExt};
use arrow_flight::{Action, CancelFlightInfoRequest, FlightDescriptor};
use futures::TryStreamExt;
use prost::Message;
use tonic::Code;

use super::client::{Door, fetch, numbers, numbers_of, query, state, status};
use tonic_types::StatusExt;

#[test]
fn rows_are_those_of_the_engine() {
    let door = Door::open();
    door.with_client(async |client| {
        let sql =
            "SELECT CAST(i AS BIGINT) AS i, 'x' AS x FROM generate_series(1, 100000) AS s (i)";
        let info = client.execute(sql.to_owned(), None).await.expect("a query");
        let told = info.clone().try_decode_schema().expect("columns");
        let rows = fetch(client, info).await.expect("rows");
        assert_eq!(rows[0].schema().as_ref(), &told);
        assert_eq!(numbers(&rows), (1..=100_000).collect::<Vec<_>>());
        let none = query(client, "SELECT 1 AS a WHERE false").await.expect("no rows");
        assert!(none.iter().all(|batch| batch.num_rows() == 0));
        assert_eq!(query(client, "EXPLAIN SELECT 1").await.expect("a plan")[0].num_columns(), 1);
    });
    door.wait_for_clients(0);
}

#[test]
fn types_are_exact() {
    let door = Door::open();
    door.with_client(async |client| {
        let sql = "SELECT CAST('12345678901234567890.123456789' AS DECIMAL(38, 9)) AS d,
            INTERVAL '1 month 2 days 3 seconds' AS i, TIMESTAMP WITH TIME ZONE '2024-02-29 12:00:00.000001+00' AS z,
            DATE '2024-02-29' AS t, [1, NULL, 3] AS l, CAST('\\x00ff' AS BYTEA) AS b, CAST(NULL AS BIGINT) AS n";
        let rows = query(client, sql).await.expect("rows");
        let types: Vec<_> =
            rows[0].schema().fields().iter().map(|field| field.data_type().clone()).collect();
        assert_eq!(types[0], DataType::Decimal128(38, 9));
        assert_eq!(types[1], DataType::Interval(IntervalUnit::MonthDayNano));
        assert!(matches!(types[2], DataType::Timestamp(TimeUnit::Microsecond, Some(_))));
        assert_eq!(types[3], DataType::Date32);
        assert!(matches!(types[4], DataType::List(_)), "{:?}", types[4]);
        let decimal = rows[0].column(0).as_primitive::<arrow::datatypes::Decimal128Type>();
        assert_eq!(decimal.value_as_string(0), "12345678901234567890.123456789");
        let list = rows[0].column(4).as_list::<i32>().value(0);
        assert_eq!((list.len(), list.null_count()), (3, 1));
        assert_eq!(rows[0].column(5).as_binary::<i32>().value(0), [0, 255]);
        assert_eq!(rows[0].column(6).null_count(), 1);
    });
}

#[test]
fn changes_say_how_many_rows_they_changed_and_run_at_once() {
    let door = Door::open();
    door.with_client(async |client| {
        let update = async |client: &mut super::client::Client, sql: &str| {
            client.execute_update(sql.to_owned(), None).await
        };
        assert_eq!(update(client, "CREATE TABLE t (a BIGINT PRIMARY KEY)").await.ok(), Some(-1));
        assert_eq!(update(client, "INSERT INTO t VALUES (1), (2), (3)").await.ok(), Some(3));
        assert_eq!(update(client, "DELETE FROM t WHERE a > 1").await.ok(), Some(2));
        // Asked for its rows, a change has happened when the answer comes, whether rows are got or not.
        let info = client.execute("INSERT INTO t VALUES (7)".to_owned(), None).await;
        let info = info.expect("an insertion");
        assert_eq!((info.total_records, info.endpoint.len()), (1, 0));
        let returning = "INSERT INTO t VALUES (8) RETURNING a";
        let info = client.execute(returning.to_owned(), None).await.expect("an insertion");
        assert_eq!(numbers_of(client, "SELECT a FROM t ORDER BY a").await, [1, 7, 8]);
        assert_eq!(numbers(&fetch(client, info).await.expect("rows")), [8]);
    });
}

#[test]
fn errors_have_their_state_and_position() {
    let door = Door::open();
    door.with_client(async |client| {
        let error = query(client, "SELECT *\nFROM nothing").await.expect_err("no table");
        assert_eq!(state(&error), (Code::NotFound, "42P01".to_owned()));
        let details = status(&error).get_details_error_info().expect("details").metadata;
        let at = ["line", "column"].map(|name| details.get(name).map(String::as_str));
        assert_eq!(at, [Some("2"), Some("6")]);
        for (sql, expected) in [
            ("SELEC", (Code::InvalidArgument, "42601")),
            ("SELECT $1::BIGINT", (Code::InvalidArgument, "08P01")),
            ("COPY (SELECT 1) TO STDOUT", (Code::Unimplemented, "0A000")),
        ] {
            let error = query(client, sql).await.expect_err(sql);
            assert_eq!(state(&error), (expected.0, expected.1.to_owned()), "{sql}");
        }
        // Errors while rows are read come after those before.
        let sql = "SELECT 10 / (50000 - i) FROM generate_series(1, 100000) AS s (i)";
        let error = query(client, sql).await.expect_err("a division by zero");
        assert_eq!(state(&error).1, "22012");
        assert_eq!(query(client, "SELECT 1").await.map(|rows| rows.len()).ok(), Some(1));
    });
}

#[test]
fn a_ticket_is_used_once_and_by_its_session_alone() {
    let door = Door::open();
    door.with_client(async |client| {
        let info = client.execute("SELECT CAST(1 AS BIGINT)".to_owned(), None).await;
        let info = info.expect("a query");
        let mut other = door.client().await;
        let error = fetch(&mut other, info.clone()).await.expect_err("another session");
        assert_eq!(state(&error).0, Code::NotFound);
        assert_eq!(numbers(&fetch(client, info.clone()).await.expect("rows")), [1]);
        let error = fetch(client, info.clone()).await.expect_err("it was used");
        assert_eq!(state(&error).0, Code::NotFound);
        let mut guessed = info;
        guessed.endpoint[0].ticket = Some(arrow_flight::Ticket::new(
            arrow_flight::sql::TicketStatementQuery { statement_handle: vec![0; 16].into() }
                .as_any()
                .encode_to_vec(),
        ));
        assert!(fetch(client, guessed).await.is_err());
    });
}

#[test]
fn a_statement_is_cancelled() {
    let door = Door::open();
    door.with_client(async |client| {
        let sql = "SELECT i FROM generate_series(1, 100000000) AS s (i)";
        let info = client.execute(sql.to_owned(), None).await.expect("a query");
        let ticket = info.endpoint[0].ticket.clone().expect("a ticket");
        let mut rows = client.do_get(ticket).await.expect("rows");
        assert!(rows.try_next().await.expect("a batch").is_some());
        let request = CancelFlightInfoRequest { info: Some(info) };
        let action =
            Action { r#type: "CancelFlightInfo".to_owned(), body: request.encode_to_vec().into() };
        let answer = client.do_action(action).await.expect("an answer");
        assert_eq!(answer.try_collect::<Vec<_>>().await.expect("an answer").len(), 1);
        let left = rows.try_collect::<Vec<_>>().await;
        assert!(left.is_err(), "it ends before its last row");
    });
}

#[test]
fn columns_are_told_without_running_the_statement() {
    let door = Door::open();
    door.with_client(async |client| {
        let describe = async |client: &mut super::client::Client, sql: &str| {
            let command = CommandStatementQuery { query: sql.to_owned(), transaction_id: None };
            let descriptor = FlightDescriptor::new_cmd(command.as_any().encode_to_vec());
            let answer = client.inner_mut().get_schema(descriptor).await.expect("columns");
            arrow::datatypes::Schema::try_from(&answer.into_inner()).expect("columns")
        };
        assert_eq!(describe(client, "SELECT 1 AS a").await.field(0).name(), "a");
        assert!(describe(client, "CREATE TABLE t (a BIGINT)").await.fields().is_empty());
        assert!(query(client, "SELECT * FROM t").await.is_err());
    });
}
