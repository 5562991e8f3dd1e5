//! Nexmark as a program that is killed and resumes.
//!
//! `ALLUVIUM_KILLS` sets the number of rounds.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use alluvium_nexmark::query::Query;
use alluvium_nexmark::source::files::Files;
use alluvium_nexmark::source::{Extent, RATE};
use alluvium_nexmark::tables::Tables;
use tempfile::TempDir;

use crate::binary::binary;

/// How many rounds there are by default.
const ROUNDS: u64 = 4;

const QUERIES: &str = "q3,q4,q5,q7,q9,q17,q18,q20";

const OPTIONS: &str = "WITH ('append_only' = 'true', 'materialized' = 'false'";

/// The streams' files, and a program of all queries over them.
fn write(folder: &Path) {
    let extent = Extent { events: 40_000, epoch_rows: 4_000, rate: RATE };
    Files::ensure(folder, extent).unwrap();
    let tables = Tables::default().sql();
    let mut tables = tables.replace("p_time TIMESTAMP NOT NULL", "p_time TIMESTAMP DEFAULT NOW()");
    for stream in ["person", "auction", "bid"] {
        let file = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let mut file = file.map(|name| name.into_string().unwrap());
        let file = file.find(|name| name.starts_with(stream)).unwrap();
        let with = format!(
            "WITH (connector = 'file', path = '{file}', 'append_only' = 'true', 'materialized' = 'false'"
        );
        tables = tables.replacen(OPTIONS, &with, 1);
    }
    let queries = Query::list(QUERIES).unwrap();
    let queries: Vec<&str> = queries.iter().map(|query| query.sql).collect();
    fs::write(folder.join("p.sql"), format!("{tables}\n{}", queries.join("\n"))).unwrap();
}

fn command(folder: &Path, workers: u64) -> Command {
    let mut command = Command::new(binary());
    command.current_dir(folder).args(["run", "p.sql", "--output", "out", "--state", "state"]);
    // Little memory makes small transactions, and state in files.
    command.args(["--memory", "16MiB", "--workers", &workers.to_string()]);
    command
}

/// For each view the sums of its changes.
fn written(folder: &Path) -> BTreeMap<String, BTreeMap<String, i64>> {
    let files = fs::read_dir(folder.join("out")).unwrap().map(|entry| entry.unwrap().path());
    let sums = files.map(|path| {
        let mut sums = BTreeMap::new();
        for line in fs::read_to_string(&path).unwrap().lines().skip(1) {
            let (_epoch, rest) = line.split_once(',').unwrap();
            let (weight, row) = rest.split_once(',').unwrap();
            *sums.entry(row.to_owned()).or_insert(0) += weight.parse::<i64>().unwrap();
        }
        sums.retain(|_, sum| *sum != 0);
        (path.file_name().unwrap().to_str().unwrap().to_owned(), sums)
    });
    sums.collect()
}

#[test]
fn nexmark_goes_on_after_kill_9() {
    let rounds = std::env::var("ALLUVIUM_KILLS").map_or(ROUNDS, |rounds| rounds.parse().unwrap());
    let undisturbed = TempDir::new().unwrap();
    write(undisturbed.path());
    let run = |folder: &Path| {
        let output = command(folder, 2).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    run(undisturbed.path());
    let expected = written(undisturbed.path());
    assert_eq!(expected.len(), QUERIES.split(',').count());
    assert!(expected.values().all(|sums| !sums.is_empty()));
    let (mut killed, mut since) = (0, 0);
    let mut folder = TempDir::new().unwrap();
    write(folder.path());
    for round in 0..rounds {
        let mut child = command(folder.path(), 2).spawn().unwrap();
        thread::sleep(Duration::from_millis(200 + round * 97 % 900));
        child.kill().unwrap();
        killed += u64::from(child.wait().unwrap().code().is_none());
        since += 1;
        if since == 4 || round + 1 == rounds {
            run(folder.path());
            assert_eq!(written(folder.path()), expected, "round {round}");
            since = 0;
            folder = TempDir::new().unwrap();
            write(folder.path());
        }
    }
    assert!(killed > 0, "some were killed");
}
