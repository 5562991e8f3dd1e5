//! Statements that are given up.

use std::time::Duration;

use futures::TryStreamExt;
use tokio::time::{Instant, sleep, timeout};

use super::served::served;

/// A statement that takes long, by what it computes.
const LONG: &str = "SELECT COUNT(*) FROM generate_series(1, 100000) a(x), generate_series(1, 100000) b(y) WHERE x % 7 = y % 11";
/// A statement that has many rows.
const MANY: &str = "SELECT x, repeat('x', 1000) AS t FROM generate_series(1, 3000000) s(x)";

#[test]
fn a_statement_is_cancelled_by_a_token() {
    served().with_client(async |client| {
        let token = client.cancel_token();
        let (done, cancelled) = tokio::join!(client.execute(LONG, &[]), async {
            sleep(Duration::from_millis(300)).await;
            token.cancel().await
        });
        cancelled.expect("a request");
        assert!(done.expect_err("it is cancelled").is_cancelled());
        // Between statements it has no effect.
        token.cancel().await.expect("a request");
        client.execute("SELECT 1", &[]).await.expect("an answer");
    });
}

#[test]
fn a_statement_is_cancelled_when_its_future_is_dropped() {
    let served = served();
    served.with_client(async |client| {
        for round in 0..5 {
            let given_up = timeout(Duration::from_millis(200), client.execute(LONG, &[])).await;
            assert!(given_up.is_err());
            let begun = Instant::now();
            client.execute("SELECT 1", &[]).await.expect("an answer, which was not cancelled");
            assert!(begun.elapsed() < Duration::from_secs(20), "{round}");
        }
    });
}

#[test]
fn a_statement_is_cancelled_when_its_rows_are_dropped() {
    let served = served();
    served.with_client(async |client| {
        let begun = Instant::now();
        for _ in 0..3 {
            let mut rows = client.query(MANY, &[]).await.expect("rows");
            assert!(rows.try_next().await.expect("a batch").is_some());
            drop(rows);
            client.execute("SELECT 1", &[]).await.expect("an answer, which was not cancelled");
        }
        assert!(begun.elapsed() < Duration::from_secs(30));
    });
    served.run(served.wait_for_clients(0));
}

#[test]
fn a_request_that_comes_late_does_not_hit_the_next_statement() {
    let served = served();
    served.with_client(async |client| {
        let mut random = fastrand::Rng::with_seed(7);
        let (mut given_up, mut cancelled) = (0, 0);
        let begun = Instant::now();
        for _ in 0..50 {
            client.execute("SELECT 1", &[]).await.unwrap();
        }
        // Twice as long as the statement takes.
        let most = (begun.elapsed() / 25).as_micros() as u64;
        for round in 0..500 {
            let patience = Duration::from_micros(random.u64(..=most));
            given_up +=
                usize::from(timeout(patience, client.execute("SELECT 1", &[])).await.is_err());
            client
                .execute("SELECT 2", &[])
                .await
                .unwrap_or_else(|error| panic!("{round}: {error}"));
            let token = client.cancel_token();
            let (done, request) = tokio::join!(client.execute("SELECT 3", &[]), async {
                sleep(patience / 2).await;
                token.cancel().await
            });
            request.expect("a request");
            match done {
                Ok(_) => {}
                Err(error) if error.is_cancelled() => cancelled += 1,
                Err(error) => panic!("{round}: {error}"),
            }
            client
                .execute("SELECT 4", &[])
                .await
                .unwrap_or_else(|error| panic!("{round}: {error}"));
        }
        assert!(given_up > 0, "{given_up} statements were given up, {cancelled} cancelled");
    });
}
