//! `alluvium upgrade`: directories of earlier versions, with processes that are killed meanwhile.
//!
//! `ALLUVIUM_KILLS` sets the number of rounds.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use alluvium::StateDirectory;
use tempfile::TempDir;

use crate::binary::binary;

/// How many processes are killed by default, for each version.
const ROUNDS: u64 = 5;

/// Relations of each golden directory, of all kinds.
const RELATIONS: [&str; 8] =
    ["account", "note", "shop.stock", "total", "rich_owner", "clicks", "reach", "of_plain"];

/// The golden directories of versions before this one.
fn older() -> Vec<PathBuf> {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../connect/tests/golden");
    let entries = fs::read_dir(golden).unwrap().map(|entry| entry.unwrap().path());
    let is_older = |path: &PathBuf| {
        let state = path.join("state");
        state.is_dir() && !StateDirectory::open(state).unwrap().formats().unwrap().are_newest()
    };
    let mut older: Vec<PathBuf> = entries.filter(is_older).collect();
    older.sort();
    older
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy(&entry.path(), &to),
            false => drop(fs::copy(entry.path(), &to).unwrap()),
        }
    }
}

/// The paths of golden directories lead through the working directory.
fn alluvium(folder: &TempDir, arguments: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.current_dir(folder.path()).args(arguments).stdin(Stdio::null());
    command
}

fn succeeds(folder: &TempDir, arguments: &[&str]) -> String {
    let Output { status, stdout, stderr } = alluvium(folder, arguments).output().unwrap();
    assert!(status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).unwrap()
}

/// The rows of all relations.
fn rows(folder: &TempDir) -> Vec<Vec<String>> {
    let rows = |relation| {
        let query = format!("SELECT * FROM {relation}");
        let arguments = ["-c", &query, "--state", "state", "--format", "csv"];
        let mut rows: Vec<String> =
            succeeds(folder, &arguments).lines().map(str::to_owned).collect();
        rows.sort();
        rows
    };
    RELATIONS.map(rows).to_vec()
}

#[test]
fn a_process_that_upgrades_a_directory_can_be_killed_at_any_time() {
    let rounds = std::env::var("ALLUVIUM_KILLS").map_or(ROUNDS, |rounds| rounds.parse().unwrap());
    let older = older();
    assert!(older.len() >= 2);
    for version in older {
        let expected = TempDir::new().unwrap();
        copy(&version, expected.path());
        let expected = rows(&expected);
        for round in 0..rounds {
            let folder = TempDir::new().unwrap();
            copy(&version, folder.path());
            // Some are killed before there is a checkpoint, some behind the last one.
            for kill in 0..3 {
                let mut process = alluvium(&folder, &["upgrade", "state"])
                    .stdout(Stdio::null())
                    .stderr(Stdio::null())
                    .spawn()
                    .unwrap();
                thread::sleep(Duration::from_millis(5 + (3 * round + kill) * 37 % 400));
                process.kill().unwrap();
                process.wait().unwrap();
            }
            succeeds(&folder, &["upgrade", "state"]);
            let formats = StateDirectory::open(folder.path().join("state")).unwrap().formats();
            assert!(formats.as_ref().unwrap().are_newest(), "round {round}: {formats:?}");
            succeeds(&folder, &["check", "state"]);
            assert_eq!(rows(&folder), expected, "{}, round {round}", version.display());
        }
    }
}

#[test]
fn a_directory_of_this_version_is_left_as_it_is() {
    let folder = TempDir::new().unwrap();
    succeeds(
        &folder,
        &["-c", "CREATE TABLE t (n INT); INSERT INTO t VALUES (1)", "--state", "state"],
    );
    let said = succeeds(&folder, &["upgrade", "state"]);
    assert!(said.starts_with("nothing to upgrade: versions of checkpoints: "), "{said}");
    let missing = alluvium(&folder, &["upgrade", "none"]).output().unwrap();
    assert_eq!(missing.status.code(), Some(1));
    let said = String::from_utf8(missing.stderr).unwrap();
    assert!(said.contains("there is no directory \"none\""), "{said}");
}
