//! The example of the crate's documentation.

use alluvium_client::{Client, SubscribeOptions};
use futures::TryStreamExt;

use super::served::served;

#[test]
fn the_example_works() {
    let served = served();
    served.run(async {
        let client = Client::connect(&served.url()).await.expect("a connection");
        client
            .execute_batch(
                "CREATE TABLE bid (auction BIGINT, price BIGINT);
                 CREATE MATERIALIZED VIEW best AS SELECT auction, MAX(price) AS price FROM bid GROUP BY auction",
            )
            .await
            .expect("a view");
        let inserted = client.execute("INSERT INTO bid VALUES ($1, $2)", &[&1_i64, &30_i64]).await;
        assert_eq!(inserted.expect("a row"), 1);
        let rows = client.query("SELECT * FROM best WHERE price > $1", &[&10_i64]).await;
        assert_eq!(rows.expect("rows").collect().await.expect("a batch").num_rows(), 1);
        let changes = client.subscribe("best", SubscribeOptions::new()).await;
        let mut changes = changes.expect("a subscription");
        let snapshot = changes.try_next().await.expect("a change").expect("a snapshot");
        assert!(snapshot.is_snapshot && snapshot.rows.num_rows() == 1);
        client.execute("INSERT INTO bid VALUES (1, 40)", &[]).await.expect("a row");
        let change = changes.try_next().await.expect("a change").expect("the stream goes on");
        let mut weights = change.weights.to_vec();
        weights.sort();
        assert_eq!((weights, change.is_snapshot), (vec![-1, 1], false));
    });
}
