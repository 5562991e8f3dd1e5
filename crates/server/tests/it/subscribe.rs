//! The changes of relations.

use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use tokio_postgres::NoTls;

use super::served::{field, message, read_message, read_until_ready, served};

/// The fields of a row.
fn fields(body: &[u8]) -> Vec<String> {
    let mut rest = &body[2..];
    let mut fields = Vec::new();
    while let [a, b, c, d, after @ ..] = rest {
        let length = i32::from_be_bytes([*a, *b, *c, *d]).max(0) as usize;
        fields.push(String::from_utf8_lossy(&after[..length]).into_owned());
        rest = &after[length..];
    }
    fields
}

/// The next row: its weight and what comes after it.
fn row(stream: &mut TcpStream) -> (String, Vec<String>) {
    let (kind, body) = read_message(stream);
    assert_eq!(kind, b'D');
    let fields = fields(&body);
    assert!(fields[0].parse::<u64>().is_ok(), "{fields:?}");
    (fields[1].clone(), fields[2..].to_vec())
}

#[test]
fn changes_come_as_rows_until_the_client_cancels() {
    let served = served();
    served.with_client(async |client| {
        client
            .batch_execute(
                "CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT); INSERT INTO t VALUES (1, 10); \
                 CREATE MATERIALIZED VIEW total AS SELECT SUM(v) AS s FROM t",
            )
            .await
            .expect("a view");
        let mut stream = served.raw_logged_in();
        stream.write_all(&message(b'Q', b"SUBSCRIBE total\0")).expect("a query");
        let (kind, body) = read_message(&mut stream);
        assert_eq!((kind, body[..2].to_vec()), (b'T', vec![0, 3]));
        assert_eq!(row(&mut stream), ("1".to_owned(), vec!["10".to_owned()]));
        client.batch_execute("INSERT INTO t VALUES (2, 5)").await.expect("a row");
        let mut changes = vec![row(&mut stream), row(&mut stream)];
        changes.sort();
        let change = |weight: &str, sum: &str| (weight.to_owned(), vec![sum.to_owned()]);
        assert_eq!(changes, [change("-1", "10"), change("1", "15")]);
        // The stream ends with its relation.
        client.batch_execute("DROP MATERIALIZED VIEW total").await.expect("no view");
        let rest = read_until_ready(&mut stream);
        assert_eq!(rest.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), b"CZ");
    });
}

#[test]
fn a_subscription_can_be_cancelled() {
    let served = served();
    served.with_client(async |client| {
        client.batch_execute("CREATE TABLE t (k BIGINT)").await.expect("a table");
        let token = client.cancel_token();
        let (done, ()) = tokio::join!(client.simple_query("SUBSCRIBE t"), async {
            tokio::time::sleep(Duration::from_millis(200)).await;
            token.cancel_query(NoTls).await.expect("a request");
        });
        assert_eq!(
            done.err().and_then(|error| error.code().cloned()).map(|code| code.code().to_owned()),
            Some("57014".to_owned())
        );
        client.batch_execute("SELECT 1").await.expect("an answer");
    });
}

#[test]
fn a_client_that_does_not_read_holds_up_nobody() {
    let served = served();
    served.with_client(async |client| {
        client.batch_execute("CREATE TABLE t (k BIGINT, v VARCHAR)").await.expect("a table");
        let mut stalled = served.raw_logged_in();
        stalled.write_all(&message(b'Q', b"SUBSCRIBE t\0")).expect("a query");
        // Much more than its socket and 1,024 waiting changes take.
        let insert = client
            .prepare("INSERT INTO t VALUES ($1, repeat('x', 10000))")
            .await
            .expect("a statement");
        for k in 0..3_000_i64 {
            client.execute(&insert, &[&k]).await.expect("a row");
        }
        let messages = read_until_ready(&mut stalled);
        let error = messages.iter().find(|(kind, _)| *kind == b'E').expect("it is cut off");
        assert_eq!(field(&error.1, b'C').as_deref(), Some("55000"));
    });
}
