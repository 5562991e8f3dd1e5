//! Tables that keep nothing: rows pass through them into the views that are there.

use std::sync::Arc;

use alluvium::Engine;
use alluvium::arrow::array::{ArrayRef, Int64Array, RecordBatch};

use crate::support::{engine_with, settled};

const PROGRAM: &str = "
    CREATE TABLE bid (auction BIGINT, price BIGINT) WITH ('materialized' = 'false');
    CREATE TABLE auction (id BIGINT PRIMARY KEY, category BIGINT);
    CREATE MATERIALIZED VIEW totals AS SELECT auction, SUM(price) AS total, MAX(price) AS most FROM bid GROUP BY auction;
    CREATE MATERIALIZED VIEW pairs AS SELECT COUNT(*) AS n FROM bid a JOIN bid b ON a.auction = b.auction AND a.price < b.price;
    CREATE MATERIALIZED VIEW by_category AS
        SELECT category, COUNT(*) AS n FROM bid JOIN auction ON auction = id GROUP BY category";

fn refused(engine: &Engine, sql: &str) -> String {
    engine.execute(sql).expect_err("it is refused").to_string()
}

fn bids(rows: &[(i64, i64)]) -> RecordBatch {
    let auctions: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.0)));
    let prices: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.1)));
    RecordBatch::try_from_iter([("auction", auctions), ("price", prices)]).expect("two columns")
}

#[test]
fn rows_reach_the_views_that_are_there() {
    for workers in 1..=3 {
        let engine = engine_with(workers, PROGRAM);
        engine
            .execute(
                "INSERT INTO bid VALUES (1, 10), (2, 5);
                 INSERT INTO auction VALUES (1, 7), (2, 7), (3, 8);
                 BEGIN; INSERT INTO bid VALUES (1, 30); INSERT INTO bid VALUES (3, 1), (3, 1); COMMIT;
                 UPDATE auction SET category = 8 WHERE id = 2",
            )
            .expect("rows enter");
        assert_eq!(settled(&engine, "SELECT * FROM totals"), ["1 40 30", "2 5 5", "3 2 1"]);
        assert_eq!(settled(&engine, "SELECT * FROM pairs"), ["1"]);
        assert_eq!(settled(&engine, "SELECT * FROM by_category"), ["7 2", "8 3"]);
    }
}

#[test]
fn large_transactions_are_dealt_to_all_workers() {
    for workers in 1..=3 {
        let engine = engine_with(workers, PROGRAM);
        let rows: Vec<(i64, i64)> = (0..100_000).map(|number| (number % 50_000, number)).collect();
        let mut transaction = engine.begin().expect("nobody else writes");
        transaction.insert("bid", bids(&rows)).expect("the rows suit the table");
        transaction.commit().expect("the engine is well");
        let totals = settled(&engine, "SELECT SUM(total), MAX(most) FROM totals");
        assert_eq!(totals, ["4999950000 99999"]);
    }
}

#[test]
fn what_is_not_kept_is_not_read() {
    const RULE: &str = "a table keeps its contents if it has no connector, has a PRIMARY KEY, or says \
                        'materialized' = 'true'";
    let engine = engine_with(2, PROGRAM);
    const QUERIED: &str = "\"bid\" does not keep its rows, so it cannot be queried";
    const CHANGED: &str = "\"bid\" keeps no rows";
    for (sql, problem) in [
        ("SELECT * FROM bid", QUERIED),
        ("SELECT 1 WHERE EXISTS (SELECT * FROM bid)", QUERIED),
        ("INSERT INTO auction SELECT * FROM bid", QUERIED),
        ("UPDATE bid SET price = 1", CHANGED),
        ("DELETE FROM bid", CHANGED),
    ] {
        let message = refused(&engine, sql);
        assert!(message.contains(problem), "{message}");
        assert!(message.ends_with(RULE), "{message}");
    }
    let mut transaction = engine.begin().expect("nobody else writes");
    let error = transaction.delete("bid", bids(&[(1, 1)])).expect_err("nothing can be deleted");
    assert!(error.to_string().ends_with(RULE), "{error}");
}

#[test]
fn nothing_new_reads_a_table_once_rows_have_passed() {
    let engine = engine_with(2, PROGRAM);
    engine
        .execute("CREATE VIEW early AS SELECT price FROM bid; BEGIN; INSERT INTO bid VALUES (1, 1); ROLLBACK")
        .expect("what is rolled back never passed");
    let _subscription = engine.subscribe("early").expect("no rows have passed");
    engine.execute("INSERT INTO bid VALUES (1, 1)").expect("rows enter");
    let message = refused(&engine, "CREATE MATERIALIZED VIEW late AS SELECT * FROM early");
    assert!(message.starts_with("rows have passed through \"bid\" already"), "{message}");
    let Err(error) = engine.subscribe("early") else { panic!("its beginning is gone") };
    let error = error.to_string();
    assert!(error.starts_with("rows have passed through \"bid\" already"), "{error}");
    engine
        .execute(
            "CREATE MATERIALIZED VIEW of_kept AS SELECT SUM(most) AS most FROM totals;
             INSERT INTO bid VALUES (1, 5)",
        )
        .expect("what a view keeps can be read at any time");
    assert_eq!(settled(&engine, "SELECT most FROM of_kept"), ["5"]);
}

#[test]
fn rows_only_enter_an_append_only_table() {
    let engine = engine_with(
        1,
        "CREATE TABLE log (a BIGINT) WITH ('append_only' = 'true'); INSERT INTO log VALUES (1)",
    );
    for sql in ["DELETE FROM log", "UPDATE log SET a = 2"] {
        let message = refused(&engine, sql);
        assert!(message.contains("\"log\" is 'append_only': rows only enter it"), "{message}");
    }
    assert_eq!(settled(&engine, "SELECT a FROM log"), ["1"]);
    let message =
        refused(&engine, "CREATE TABLE t (a INT PRIMARY KEY) WITH ('materialized' = 'false')");
    assert!(message.contains("a table with a PRIMARY KEY keeps its contents"), "{message}");
}
