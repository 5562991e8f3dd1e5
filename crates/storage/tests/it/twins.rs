//! All implementations of storage, and bytes to write.

use std::process::Command;
use std::sync::Arc;

use alluvium_storage::{Blob, Failing, LocalStorage, MemoryStorage, Scratch, Storage};

pub const MIB: usize = 1 << 20;

/// Runs a test on new storage of every kind.
pub fn each(test: impl Fn(Arc<dyn Storage>)) {
    let (local, failing) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let scratch = tempfile::tempdir().unwrap();
    let twins: [Arc<dyn Storage>; 5] = [
        Arc::new(MemoryStorage::new()),
        Arc::new(LocalStorage::open(local.path()).unwrap()),
        Arc::new(Scratch::create_in(scratch.path()).unwrap()),
        Arc::new(Failing::new(MemoryStorage::new())),
        Arc::new(Failing::new(LocalStorage::open(failing.path()).unwrap())),
    ];
    for twin in twins {
        // Seen if the test fails.
        println!("on {twin:?}");
        test(twin);
    }
}

/// Bytes that differ between seeds, and between pages of one seed.
pub fn bytes(length: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![seed as u8; length];
    for (number, chunk) in bytes.chunks_exact_mut(64).enumerate() {
        chunk[..8].copy_from_slice(&number.to_le_bytes());
    }
    bytes
}

/// Writes a blob with one append.
pub fn write(storage: &dyn Storage, name: &str, bytes: &[u8]) -> Arc<dyn Blob> {
    let mut writer = storage.create(name).unwrap();
    writer.append(bytes).unwrap();
    writer.seal().unwrap()
}

/// Asserts that a blob reads as these bytes in every way.
pub fn assert_reads(blob: &dyn Blob, bytes: &[u8]) {
    assert_eq!(blob.len(), bytes.len() as u64);
    assert_eq!(blob.is_empty(), bytes.is_empty());
    // Not `assert_eq`, which would print megabytes.
    assert!(blob.bytes() == bytes, "{} has other bytes", blob.place());
    assert!(blob.read(0..blob.len()).unwrap() == bytes, "{} reads other bytes", blob.place());
}

/// A command that runs one test of this binary, which is marked as ignored, in a process of its own.
pub fn test_process(shell: &str, test: &str) -> Command {
    let mut command = Command::new("sh");
    let exec = r#"exec "$0" --exact "$1" --ignored --nocapture --test-threads 1"#;
    command.arg("-c").arg(format!("{shell} {exec}"));
    command.arg(std::env::current_exe().unwrap()).arg(test);
    command
}
