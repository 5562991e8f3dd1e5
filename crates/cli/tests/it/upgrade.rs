//! `alluvium upgrade`: directories of earlier versions, and of this one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use alluvium::StateDirectory;
use tempfile::TempDir;

use crate::binary::binary;

/// The paths of golden directories lead through the working directory.
fn alluvium(folder: &TempDir, arguments: &[&str]) -> (bool, String) {
    let mut command = Command::new(binary());
    command.current_dir(folder.path()).args(arguments).stdin(Stdio::null());
    let Output { status, mut stdout, stderr } = command.output().unwrap();
    stdout.extend(stderr);
    (status.success(), String::from_utf8(stdout).unwrap())
}

#[test]
fn directories_of_earlier_versions_are_written_in_the_newest_formats() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../connect/tests/golden");
    let versions = fs::read_dir(golden).unwrap().map(|entry| entry.unwrap().path());
    let is_older = |path: &PathBuf| {
        let state = path.join("state");
        state.is_dir() && !StateDirectory::open(state).unwrap().formats().unwrap().are_newest()
    };
    let older: Vec<PathBuf> = versions.filter(is_older).collect();
    assert!(older.len() >= 2);
    for version in older {
        let folder = TempDir::new().unwrap();
        let copy = Command::new("cp").arg("-r").arg(version.join(".")).arg(folder.path()).status();
        assert!(copy.unwrap().success());
        let (succeeds, said) = alluvium(&folder, &["upgrade", "state"]);
        assert!(succeeds, "{said}");
        let formats = StateDirectory::open(folder.path().join("state")).unwrap().formats().unwrap();
        assert!(formats.are_newest(), "{said}");
        assert!(said.ends_with(&format!("\nnow: {formats}\n")), "{said}");
        let (is_sound, said) = alluvium(&folder, &["check", "state"]);
        assert!(is_sound, "{said}");
    }
}

#[test]
fn a_directory_of_this_version_is_left_as_it_is() {
    let folder = TempDir::new().unwrap();
    let sql = "CREATE TABLE t (n INT); INSERT INTO t VALUES (1)";
    assert!(alluvium(&folder, &["-c", sql, "--state", "state"]).0);
    let (succeeds, said) = alluvium(&folder, &["upgrade", "state"]);
    assert!(
        succeeds && said.starts_with("nothing to upgrade: versions of checkpoints: "),
        "{said}"
    );
    let (succeeds, said) = alluvium(&folder, &["upgrade", "none"]);
    assert!(!succeeds && said.contains("there is no directory \"none\""), "{said}");
}
