//! Views over a year of flights have the contents that DuckDB computed.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use tempfile::TempDir;

use crate::binary::binary;

type Rows = Vec<Vec<String>>;

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/flights"))
}

/// A file's header line and rows.
fn read(path: &Path) -> (Vec<String>, Rows) {
    let mut reader =
        csv::Reader::from_path(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let fields = |record: &csv::StringRecord| record.iter().map(str::to_string).collect();
    let header = fields(reader.headers().unwrap());
    (header, reader.records().map(|record| fields(&record.unwrap())).collect())
}

/// A float: floats are compared with a relative error of 1e-9, everything else exactly.
fn float(text: &str) -> Option<f64> {
    let marked = text.contains(['.', 'e']) || matches!(text, "NaN" | "inf" | "-inf");
    text.parse().ok().filter(|_| marked)
}

/// Sorted by the columns that are compared exactly, then by the others.
fn sorted(mut rows: Rows) -> Rows {
    rows.sort_by(|a, b| {
        let exact = |row: &[String]| {
            row.iter().filter(|text| float(text).is_none()).cloned().collect::<Vec<_>>()
        };
        let rest = |row: &[String]| row.iter().filter_map(|text| float(text)).collect::<Vec<_>>();
        exact(a).cmp(&exact(b)).then_with(|| rest(a).partial_cmp(&rest(b)).unwrap())
    });
    rows
}

fn same(ours: &str, theirs: &str) -> bool {
    match (float(ours), float(theirs)) {
        (Some(a), Some(b)) => (a - b).abs() <= 1e-9 * f64::max(a.abs(), b.abs()),
        _ => ours == theirs,
    }
}

/// The number of rows, and the sum of their FNV-1a hashes.
fn hash(rows: &Rows) -> String {
    let one = |row: &Vec<String>| {
        let byte = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3);
        row.join("\x1F").bytes().fold(0xCBF2_9CE4_8422_2325, byte)
    };
    let sum = rows.iter().map(one).fold(0, u64::wrapping_add);
    format!("{} {sum:016x}\n", rows.len())
}

/// The first difference of a view from its expected contents.
fn difference(view: &str, output: &Path) -> Option<String> {
    let expected = folder().join("expected");
    let (header, rows) = read(&output.join(format!("{view}.csv")));
    if let Ok(theirs) = fs::read_to_string(expected.join(format!("{view}.hash"))) {
        let ours = hash(&rows);
        return (ours != theirs).then(|| format!("{view}: hash {ours:?} instead of {theirs:?}"));
    }
    let (their_header, theirs) = read(&expected.join(format!("{view}.csv")));
    if (&header, rows.len()) != (&their_header, theirs.len()) {
        let (ours, theirs) = (rows.len(), theirs.len());
        return Some(format!(
            "{view}: {ours} rows of {header:?} instead of {theirs} of {their_header:?}"
        ));
    }
    let pairs = sorted(rows).into_iter().zip(sorted(theirs));
    let mut wrong =
        pairs.filter(|(ours, theirs)| !ours.iter().zip(theirs).all(|(a, b)| same(a, b)));
    wrong.next().map(|(ours, theirs)| format!("{view}: {ours:?} instead of {theirs:?}"))
}

#[test]
fn a_year_of_flights_agrees_with_duckdb() {
    let Some(year) = std::env::var_os("ALLUVIUM_FLIGHTS") else {
        let _ = writeln!(std::io::stderr(), "skipped: ALLUVIUM_FLIGHTS names no folder of flights");
        return;
    };
    let text = fs::read_to_string(folder().join("views.sql")).unwrap();
    let starts = text.lines().filter_map(|line| line.strip_prefix("CREATE MATERIALIZED VIEW "));
    let views: Vec<_> = starts.map(|rest| rest.split(' ').next().unwrap()).collect();
    for workers in ["1", "2"] {
        let output = TempDir::new().unwrap();
        let start = Instant::now();
        let run = Command::new(binary())
            .arg("run")
            .arg(folder().join("views.sql"))
            .args(["--workers", workers, "--format", "csv"])
            .arg("--set")
            .arg(format!("DATA={}", Path::new(&year).canonicalize().unwrap().display()))
            .arg("--output")
            .arg(output.path())
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&run.stderr);
        assert!(run.status.success() && errors.is_empty(), "{workers} workers: {errors}");
        let wrong: Vec<_> =
            views.iter().filter_map(|view| difference(view, output.path())).collect();
        assert!(wrong.is_empty(), "{workers} workers:\n{}", wrong.join("\n"));
        let elapsed = start.elapsed();
        let _ = writeln!(
            std::io::stderr(),
            "{} views of a year of flights with {workers} workers in {elapsed:.1?}",
            views.len()
        );
    }
}
