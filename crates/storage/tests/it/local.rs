//! What only files do.

use std::fs;

use alluvium_storage::{LocalStorage, Storage};

use crate::twins::{MIB, assert_reads, bytes, write};

#[test]
fn files_above_a_mebibyte_are_mapped_and_others_are_not() {
    let directory = tempfile::tempdir().unwrap();
    let storage = LocalStorage::open(directory.path()).unwrap();
    for (length, mapped) in [(0, false), (MIB, false), (MIB + 1, true), (4 * MIB, true)] {
        let name = format!("b{length}");
        assert_eq!(write(&storage, &name, &bytes(length, 0)).is_mapped(), mapped);
        assert_eq!(storage.open(&name).unwrap().is_mapped(), mapped);
    }
}

#[test]
fn blobs_are_files_of_the_directory_and_writers_leave_no_others() {
    let directory = tempfile::tempdir().unwrap();
    let storage = LocalStorage::open(directory.path()).unwrap();
    let all = bytes(2 * MIB + 9, 0);
    write(&storage, "a", &all);
    let mut dropped = storage.create("b").unwrap();
    dropped.append(&all).unwrap();
    drop(dropped);
    storage.create("a").map(drop).unwrap_err();
    let files: Vec<_> =
        fs::read_dir(directory.path()).unwrap().map(|f| f.unwrap().file_name()).collect();
    assert_eq!(files, ["a"]);
    assert!(fs::read(directory.path().join("a")).unwrap() == all);
}

#[test]
fn what_one_handle_of_a_directory_seals_another_sees() {
    let directory = tempfile::tempdir().unwrap();
    let one = LocalStorage::open(directory.path().join("not/yet/there")).unwrap();
    let other = LocalStorage::open(one.directory()).unwrap();
    let writer = one.create("a").unwrap();
    other.create("a").map(drop).unwrap_err();
    writer.seal().unwrap();
    assert_eq!(other.list("").unwrap(), ["a"]);
    other.delete("a").unwrap();
    one.open("a").unwrap_err();
}

#[test]
fn files_and_directories_that_are_no_blobs_are_not_listed() {
    let directory = tempfile::tempdir().unwrap();
    let storage = LocalStorage::open(directory.path()).unwrap();
    fs::write(directory.path().join(".hidden"), "").unwrap();
    fs::write(directory.path().join("with space"), "").unwrap();
    fs::create_dir(directory.path().join("directory")).unwrap();
    assert!(storage.list("").unwrap().is_empty());
    storage.create("directory").map(drop).unwrap_err();
    storage.open("directory").unwrap_err();
    storage.delete("directory").unwrap_err();
    assert!(directory.path().join("directory").exists());
}

#[test]
fn a_blob_written_elsewhere_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let all = bytes(3 * MIB, 0);
    fs::write(directory.path().join("a"), &all).unwrap();
    assert_reads(&*LocalStorage::open(directory.path()).unwrap().open("a").unwrap(), &all);
}
