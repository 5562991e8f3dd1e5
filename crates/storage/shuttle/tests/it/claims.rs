//! Threads that claim, release and delete the same blobs.

use std::sync::Arc;

use alluvium_storage_shuttle::{
    Blob, BlobWriter, ClaimedStorage, MemoryStorage, Result, Storage, TemporaryBlob,
};
use shuttle::thread;

use crate::model::in_many_orders;

/// Storage in whose calls threads are switched.
#[derive(Clone, Debug, Default)]
struct Slow(MemoryStorage);

impl Storage for Slow {
    fn create(&self, name: &str) -> Result<Box<dyn BlobWriter>> {
        thread::yield_now();
        self.0.create(name)
    }

    fn open(&self, name: &str) -> Result<Arc<dyn Blob>> {
        thread::yield_now();
        self.0.open(name)
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>> {
        thread::yield_now();
        self.0.list(prefix)
    }

    fn delete(&self, name: &str) -> Result<()> {
        thread::yield_now();
        self.0.delete(name)
    }

    fn barrier(&self, names: &[&str]) -> Result<()> {
        thread::yield_now();
        self.0.barrier(names)
    }
}

/// Storage with a blob, and the blob's owner.
fn with_blob() -> (Slow, Arc<ClaimedStorage>, TemporaryBlob) {
    let inner = Slow::default();
    let storage = Arc::new(ClaimedStorage::open(Arc::new(inner.clone())).unwrap());
    let blob = storage.create("a").unwrap().seal().unwrap();
    let owner = TemporaryBlob::new(storage.clone(), blob);
    (inner, storage, owner)
}

fn claim(storage: &ClaimedStorage, manifest: u64, blob: &TemporaryBlob) {
    storage.claim(manifest, [blob.name().to_owned()]);
}

#[test]
fn a_blob_that_is_claimed_while_its_readers_go_stays_until_it_is_released() {
    in_many_orders(|| {
        let (inner, storage, pinned) = with_blob();
        let reader = pinned.clone();
        let reader = thread::spawn(move || drop(reader));
        let name = pinned.name().to_owned();
        claim(&storage, 1, &pinned);
        drop(pinned);
        storage.release_before(1).unwrap();
        storage.open(&name).unwrap();
        reader.join().unwrap();
        storage.open(&name).unwrap();
        storage.release(1).unwrap();
        assert!(inner.0.list("").unwrap().is_empty());
    });
}

#[test]
fn a_blob_whose_last_reader_and_last_claim_go_at_once_is_deleted() {
    in_many_orders(|| {
        let (inner, storage, reader) = with_blob();
        claim(&storage, 1, &reader);
        claim(&storage, 2, &reader);
        let reader = thread::spawn(move || drop(reader));
        let other = Arc::clone(&storage);
        let other = thread::spawn(move || other.release(2).unwrap());
        storage.release_before(2).unwrap();
        reader.join().unwrap();
        other.join().unwrap();
        assert!(inner.0.list("").unwrap().is_empty());
    });
}

#[test]
fn a_blob_of_an_earlier_run_is_deleted_once_by_a_sweep_and_releases() {
    in_many_orders(|| {
        let (inner, _, earlier) = with_blob();
        let name = earlier.name().to_owned();
        // As if its process were killed.
        std::mem::forget(earlier);
        let storage = Arc::new(ClaimedStorage::open(Arc::new(inner.clone())).unwrap());
        storage.claim(1, [name]);
        let other = Arc::clone(&storage);
        let other = thread::spawn(move || other.release_before(2).unwrap());
        storage.sweep().unwrap();
        other.join().unwrap();
        assert!(inner.0.list("").unwrap().is_empty());
    });
}
