//! How long a view takes to fill from a table that has its rows, beside DataFusion, which evaluates the query once.
//!
//! ```sh
//! cargo bench -p alluvium-benches --bench filling -- [rows] [part of a name]
//! ```
//!
//! *Fill* is the time of `CREATE MATERIALIZED VIEW` over the loaded table, until the view can be read; *load* that of loading
//! the table under the view. Alluvium has one worker, and DataFusion one thread and the same batches in memory. The two take
//! turns, and the table has the least of several times. Both must have as many rows.
//!
//! The aims for 1,000,000 rows: filling takes at most twice DataFusion's time, and loading at most five seconds.

use std::sync::Arc;
use std::time::Instant;

use alluvium::Engine;
use alluvium::arrow::array::{AsArray, RecordBatch};
use alluvium::arrow::datatypes::Int64Type;
use alluvium_benches::grouped::{self, TABLES, VIEWS};
use datafusion::datasource::MemTable;
use datafusion::prelude::{SessionConfig, SessionContext};
use tokio::runtime::{Builder, Runtime};

/// How often each is timed.
const ROUNDS: usize = 3;

/// DataFusion with the tables in memory.
struct Batch {
    runtime: Runtime,
    context: SessionContext,
}

impl Batch {
    fn new(size: i64) -> Self {
        let runtime = Builder::new_current_thread().build().expect("a runtime starts");
        let config = SessionConfig::new().with_target_partitions(1);
        let context = SessionContext::new_with_config(config);
        for (name, batches) in
            [("t", grouped::contents(size).collect()), ("d", vec![grouped::labels(size)])]
        {
            let table = MemTable::try_new(batches[0].schema(), vec![batches]);
            let table = table.expect("batches of one schema");
            context.register_table(name, Arc::new(table)).expect("the name is free");
        }
        Self { runtime, context }
    }

    fn rows(&self, query: &str) -> usize {
        let rows = async { self.context.sql(query).await?.collect().await };
        let rows = self.runtime.block_on(rows).expect("DataFusion evaluates the query");
        rows.iter().map(RecordBatch::num_rows).sum()
    }
}

fn open() -> Engine {
    let engine = Engine::builder().workers(1).open_in_memory().expect("an engine opens");
    engine.execute(TABLES).expect("the statements are right");
    engine
}

fn create(engine: &Engine, query: &str) {
    let create = format!("CREATE MATERIALIZED VIEW v AS {query}");
    engine.execute(&create).expect("the views are right");
}

fn count(engine: &Engine) -> usize {
    let rows = engine.query("SELECT COUNT(*) FROM v").expect("the view can be read");
    rows[0].column(0).as_primitive::<Int64Type>().value(0) as usize
}

/// The seconds that something takes.
fn seconds(timed: impl FnOnce()) -> f64 {
    let begun = Instant::now();
    timed();
    begun.elapsed().as_secs_f64()
}

fn main() {
    let Some(arguments) = alluvium_benches::arguments() else { return };
    let (sizes, names): (Vec<String>, Vec<String>) =
        arguments.into_iter().partition(|argument| argument.parse::<i64>().is_ok());
    let size = sizes.first().map_or(1_000_000, |size| size.parse().expect("it is a number"));
    let batch = Batch::new(size);
    let filled = open();
    grouped::load(&filled, size);
    println!("{size} rows; seconds\n");
    println!("| view | DataFusion | fill | ratio | load |\n|---|---|---|---|---|");
    let is_asked = |name: &str| names.iter().all(|part| name.contains(part.as_str()));
    for (name, query) in VIEWS.into_iter().filter(|(name, _)| is_asked(name)) {
        let [mut once, mut fill] = [f64::INFINITY; 2];
        for _ in 0..ROUNDS {
            let mut rows = 0;
            once = once.min(seconds(|| rows = batch.rows(query)));
            fill = fill.min(seconds(|| create(&filled, query)));
            assert_eq!(count(&filled), rows, "{name}: as many rows as DataFusion has");
            filled.execute("DROP MATERIALIZED VIEW v").expect("nothing reads the view");
        }
        let engine = open();
        create(&engine, query);
        let load = seconds(|| grouped::load(&engine, size));
        println!("| {name} | {once:.3} | {fill:.3} | {:.1} | {load:.2} |", fill / once);
    }
}
