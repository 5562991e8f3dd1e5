//! Clients alone, and while a view is filled beside them.

use std::thread;
use std::time::{Duration, Instant};

use alluvium::Engine;

use crate::pace::{self, Done};
use crate::work::{self, Kind};

/// The share of what clients can do at most that they do in an open loop.
const SHARE: f64 = 0.3;

/// The rows of the table below the view that is filled, of which each is a group.
const FILLED: usize = 5_000_000;

const VIEW: &str = "CREATE MATERIALIZED VIEW totals AS
    SELECT k, COUNT(*) AS c, SUM(v) AS v FROM big GROUP BY k";

fn engine() -> Engine {
    let engine = Engine::builder().workers(1).open_in_memory().expect("an engine opens");
    engine.execute(work::DEFINITIONS).expect("the statements are right");
    engine.execute("CREATE TABLE big (k BIGINT, v BIGINT)").expect("the statement is right");
    const PORTION: usize = 500_000;
    for start in (0..FILLED).step_by(PORTION) {
        let end = start + PORTION;
        let insert = format!(
            "INSERT INTO big SELECT n * 7919 % {FILLED}, n FROM range({start}, {end}) AS r (n)"
        );
        engine.execute(&insert).expect("the statement is right");
    }
    engine.wait(engine.progress().committed).expect("the engine is well");
    engine
}

/// Fills the view once, and drops it; the seconds that took.
fn fill(engine: &Engine) -> f64 {
    let start = Instant::now();
    engine.execute(VIEW).expect("the view is right");
    let took = start.elapsed().as_secs_f64();
    engine.execute("DROP VIEW totals").expect("it is there");
    took
}

fn of(done: &Done) -> String {
    format!("{:.0} / {:.0} us", done.within(0.5), done.within(0.99))
}

pub(crate) fn run(period: Duration, fills: bool) {
    let engine = engine();
    let mut fills_alone: Vec<f64> = match fills {
        true => (0..3).map(|_| fill(&engine)).collect(),
        false => Vec::new(),
    };
    fills_alone.sort_by(f64::total_cmp);
    let fill_alone = fills_alone.get(1).copied();
    if let Some(seconds) = fill_alone {
        println!("a view of {FILLED} rows is filled in {seconds:.2} s alone");
    }
    println!(
        "work, clients: peak a second; median / p99 of the closed loop, of the open loop, of that beside the fill"
    );
    for kind in Kind::ALL {
        for count in [1, 8, 64] {
            let peak = pace::closed(&mut work::clients(&engine, kind, count), period);
            print!("{kind}, {count}: {:.0}; {}", peak.rate(), of(&peak));
            if let Some(fill_alone) = fill_alone {
                let rate = SHARE * peak.rate();
                let clients = || work::clients(&engine, kind, count);
                let alone = || thread::sleep(period);
                let (before, ()) = pace::open_during(&mut clients(), rate, alone);
                let (during, took) = pace::open_during(&mut clients(), rate, || fill(&engine));
                print!(
                    ", {} ({:.3} done), {} ({:.3} done): p99 x{:.2}, fill x{:.2}",
                    of(&before),
                    before.share(),
                    of(&during),
                    during.share(),
                    during.within(0.99) / before.within(0.99),
                    took / fill_alone,
                );
            }
            println!();
        }
    }
}
