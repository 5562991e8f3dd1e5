//! LISTEN: notifications of the epochs that change a relation.

use std::io::Write;
use std::time::Duration;

use futures::StreamExt;
use futures::channel::mpsc::{UnboundedReceiver, unbounded};
use tokio_postgres::error::SqlState;
use tokio_postgres::{AsyncMessage, Client, NoTls};

use super::secure::{log_in, quick, with_roles};
use super::served::{Served, message, read_message, read_until_ready, served};

/// How long something takes that should come at once, and how long nothing has to come.
const PATIENCE: Duration = Duration::from_secs(30);
const SILENCE: Duration = Duration::from_millis(400);

/// A client, and what it is told.
async fn listener(served: &Served) -> (Client, UnboundedReceiver<AsyncMessage>) {
    let (client, mut connection) = served.config().connect(NoTls).await.expect("a connection");
    let (sender, told) = unbounded();
    tokio::spawn(async move {
        let mut messages =
            futures::stream::poll_fn(move |context| connection.poll_message(context));
        while let Some(Ok(message)) = messages.next().await {
            if sender.unbounded_send(message).is_err() {
                break;
            }
        }
    });
    (client, told)
}

/// The next notification: its channel and epoch.
async fn next(told: &mut UnboundedReceiver<AsyncMessage>) -> (String, u64) {
    let next = tokio::time::timeout(PATIENCE, told.next()).await.expect("it comes in time");
    match next.expect("the connection is there") {
        AsyncMessage::Notification(notification) => {
            assert_eq!(notification.process_id() as u32, std::process::id());
            let epoch = notification.payload().parse().expect("an epoch");
            (notification.channel().to_owned(), epoch)
        }
        AsyncMessage::Notice(notice) => panic!("{notice}"),
        _ => panic!("another message"),
    }
}

/// The message of the next notice.
async fn notice(told: &mut UnboundedReceiver<AsyncMessage>) -> String {
    let next = tokio::time::timeout(PATIENCE, told.next()).await.expect("it comes in time");
    match next.expect("the connection is there") {
        AsyncMessage::Notice(notice) => notice.message().to_owned(),
        _ => panic!("no notice"),
    }
}

async fn is_silent(told: &mut UnboundedReceiver<AsyncMessage>) -> bool {
    tokio::time::timeout(SILENCE, told.next()).await.is_err()
}

async fn code(client: &Client, sql: &str) -> Option<SqlState> {
    client.batch_execute(sql).await.err().and_then(|error| error.code().cloned())
}

const TABLES: &str = "CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT); CREATE TABLE u (k BIGINT); \
     CREATE MATERIALIZED VIEW large AS SELECT k FROM t WHERE v > 10";

#[test]
fn each_epoch_that_changes_the_relation_is_told_and_no_other() {
    let served = served();
    served.with_client(async |writer| {
        writer.batch_execute(TABLES).await.expect("tables");
        let (client, mut told) = listener(&served).await;
        client.batch_execute("LISTEN large").await.expect("it listens");
        // Without a statement of the client.
        for (k, v) in [(1, 20), (2, 5), (3, 30)] {
            let insert = format!("INSERT INTO t VALUES ({k}, {v}); INSERT INTO u VALUES (1)");
            writer.batch_execute(&insert).await.expect("rows");
        }
        let first = next(&mut told).await;
        let second = next(&mut told).await;
        assert!(first.0 == "large" && second.0 == "large" && first.1 < second.1);
        assert!(is_silent(&mut told).await);
        // What it does itself as well.
        client.batch_execute("DELETE FROM t WHERE k = 1").await.expect("a change");
        assert!(next(&mut told).await.1 > second.1);
        client.batch_execute("LISTEN t; LISTEN t; UNLISTEN large").await.expect("it listens");
        writer.batch_execute("INSERT INTO t VALUES (4, 40)").await.expect("a row");
        assert_eq!(next(&mut told).await.0, "t");
        client.batch_execute("UNLISTEN *; UNLISTEN nothing").await.expect("it does not");
        writer.batch_execute("INSERT INTO t VALUES (5, 50)").await.expect("a row");
        assert!(is_silent(&mut told).await);
        // Prepared statements listen too.
        client.execute("LISTEN u", &[]).await.expect("it listens");
        writer.batch_execute("INSERT INTO u VALUES (5)").await.expect("a row");
        assert_eq!(next(&mut told).await.0, "u");
        client.batch_execute("DISCARD ALL").await.expect("it does not");
        writer.batch_execute("INSERT INTO u VALUES (6)").await.expect("a row");
        assert!(is_silent(&mut told).await);
    });
}

#[test]
fn what_cannot_be_listened_to_is_an_error() {
    served().with_client(async |client| {
        client.batch_execute("CREATE TABLE t (k BIGINT)").await.expect("a table");
        assert_eq!(code(client, "LISTEN nothing").await, Some(SqlState::UNDEFINED_TABLE));
        let refused = Some(SqlState::FEATURE_NOT_SUPPORTED);
        assert_eq!(code(client, "NOTIFY t").await, refused);
        assert_eq!(code(client, "NOTIFY t, 'text'").await, refused);
        client.batch_execute("BEGIN").await.expect("a transaction");
        assert!(code(client, "SELECT nothing").await.is_some());
        let aborted = Some(SqlState::IN_FAILED_SQL_TRANSACTION);
        assert_eq!(code(client, "UNLISTEN *").await, aborted);
        assert_eq!(code(client, "LISTEN t").await, aborted);
        client.batch_execute("ROLLBACK").await.expect("the end");
    });
}

#[test]
fn transactions_are_told_at_their_end_and_what_they_roll_back_counts_not() {
    let served = served();
    served.with_client(async |writer| {
        writer.batch_execute(TABLES).await.expect("tables");
        let insert = |k: i64| format!("INSERT INTO u VALUES ({k})");
        let (client, mut told) = listener(&served).await;
        client.batch_execute("BEGIN; LISTEN u; ROLLBACK").await.expect("nothing");
        writer.batch_execute(&insert(1)).await.expect("a row");
        assert!(is_silent(&mut told).await);
        client.batch_execute("BEGIN; LISTEN u; COMMIT").await.expect("it listens");
        writer.batch_execute(&insert(2)).await.expect("a row");
        let first = next(&mut told).await;
        client.batch_execute("BEGIN; SELECT 1; UNLISTEN u").await.expect("a transaction");
        writer.batch_execute(&insert(3)).await.expect("a row");
        assert!(is_silent(&mut told).await);
        client.batch_execute("ROLLBACK").await.expect("the end");
        assert!(next(&mut told).await.1 > first.1);
        // A failed transaction is rolled back by COMMIT.
        client.batch_execute("BEGIN; UNLISTEN u").await.expect("a transaction");
        assert!(code(&client, "SELECT nothing").await.is_some());
        client.batch_execute("COMMIT").await.expect("the end");
        writer.batch_execute(&insert(4)).await.expect("a row");
        next(&mut told).await;
    });
}

/// What a savepoint took back counted, and so did what was rolled back before the same text began another transaction.
#[test]
fn what_is_rolled_back_counts_not() {
    let served = served();
    served.with_client(async |writer| {
        let tables =
            "CREATE TABLE a (k BIGINT); CREATE TABLE b (k BIGINT); CREATE TABLE c (k BIGINT)";
        writer.batch_execute(tables).await.expect("tables");
        let (client, mut told) = listener(&served).await;
        for (sql, expected) in [
            ("BEGIN; LISTEN a; SAVEPOINT s; LISTEN b; ROLLBACK TO s; COMMIT", "a"),
            ("LISTEN a; BEGIN; SAVEPOINT s; UNLISTEN a; ROLLBACK TO s; COMMIT", "a"),
            (
                "BEGIN; SAVEPOINT s; LISTEN a; SAVEPOINT t; LISTEN b; RELEASE t; ROLLBACK TO s; LISTEN c; COMMIT",
                "c",
            ),
            (
                "BEGIN; SAVEPOINT s; LISTEN a; RELEASE s; SAVEPOINT t; LISTEN b; ROLLBACK TO t; COMMIT",
                "a",
            ),
            (
                "BEGIN; LISTEN a; SAVEPOINT s; LISTEN b; ROLLBACK TO s; LISTEN c; ROLLBACK TO s; COMMIT",
                "a",
            ),
            ("BEGIN; LISTEN a; SAVEPOINT s; LISTEN b; SAVEPOINT s; LISTEN c; COMMIT", "abc"),
            ("BEGIN; LISTEN a; ROLLBACK; BEGIN; LISTEN b; COMMIT", "b"),
            ("BEGIN; LISTEN a; ROLLBACK AND CHAIN; LISTEN b; COMMIT", "b"),
        ] {
            client.batch_execute("UNLISTEN *").await.expect("a beginning");
            client.batch_execute(sql).await.expect(sql);
            let insert = "INSERT INTO a VALUES (1); INSERT INTO b VALUES (1); INSERT INTO c VALUES (1)";
            writer.batch_execute(insert).await.expect("rows");
            let mut heard = Vec::new();
            for _ in 0..expected.len() {
                heard.push(next(&mut told).await.0);
            }
            heard.sort();
            assert_eq!(heard.concat(), expected, "{sql}");
            assert!(is_silent(&mut told).await, "{sql}");
        }
        client.batch_execute("UNLISTEN *").await.expect("a beginning");
        client.batch_execute("BEGIN; SAVEPOINT s; LISTEN a").await.expect("a transaction");
        assert!(code(&client, "SELECT nothing").await.is_some());
        client.batch_execute("ROLLBACK TO s; LISTEN b; COMMIT").await.expect("the end");
        let insert = "INSERT INTO a VALUES (1); INSERT INTO b VALUES (1)";
        writer.batch_execute(insert).await.expect("rows");
        assert_eq!(next(&mut told).await.0, "b");
        assert!(is_silent(&mut told).await);
    });
}

#[test]
fn a_relation_that_is_dropped_ends_it_with_a_notice() {
    let served = served();
    served.with_client(async |writer| {
        writer.batch_execute(TABLES).await.expect("tables");
        let (client, mut told) = listener(&served).await;
        client.batch_execute("LISTEN u").await.expect("it listens");
        writer.batch_execute("DROP TABLE u").await.expect("no table");
        assert!(notice(&mut told).await.contains("\"u\""));
        writer
            .batch_execute("CREATE TABLE u (k BIGINT); INSERT INTO u VALUES (1)")
            .await
            .expect("another table");
        assert!(is_silent(&mut told).await);
        client.batch_execute("LISTEN u").await.expect("it listens");
        writer.batch_execute("INSERT INTO u VALUES (2)").await.expect("a row");
        assert_eq!(next(&mut told).await.0, "u");
    });
}

#[test]
fn rights_are_asked_at_first_and_before_each_notification() {
    let roles =
        ["CREATE ROLE root SUPERUSER LOGIN PASSWORD 'x'", "CREATE ROLE ada LOGIN PASSWORD 'x'"];
    let served = with_roles(quick(), None, &roles);
    served.clients.block_on(async {
        let root = log_in(served.address(), "root", "x").await.expect("a login");
        root.batch_execute("CREATE TABLE t (k BIGINT)").await.expect("a table");
        let denied = Some(SqlState::INSUFFICIENT_PRIVILEGE);
        let ada = log_in(served.address(), "ada", "x").await.expect("a login");
        assert_eq!(code(&ada, "LISTEN t").await, denied);
        let error = ada.prepare("LISTEN t").await.err();
        assert_eq!(error.and_then(|error| error.code().cloned()), denied);
        root.batch_execute("GRANT SELECT ON t TO ada").await.expect("a right");
        let mut config = served.config();
        config.user("ada").password("x");
        let (client, mut connection) = config.connect(NoTls).await.expect("a connection");
        let (sender, mut told) = unbounded();
        tokio::spawn(async move {
            let mut messages =
                futures::stream::poll_fn(move |context| connection.poll_message(context));
            while let Some(Ok(message)) = messages.next().await {
                let _ = sender.unbounded_send(message);
            }
        });
        client.batch_execute("LISTEN t").await.expect("it listens");
        root.batch_execute("INSERT INTO t VALUES (1)").await.expect("a row");
        assert_eq!(next(&mut told).await.0, "t");
        root.batch_execute("REVOKE SELECT ON t FROM ada").await.expect("no right");
        root.batch_execute("INSERT INTO t VALUES (2)").await.expect("a row");
        assert!(notice(&mut told).await.contains("may not"));
        root.batch_execute("GRANT SELECT ON t TO ada").await.expect("a right");
        root.batch_execute("INSERT INTO t VALUES (3)").await.expect("a row");
        assert!(is_silent(&mut told).await);
    });
}

#[test]
fn many_listeners_are_all_told_and_one_that_reads_nothing_holds_up_nobody() {
    let served = served();
    served.with_client(async |writer| {
        writer.batch_execute(TABLES).await.expect("tables");
        let mut listeners = Vec::new();
        for _ in 0..60 {
            let listener = listener(&served).await;
            listener.0.batch_execute("LISTEN t").await.expect("it listens");
            listeners.push(listener);
        }
        let mut stalled = served.raw_logged_in();
        stalled.write_all(&message(b'Q', b"LISTEN t\0")).expect("a query");
        let mut last = 0;
        for k in 0..300 {
            let insert = format!("INSERT INTO t VALUES ({k}, {k})");
            writer.batch_execute(&insert).await.expect("a row");
        }
        for (_, told) in &mut listeners {
            let mut before = 0;
            for _ in 0..300 {
                let (channel, epoch) = next(told).await;
                assert!(channel == "t" && epoch > before);
                before = epoch;
            }
            assert!(last == 0 || last == before);
            last = before;
        }
        assert_eq!(read_until_ready(&mut stalled).len(), 2);
        assert_eq!(read_message(&mut stalled).0, b'A');
        drop(listeners);
        // Nothing is left of them.
        served.wait_for_clients(2);
        writer.batch_execute("DROP MATERIALIZED VIEW large; DROP TABLE t").await.expect("no table");
    });
}
