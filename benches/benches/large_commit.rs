//! Commits of one row beside a transaction of very many.
//!
//! ```sh
//! cargo bench -p alluvium-benches --bench large_commit -- [DIRECTORY] [ROWS]
//! ```
//!
//! A client commits rows one after the other, durably, and another one inserts `ROWS` (10,000,000) in one transaction into another
//! table. It prints how long the commits of the first one take alone, while the other one's rows are staged, and while it commits:
//! the 50 % and 99 % of them, and the longest, in milliseconds.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use alluvium::Engine;

/// The phases of the other client, by number.
const PHASES: [&str; 3] = ["alone", "while rows are staged", "while they are committed"];

/// The number after the last phase.
const OVER: u8 = PHASES.len() as u8;

/// How long commits are measured alone.
const ALONE: Duration = Duration::from_secs(5);

fn milliseconds(durations: &[Duration], part: f64) -> f64 {
    let place = ((durations.len() as f64 * part) as usize).min(durations.len() - 1);
    durations[place].as_secs_f64() * 1e3
}

fn run(directory: &Path, rows: u64) {
    let state = directory.join("large-commit");
    let engine = Engine::builder()
        .workers(2)
        .state(format!("file:{}", state.display()))
        .open()
        .expect("the directory is free");
    engine
        .execute(
            "CREATE TABLE small (id BIGINT PRIMARY KEY, n BIGINT);
             CREATE TABLE large (id BIGINT PRIMARY KEY, n BIGINT)",
        )
        .expect("the tables are created");
    let phase = AtomicU8::new(0);
    let mut taken: [Vec<Duration>; PHASES.len()] = Default::default();
    thread::scope(|scope| {
        let committing = scope.spawn(|| {
            let mut session = engine.session();
            let insert = session.prepare("INSERT INTO small VALUES ($1, 1)");
            let insert = insert.expect("the statement is right");
            for id in 0_i64.. {
                let now = phase.load(Ordering::Relaxed);
                let Some(taken) = taken.get_mut(usize::from(now)) else { break };
                let start = Instant::now();
                session.execute_prepared(&insert, &[id.into()]).expect("the row is committed");
                taken.push(start.elapsed());
            }
        });
        thread::sleep(ALONE);
        phase.store(1, Ordering::Relaxed);
        let mut session = engine.session();
        let insert =
            format!("BEGIN; INSERT INTO large SELECT n, n % 7 FROM range(0, {rows}) AS r (n)");
        let start = Instant::now();
        session.execute(&insert).expect("the rows are staged");
        let staged = start.elapsed();
        phase.store(2, Ordering::Relaxed);
        session.execute("COMMIT").expect("the rows are committed");
        phase.store(OVER, Ordering::Relaxed);
        committing.join().expect("no panic");
        println!(
            "{rows} rows are staged in {:.1} s and committed in {:.1} s",
            staged.as_secs_f64(),
            (start.elapsed() - staged).as_secs_f64()
        );
    });
    println!("| | commits | 50 % | 99 % | longest |");
    println!("|---|---|---|---|---|");
    for (phase, taken) in PHASES.iter().zip(&mut taken) {
        taken.sort_unstable();
        if let Some(longest) = taken.last() {
            println!(
                "| {phase} | {} | {:.2} | {:.2} | {:.1} |",
                taken.len(),
                milliseconds(taken, 0.5),
                milliseconds(taken, 0.99),
                longest.as_secs_f64() * 1e3
            );
        }
    }
    drop(engine);
    // Files left there are of no use to the next run.
    let _ = std::fs::remove_dir_all(&state);
}

fn main() {
    let Some(arguments) = alluvium_benches::arguments() else { return };
    let own = tempfile::tempdir().expect("a directory");
    let directory = arguments.first().map_or(own.path().to_path_buf(), PathBuf::from);
    let rows = arguments.get(1).map_or(10_000_000, |rows| rows.parse().expect("a number of rows"));
    run(&directory, rows);
}
