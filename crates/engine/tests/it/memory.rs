//! State in files: the same answers in whatever memory.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use alluvium::{Engine, State};

pub const PROGRAM: &str = "
    CREATE TABLE orders (id BIGINT PRIMARY KEY, customer BIGINT, amount BIGINT, note VARCHAR);
    CREATE TABLE customers (id BIGINT PRIMARY KEY, name VARCHAR);
    CREATE MATERIALIZED VIEW totals AS
        SELECT c.name, COUNT(*) AS orders, SUM(o.amount) AS amount, MAX(o.note) AS note
        FROM orders o JOIN customers c ON o.customer = c.id GROUP BY c.name;
    CREATE MATERIALIZED VIEW latest AS
        SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY customer ORDER BY id DESC) AS place FROM orders)
        WHERE place <= 2;
    CREATE MATERIALIZED VIEW missing AS
        SELECT * FROM customers c WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.id);
";

/// The rows of the views after some transactions, and where their state went.
fn run(workers: usize, memory: Option<usize>) -> (Vec<String>, State) {
    let engine = Engine::builder().workers(workers).memory(memory).open_in_memory().unwrap();
    engine.execute(PROGRAM).unwrap();
    let customers: Vec<String> = (0..50).map(|id| format!("({id}, 'customer {id}')")).collect();
    engine.execute(&format!("INSERT INTO customers VALUES {}", customers.join(", "))).unwrap();
    for round in 0..8 {
        let orders: Vec<String> = (0..300)
            .map(|order| {
                let id = round * 200 + order;
                format!("({id}, {}, {}, 'note {}')", id * 7 % 40, id % 13, id % 97)
            })
            .collect();
        engine
            .execute(&format!("INSERT OR REPLACE INTO orders VALUES {}", orders.join(", ")))
            .unwrap();
        engine.execute(&format!("DELETE FROM orders WHERE id % 11 = {round}")).unwrap();
        engine
            .execute(&format!("UPDATE orders SET amount = amount + 1 WHERE id % 9 = {round}"))
            .unwrap();
    }
    engine.wait(engine.progress().committed).unwrap();
    let shown = ["totals", "latest", "missing"].map(|view| {
        let rows = engine.query(&format!("SELECT * FROM {view} ORDER BY 1, 2")).unwrap();
        alluvium::arrow::util::pretty::pretty_format_batches(&rows).unwrap().to_string()
    });
    (shown.to_vec(), engine.state())
}

#[test]
fn answers_do_not_depend_on_the_budget() {
    let (expected, all) = run(1, None);
    assert_eq!((all.disk_bytes, all.spilled_bytes), (0, 0));
    assert!(all.memory_bytes > 50_000, "{all:?}");
    for workers in 1..=3 {
        for memory in [1, 30_000, 200_000, 1 << 40] {
            let (shown, state) = run(workers, Some(memory));
            assert_eq!(shown, expected, "{workers} workers, {memory} bytes");
            assert_eq!(state.spilled_bytes > 0, memory < 1 << 40, "{memory}: {state:?}");
            assert!(state.disk_bytes <= state.spilled_bytes);
        }
    }
}

#[test]
fn who_asks_is_told_when_memory_gets_scarce_and_while_it_is() {
    let (told, limits) = std::sync::mpsc::channel();
    let builder = Engine::builder().workers(2).memory(300_000);
    let engine = builder.on_pressure(move |limit| told.send(limit).unwrap()).open_in_memory();
    let engine = engine.unwrap();
    engine.execute("CREATE TABLE numbers (n BIGINT); INSERT INTO numbers VALUES (1)").unwrap();
    assert!(limits.try_recv().is_err());
    let rows: Vec<String> = (0..30_000).map(|number| format!("({number})")).collect();
    for _ in 0..6 {
        engine.execute(&format!("INSERT INTO numbers VALUES {}", rows.join(", "))).unwrap();
        engine.wait(engine.progress().committed).unwrap();
    }
    drop(engine);
    let limits: Vec<usize> = limits.iter().collect();
    assert!(limits.len() > 1 && limits.iter().all(|limit| *limit == 300_000), "{limits:?}");
}

#[test]
fn a_folder_that_cannot_be_made_is_an_error_at_the_start() {
    // In a process of its own: the variable is everyone's.
    let test = "memory::in_a_folder_that_is_not_there";
    let status = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored", "--quiet"])
        .env("TMPDIR", "/dev/null/nothing")
        .output()
        .unwrap();
    assert!(status.status.success(), "{}", String::from_utf8_lossy(&status.stdout));
}

#[test]
#[ignore = "run by a_folder_that_cannot_be_made_is_an_error_at_the_start"]
fn in_a_folder_that_is_not_there() {
    let error = Engine::builder().memory(1).open_in_memory().map(drop).unwrap_err().to_string();
    assert!(error.contains("/dev/null/nothing"), "{error}");
}
