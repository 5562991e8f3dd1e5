//! The memory table: peak resident memory of every kind of view at a small budget.
//!
//! ```sh
//! cargo run -p alluvium-benches --bin memory -- target/release/alluvium [ROWS [KIND…]]
//! ```
//!
//! Each kind of view runs twice in a process of its own: over an empty file, and over ROWS rows of some 170 bytes (default
//! 1,500,000). The peak may exceed the first one's by the budget and 64 MiB. Another table is for rows of a megabyte. Ends
//! with status 1 if a kind takes more.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use alluvium_benches::{Finished, Folder, Result, run_program};

const MIB: u64 = 1 << 20;
const BUDGET: u64 = 32 * MIB;
/// The most that the peak may be above the budget and an empty run.
const MARGIN: u64 = 64 * MIB;
const WORKERS: u32 = 2;

/// Kinds of views by name. Of `g` there are as many values as the square root of the rows, of `one` there is one; a
/// hundredth of the `id` are in `dims`.
const KINDS: [(&str, &str); 14] = [
    ("copy", "SELECT * FROM t WHERE id >= 0"),
    (
        "groups",
        "SELECT id % 500000 AS k, COUNT(*) AS n, SUM(v) AS s, AVG(v) AS a FROM t GROUP BY id % 500000",
    ),
    ("one group", "SELECT one, COUNT(*) AS n, SUM(v) AS s FROM t GROUP BY one"),
    (
        "extremes of one group",
        "SELECT one, MIN(text) AS low, MAX(text) AS high FROM t GROUP BY one",
    ),
    ("distinct values of one group", "SELECT one, COUNT(DISTINCT text) AS n FROM t GROUP BY one"),
    (
        "recomputed groups",
        "SELECT g, MEDIAN(v) AS m, STRING_AGG(text, ',' ORDER BY id) AS texts FROM t GROUP BY g",
    ),
    (
        "recomputed: one group",
        "SELECT one, STRING_AGG(text, ',' ORDER BY id) AS texts FROM t GROUP BY one",
    ),
    (
        "window over many partitions",
        "SELECT id, g, SUM(v) OVER (PARTITION BY g ORDER BY id) AS s, text FROM t",
    ),
    ("window over one partition", "SELECT id, SUM(v) OVER (ORDER BY id) AS s, text FROM t"),
    (
        "first rows of groups",
        "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY g ORDER BY v DESC, id) AS n FROM t) WHERE n <= 3",
    ),
    ("join by a unique key", "SELECT a.id, a.text, b.v FROM t a JOIN t b ON a.id = b.id"),
    ("join of one hot key", "SELECT t.id, t.text, d.name FROM t JOIN dims d ON t.one = d.one"),
    (
        "rows without a match",
        "SELECT id, text FROM t WHERE NOT EXISTS (SELECT 1 FROM dims d WHERE d.id = t.id)",
    ),
    ("distinct rows", "SELECT DISTINCT g, v, text FROM t"),
];

/// Views over rows of a megabyte.
const LONG: [(&str, &str); 3] = [
    ("copy of rows of 1 MB", "SELECT * FROM t"),
    ("groups of rows of 1 MB", "SELECT g, COUNT(*) AS n, MAX(text) AS high FROM t GROUP BY g"),
    ("join of rows of 1 MB", "SELECT a.id, a.text, b.v FROM t a JOIN t b ON a.id = b.id"),
];

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(binary) = arguments.next() else {
        eprintln!("usage: memory BINARY [ROWS [KIND…]]");
        return ExitCode::from(2);
    };
    let rows = arguments.next().and_then(|rows| rows.parse().ok()).unwrap_or(1_500_000);
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

/// Prints both tables; whether all kinds are within their bounds.
fn run(binary: &Path, rows: u64, kinds: &[String]) -> Result<bool> {
    let folder = Folder::new("memory")?;
    let bench = Bench { binary, folder: folder.path() };
    write_rows(&folder.path().join("none.csv"), 0, 0)?;
    write_rows(&folder.path().join("short.csv"), rows, 120)?;
    write_rows(&folder.path().join("long.csv"), rows / 5_000, 1_000_000)?;
    let mut dims = BufWriter::new(File::create(folder.path().join("dims.csv"))?);
    for id in 0..rows / 100 {
        let one = if id == 0 { "1" } else { "" };
        writeln!(dims, "{},{one},name {id}", id * 100)?;
    }
    dims.flush()?;
    println!("| view | rows or error rows | seconds | empty | peak | at most |");
    println!("|---|---|---|---|---|---|");
    let mut within = true;
    let all =
        KINDS.iter().map(|kind| (kind, "short")).chain(LONG.iter().map(|kind| (kind, "long")));
    for ((name, view), file) in all {
        if kinds.is_empty() || kinds.iter().any(|kind| kind == name) {
            within &= bench.measure(name, view, file)?;
        }
    }
    Ok(within)
}

struct Bench<'a> {
    binary: &'a Path,
    folder: &'a Path,
}

/// The report of a run of the binary.
struct Report {
    rows: String,
    peak: u64,
    seconds: f64,
}

impl Bench<'_> {
    /// Prints the line of a kind; whether it is within its bound.
    fn measure(&self, name: &str, view: &str, file: &str) -> Result<bool> {
        let empty = self.run(view, "none")?;
        let full = self.run(view, file)?;
        let most = BUDGET + empty.peak + MARGIN;
        let is_within = full.peak <= most;
        let [empty, peak, most] = [empty.peak, full.peak, most].map(|bytes| bytes / MIB);
        let mark = if is_within { "" } else { " **more**" };
        let Report { rows, seconds, .. } = full;
        println!(
            "| {name} | {rows} | {seconds:.0} | {empty} MiB | {peak} MiB{mark} | {most} MiB |"
        );
        Ok(is_within)
    }

    fn run(&self, view: &str, file: &str) -> Result<Report> {
        let input = |table: &str, file: &str, columns: &str| {
            let path = self.folder.join(format!("{file}.csv"));
            format!(
                "CREATE TABLE {table} ({columns}) WITH ('connectors' = '[{{
                     \"transport\": {{\"name\": \"file_input\", \"config\": {{\"path\": \"{}\"}}}},
                     \"format\": {{\"name\": \"csv\", \"config\": {{\"headers\": false}}}}}}]');\n",
                path.display()
            )
        };
        let dims = if file == "none" { "none" } else { "dims" };
        let mut program = input("t", file, "id BIGINT, one INT, g INT, v BIGINT, text VARCHAR");
        if dims == "dims" {
            program += &input("dims", dims, "id BIGINT, one INT, name VARCHAR");
        } else {
            program += "CREATE TABLE dims (id BIGINT, one INT, name VARCHAR);\n";
        }
        program += &format!(
            "CREATE MATERIALIZED VIEW v AS {view};
             SELECT (SELECT COUNT(*) FROM v) AS n, COUNT(*) AS errors FROM alluvium.errors;"
        );
        let Finished { printed, peak, seconds } =
            run_program(self.binary, self.folder, &program, WORKERS, BUDGET)?;
        let rows = match printed.lines().last().and_then(|line| line.split_once(',')) {
            Some((rows, "0")) => format!("{rows} rows"),
            Some((rows, errors)) => format!("{rows} rows, {errors} error rows"),
            None => return Err(format!("{view}: it printed {printed:?}").into()),
        };
        Ok(Report { rows, peak, seconds })
    }
}

/// Rows with a text of `length` bytes, in no order of any column but `id`.
fn write_rows(path: &Path, rows: u64, length: usize) -> Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    let groups = rows.isqrt().max(1);
    let (mut random, padding) = (1_u64, "x".repeat(length.saturating_sub(20)));
    for id in 0..rows {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (value, group) = (random >> 44, (random >> 20) % groups);
        writeln!(file, "{id},1,{group},{value},{random:020}{padding}")?;
    }
    Ok(file.flush()?)
}
