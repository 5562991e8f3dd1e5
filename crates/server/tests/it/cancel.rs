//! Cancelling statements, and clients that go in the middle of them.

use std::io::Write;
use std::time::{Duration, Instant};

use tokio_postgres::NoTls;
use tokio_postgres::error::SqlState;

use super::served::{message, served};

/// A statement that takes much longer than any test.
const LONG: &str =
    "SELECT COUNT(*) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b";

#[test]
fn a_statement_can_be_cancelled() {
    let served = served();
    served.with_client(async |client| {
        let token = client.cancel_token();
        let (done, ()) = tokio::join!(client.batch_execute(LONG), async {
            tokio::time::sleep(Duration::from_millis(200)).await;
            token.cancel_query(NoTls).await.expect("a request");
        });
        let error = done.expect_err("it is cancelled");
        assert_eq!(error.code(), Some(&SqlState::QUERY_CANCELED));
        // A request between statements has no effect.
        token.cancel_query(NoTls).await.expect("a request");
        tokio::time::sleep(Duration::from_millis(50)).await;
        client.batch_execute("SELECT 1").await.expect("an answer");
    });
}

#[test]
fn a_wrong_key_cancels_nothing() {
    let served = served();
    served.with_client(async |client| {
        for number in 0..100_u32 {
            let mut request = vec![0, 0, 0, 16, 4, 210, 22, 46];
            request.extend(number.to_be_bytes());
            request.extend([0; 4]);
            served.raw().write_all(&request).expect("a request");
        }
        client
            .batch_execute("SELECT COUNT(*) FROM generate_series(1, 1000000)")
            .await
            .expect("an answer");
    });
}

#[test]
fn the_statement_of_a_client_that_goes_ends() {
    let served = served();
    let mut stream = served.raw_logged_in();
    let text = format!("{LONG}\0");
    stream.write_all(&message(b'Q', text.as_bytes())).expect("a query");
    std::thread::sleep(Duration::from_millis(200));
    let begun = Instant::now();
    drop(stream);
    served.wait_for_clients(0);
    assert!(begun.elapsed() < Duration::from_secs(30), "it runs on");
}
