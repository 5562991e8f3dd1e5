//! The changes of relations.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use alluvium::Engine;
use alluvium_server::{Server, with_catalog};
use futures::{StreamExt, TryStreamExt};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, NoTls};

use super::served::{Served, field, message, read_message, read_until_ready, served};

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

/// The fields of lines of COPY, of which the last may not be whole.
fn lines(data: &[u8]) -> Vec<Vec<String>> {
    let text = String::from_utf8_lossy(data);
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let fields = |line: &str| line.split('\t').map(str::to_owned).collect();
    whole.lines().map(fields).collect()
}

/// Copies changes until `is_enough` says so of all lines that have come.
async fn copied(
    client: &Client,
    sql: &str,
    is_enough: impl Fn(&[Vec<String>]) -> bool,
) -> Vec<Vec<String>> {
    let stream = client.copy_out(sql).await.expect("it begins");
    futures::pin_mut!(stream);
    let (mut data, patience) = (Vec::new(), Duration::from_secs(60));
    while !is_enough(&lines(&data)) {
        let next = tokio::time::timeout(patience, stream.next()).await.expect("it comes in time");
        data.extend(next.expect("it has no end").expect("data"));
    }
    lines(&data)
}

/// Adds the weights of lines with the columns epoch, weight and a key.
fn sums(lines: &[Vec<String>]) -> BTreeMap<i64, i64> {
    let mut sums = BTreeMap::new();
    for line in lines {
        let number = |place: usize| line[place].parse::<i64>().expect("a number");
        *sums.entry(number(2)).or_default() += number(1);
    }
    sums.retain(|_, sum| *sum != 0);
    sums
}

#[test]
fn copied_changes_are_the_rows_of_the_relation_also_after_a_restart_of_the_client() {
    let builder = with_catalog(Engine::builder().workers(1).history(10_000));
    let engine = builder.open_in_memory().expect("an engine");
    let running = Server::new(engine).pg(([127, 0, 0, 1], 0).into()).start().expect("a server");
    let clients =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let served = Served { running, clients: clients.expect("a runtime") };
    served.with_client(async |writer| {
        writer
            .batch_execute(
                "CREATE TABLE t (k BIGINT PRIMARY KEY); INSERT INTO t SELECT * FROM range(5)",
            )
            .await
            .expect("a table");
        let (mut reader, mut task) = served.connect().await;
        let (mut all, mut after) = (Vec::new(), None::<u64>);
        for round in 0..4_i64 {
            let (first, last) = (100 * (round + 1), 100 * (round + 1) + 20);
            let sql = match after {
                None => "COPY (SUBSCRIBE t WITH (PROGRESS = false)) TO STDOUT".to_owned(),
                Some(epoch) => {
                    format!("COPY (SUBSCRIBE t WITH (SNAPSHOT = false) AS OF {epoch}) TO STDOUT")
                }
            };
            let writes = async {
                for k in first..=last {
                    let sql =
                        format!("INSERT INTO t VALUES ({k}); DELETE FROM t WHERE k = {k} - 3");
                    writer.batch_execute(&sql).await.expect("a change");
                }
            };
            let is_last = |lines: &[Vec<String>]| {
                lines.iter().any(|line| line[2] == last.to_string() && line[1] == "1")
            };
            let (read, ()) = tokio::join!(copied(&reader, &sql, is_last), writes);
            // The connection breaks within COPY. Only epochs before the last that was seen are known to be whole.
            let seen: u64 = read.last().expect("a change")[0].parse().expect("an epoch");
            let is_whole = |line: &&Vec<String>| line[0].parse::<u64>().expect("an epoch") < seen;
            all.extend(read.iter().filter(is_whole).cloned());
            after = Some(seen - 1);
            drop(reader);
            task.abort();
            (reader, task) = served.connect().await;
        }
        let epoch = after.expect("an epoch");
        let sql = format!("COPY (SUBSCRIBE t WITH (SNAPSHOT = false) AS OF {epoch}) TO STDOUT");
        writer.batch_execute("INSERT INTO t VALUES (9999)").await.expect("a row");
        let end = |lines: &[Vec<String>]| lines.iter().any(|line| line[2] == "9999");
        all.extend(copied(&reader, &sql, end).await);
        let rows = writer.query("SELECT k FROM t", &[]).await.expect("rows");
        let rows: BTreeMap<i64, i64> = rows.iter().map(|row| (row.get(0), 1)).collect();
        assert_eq!(sums(&all), rows);
        // The rows of an epoch and what came after it.
        let sql = format!("COPY (SUBSCRIBE t AS OF {epoch}) TO STDOUT");
        let (reader, _task) = served.connect().await;
        let read = copied(&reader, &sql, |lines| sums(lines) == rows).await;
        assert_eq!(read[0][0], epoch.to_string());
    });
}

#[test]
fn options_say_what_is_subscribed_to() {
    let served = served();
    served.with_client(async |writer| {
        writer
            .batch_execute("CREATE TABLE t (k BIGINT PRIMARY KEY); INSERT INTO t VALUES (1)")
            .await
            .expect("a table");
        writer.batch_execute("CREATE VIEW plain AS SELECT k FROM t").await.expect("a view");
        for relation in ["t", "plain"] {
            let (reader, _task) = served.connect().await;
            let sql = format!("COPY (SUBSCRIBE {relation} WITH (SNAPSHOT = false)) TO STDOUT");
            let write = async {
                tokio::time::sleep(Duration::from_millis(500)).await;
                writer.batch_execute("INSERT INTO t VALUES (2)").await.expect("a row");
                writer.batch_execute("DELETE FROM t WHERE k = 2").await.expect("a change");
            };
            let (read, ()) = tokio::join!(copied(&reader, &sql, |lines| lines.len() == 2), write);
            let keys: Vec<&str> = read.iter().map(|line| line[2].as_str()).collect();
            assert_eq!(keys, ["2", "2"], "{relation}");
        }
        let (reader, _task) = served.connect().await;
        let sql = "COPY (SUBSCRIBE t WITH (PROGRESS)) TO STDOUT";
        let write = async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            writer.batch_execute("INSERT INTO t VALUES (3)").await.expect("a row");
        };
        let is_told = |lines: &[Vec<String>]| {
            let row = lines.iter().position(|line| line[3] == "3");
            row.is_some_and(|row| lines[row..].iter().any(|line| line[1] == "t"))
        };
        let (read, ()) = tokio::join!(copied(&reader, sql, is_told), write);
        let epoch = |line: &Vec<String>| line[0].parse::<u64>().expect("an epoch");
        assert_eq!((read[0][1].as_str(), read[0][2].as_str()), ("t", "\\N"));
        // No change is of an epoch that was said to be over.
        let mut told = 0;
        for line in &read {
            assert!(epoch(line) >= told, "{read:?}");
            if line[1] == "t" {
                told = epoch(line);
            }
        }
        let client = served.connect().await.0;
        for (sql, expected) in [
            ("SUBSCRIBE t AS OF 1000000", "55000"),
            ("SUBSCRIBE plain AS OF 1", "55000"),
            ("SUBSCRIBE t WITH (SNAPSHOT = 7)", "22023"),
            ("COPY (SUBSCRIBE t) TO 'file'", "0A000"),
            ("COPY (SUBSCRIBE nothing) TO STDOUT", "42P01"),
        ] {
            let error = client.batch_execute(sql).await.expect_err(sql);
            assert_eq!(error.code().map(|code| code.code()), Some(expected), "{sql}: {error:?}");
        }
    });
}

#[test]
fn copied_changes_have_the_formats_of_copy() {
    let served = served();
    served.with_client(async |client| {
        client
            .batch_execute(
                "CREATE SCHEMA s; CREATE TABLE s.t (k BIGINT, v VARCHAR); \
                 INSERT INTO s.t VALUES (1, 'a,b'); SET search_path = s",
            )
            .await
            .expect("a table");
        let data = async |options: &str| {
            let sql = format!("COPY (SUBSCRIBE t) TO STDOUT {options}");
            let stream = client.copy_out(&sql).await.expect("it begins");
            futures::pin_mut!(stream);
            let mut data = stream.next().await.expect("data").expect("data").to_vec();
            if options.contains("HEADER") {
                data.extend(stream.next().await.expect("data").expect("data"));
            }
            client.cancel_token().cancel_query(NoTls).await.expect("a request");
            let error = stream.next().await.expect("an end").expect_err("it is cancelled");
            assert_eq!(error.code(), Some(&SqlState::QUERY_CANCELED));
            data
        };
        let text = String::from_utf8(data("(FORMAT csv, HEADER)").await).expect("text");
        let mut csv = text.lines();
        assert_eq!(csv.next(), Some("epoch,weight,k,v"));
        assert!(csv.next().is_some_and(|line| line.ends_with(",1,1,\"a,b\"")), "{text}");
        let binary = data("WITH (FORMAT binary)").await;
        assert!(binary.starts_with(b"PGCOPY\n\xff\r\n\0"));
        assert!(binary.ends_with(b"\0\0\0\x03a,b"));
        // Names are completed in those of queries as well.
        for sql in ["COPY t TO STDOUT", "COPY (SELECT * FROM t) TO STDOUT"] {
            let stream = client.copy_out(sql).await.expect("it begins");
            let data: Vec<_> = stream.try_collect().await.expect("data");
            assert_eq!(data.concat(), b"1\ta,b\n", "{sql}");
        }
    });
}

#[test]
fn changes_end_when_the_server_stops() {
    let served = served();
    let mut stream = served.raw_logged_in();
    stream.write_all(&message(b'Q', b"CREATE TABLE t (k BIGINT)\0")).expect("a query");
    read_until_ready(&mut stream);
    stream.write_all(&message(b'Q', b"COPY (SUBSCRIBE t) TO STDOUT\0")).expect("a query");
    assert_eq!(read_message(&mut stream).0, b'H');
    let begin = Instant::now();
    let Served { running, clients } = served;
    running.stop(Duration::from_secs(30));
    assert!(begin.elapsed() < Duration::from_secs(10));
    let (kind, body) = read_message(&mut stream);
    assert_eq!((kind, field(&body, b'C').as_deref()), (b'E', Some("57P01")));
    drop(clients);
}
