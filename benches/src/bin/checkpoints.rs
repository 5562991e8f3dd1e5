//! Checkpoints of a large state: how long commits wait for one, how much it writes, and how soon the next engine is ready.
//!
//! `checkpoints DIRECTORY [MILLIONS OF ROWS]`: a table of so many rows of some 100 bytes, by default 10, with an aggregate
//! over it, in a new state directory. One thread commits a row at a time throughout, and waits until it is in the view. At
//! first its commits do not wait for the disk: what holds them up then is the pause that the workers make. Later they do, and
//! share the disk with the checkpoint. At the end engines with other numbers of workers are opened, beside one that the rows of
//! the table enter again.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use alluvium::{Durability, Engine, Error, Result};

const WORKERS: usize = 2;

/// Other numbers of workers.
const OTHERS: [usize; 3] = [1, 3, 4];

const DEFINITIONS: &str = "
    CREATE TABLE events (id BIGINT PRIMARY KEY, account BIGINT, note VARCHAR);
    CREATE MATERIALIZED VIEW accounts AS
        SELECT account, COUNT(*) AS events, MAX(id) AS last FROM events GROUP BY account";

fn open(directory: &Path, durability: Durability) -> Result<Engine> {
    open_with(directory, WORKERS, durability)
}

fn open_with(directory: &Path, workers: usize, durability: Durability) -> Result<Engine> {
    let state = format!("file:{}", directory.display());
    // Only the checkpoints that are asked for.
    let builder = Engine::builder().workers(workers).checkpoints(Duration::MAX, u64::MAX);
    builder.state(state).durability(durability).open()
}

/// Inserts these rows.
fn load(engine: &Engine, rows: Range<i64>) -> Result<()> {
    for start in rows.clone().step_by(500_000) {
        let end = (start + 500_000).min(rows.end);
        engine.execute(&format!(
            "INSERT INTO events SELECT n, n % 100000, repeat('x', 60) || n
             FROM (SELECT UNNEST(range({start}, {end})) AS n)"
        ))?;
    }
    engine.query("SELECT COUNT(*) FROM accounts").map(drop)
}

/// The files in a folder, with their sizes.
fn files(folder: &Path) -> BTreeMap<OsString, u64> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some((entry.file_name(), entry.metadata().ok()?.len()))).collect()
}

/// Commits a row at a time while `act` runs. Returns how long that took, and the times of the commits, sorted.
fn beside(
    engine: &Engine,
    first: i64,
    act: impl FnOnce() -> Result<()>,
) -> Result<(Duration, Vec<Duration>)> {
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let commits = scope.spawn(|| -> Result<Vec<Duration>> {
            let mut times = Vec::new();
            for number in first.. {
                if is_done.load(Ordering::Relaxed) {
                    break;
                }
                let start = Instant::now();
                engine.execute(&format!("INSERT INTO events VALUES ({number}, 1, 'beside')"))?;
                engine.wait(engine.progress().committed)?;
                times.push(start.elapsed());
            }
            times.sort_unstable();
            Ok(times)
        });
        let start = Instant::now();
        let acted = act();
        let took = start.elapsed();
        is_done.store(true, Ordering::Relaxed);
        let times = commits.join().map_err(|_| Error::data("the committing thread panicked"))??;
        acted.map(|()| (took, times))
    })
}

fn show(what: &str, took: Duration, times: &[Duration], written: u64) {
    let at = |share: f64| {
        let place = (times.len() as f64 * share) as usize;
        times.get(place.min(times.len().saturating_sub(1))).copied().unwrap_or_default()
    };
    println!(
        "{what}: {took:.2?}, {:.1} MiB written; {} commits beside it, median {:.2?}, 99 % {:.2?}, longest {:.2?}",
        written as f64 / f64::from(1 << 20),
        times.len(),
        at(0.5),
        at(0.99),
        at(1.0),
    );
}

/// Commits beside nothing, and then beside checkpoints, one after the other.
fn checkpoints(engine: &Engine, directory: &Path, next: &mut i64, count: usize) -> Result<()> {
    let blobs = directory.join("blobs");
    let idle = || {
        thread::sleep(Duration::from_secs(3));
        Ok(())
    };
    let (took, times) = beside(engine, *next, idle)?;
    show("no checkpoint", took, &times, 0);
    *next += times.len() as i64;
    for number in 1..=count {
        let before = files(&blobs);
        let (took, times) = beside(engine, *next, || engine.checkpoint())?;
        *next += times.len() as i64;
        let new = files(&blobs).into_iter().filter(|(name, _)| !before.contains_key(name));
        show(&format!("checkpoint {number}"), took, &times, new.map(|(_, bytes)| bytes).sum());
    }
    Ok(())
}

/// Opens the directory with other numbers of workers.
fn deal(directory: &Path) -> Result<()> {
    for workers in OTHERS {
        let start = Instant::now();
        let engine = open_with(directory, workers, Durability::Always)?;
        let opened = start.elapsed();
        engine.query("SELECT events FROM accounts WHERE account = 1")?;
        println!(
            "opened with {workers} workers after {opened:.2?}, first query after {:.2?}",
            start.elapsed()
        );
    }
    Ok(())
}

/// Enters the rows of the table into another engine, in one transaction, with so many workers.
fn enter(directory: &Path, rows: i64, workers: usize) -> Result<()> {
    let engine = open(directory, Durability::Always)?;
    let other = directory.with_extension("entered");
    let start = Instant::now();
    let entered = open_with(&other, workers, Durability::Never)?;
    entered.execute(DEFINITIONS)?;
    let mut transaction = entered.begin()?;
    let piece = 500_000;
    for first in (0..rows).step_by(piece as usize) {
        let sql = format!("SELECT * FROM events WHERE id >= {first} AND id < {}", first + piece);
        for rows in engine.query(&sql)? {
            transaction.insert("events", rows)?;
        }
    }
    entered.wait(transaction.commit()?)?;
    println!("entered again into {workers} workers after {:.2?}", start.elapsed());
    drop(entered);
    fs::remove_dir_all(&other).map_err(|error| Error::data(error.to_string()))
}

fn main() -> Result<()> {
    let mut arguments = env::args().skip(1);
    let Some(directory) = arguments.next().map(PathBuf::from) else {
        return Err(Error::data("usage: checkpoints DIRECTORY [MILLIONS OF ROWS]"));
    };
    let millions: i64 = arguments.next().and_then(|count| count.parse().ok()).unwrap_or(10);
    let rows = millions * 1_000_000;
    // Rows that are committed one by one have other keys.
    let mut next = 2 * rows;
    let engine = open(&directory, Durability::Never)?;
    engine.execute(DEFINITIONS)?;
    load(&engine, 0..rows)?;
    println!("{rows} rows, {} MiB of state", engine.state().bytes >> 20);
    println!("commits do not wait for the disk");
    checkpoints(&engine, &directory, &mut next, 3)?;
    drop(engine);
    println!("commits wait for the disk");
    let engine = open(&directory, Durability::Always)?;
    load(&engine, rows..rows + rows / 10)?;
    checkpoints(&engine, &directory, &mut next, 2)?;
    drop(engine);

    let start = Instant::now();
    let engine = open(&directory, Durability::Always)?;
    let opened = start.elapsed();
    let count = engine.query("SELECT events FROM accounts WHERE account = 1")?;
    let queried = start.elapsed();
    engine.execute(&format!("INSERT INTO events VALUES ({next}, 1, 'after')"))?;
    let committed = start.elapsed();
    println!(
        "opened again after {opened:.2?}, first query ({} row) after {queried:.2?}, first commit after {committed:.2?}",
        count.iter().map(|rows| rows.num_rows()).sum::<usize>(),
    );
    drop(engine);
    deal(&directory)?;
    OTHERS.into_iter().try_for_each(|workers| enter(&directory, rows + rows / 10, workers))
}
