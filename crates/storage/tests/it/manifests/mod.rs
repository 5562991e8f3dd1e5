//! Tests of manifests. The behaviour of all implementations is tested on every twin.

mod conformance;
mod crashes;
mod damage;
mod failures;

use std::sync::Arc;

use alluvium_storage::{
    Disk, FileManifests, Manifest, Manifests, MemoryManifests, Published, SimulatedDisk,
};

/// A way to open the same manifests again.
type Reopen = Box<dyn Fn() -> Arc<dyn Manifests>>;

/// Runs a test on new manifests of every kind.
fn each(test: impl Fn(Reopen)) {
    let directory = tempfile::tempdir().unwrap();
    let memory = MemoryManifests::new();
    let path = directory.path().join("manifests");
    let disk: Arc<dyn Disk> = Arc::new(SimulatedDisk::new(1));
    let twins: [Reopen; 3] = [
        Box::new(move || Arc::new(memory.clone())),
        Box::new(move || Arc::new(FileManifests::open(&path).unwrap())),
        Box::new(move || Arc::new(FileManifests::open_on(disk.clone()).unwrap())),
    ];
    for twin in twins {
        // Seen if the test fails.
        println!("on {:?}", twin());
        test(twin);
    }
}

/// Publishes the next manifest.
fn publish(manifests: &dyn Manifests, next: u64, bytes: &[u8]) {
    assert_eq!(manifests.publish(next, bytes).unwrap(), Published::Done);
}

/// The number and the bytes of the current manifest.
fn current(manifests: &dyn Manifests) -> Option<(u64, Vec<u8>)> {
    let current = manifests.current().unwrap();
    current.map(|Manifest { number, bytes }| (number, bytes.to_vec()))
}
