//! A bank: money moves between two tables, and the sum stays what it was.

use alluvium::{Engine, Result};

/// Two accounts, in a table each, the sum of all money, and the number of moves.
pub const DEFINITIONS: &str = "
    CREATE TABLE a (id BIGINT PRIMARY KEY, money BIGINT);
    CREATE TABLE b (id BIGINT PRIMARY KEY, money BIGINT);
    CREATE TABLE moves (n BIGINT) WITH ('materialized' = 'false');
    CREATE MATERIALIZED VIEW total AS SELECT SUM(money) AS s FROM
        (SELECT money FROM a UNION ALL SELECT money FROM b);
    CREATE MATERIALIZED VIEW moved AS SELECT COUNT(*) AS n FROM moves;
    BEGIN; INSERT INTO a VALUES (1, 100); INSERT INTO b VALUES (1, 0); COMMIT
";

/// Moves money until a call fails, and calls `after` with the number of each move. How many moves were acknowledged.
pub fn run(engine: &Engine, moves: i64, after: impl Fn(i64) -> Result<()>) -> i64 {
    let mut acknowledged = 0;
    for number in 1..=moves {
        let moved = engine.session().execute(
            "BEGIN; UPDATE a SET money = money - 1; UPDATE b SET money = money + 1;
             INSERT INTO moves VALUES (1); COMMIT",
        );
        if moved.is_err() {
            return acknowledged;
        }
        acknowledged = number;
        if after(number).is_err() {
            return acknowledged;
        }
    }
    acknowledged
}
