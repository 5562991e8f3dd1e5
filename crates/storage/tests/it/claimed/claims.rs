//! The blobs that are kept, and for how long.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Instant;

use alluvium_storage::{ClaimedStorage, Error, Failing, MemoryStorage, Storage, TemporaryBlob};

use super::{claim_first, first, named, open};
use crate::twins::{assert_reads, write};

/// A run over memory, with blobs of these names.
fn with_blobs(names: &[&str]) -> (Arc<dyn Storage>, Arc<ClaimedStorage>) {
    let inner: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let storage = open(&inner);
    for name in names {
        write(&*storage, name, name.as_bytes());
    }
    (inner, storage)
}

/// Asserts which blobs of the first run are there.
fn assert_left(storage: &dyn Storage, names: &[&str]) {
    let expected: Vec<String> = names.iter().map(|name| first(name)).collect();
    assert_eq!(storage.list("").unwrap(), expected);
}

#[test]
fn a_claimed_blob_outlives_its_readers_until_the_last_claim_is_released() {
    let (_, storage) = with_blobs(&["a", "b"]);
    let readers = ["a", "b"].map(|name| {
        let blob = storage.open(&first(name)).unwrap();
        TemporaryBlob::new(storage.clone(), blob)
    });
    claim_first(&storage, 1, &["a"]);
    claim_first(&storage, 2, &["a", "b"]);
    claim_first(&storage, 3, &["a"]);
    drop(readers);
    assert_left(&*storage, &["a", "b"]);
    storage.release_before(2).unwrap();
    assert_left(&*storage, &["a", "b"]);
    storage.release_before(3).unwrap();
    assert_left(&*storage, &["a"]);
    // It can still be read, as by a backup.
    assert_reads(&*storage.open(&first("a")).unwrap(), b"a");
    storage.release_before(3).unwrap();
    assert_left(&*storage, &["a"]);
    storage.release_before(4).unwrap();
    assert_left(&*storage, &[]);
}

#[test]
fn a_blob_in_use_stays_when_its_claims_are_released() {
    let (_, storage) = with_blobs(&["a"]);
    claim_first(&storage, 1, &["a"]);
    storage.release_before(2).unwrap();
    assert_left(&*storage, &["a"]);
    storage.delete(&first("a")).unwrap();
    assert_left(&*storage, &[]);
}

#[test]
fn a_blob_can_be_deleted_once_also_while_it_is_claimed() {
    let (_, storage) = with_blobs(&["a"]);
    claim_first(&storage, 1, &["a"]);
    storage.delete(&first("a")).unwrap();
    for _ in 0..2 {
        let again = storage.delete(&first("a")).unwrap_err();
        assert!(matches!(again, Error::Missing { .. }), "{again}");
    }
    storage.release(1).unwrap();
    let again = storage.delete(&first("a")).unwrap_err();
    assert!(matches!(again, Error::Missing { .. }), "{again}");
}

#[test]
fn claims_of_one_manifest_add_to_each_other() {
    let (_, storage) = with_blobs(&["a", "b", "c"]);
    claim_first(&storage, 7, &["a"]);
    claim_first(&storage, 7, &["b"]);
    for name in ["a", "b", "c"] {
        storage.delete(&first(name)).unwrap();
    }
    assert_left(&*storage, &["a", "b"]);
    storage.release_before(8).unwrap();
    assert_left(&*storage, &[]);
}

#[test]
fn a_manifest_that_was_not_published_releases_its_own_claims_only() {
    let (_, storage) = with_blobs(&["a", "b", "c"]);
    claim_first(&storage, 1, &["a"]);
    claim_first(&storage, 2, &["a", "b"]);
    for name in ["a", "b"] {
        storage.delete(&first(name)).unwrap();
    }
    storage.release(2).unwrap();
    storage.release(9).unwrap();
    assert_left(&*storage, &["a", "c"]);
    // The number is used again.
    claim_first(&storage, 2, &["a", "c"]);
    storage.release_before(2).unwrap();
    storage.delete(&first("c")).unwrap();
    assert_left(&*storage, &["a", "c"]);
}

#[test]
fn what_cannot_be_deleted_is_deleted_with_the_next_release() {
    let inner = Failing::new(MemoryStorage::new());
    let storage = open(&(Arc::new(inner.clone()) as Arc<dyn Storage>));
    for name in ["a", "b", "c"] {
        write(&*storage, name, b"");
        storage.claim(1, named(&[&first(name)]));
        storage.delete(&first(name)).unwrap();
    }
    inner.fail_from(inner.calls() + 2);
    let error = storage.release_before(2).unwrap_err().to_string();
    assert!(error.starts_with("cannot delete failing:b.1.alluvium: "), "{error}");
    assert_left(&*storage, &["b", "c"]);
    inner.fail_from(u64::MAX);
    storage.release_before(2).unwrap();
    assert_left(&*storage, &[]);
}

#[test]
fn one_thread_publishes_manifests_while_another_writes_and_deletes() {
    let (inner, storage) = with_blobs(&[]);
    let (pinned, versions) = sync_channel::<Vec<TemporaryBlob>>(1);
    std::thread::scope(|scope| {
        let storage = &storage;
        scope.spawn(move || {
            let mut held = VecDeque::new();
            for number in 0..2000 {
                let blob = write(&**storage, &format!("batch-{number}"), b"bytes");
                held.push_back(TemporaryBlob::new(storage.clone(), blob));
                if number % 3 == 0 {
                    pinned.send(held.iter().cloned().collect()).unwrap();
                    held.drain(..held.len() / 2);
                }
            }
        });
        for (manifest, version) in (1..).zip(versions) {
            let names = || version.iter().map(|blob| blob.name().to_owned());
            storage.claim(manifest, names());
            let names: Vec<String> = names().collect();
            // Some of the blobs have no other owner by now.
            drop(version);
            storage.release_before(manifest).unwrap();
            for name in names {
                storage.open(&name).unwrap();
            }
        }
    });
    storage.release_before(u64::MAX).unwrap();
    assert!(inner.list("").unwrap().is_empty());
}

/// Prints how long it takes.
#[test]
fn many_blobs_are_claimed_and_released() {
    const COUNT: usize = 100_000;
    let (_, storage) = with_blobs(&["a"]);
    let names = || (0..COUNT).map(|number| format!("batch-{number}.1.alluvium"));
    for manifest in 1..=3 {
        let started = Instant::now();
        storage.claim(manifest, names());
        println!("claimed {COUNT} in {:?}", started.elapsed());
    }
    let started = Instant::now();
    for name in names() {
        storage.delete(&name).unwrap();
    }
    println!("deleted {COUNT} claimed ones in {:?}", started.elapsed());
    let started = Instant::now();
    storage.release_before(4).unwrap();
    println!("released 3 manifests in {:?}", started.elapsed());
    assert_left(&*storage, &["a"]);
}
