//! Blobs that are deleted with their last owner.

use std::sync::Arc;

use alluvium_storage::{Scratch, Storage, TemporaryBlob};

use crate::twins::{MIB, assert_reads, bytes, each, write};

#[test]
fn a_temporary_blob_is_deleted_with_its_last_clone() {
    each(|storage| {
        for length in [0, 10, 2 * MIB] {
            let all = bytes(length, 0);
            let blob = write(&*storage, "a", &all);
            let one = TemporaryBlob::new(storage.storage.clone(), blob);
            let other = one.clone();
            drop(one);
            assert_eq!(storage.list("").unwrap(), ["a"]);
            assert_reads(&*other, &all);
            let held = other.bytes();
            drop(other);
            assert!(storage.list("").unwrap().is_empty());
            assert!(held == all);
        }
    });
}

#[test]
fn dropping_a_temporary_blob_whose_file_is_gone_is_no_error() {
    each(|storage| {
        let blob = write(&*storage, "a", b"a");
        let blob = TemporaryBlob::new(storage.storage.clone(), blob);
        storage.delete("a").unwrap();
        drop(blob);
    });
}

#[test]
fn a_temporary_blob_keeps_its_scratch_directory() {
    let parent = tempfile::tempdir().unwrap();
    let scratch: Arc<dyn Storage> = Arc::new(Scratch::create_in(parent.path()).unwrap());
    let blob = write(&*scratch, "a", b"abc");
    let blob = TemporaryBlob::new(scratch, blob);
    assert_eq!(parent.path().read_dir().unwrap().count(), 1);
    drop(blob);
    assert_eq!(parent.path().read_dir().unwrap().count(), 0);
}
