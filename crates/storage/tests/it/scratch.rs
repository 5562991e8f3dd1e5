//! Scratch directories: which are removed, and which are left alone.

use std::env;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use alluvium_storage::{Scratch, Storage};

use crate::twins::{MIB, assert_reads, bytes, test_process, write};

const LOCK: &str = ".alluvium-scratch.lock";

/// What a process that was killed leaves behind.
fn leave_behind(parent: &Path, name: &str) {
    let directory = parent.join(name);
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join(LOCK), "").unwrap();
    fs::write(directory.join("batch-1"), "abc").unwrap();
    fs::write(directory.join(".batch-2.unsealed"), "abc").unwrap();
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_scratch_directory_is_removed_when_it_is_dropped() {
    let parent = tempfile::tempdir().unwrap();
    let scratch = Scratch::create_in(parent.path()).unwrap();
    let directory = scratch.storage().directory().to_owned();
    assert_eq!(directory.parent(), Some(parent.path()));
    assert!(directory.file_name().unwrap().to_str().unwrap().starts_with("alluvium-"));
    assert_eq!(fs::metadata(&directory).unwrap().permissions().mode() & 0o777, 0o700);

    let all = bytes(2 * MIB, 0);
    let blob = write(&scratch, "a", &all);
    let mut unsealed = scratch.create("b").unwrap();
    assert_eq!(scratch.list("").unwrap(), ["a"]);
    drop(scratch);
    assert!(names(parent.path()).is_empty());
    assert_reads(&*blob, &all);
    unsealed.seal().unwrap_err();
}

#[test]
fn directories_left_by_a_crash_are_removed() {
    let parent = tempfile::tempdir().unwrap();
    leave_behind(parent.path(), "alluvium-1-0");
    leave_behind(parent.path(), "alluvium-2-0");
    let scratch = Scratch::create_in(parent.path()).unwrap();
    let own = scratch.storage().directory().file_name().unwrap().to_str().unwrap();
    assert_eq!(names(parent.path()), [own]);
}

#[test]
fn a_directory_in_use_is_left_alone() {
    let parent = tempfile::tempdir().unwrap();
    leave_behind(parent.path(), "alluvium-1-0");
    let directory = parent.path().join("alluvium-1-0");
    let lock = File::open(directory.join(LOCK)).unwrap();
    lock.lock().unwrap();
    let first = Scratch::create_in(parent.path()).unwrap();
    let blob = write(&first, "a", b"abc");
    let second = Scratch::create_in(parent.path()).unwrap();
    assert_eq!(names(&directory), [".alluvium-scratch.lock", ".batch-2.unsealed", "batch-1"]);
    assert_eq!(first.list("").unwrap(), ["a"]);
    assert_reads(&*first.open("a").unwrap(), &blob.bytes());
    drop((first, second));
    assert_eq!(names(parent.path()), ["alluvium-1-0"]);

    drop(lock);
    let _third = Scratch::create_in(parent.path()).unwrap();
    assert!(!directory.exists());
}

#[test]
fn other_files_and_directories_are_left_alone() {
    let parent = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    leave_behind(elsewhere.path(), "real");
    symlink(elsewhere.path().join("real"), parent.path().join("alluvium-link")).unwrap();
    leave_behind(parent.path(), "other-1-0");
    leave_behind(parent.path(), "alluvium-with-a-directory");
    fs::create_dir(parent.path().join("alluvium-with-a-directory/inner")).unwrap();
    fs::write(parent.path().join("alluvium-with-a-directory/inner/precious"), "").unwrap();
    fs::write(parent.path().join("alluvium-file"), "").unwrap();
    fs::create_dir(parent.path().join("alluvium-unlocked")).unwrap();
    fs::write(parent.path().join("alluvium-unlocked/precious"), "").unwrap();
    fs::create_dir(parent.path().join("alluvium-empty")).unwrap();

    let before = names(parent.path());
    drop(Scratch::create_in(parent.path()).unwrap());
    assert_eq!(names(parent.path()), before);
    assert_eq!(names(&elsewhere.path().join("real")).len(), 3);
    assert_eq!(names(&parent.path().join("other-1-0")).len(), 3);
    assert!(parent.path().join("alluvium-with-a-directory/inner/precious").exists());
    assert!(parent.path().join("alluvium-unlocked/precious").exists());
}

#[test]
fn many_scratch_directories_come_and_go_at_once() {
    let parent = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let scratch = Scratch::create_in(parent.path()).unwrap();
                    write(&scratch, "a", b"abc");
                    assert_eq!(scratch.list("").unwrap(), ["a"]);
                }
            });
        }
    });
    assert!(names(parent.path()).is_empty());
}

#[test]
fn the_default_parent_is_the_systems_temporary_directory() {
    let scratch = Scratch::create().unwrap();
    assert_eq!(scratch.storage().directory().parent().unwrap(), std::env::temp_dir());
}

#[test]
fn the_directory_of_another_process_is_removed_when_that_was_killed() {
    let parent = tempfile::tempdir().unwrap();
    let mut process = test_process("", "scratch::a_process_that_is_killed")
        .env("ALLUVIUM_TEST_DIRECTORY", parent.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(process.stdout.take().unwrap()).lines();
    lines.map(Result::unwrap).find(|line| line.contains("it has a blob")).unwrap();
    let theirs = names(parent.path());
    assert_eq!(theirs.len(), 1);

    drop(Scratch::create_in(parent.path()).unwrap());
    assert_eq!(names(parent.path()), theirs);
    process.kill().unwrap();
    process.wait().unwrap();
    assert_eq!(names(parent.path()), theirs);
    drop(Scratch::create_in(parent.path()).unwrap());
    assert!(names(parent.path()).is_empty());
}

#[test]
#[ignore = "is to be killed"]
fn a_process_that_is_killed() {
    let Some(parent) = env::var_os("ALLUVIUM_TEST_DIRECTORY") else { return };
    let scratch = Scratch::create_in(parent).unwrap();
    let _blob = write(&scratch, "a", &bytes(2 * MIB, 0));
    let _unsealed = scratch.create("b").unwrap();
    println!("it has a blob");
    std::thread::sleep(Duration::from_secs(60));
}
