//! Reads of a table beside a view over it whose epochs take long.

use std::thread;
use std::time::{Duration, Instant};

use alluvium::Engine;

use crate::pace;
use crate::work::{self, Kind};

/// The time of an epoch of the view, more or less.
const EPOCH: Duration = Duration::from_millis(100);

/// A join of all pairs of its rows, of which few are left.
const VIEW: &str = "CREATE MATERIALIZED VIEW pairs AS
    SELECT COUNT(*) AS c FROM item AS a, probe AS b WHERE a.amount + b.n = 7";

/// Seconds that an epoch with this many rows of `probe` takes the view.
fn epoch(engine: &Engine, rows: usize) -> f64 {
    let start = Instant::now();
    let insert = format!("INSERT INTO probe SELECT n FROM range(0, {rows}) AS r (n)");
    engine.execute(&insert).expect("the statement is right");
    engine.wait(engine.progress().committed).expect("the engine is well");
    start.elapsed().as_secs_f64()
}

pub(crate) fn run(period: Duration) {
    let engine = Engine::builder().workers(1).open_in_memory().expect("an engine opens");
    engine.execute(work::DEFINITIONS).expect("the statements are right");
    engine.execute("CREATE TABLE probe (n BIGINT)").expect("the statement is right");
    let alone = pace::closed(&mut work::clients(&engine, Kind::Prepared, 1), period);
    engine.execute(VIEW).expect("the view is right");
    let mut rows = 1;
    while epoch(&engine, rows) < EPOCH.as_secs_f64() {
        rows *= 2;
    }
    // Each epoch changes the table, too, so that a read has to wait for what it reads.
    let mut clients = work::clients(&engine, Kind::Prepared, 1);
    let (done, epochs) = pace::open_during(&mut clients, 1000.0, || {
        let (start, mut epochs) = (Instant::now(), 0);
        while start.elapsed() < period {
            let insert = format!(
                "BEGIN; INSERT INTO probe SELECT n FROM range(0, {rows}) AS r (n);
                 INSERT OR REPLACE INTO item VALUES (7, 7, {epochs}); COMMIT"
            );
            engine.execute(&insert).expect("the statement is right");
            // Half of the time the view has nothing to do.
            engine.wait(engine.progress().committed).expect("the engine is well");
            epochs += 1;
            thread::sleep(Duration::from_millis(20));
        }
        epochs
    });
    println!(
        "reads of a table: {:.0} / {:.0} us in a closed loop alone; beside a view with {epochs} epochs in {:.1} s, \
         1,000 a second: median {:.0} us, p99 {:.0} us, longest {:.0} us",
        alone.within(0.5),
        alone.within(0.99),
        done.elapsed.as_secs_f64(),
        done.within(0.5),
        done.within(0.99),
        done.within(1.0),
    );
}
