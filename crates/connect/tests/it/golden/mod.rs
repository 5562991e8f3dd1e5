//! State directories that earlier versions have written, in `tests/golden`: they are opened, answered from, and written to.
//!
//! A folder of `tests/golden` is named by the versions of the records and of the checkpoints in it. It has the directory,
//! `state`, the files that its inputs and outputs are, and the `answers` that the program gave which had written it; and what it
//! answered about `roles`, if it knew any.
//!
//! - [`state`]: the contents of such a directory;
//! - this file: reading each of them.
//!
//! `ALLUVIUM_KILLS` sets how many processes are killed while they upgrade a directory.
//!
//! A new version of the format gets a folder of its own, before anything else changes:
//! `ALLUVIUM_WRITE_GOLDEN=record-R-checkpoint-C cargo test -p alluvium-connect golden` writes it. A folder that was released is
//! never written again.
//!
//! State is padded to pages, so a folder that has a megabyte in files has some 30 KiB in the repository.
//!
//! Recorded paths are absolute. Those of a golden directory go through `/proc/self/cwd`, so that they name whichever copy
//! the process works in.

mod state;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use alluvium::StateDirectory;
use state::{Answers, answers, open, wait_for_sales};

/// Runs the test of this name again in a process of its own, whose working directory it may choose. True in that process.
fn alone(test: &str) -> bool {
    const MARK: &str = "ALLUVIUM_TEST_ALONE";
    if env::var_os(MARK).is_some() {
        return true;
    }
    let mut command = Command::new(env::current_exe().unwrap());
    let status = command.args(["--exact", test, "--nocapture"]).env(MARK, "1").status().unwrap();
    assert!(status.success(), "the test fails in a process of its own");
    false
}

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// Copies a folder with everything in it.
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

/// The folders of all versions.
fn versions() -> Vec<PathBuf> {
    let entries = fs::read_dir(golden()).unwrap().map(|entry| entry.unwrap().path());
    let mut versions: Vec<_> = entries.filter(|path| path.is_dir()).collect();
    versions.sort();
    versions
}

/// Runs a test on copies of the directories of all versions, one after the other, with one worker and with two. Each copy is the
/// working directory.
fn with_each(mut run: impl FnMut(usize, Answers)) {
    for version in versions() {
        for workers in [1, 2] {
            eprintln!("{} with {workers} workers", version.display());
            let folder = tempfile::tempdir().unwrap();
            copy(&version, folder.path());
            env::set_current_dir(folder.path()).unwrap();
            run(workers, Answers::read(Path::new("answers")));
        }
    }
    env::set_current_dir("/").unwrap();
}

fn assert_sound() {
    let check = StateDirectory::open("state").unwrap().check().unwrap();
    assert!(check.is_sound(), "{check}");
}

#[test]
fn every_version_answers_as_it_did() {
    if !alone("golden::every_version_answers_as_it_did") {
        return;
    }
    if let Ok(name) = env::var("ALLUVIUM_WRITE_GOLDEN")
        && name.starts_with("record-")
    {
        write(&golden().join(name));
    }
    with_each(|workers, recorded| {
        let backup = tempfile::tempdir().unwrap();
        let state = StateDirectory::open("state").unwrap();
        assert_sound();
        let checkpoints = state.checkpoints().unwrap();
        assert_eq!(checkpoints.len(), 2);
        assert!(checkpoints[1].relations.iter().any(|(name, _)| name == "reach"));
        state.backup(backup.path()).unwrap();
        // The second time everything comes from a checkpoint of this version.
        for round in ["as written", "again", "behind a checkpoint"] {
            let engine = open(workers).unwrap();
            wait_for_sales(&engine, 7);
            if round == "again" {
                engine.execute("CHECKPOINT").unwrap();
            }
            assert_eq!(answers(engine), recorded, "{round}");
        }
        assert_sound();
        fs::remove_dir_all("state").unwrap();
        copy(backup.path(), Path::new("state"));
        let engine = open(3 - workers).unwrap();
        wait_for_sales(&engine, 7);
        assert_eq!(answers(engine), recorded, "a copy");
    });
}

#[test]
fn every_version_is_written_to() {
    if !alone("golden::every_version_is_written_to") {
        return;
    }
    with_each(|workers, recorded| {
        let engine = open(workers).unwrap();
        wait_for_sales(&engine, 7);
        state::check_views(&engine);
        state::write_more(&engine);
        state::check_views(&engine);
        let written = answers(engine);
        assert_eq!(written.names(), recorded.names());
        assert_ne!(written, recorded);
        assert_sound();
        for workers in [workers, 3 - workers] {
            let engine = open(workers).unwrap();
            wait_for_sales(&engine, 8);
            engine.execute("CHECKPOINT").unwrap();
            assert_eq!(answers(engine), written);
        }
        assert_sound();
    });
}

#[test]
fn roles_are_as_they_were() {
    if !alone("golden::roles_are_as_they_were") {
        return;
    }
    let mut found = 0;
    with_each(|workers, _| {
        let file = Path::new("roles");
        if !file.exists() {
            return;
        }
        found += 1;
        for _ in 0..2 {
            let engine = open(workers).unwrap();
            assert_eq!(state::roles(&engine), Answers::read(file));
            engine.execute("CHECKPOINT").unwrap();
        }
        assert_sound();
    });
    assert!(found > 0, "no directory has roles");
}

/// Takes as many checkpoints as are kept.
fn upgrade(workers: usize) {
    let engine = open(workers).unwrap();
    engine.checkpoint().unwrap();
    engine.checkpoint().unwrap();
}

#[test]
fn every_version_is_upgraded_though_processes_are_killed_meanwhile() {
    const UPGRADES: &str = "ALLUVIUM_TEST_UPGRADES";
    let test = "golden::every_version_is_upgraded_though_processes_are_killed_meanwhile";
    if let Ok(workers) = env::var(UPGRADES) {
        return upgrade(workers.parse().unwrap());
    }
    if !alone(test) {
        return;
    }
    let kills = env::var("ALLUVIUM_KILLS").map_or(5, |kills| kills.parse().unwrap());
    with_each(|workers, recorded| {
        let formats = || StateDirectory::open("state").unwrap().formats().unwrap();
        let before = formats();
        let is_newest = before.checkpoints.contains(&9) && before.records.contains(&5);
        assert_eq!(before.are_newest(), is_newest, "{before}");
        for kill in 0..kills {
            let mut command = Command::new(env::current_exe().unwrap());
            command.args(["--exact", test]).env(UPGRADES, workers.to_string());
            let mut process = command.stdout(Stdio::null()).spawn().unwrap();
            thread::sleep(Duration::from_millis(3 + 29 * kill % 250));
            process.kill().unwrap();
            process.wait().unwrap();
        }
        upgrade(workers);
        assert!(formats().are_newest(), "{}", formats());
        let engine = open(3 - workers).unwrap();
        wait_for_sales(&engine, 7);
        assert_eq!(answers(engine), recorded);
        assert_sound();
    });
}

/// Writes the directory of this version.
fn write(to: &Path) {
    let folder = tempfile::tempdir().unwrap();
    env::set_current_dir(folder.path()).unwrap();
    let all = state::make();
    all.write(Path::new("answers"));
    // Opening it cuts off what the journal has written ahead, and deletes what no checkpoint names.
    let engine = open(1).unwrap();
    wait_for_sales(&engine, 7);
    state::roles(&engine).write(Path::new("roles"));
    assert_eq!(answers(engine), all);
    fs::remove_file("state/lock").unwrap();
    let _ = fs::remove_dir_all(to);
    copy(folder.path(), to);
}
