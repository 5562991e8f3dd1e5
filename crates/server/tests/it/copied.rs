//! COPY: rows as data.

use std::io::Write;

use bytes::Bytes;
use futures::{SinkExt, TryStreamExt};
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use super::served::{message, read_message, read_until_ready, served};

async fn count(client: &Client) -> i64 {
    client.query_one("SELECT COUNT(*) FROM t", &[]).await.expect("a count").get(0)
}

#[test]
fn data_may_be_cut_anywhere() {
    served().with_client(async |client| {
        client
            .batch_execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v VARCHAR)")
            .await
            .expect("a table");
        let data: String = (0..5_000).map(|k| format!("{k}\tä row {k}\n")).collect();
        let sink = client.copy_in("COPY t FROM STDIN").await.expect("it begins");
        futures::pin_mut!(sink);
        for piece in data.as_bytes().chunks(97) {
            sink.send(Bytes::copy_from_slice(piece)).await.expect("it is taken");
        }
        assert_eq!(sink.finish().await.expect("rows"), 5_000);
        assert_eq!(count(client).await, 5_000);
        let given = client.copy_out("COPY t TO STDOUT").await.expect("it begins");
        let pieces: Vec<Bytes> = given.try_collect().await.expect("rows");
        let mut lines: Vec<&[u8]> = Vec::new();
        let whole = pieces.concat();
        lines.extend(whole.split_inclusive(|byte| *byte == b'\n'));
        let mut expected: Vec<&[u8]> =
            data.as_bytes().split_inclusive(|byte| *byte == b'\n').collect();
        lines.sort_unstable();
        expected.sort_unstable();
        assert!(lines == expected);
    });
}

#[test]
fn binary_data_comes_back_as_it_went() {
    served().with_client(async |client| {
        client
            .batch_execute("CREATE TABLE t (k BIGINT, d DECIMAL(20, 5), at TIMESTAMP, v VARCHAR, l INTEGER[])")
            .await
            .expect("a table");
        client
            .batch_execute("INSERT INTO t SELECT k, k / 7.0, TIMESTAMP '2026-11-28 00:00:00', 'row ' || k, [1, NULL, 3] FROM generate_series(1, 3000) s(k)")
            .await
            .expect("rows");
        let given = client.copy_out("COPY (SELECT * FROM t) TO STDOUT (FORMAT binary)").await.expect("it begins");
        let data: Vec<Bytes> = given.try_collect().await.expect("rows");
        client.batch_execute("CREATE TABLE u (k BIGINT, d DECIMAL(20, 5), at TIMESTAMP, v VARCHAR, l INTEGER[])").await.expect("a table");
        let sink = client.copy_in("COPY u FROM STDIN (FORMAT binary)").await.expect("it begins");
        futures::pin_mut!(sink);
        for piece in data {
            sink.send(piece).await.expect("it is taken");
        }
        assert_eq!(sink.finish().await.expect("rows"), 3_000);
        let differ = client
            .query_one("SELECT COUNT(*) FROM (SELECT * FROM t EXCEPT SELECT * FROM u)", &[])
            .await
            .expect("a count");
        assert_eq!(differ.get::<_, i64>(0), 0);
    });
}

#[test]
fn a_row_that_is_refused_leaves_nothing() {
    served().with_client(async |client| {
        client.batch_execute("CREATE TABLE t (k BIGINT PRIMARY KEY)").await.expect("a table");
        let sink = client.copy_in("COPY t FROM STDIN").await.expect("it begins");
        futures::pin_mut!(sink);
        sink.send(Bytes::from_static(b"1\n2\nthree\n4\n")).await.expect("it is sent");
        let error = sink.finish().await.expect_err("no number");
        assert_eq!(error.code(), Some(&SqlState::INVALID_TEXT_REPRESENTATION));
        assert_eq!(count(client).await, 0);
        let sink = client.copy_in("COPY t FROM STDIN").await.expect("it begins");
        futures::pin_mut!(sink);
        sink.send(Bytes::from_static(b"1\n2\n1\n")).await.expect("it is sent");
        let error = sink.finish().await.expect_err("a duplicate");
        assert_eq!(error.code(), Some(&SqlState::UNIQUE_VIOLATION));
        assert_eq!(count(client).await, 0);
    });
}

#[test]
fn a_client_that_gives_up_or_goes_leaves_nothing() {
    let served = served();
    served.with_client(async |client| {
        client.batch_execute("CREATE TABLE t (k BIGINT PRIMARY KEY)").await.expect("a table");
        let mut gives_up = served.raw_logged_in();
        gives_up.write_all(&message(b'Q', b"COPY t FROM STDIN\0")).expect("a query");
        assert_eq!(read_message(&mut gives_up).0, b'G');
        gives_up.write_all(&message(b'd', b"1\n")).expect("data");
        gives_up.write_all(&message(b'f', b"no more\0")).expect("it gives up");
        let kinds: Vec<u8> =
            read_until_ready(&mut gives_up).iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, b"EZ");
        let mut goes = served.raw_logged_in();
        goes.write_all(&message(b'Q', b"COPY t FROM STDIN\0")).expect("a query");
        assert_eq!(read_message(&mut goes).0, b'G');
        goes.write_all(&message(b'd', b"1\n2\n")).expect("data");
        drop((goes, gives_up));
        served.wait_for_clients(1);
        assert_eq!(count(client).await, 0);
        // Nothing is locked.
        client.batch_execute("INSERT INTO t VALUES (1), (2)").await.expect("rows");
    });
}
