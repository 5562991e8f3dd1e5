//! What an epoch of one row costs, from its transaction to its completion.
//!
//! ```sh
//! cargo bench -p alluvium-benches --bench small -- [rows] [workers] [part of a name]
//! ```
//!
//! A table with a primary key has so many rows, in groups of 100. Every epoch has one row: in turn a new one, and another
//! value of one that is there. It is waited for, or only every 64th is (*pipelined*). The first table has one view of each
//! kind, the second many views at once, which read that table or another one.
//!
//! The aims: a median of at most 60 µs with 1,000,000 rows and 100 µs with 10,000,000, three times as much for LAG, a
//! rolling sum and MEDIAN; 300 views that read another table add at most 100 µs; with 300 that read this one it is at most 5 ms.

use std::sync::Arc;
use std::time::Instant;

use alluvium::Engine;
use alluvium::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use alluvium_benches::processors;

/// What is measured over a table `t` with the columns `id`, `g`, `n`, and a table `d` with a row for each `g`.
const VIEWS: [(&str, &str); 10] = [
    ("no view", ""),
    ("filter", "SELECT id, n FROM t WHERE n % 2 = 0"),
    ("sums", "SELECT g, COUNT(*) AS c, SUM(n) AS s FROM t GROUP BY g"),
    ("MAX", "SELECT g, MAX(n) AS m FROM t GROUP BY g"),
    ("COUNT(DISTINCT)", "SELECT g, COUNT(DISTINCT n) AS c FROM t GROUP BY g"),
    (
        "three greatest",
        "SELECT * FROM (SELECT id, g, n, ROW_NUMBER() OVER (PARTITION BY g ORDER BY n DESC, id) AS r FROM t) AS x
         WHERE r <= 3",
    ),
    ("join", "SELECT t.id, t.n, d.label FROM t JOIN d ON d.g = t.g"),
    ("LAG", "SELECT id, LAG(n) OVER (PARTITION BY g ORDER BY id) AS before FROM t"),
    (
        "rolling SUM",
        "SELECT id, SUM(n) OVER (PARTITION BY g ORDER BY id ROWS BETWEEN 10 PRECEDING AND CURRENT ROW) AS s
         FROM t",
    ),
    ("MEDIAN", "SELECT g, MEDIAN(n) AS m FROM t GROUP BY g"),
];

/// The rows of a group.
const GROUP: i64 = 100;
/// The rows of a transaction that loads.
const TOGETHER: i64 = 100_000;
/// Epochs before those that are measured.
const WARM: i64 = 500;
const EPOCHS: i64 = 4_000;
/// Of so many epochs one is waited for.
const PIPELINED: i64 = 64;

/// What is known of epochs: microseconds.
struct Measured {
    median: f64,
    /// Of 100 epochs 99 take at most this long.
    p99: f64,
    /// The time of all processors, on average.
    processors: f64,
    /// The time of one of many that are not waited for.
    pipelined: f64,
}

fn rows(ids: impl Iterator<Item = i64> + Clone, rows: i64, n: impl Fn(i64) -> i64) -> RecordBatch {
    let groups = (rows / GROUP).max(1);
    let column = |values: Int64Array| Arc::new(values) as ArrayRef;
    let name: ArrayRef =
        Arc::new(StringArray::from_iter_values(ids.clone().map(|id| format!("the name of {id}"))));
    let columns = [
        ("id", column(ids.clone().collect())),
        ("g", column(ids.clone().map(|id| id % groups).collect())),
        ("n", column(ids.map(n).collect())),
        ("name", name),
    ];
    RecordBatch::try_from_iter(columns).expect("columns of one length")
}

fn insert(engine: &Engine, table: &str, rows: RecordBatch) -> u64 {
    let mut transaction = engine.begin().expect("a transaction begins");
    transaction.insert(table, rows).expect("the rows fit");
    transaction.commit().expect("a transaction commits")
}

/// An engine with the rows and these views.
fn engine(workers: usize, size: i64, views: impl Iterator<Item = String>) -> Engine {
    let engine = Engine::builder().workers(workers).open_in_memory().expect("an engine opens");
    let tables = "CREATE TABLE t (id BIGINT PRIMARY KEY, g BIGINT, n BIGINT, name TEXT);
         CREATE TABLE u (id BIGINT PRIMARY KEY, g BIGINT, n BIGINT, name TEXT);
         CREATE TABLE d (g BIGINT PRIMARY KEY, label TEXT);";
    engine.execute(tables).expect("the statements are right");
    for (number, view) in views.enumerate() {
        engine
            .execute(&format!("CREATE MATERIALIZED VIEW v{number} AS {view}"))
            .expect("the views are right");
    }
    let groups = (size / GROUP).max(1);
    let labels: ArrayRef =
        Arc::new(StringArray::from_iter_values((0..groups).map(|group| format!("label {group}"))));
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..groups));
    let labels =
        RecordBatch::try_from_iter([("g", ids), ("label", labels)]).expect("columns of one length");
    insert(&engine, "d", labels);
    insert(&engine, "u", rows(0..1_000, 1_000, |id| id * 7919 % 1009));
    for start in (0..size).step_by(TOGETHER as usize) {
        // Ids are odd numbers, so that there are absent ones between any two.
        let ids = (start..size.min(start + TOGETHER)).map(|row| 2 * row + 1);
        let epoch = insert(&engine, "t", rows(ids, size, |id| id * 7919 % 1009));
        engine.wait(epoch).expect("epochs complete");
    }
    engine
}

fn measure(engine: &Engine, size: i64) -> Measured {
    let one = |epoch: i64| {
        // Somewhere in the table; a new one is even.
        let row = (epoch / 2 + 1) * 1_000_003 % size;
        rows(std::iter::once(2 * row + 1 + epoch % 2), size, |id| (id + epoch) * 31 % 1009)
    };
    let mut epochs = 0..;
    let mut next = || one(epochs.next().expect("there is always another"));
    for _ in 0..WARM {
        let epoch = insert(engine, "t", next());
        engine.wait(epoch).expect("epochs complete");
    }
    let busy = processors();
    let took = (0..EPOCHS).map(|_| {
        let row = next();
        let begun = Instant::now();
        let epoch = insert(engine, "t", row);
        engine.wait(epoch).expect("epochs complete");
        begun.elapsed().as_secs_f64() * 1e6
    });
    let mut took: Vec<f64> = took.collect();
    took.sort_unstable_by(f64::total_cmp);
    let processors = (processors() - busy) * 1e6 / EPOCHS as f64;
    let begun = Instant::now();
    for number in 1..=EPOCHS {
        let epoch = insert(engine, "t", next());
        if number % PIPELINED == 0 || number == EPOCHS {
            engine.wait(epoch).expect("epochs complete");
        }
    }
    let pipelined = begun.elapsed().as_secs_f64() * 1e6 / EPOCHS as f64;
    let quantile = |share: f64| took[(took.len() as f64 * share) as usize];
    Measured { median: quantile(0.5), p99: quantile(0.99), processors, pipelined }
}

fn print(what: &str, measured: &Measured) {
    let Measured { median, p99, processors, pipelined } = measured;
    println!("| {what} | {median:.0} | {p99:.0} | {processors:.0} | {pipelined:.0} |");
}

fn main() {
    // `cargo test` runs it to see that it starts.
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let (numbers, names): (Vec<String>, Vec<String>) =
        arguments.partition(|argument| argument.parse::<i64>().is_ok());
    let mut numbers = numbers.iter().map(|number| number.parse().expect("it is a number"));
    let size = numbers.next().unwrap_or(if is_bench { 1_000_000 } else { 0 });
    let workers = numbers.next().unwrap_or(1) as usize;
    let is_asked = |name: &str| names.iter().all(|part| name.contains(part.as_str()));
    if size == 0 {
        return;
    }
    println!("{size} rows, {workers} workers; µs for an epoch of one row\n");
    println!("| view | median | p99 | processors | pipelined |\n|---|---|---|---|---|");
    for (name, view) in VIEWS.into_iter().filter(|(name, _)| is_asked(name)) {
        let views = (!view.is_empty()).then(|| view.to_owned());
        print(name, &measure(&engine(workers, size, views.into_iter()), size));
    }
    println!("\n| views | median | p99 | processors | pipelined |\n|---|---|---|---|---|");
    for (table, what) in [("t", "this table"), ("u", "another table")] {
        for count in [1, 10, 100, 300] {
            let views = (0..count).map(|number| {
                format!("SELECT g, COUNT(*) AS c, SUM(n + {number}) AS s FROM {table} GROUP BY g")
            });
            // What many views keep of many rows takes long to load, and is not what is measured.
            let size = size.min(100_000);
            let name = format!("{count} over {what}, {size} rows");
            if is_asked(&name) {
                print(&name, &measure(&engine(workers, size, views), size));
            }
        }
    }
}
