//! Scratch directories: which are removed, and which are left alone.

use std::env;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use alluvium_storage::{Scratch, Storage};

use crate::twins::{MIB, assert_reads, bytes, test_process, write};

const LOCK: &str = ".alluvium-scratch.lock";

/// The files that a killed process leaves.
fn leave_behind(parent: &Path, name: &str) {
    let directory = parent.join(name);
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join(LOCK), "").unwrap();
    fs::write(directory.join("batch-1.alluvium"), "abc").unwrap();
    fs::write(directory.join(".batch-2.alluvium.unsealed"), "abc").unwrap();
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
    leave_behind(parent.path(), "alluvium-1-0-0");
    leave_behind(parent.path(), "alluvium-2-0-0");
    let scratch = Scratch::create_in(parent.path()).unwrap();
    let own = scratch.storage().directory().file_name().unwrap().to_str().unwrap();
    assert_eq!(names(parent.path()), [own]);
}

#[test]
fn a_directory_in_use_is_left_alone() {
    let parent = tempfile::tempdir().unwrap();
    leave_behind(parent.path(), "alluvium-1-0-0");
    let directory = parent.path().join("alluvium-1-0-0");
    let lock = File::open(directory.join(LOCK)).unwrap();
    lock.lock().unwrap();
    let first = Scratch::create_in(parent.path()).unwrap();
    let blob = write(&first, "a", b"abc");
    let second = Scratch::create_in(parent.path()).unwrap();
    assert_eq!(names(&directory), [LOCK, ".batch-2.alluvium.unsealed", "batch-1.alluvium"]);
    assert_eq!(first.list("").unwrap(), ["a"]);
    assert_reads(&*first.open("a").unwrap(), &blob.bytes());
    drop((first, second));
    assert_eq!(names(parent.path()), ["alluvium-1-0-0"]);

    drop(lock);
    // A process that another test starts has the lock, too, until it runs its program.
    let start = Instant::now();
    while directory.exists() {
        assert!(start.elapsed() < Duration::from_secs(60));
        drop(Scratch::create_in(parent.path()).unwrap());
    }
}

#[test]
fn other_files_and_directories_are_left_alone() {
    let parent = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    leave_behind(elsewhere.path(), "real");
    symlink(elsewhere.path().join("real"), parent.path().join("alluvium-1-0-0")).unwrap();
    leave_behind(parent.path(), "alluvium-backup");
    leave_behind(parent.path(), "other-1-0-0");
    fs::write(parent.path().join("alluvium-2-0-0"), "").unwrap();
    fs::create_dir(parent.path().join("alluvium-empty")).unwrap();

    let before = names(parent.path());
    drop(Scratch::create_in(parent.path()).unwrap());
    assert_eq!(names(parent.path()), before);
    for kept in ["alluvium-backup", "other-1-0-0"] {
        assert_eq!(names(&parent.path().join(kept)).len(), 3);
    }
    assert_eq!(names(&elsewhere.path().join("real")).len(), 3);
}

/// A directory is ours only if all that is in it has names that we give.
#[test]
fn a_directory_with_anything_else_in_it_is_left_as_it_is() {
    let parent = tempfile::tempdir().unwrap();
    let add: [fn(&Path); 5] = [
        |directory| fs::write(directory.join("precious.txt"), "").unwrap(),
        |directory| fs::write(directory.join(".unsealed"), "").unwrap(),
        |directory| fs::create_dir(directory.join("inner.alluvium")).unwrap(),
        |directory| symlink("/etc/hosts", directory.join("link.alluvium")).unwrap(),
        |directory| fs::write(directory.join(LOCK), "a lock of ours is empty").unwrap(),
    ];
    for (number, add) in add.iter().enumerate() {
        let name = format!("alluvium-{number}-0-0");
        leave_behind(parent.path(), &name);
        add(&parent.path().join(name));
    }
    let unlocked = parent.path().join("alluvium-9-0-0");
    fs::create_dir(&unlocked).unwrap();
    fs::write(unlocked.join("batch-1.alluvium"), "").unwrap();
    let all = || names(parent.path()).iter().map(|name| names(&parent.path().join(name))).collect();
    let before: Vec<Vec<String>> = all();
    drop(Scratch::create_in(parent.path()).unwrap());
    assert_eq!(before, all());
}

/// Opening a pipe without a reader waits for one.
#[test]
fn a_lock_that_is_a_pipe_stops_nobody() {
    let parent = tempfile::tempdir().unwrap();
    leave_behind(parent.path(), "alluvium-1-0-0");
    let lock = parent.path().join("alluvium-1-0-0").join(LOCK);
    fs::remove_file(&lock).unwrap();
    assert!(Command::new("mkfifo").arg(&lock).status().unwrap().success());
    drop(Scratch::create_in(parent.path()).unwrap());
    assert_eq!(names(&parent.path().join("alluvium-1-0-0")).len(), 3);
}

/// A process can be killed between any two calls.
#[test]
fn what_a_creation_or_a_removal_leaves_half_done_is_removed() {
    let parent = tempfile::tempdir().unwrap();
    fs::create_dir(parent.path().join(".alluvium-1-0-0")).unwrap();
    leave_behind(parent.path(), ".alluvium-2-ab-0");
    fs::create_dir(parent.path().join("alluvium-3-ab-12")).unwrap();
    drop(Scratch::create_in(parent.path()).unwrap());
    assert!(names(parent.path()).is_empty());
}

#[test]
fn only_their_user_can_read_the_files() {
    let parent = tempfile::tempdir().unwrap();
    let scratch = Scratch::create_in(parent.path()).unwrap();
    let _sealed = write(&scratch, "a", b"abc");
    let _unsealed = scratch.create("b").unwrap();
    let files = fs::read_dir(scratch.storage().directory()).unwrap();
    let modes: Vec<u32> =
        files.map(|file| file.unwrap().metadata().unwrap().permissions().mode() & 0o777).collect();
    assert_eq!(modes, [0o600; 3]);
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

/// All directories of a process are removed at once, so this needs one of its own.
#[test]
fn a_process_that_ends_removes_its_directories_while_threads_write() {
    let parent = tempfile::tempdir().unwrap();
    let mut process = test_process("", "scratch::a_process_that_ends");
    let status = process.env("ALLUVIUM_TEST_DIRECTORY", parent.path()).status().unwrap();
    assert!(status.success());
    assert!(names(parent.path()).is_empty());
}

#[test]
#[ignore = "removes all directories of its process"]
fn a_process_that_ends() {
    let Some(parent) = env::var_os("ALLUVIUM_TEST_DIRECTORY") else { return };
    let scratch = Scratch::create_in(parent).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let scratch = &scratch;
            scope.spawn(move || {
                for number in 0.. {
                    let Ok(mut writer) = scratch.create(&format!("batch-{thread}-{number}")) else {
                        return;
                    };
                    let _ = writer.seal();
                }
            });
        }
        std::thread::sleep(Duration::from_millis(50));
        Scratch::remove_all();
    });
    assert!(!scratch.storage().directory().exists());
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
