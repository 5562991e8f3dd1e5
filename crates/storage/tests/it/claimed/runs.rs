//! The files that a run finds of earlier ones.

use std::fs;
use std::sync::Arc;

use alluvium_storage::{Failing, LocalStorage, MemoryStorage, Storage, TemporaryBlob};

use super::{claim_first, first, named, open};
use crate::twins::{MIB, assert_reads, bytes, write};

/// Memory in which the first run has left blobs of these names, each with its name as its bytes.
fn left(names: &[&str]) -> Arc<dyn Storage> {
    let inner: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let storage = open(&inner);
    for name in names {
        write(&*storage, name, name.as_bytes());
    }
    inner
}

#[test]
fn no_name_is_given_twice_while_a_blob_has_it() {
    let inner: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let mut expected = Vec::new();
    for run in 1..=12 {
        let storage = open(&inner);
        let name = format!("batch-3.{run}.alluvium");
        assert_eq!(write(&*storage, "batch-3", name.as_bytes()).name(), name);
        storage.create("batch-3").map(drop).unwrap_err();
        expected.push(name);
    }
    for name in &expected {
        assert_reads(&*open(&inner).open(name).unwrap(), name.as_bytes());
    }
    expected.sort_unstable();
    assert_eq!(inner.list("").unwrap(), expected);
}

#[test]
fn before_a_sweep_nothing_of_an_earlier_run_is_deleted() {
    let inner = left(&["a", "b"]);
    let storage = open(&inner);
    claim_first(&storage, 1, &["a"]);
    storage.release_before(9).unwrap();
    assert_eq!(inner.list("").unwrap(), ["a", "b"].map(first));
}

#[test]
fn a_sweep_deletes_what_nobody_claims_has_opened_or_has_created() {
    let inner = left(&["claimed", "opened", "other", "retained"]);
    let storage = open(&inner);
    claim_first(&storage, 4, &["retained"]);
    claim_first(&storage, 5, &["claimed", "retained"]);
    let opened = storage.open(&first("opened")).unwrap();
    let opened = TemporaryBlob::new(storage.clone(), opened);
    write(&*storage, "new", b"");
    let mut unsealed = storage.create("unsealed").unwrap();
    assert_eq!(storage.sweep().unwrap(), 1);
    let mut expected = ["claimed", "opened", "retained"].map(first).to_vec();
    expected.insert(1, "new.2.alluvium".to_owned());
    assert_eq!(inner.list("").unwrap(), expected);
    unsealed.seal().unwrap();
    assert_eq!(storage.sweep().unwrap(), 0);
    assert_eq!(inner.list("unsealed").unwrap().len(), 1);
    drop(opened);
    assert!(inner.list("opened").unwrap().is_empty());
}

/// An older manifest that is retained names blobs that the current one does not: they are not opened.
#[test]
fn after_a_sweep_unopened_blobs_are_deleted_with_their_last_claim() {
    let inner = left(&["both", "new", "old"]);
    let storage = open(&inner);
    claim_first(&storage, 1, &["both", "old"]);
    claim_first(&storage, 2, &["both", "new"]);
    let current = ["both", "new"].map(|name| storage.open(&first(name)).unwrap());
    assert_eq!(storage.sweep().unwrap(), 0);
    storage.release_before(2).unwrap();
    assert_eq!(inner.list("").unwrap(), ["both", "new"].map(first));
    storage.release_before(3).unwrap();
    assert_eq!(inner.list("").unwrap(), ["both", "new"].map(first), "they are in use");
    for blob in current {
        storage.delete(blob.name()).unwrap();
    }
    assert!(inner.list("").unwrap().is_empty());
}

#[test]
fn files_with_names_of_another_form_stay() {
    let others = [
        "README",
        "a",
        "a.01.alluvium",
        "a.1",
        "a.1.alluvium.old",
        "a.alluvium",
        "a.one.alluvium",
        "a.99999999999999999999.alluvium",
        "alluvium",
        "1.alluvium",
    ];
    let inner = left(&["a"]);
    for other in others {
        write(&*inner, other, b"");
    }
    let storage = open(&inner);
    assert_eq!(write(&*storage, "b", b"").name(), "b.2.alluvium");
    assert_eq!(storage.sweep().unwrap(), 1);
    let mut expected = named(&others);
    expected.push("b.2.alluvium".to_owned());
    expected.sort_unstable();
    assert_eq!(inner.list("").unwrap(), expected);
}

#[test]
fn a_sweep_that_fails_can_be_repeated() {
    let memory = Failing::new(MemoryStorage::new());
    let inner: Arc<dyn Storage> = Arc::new(memory.clone());
    for name in ["a", "b", "c"] {
        write(&*inner, &first(name), b"");
    }
    let storage = open(&inner);
    memory.fail_from(memory.calls() + 2);
    let error = storage.sweep().unwrap_err().to_string();
    assert!(error.starts_with("cannot delete failing:b.1.alluvium: "), "{error}");
    memory.fail_from(u64::MAX);
    // This one is now in use.
    storage.open(&first("c")).unwrap();
    assert_eq!(storage.sweep().unwrap(), 1);
    assert_eq!(inner.list("").unwrap(), [first("c")]);
}

/// A process that is killed while it writes leaves a file that is neither a blob nor deleted by its writer.
#[test]
fn what_is_left_unsealed_is_deleted_when_a_directory_is_opened_by_its_one_user() {
    let directory = tempfile::tempdir().unwrap();
    let run = || -> Arc<dyn Storage> {
        Arc::new(LocalStorage::open_exclusive(directory.path()).unwrap())
    };
    let storage = open(&run());
    let all = bytes(MIB, 1);
    let claimed = write(&*storage, "batch-0", &all);
    for number in 1..3 {
        let mut writer = storage.create(&format!("batch-{number}")).unwrap();
        writer.append(&all).unwrap();
        std::mem::forget(writer);
    }
    for other in [".hidden", ".with space.unsealed", ".unsealed", "notes"] {
        fs::write(directory.path().join(other), "").unwrap();
    }
    fs::create_dir(directory.path().join(".directory.unsealed")).unwrap();

    let storage = open(&run());
    storage.claim(1, named(&[claimed.name()]));
    storage.sweep().unwrap();
    let files = fs::read_dir(directory.path()).unwrap();
    let mut files: Vec<_> =
        files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    files.sort_unstable();
    let expected = [
        ".directory.unsealed",
        ".hidden",
        ".unsealed",
        ".with space.unsealed",
        "batch-0.1.alluvium",
        "notes",
    ];
    assert_eq!(files, expected);
    assert_reads(&*storage.open(claimed.name()).unwrap(), &all);
    // A name that only an unsealed file had is free.
    write(&*storage, "batch-1", &all);
}
