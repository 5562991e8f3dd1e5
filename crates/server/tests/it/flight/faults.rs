//! What clients do that they should not.

use std::time::Duration;

use alluvium_server::Limits;
use arrow_flight::sql::{
    CommandStatementIngest, CommandStatementUpdate, ProstMessageExt, TableDefinitionOptions,
    TableExistsOption, TableNotExistOption,
};
use arrow_flight::{Action, FlightData, FlightDescriptor, SchemaAsIpc, Ticket};
use bytes::Bytes;
use futures::{TryStreamExt, stream};
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tonic::Code;

use super::client::{Door, batch, numbers_of, query, state};

#[test]
fn garbage_is_refused_and_harms_nobody() {
    let door = Door::open();
    door.with_client(async |client| {
        for length in [0_usize, 1, 10, 1_000] {
            let bytes: Vec<u8> = (0..length).map(|_| fastrand::u8(..)).collect();
            assert!(client.do_get(Ticket::new(bytes.clone())).await.is_err());
            let descriptor = FlightDescriptor::new_cmd(bytes.clone());
            assert!(client.inner_mut().get_flight_info(descriptor.clone()).await.is_err());
            assert!(client.inner_mut().get_schema(descriptor.clone()).await.is_err());
            for name in
                ["CancelFlightInfo", "SetSessionOptions", "BeginSavepoint", "EndTransaction"]
            {
                let action = Action { r#type: name.to_owned(), body: bytes.clone().into() };
                if let Ok(answer) = client.do_action(action).await {
                    let _ = answer.try_collect::<Vec<_>>().await;
                }
            }
            let data = FlightData {
                flight_descriptor: Some(descriptor),
                data_header: bytes.clone().into(),
                ..Default::default()
            };
            assert!(client.do_put(stream::iter([data])).await.is_err());
        }
        assert!(client.do_put(stream::iter(Vec::<FlightData>::new())).await.is_err());
        assert_eq!(query(client, "SELECT 1").await.map(|rows| rows.len()).ok(), Some(1));
    });
    door.block_on(async {
        for bytes in [
            &b"GET / HTTP/1.1\r\n\r\n"[..],
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\ngarbage garbage",
            b"\0",
        ] {
            let mut stream =
                tokio::net::TcpStream::connect(door.address()).await.expect("a stream");
            stream.write_all(bytes).await.expect("bytes");
            let _ = stream.shutdown().await;
            let mut answer = Vec::new();
            let _ = tokio::time::timeout(Duration::from_secs(15), stream.read_to_end(&mut answer))
                .await;
        }
    });
    door.wait_for_clients(0);
}

#[test]
fn who_says_nothing_is_cut_off() {
    let mut limits = Limits::default();
    limits.login_time = Duration::from_millis(200);
    let door = Door::with(limits, None, "");
    door.block_on(async {
        for bytes in [&b""[..], b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0"] {
            let mut stream =
                tokio::net::TcpStream::connect(door.address()).await.expect("a stream");
            stream.write_all(bytes).await.expect("bytes");
            let mut answer = Vec::new();
            let read = stream.read_to_end(&mut answer);
            assert!(tokio::time::timeout(Duration::from_secs(10), read).await.is_ok());
        }
    });
}

/// A command to insert rows into a table that is there.
fn append() -> FlightDescriptor {
    let command = CommandStatementIngest {
        table_definition_options: Some(TableDefinitionOptions {
            if_not_exist: TableNotExistOption::Fail.into(),
            if_exists: TableExistsOption::Append.into(),
        }),
        table: "t".to_owned(),
        ..Default::default()
    };
    FlightDescriptor::new_cmd(command.as_any().encode_to_vec())
}

#[test]
fn damaged_rows_are_refused() {
    let door = Door::open();
    door.engine.execute("CREATE TABLE t (a BIGINT, b VARCHAR)").expect("a table");
    door.with_client(async |client| {
        let rows = batch(0, 100);
        let options = arrow::ipc::writer::IpcWriteOptions::default();
        let mut first: FlightData = SchemaAsIpc::new(&rows.schema(), &options).into();
        first.flight_descriptor = Some(append());
        let encoder = arrow_flight::encode::FlightDataEncoderBuilder::new();
        let sound: Vec<FlightData> =
            encoder.build(stream::iter([Ok(rows)])).try_collect().await.expect("messages");
        let sound = sound.last().expect("rows").clone();
        for round in 0..400 {
            let mut header = sound.data_header.to_vec();
            let mut body = sound.data_body.to_vec();
            match round % 3 {
                0 => body.truncate(fastrand::usize(..body.len())),
                1 => {
                    let at = fastrand::usize(..header.len());
                    header[at] = fastrand::u8(..);
                }
                _ => {
                    let at = fastrand::usize(..body.len());
                    body[at] = fastrand::u8(..);
                }
            }
            let damaged = FlightData {
                data_header: header.into(),
                data_body: body.into(),
                ..Default::default()
            };
            // Some are rows, and others are refused.
            if let Ok(answer) = client.do_put(stream::iter([first.clone(), damaged])).await {
                let _ = answer.try_collect::<Vec<_>>().await;
            }
        }
        assert!(query(client, "SELECT COUNT(*) FROM t").await.is_ok());
    });
}

#[test]
fn a_statement_of_100_mb_and_a_row_of_1_mb_are_taken() {
    let door = Door::open();
    door.with_client(async |client| {
        let sql = format!("SELECT CAST(1 AS BIGINT) AS a -- {}", "x".repeat(100 << 20));
        assert_eq!(numbers_of(client, &sql).await, [1]);
        let rows =
            query(client, "SELECT repeat('x', 1048576) AS x FROM generate_series(1, 20)").await;
        let rows = rows.expect("rows");
        assert_eq!(rows.iter().map(|batch| batch.num_rows()).sum::<usize>(), 20);
        let sql = format!("SELECT '{}'", "x".repeat(130 << 20));
        let error = query(client, &sql).await.expect_err("beyond the limit").to_string();
        assert!(error.contains("message"), "{}", &error[..error.len().min(300)]);
    });
}

#[test]
fn who_does_not_read_holds_little_and_not_for_ever() {
    let mut limits = Limits::default();
    limits.idle_in_transaction = Duration::from_secs(2);
    let door = Door::with(limits, None, "");
    door.with_client(async |client| {
        let sql = "SELECT i, i AS j, i AS k FROM generate_series(1, 10000000) AS s (i)";
        let mut unread = Vec::new();
        for _ in 0..4 {
            // What one does not read would hold up the others of its connection.
            let mut other = door.client().await;
            let info = other.execute(sql.to_owned(), None).await.expect("a query");
            let ticket = info.endpoint[0].ticket.clone().expect("a ticket");
            let mut rows = other.do_get(ticket).await.expect("rows");
            assert!(rows.try_next().await.expect("a batch").is_some());
            unread.push((other, rows));
        }
        tokio::time::sleep(Duration::from_secs(4)).await;
        for (_client, mut rows) in unread {
            let mut made = 0;
            let error = loop {
                match rows.try_next().await {
                    Ok(Some(batch)) => made += batch.num_rows(),
                    Ok(None) => panic!("it was not cut off"),
                    Err(error) => break error,
                }
            };
            assert_eq!(state(&error).0, Code::Aborted);
            // A few messages of 1 MiB, of rows of 24 bytes.
            assert!(made < 500_000, "{made} rows were made that nobody had asked for");
        }
        assert!(query(client, "SELECT 1").await.is_ok());
    });
}

#[test]
fn a_client_that_goes_ends_what_it_has_begun() {
    let door = Door::open();
    door.block_on(async {
        let mut client = door.client().await;
        let sql = "SELECT COUNT(*) FROM generate_series(1, 100000) a, generate_series(1, 100000) b";
        let info = client.execute(sql.to_owned(), None).await.expect("a query");
        let ticket = info.endpoint[0].ticket.clone().expect("a ticket");
        let asking = client.do_get(ticket);
        assert!(tokio::time::timeout(Duration::from_millis(300), asking).await.is_err());
        // The session is there for the next statement.
        assert_eq!(numbers_of(&mut client, "SELECT CAST(1 AS BIGINT)").await, [1]);
    });
    door.wait_for_clients(0);
}

#[test]
fn a_command_with_nothing_behind_it_is_answered() {
    let door = Door::open();
    door.with_client(async |client| {
        let command = CommandStatementUpdate { query: String::new(), transaction_id: None };
        let data = FlightData {
            flight_descriptor: Some(FlightDescriptor::new_cmd(command.as_any().encode_to_vec())),
            ..Default::default()
        };
        assert!(client.do_put(stream::iter([data])).await.is_err());
        let data = FlightData { flight_descriptor: Some(append()), ..Default::default() };
        let error = client.do_put(stream::iter([data])).await.expect_err("no columns");
        assert_eq!(state(&error).1, "08P01");
        let empty = FlightDescriptor::new_cmd(Bytes::new());
        assert!(client.inner_mut().get_flight_info(empty).await.is_err());
    });
}
