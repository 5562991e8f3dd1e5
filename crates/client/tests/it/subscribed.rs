//! Changes of relations: whole epochs, in order and once, also over connections that break.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use alluvium_client::arrow::array::AsArray;
use alluvium_client::arrow::datatypes::Int64Type;
use alluvium_client::{Change, Client, SubscribeOptions};
use futures::{StreamExt, TryStreamExt};

use super::served::served;

/// What a subscriber of a table of two numbers has.
#[derive(Default, PartialEq, Debug)]
struct Contents(BTreeMap<(i64, i64), i64>);

impl Contents {
    fn take(&mut self, change: &Change) {
        if change.is_snapshot {
            self.0.clear();
        }
        let [keys, values] =
            [0, 1].map(|column| change.rows.column(column).as_primitive::<Int64Type>());
        for (row, weight) in change.weights.iter().enumerate() {
            let count = self.0.entry((keys.value(row), values.value(row))).or_default();
            *count += weight;
        }
        self.0.retain(|_, count| *count != 0);
    }
}

async fn contents(client: &Client) -> Contents {
    let rows = client.query("SELECT k, v FROM t", &[]).await.expect("rows");
    let rows = rows.collect().await.expect("a batch");
    let mut contents = Contents::default();
    let [keys, values] = [0, 1].map(|column| rows.column(column).as_primitive::<Int64Type>());
    for row in 0..rows.num_rows() {
        *contents.0.entry((keys.value(row), values.value(row))).or_default() += 1;
    }
    contents
}

/// Passes bytes between clients and a server, until it is told to cut its connections.
struct Proxy {
    port: u16,
    open: Arc<Mutex<Vec<TcpStream>>>,
    refuses: Arc<AtomicBool>,
}

impl Proxy {
    fn start(to: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("a port").port();
        let open = Arc::<Mutex<Vec<TcpStream>>>::default();
        let refuses = Arc::<AtomicBool>::default();
        let (streams, shut) = (open.clone(), refuses.clone());
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if shut.load(Ordering::SeqCst) {
                    continue;
                }
                let Ok(server) = TcpStream::connect(("127.0.0.1", to)) else { continue };
                for (mut from, mut to) in [
                    (client.try_clone().expect("a stream"), server.try_clone().expect("a stream")),
                    (server.try_clone().expect("a stream"), client.try_clone().expect("a stream")),
                ] {
                    thread::spawn(move || {
                        let mut bytes = [0; 4096];
                        while let Ok(count @ 1..) = from.read(&mut bytes) {
                            if to.write_all(&bytes[..count]).is_err() {
                                break;
                            }
                        }
                        let _ = to.shutdown(Shutdown::Both);
                    });
                }
                streams.lock().expect("the streams").extend([client, server]);
            }
        });
        Self { port, open, refuses }
    }

    fn cut(&self) {
        for stream in self.open.lock().expect("the streams").drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

#[test]
fn changes_add_up_to_the_rows_over_connections_that_break() {
    let served = served();
    let proxy = Proxy::start(served.port());
    served.run(async {
        let writer = served.client().await;
        writer.execute_batch("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT)").await.expect("t");
        writer
            .execute_batch("INSERT INTO t SELECT x, 0 FROM generate_series(1, 3000) s(x)")
            .await
            .expect("rows");
        let url = format!("postgresql://a@127.0.0.1:{}/", proxy.port);
        let reader = Client::connect(&url).await.expect("a connection");
        let changes = reader.subscribe("t", SubscribeOptions::new()).await;
        let mut changes = changes.expect("a subscription");
        let mut seen = Contents::default();
        let mut last = None;
        for round in 0..200_i64 {
            let update = format!("UPDATE t SET v = {round} WHERE k % 50 = {}", round % 50);
            writer.execute(&update, &[]).await.expect("an update");
            if round % 10 == 5 {
                proxy.refuses.store(round % 20 == 5, Ordering::SeqCst);
                proxy.cut();
            }
            if round % 20 == 12 {
                proxy.refuses.store(false, Ordering::SeqCst);
            }
            while let Ok(change) =
                tokio::time::timeout(Duration::from_millis(5), changes.next()).await
            {
                let change = change.expect("the stream goes on").expect("a change");
                assert!(last.is_none_or(|last| last < change.epoch), "{last:?}");
                assert_eq!(change.is_snapshot, last.is_none());
                last = Some(change.epoch);
                seen.take(&change);
            }
        }
        let expected = contents(&writer).await;
        while seen != expected {
            seen.take(&changes.try_next().await.expect("a change").expect("the stream goes on"));
        }
    });
}

#[test]
fn a_subscription_begins_after_an_epoch_and_ends_with_its_relation() {
    served().with_client(async |client| {
        client
            .execute_batch("CREATE TABLE t (k BIGINT, v BIGINT); INSERT INTO t VALUES (1, 1)")
            .await
            .expect("a table");
        let mut first = client.subscribe("t", SubscribeOptions::new()).await.expect("changes");
        let snapshot = first.try_next().await.expect("a change").expect("a snapshot");
        assert!(snapshot.is_snapshot);
        drop(first);
        client.execute("INSERT INTO t VALUES (2, 2)", &[]).await.expect("a row");
        client.execute("DELETE FROM t WHERE k = 1", &[]).await.expect("a row less");
        let options = SubscribeOptions::new().after(snapshot.epoch);
        let mut second = client.subscribe("t", options).await.expect("changes");
        let mut weights = Vec::new();
        for _ in 0..2 {
            let change = second.try_next().await.expect("a change").expect("the stream goes on");
            assert!(!change.is_snapshot && change.epoch > snapshot.epoch);
            weights.extend_from_slice(&change.weights);
        }
        assert_eq!(weights, [1, -1]);
        client.execute_batch("DROP TABLE t").await.expect("no table");
        assert!(second.try_next().await.expect("the end").is_none());
        assert!(second.try_next().await.expect("the end").is_none());
    });
}

#[test]
fn progress_is_told_and_an_empty_relation_has_a_snapshot() {
    let served = served();
    served.with_client(async |client| {
        client
            .execute_batch("CREATE TABLE t (k BIGINT, v BIGINT); CREATE TABLE u (k BIGINT)")
            .await
            .expect("tables");
        let options = SubscribeOptions::new().progress(true);
        let mut changes = client.subscribe("t", options).await.expect("changes");
        assert_eq!(changes.schema().fields().len(), 2);
        let snapshot = changes.try_next().await.expect("a change").expect("a snapshot");
        assert!(snapshot.is_snapshot && snapshot.rows.num_rows() == 0);
        client.execute("INSERT INTO u VALUES (1)", &[]).await.expect("a row");
        let change = changes.try_next().await.expect("a change").expect("progress");
        assert!(change.epoch > snapshot.epoch && change.rows.num_rows() == 0);
        assert!(client.subscribe("nothing", SubscribeOptions::new()).await.is_err());
        let never = client.subscribe("t", SubscribeOptions::new().after(1_000_000)).await;
        let kind = never.err().and_then(|error| error.refusal()?.kind.clone());
        assert_eq!(kind.as_deref(), Some("Gone"));
        drop(changes);
        served.wait_for_clients(1).await;
    });
}
