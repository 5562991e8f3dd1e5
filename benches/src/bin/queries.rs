//! The table of queries: peak resident memory of queries over many rows, at a small budget.
//!
//! ```sh
//! cargo run -p alluvium-benches --bin queries -- target/release/alluvium [ROWS [KIND…]]
//! ```
//!
//! Each kind runs in a process of its own, over a table of ROWS rows of some 60 bytes (default 10,000,000). Its result is read
//! slowly, 64 KiB each 2 ms. The process without a query, and over no rows, is what the peak is compared with: all rows of the
//! table may take the budget and 32 MiB more, a query that keeps rows also what queries may hold, 32 MiB. Ends with status 1 if
//! one takes more.

use std::io::Read;
use std::path::Path;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use alluvium_benches::{Finished, Folder, Result, run_program_to};

const MIB: u64 = 1 << 20;
const BUDGET: u64 = 64 * MIB;
/// The most that the peak may be above the budget and an empty run.
const MARGIN: u64 = 32 * MIB;
/// The most that queries may hold.
const HELD: u64 = 32 * MIB;

/// Queries by name, and whether they keep rows.
const KINDS: [(&str, &str, bool); 6] = [
    ("all rows", "SELECT * FROM t", false),
    ("rows in another order", "SELECT * FROM t ORDER BY text", true),
    ("groups of few rows", "SELECT k, COUNT(*), MAX(text) FROM t GROUP BY k", true),
    ("distinct texts", "SELECT COUNT(*) FROM (SELECT DISTINCT text FROM t)", true),
    ("join of all rows", "SELECT a.id, b.text FROM t AS a JOIN t AS b ON a.k = b.id", true),
    (
        "rows without a match",
        "SELECT * FROM t AS a WHERE NOT EXISTS (SELECT 1 FROM t AS b WHERE b.k = a.id)",
        true,
    ),
];

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(binary) = arguments.next() else {
        eprintln!("usage: queries BINARY [ROWS [KIND…]]");
        return ExitCode::from(2);
    };
    let rows = arguments.next().and_then(|rows| rows.parse().ok()).unwrap_or(10_000_000);
    let kinds: Vec<String> = arguments.collect();
    match run(Path::new(&binary), rows, &kinds) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// Prints the table; whether all kinds are within their bounds.
fn run(binary: &Path, rows: u64, kinds: &[String]) -> Result<bool> {
    let folder = Folder::new("queries")?;
    let empty = measure(binary, folder.path(), 0, "")?;
    println!("| query | bytes of its result | seconds | peak | at most |");
    println!("|---|---|---|---|---|");
    let mut within = true;
    for (name, query, keeps) in KINDS {
        if !kinds.is_empty() && kinds.iter().all(|kind| kind != name) {
            continue;
        }
        let found = measure(binary, folder.path(), rows, query)?;
        let most = empty.peak + BUDGET + MARGIN + if keeps { HELD } else { 0 };
        let is_within = found.peak <= most;
        within &= is_within;
        let mark = if is_within { "" } else { " **more**" };
        let (peak, most) = (found.peak / MIB, most / MIB);
        let Finished { printed, seconds, .. } = found;
        println!("| {name} | {printed} | {seconds:.0} | {peak} MiB{mark} | {most} MiB |");
    }
    Ok(within)
}

/// Runs a query over so many rows, and reads its result slowly; of that the number of bytes is kept.
fn measure(binary: &Path, folder: &Path, rows: u64, query: &str) -> Result<Finished> {
    const PORTION: u64 = 250_000;
    let mut program =
        String::from("CREATE TABLE t (id BIGINT PRIMARY KEY, k BIGINT, text VARCHAR);\n");
    for start in (0..rows).step_by(PORTION as usize) {
        let end = (start + PORTION).min(rows);
        program += &format!(
            "INSERT INTO t SELECT x, x * 7919 % {rows}, 'text ' || (x * 48271 % 2147483647) || '{}' \
             FROM range({start}, {end}) AS r (x);\n",
            "x".repeat(20)
        );
    }
    program += query;
    run_program_to(binary, folder, &program, 1, BUDGET, |mut output| {
        let (mut printed, mut portion) = (0, vec![0; 64 << 10]);
        loop {
            match output.read(&mut portion)? {
                0 => return Ok(format!("{printed}")),
                read => printed += read,
            }
            thread::sleep(Duration::from_millis(2));
        }
    })
}
