//! Single epochs that are larger than memory.

use alluvium::Engine;

/// The budget; the square of [`ROWS`] is how many rows there are, of two hundred bytes each, ten times as much.
const MEMORY: usize = 16 << 20;
const ROWS: usize = 900;

/// Fails if much more was counted than there may be: each file that is written waits for a megabyte, and of each that
/// is read there is a page, which so small a budget has no room for in all places at once.
fn check(engine: &Engine, what: &str) {
    let state = engine.state();
    assert!(state.spilled_bytes as usize > 10 * MEMORY, "{what}: {state:?}");
    assert!(state.memory_peak_bytes as usize <= MEMORY + MEMORY / 4, "{what}: {state:?}");
}

#[test]
fn an_epoch_of_ten_times_the_budget_goes_through_files() {
    let engine = Engine::builder().workers(2).memory(MEMORY).open_in_memory().unwrap();
    engine
        .execute(
            "CREATE TABLE numbers (n BIGINT);
             CREATE TABLE pairs (id BIGINT PRIMARY KEY, part BIGINT, text VARCHAR);
             CREATE MATERIALIZED VIEW parts AS
                 SELECT part, COUNT(*) AS n, MAX(text) AS text FROM pairs GROUP BY part;",
        )
        .unwrap();
    let numbers: Vec<String> = (0..ROWS).map(|n| format!("({n})")).collect();
    engine.execute(&format!("INSERT INTO numbers VALUES {}", numbers.join(", "))).unwrap();
    // The order of insertion is not that of the key.
    engine
        .execute(&format!(
            "INSERT INTO pairs SELECT (a.n * 7919 + b.n * {ROWS} * 31) % ({ROWS} * {ROWS} * 1000), a.n,
                 repeat('x', 180) || CAST(b.n AS VARCHAR)
             FROM numbers a, numbers b"
        ))
        .unwrap();
    engine.wait(engine.progress().committed).unwrap();
    check(&engine, "INSERT");
    engine.execute("CREATE MATERIALIZED VIEW copies AS SELECT text, part, id FROM pairs").unwrap();
    check(&engine, "CREATE VIEW");
    let count = |query: &str| {
        let rows = engine.query(query).unwrap();
        alluvium::arrow::util::pretty::pretty_format_batches(&rows).unwrap().to_string()
    };
    let expected =
        count("SELECT COUNT(*) AS n, SUM(id) AS s, COUNT(DISTINCT part) AS d FROM pairs");
    assert_eq!(
        count("SELECT COUNT(*) AS n, SUM(id) AS s, COUNT(DISTINCT part) AS d FROM copies"),
        expected
    );
    assert_eq!(
        count("SELECT COUNT(*) AS n FROM parts"),
        count("SELECT COUNT(*) AS n FROM numbers")
    );
}
