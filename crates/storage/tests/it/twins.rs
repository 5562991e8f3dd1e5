//! All implementations of storage, and bytes to write.

use std::ops::Deref;
use std::process::Command;
use std::sync::Arc;

use alluvium_storage::{
    Blob, BlobSlice, BlobWriter, ClaimedStorage, Disk, DiskStorage, Failing, LocalDisk,
    LocalStorage, MemoryStorage, Result, Scratch, SimulatedDisk, Storage,
};

pub const MIB: usize = 1 << 20;

/// Runs a test on new storage of every kind.
pub fn each(test: impl Fn(Twin)) {
    let directory = tempfile::tempdir().unwrap();
    let local = |name| LocalStorage::open(directory.path().join(name)).unwrap();
    let claimed = |inner| ClaimedStorage::open(inner).unwrap();
    let on_disk = |disk: Arc<dyn Disk>| DiskStorage::open(disk).unwrap();
    let local_disk = LocalDisk::open(directory.path().join("disk")).unwrap();
    let twins: [Arc<dyn Storage>; 10] = [
        Arc::new(MemoryStorage::new()),
        Arc::new(local("local")),
        Arc::new(Scratch::create_in(directory.path()).unwrap()),
        Arc::new(Failing::new(MemoryStorage::new())),
        Arc::new(Failing::new(local("failing"))),
        Arc::new(claimed(Arc::new(MemoryStorage::new()))),
        Arc::new(claimed(Arc::new(local("claimed")))),
        Arc::new(Sliced(local("sliced"))),
        Arc::new(on_disk(Arc::new(local_disk))),
        Arc::new(on_disk(Arc::new(SimulatedDisk::new(1)))),
    ];
    for twin in twins.map(Twin::new) {
        // Seen if the test fails.
        println!("on {:?}", twin.storage);
        test(twin);
    }
}

/// Storage that may append to the names of its blobs, for tests that know only what they have given. Of the methods of
/// [`Storage`] those that take or return a name of a sealed blob are its own; others are those of the storage.
pub struct Twin {
    pub storage: Arc<dyn Storage>,
    /// The suffix that it appends.
    suffix: String,
}

impl Twin {
    fn new(storage: Arc<dyn Storage>) -> Twin {
        let blob = write(&*storage, "a", b"");
        storage.delete(blob.name()).unwrap();
        let suffix = blob.name().strip_prefix('a').unwrap().to_owned();
        Twin { storage, suffix }
    }

    /// The whole name of the blob that was created as `name`.
    pub fn whole(&self, name: &str) -> String {
        format!("{name}{}", self.suffix)
    }

    /// A name as long as can be created.
    pub fn longest_name(&self) -> String {
        "x".repeat(200 - self.suffix.len())
    }

    pub fn open(&self, name: &str) -> Result<Arc<dyn Blob>> {
        self.storage.open(&self.whole(name))
    }

    pub fn delete(&self, name: &str) -> Result<()> {
        self.storage.delete(&self.whole(name))
    }

    pub fn barrier(&self, names: &[&str]) -> Result<()> {
        let names: Vec<String> = names.iter().map(|name| self.whole(name)).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        self.storage.barrier(&names)
    }

    pub fn list(&self, prefix: &str) -> Result<Vec<String>> {
        let names = self.storage.list(prefix)?;
        assert!(names.is_sorted(), "{names:?}");
        let given = names.iter().map(|name| name.strip_suffix(&self.suffix).unwrap().to_owned());
        let mut given: Vec<String> = given.collect();
        given.sort_unstable();
        Ok(given)
    }
}

impl Deref for Twin {
    type Target = dyn Storage;

    fn deref(&self) -> &Self::Target {
        &*self.storage
    }
}

/// Storage whose blobs are slices of others, with other bytes before and after them.
#[derive(Debug)]
struct Sliced(LocalStorage);

const BEFORE: [u8; 4096] = [0xbe; 4096];
const BEHIND: [u8; 10_000] = [0xaf; 10_000];

fn sliced(blob: Arc<dyn Blob>) -> Result<Arc<dyn Blob>> {
    let end = blob.len() - BEHIND.len() as u64;
    Ok(Arc::new(BlobSlice::new(blob, BEFORE.len() as u64..end)?))
}

impl Storage for Sliced {
    fn create(&self, name: &str) -> Result<Box<dyn BlobWriter>> {
        let mut writer = self.0.create(name)?;
        writer.append(&BEFORE)?;
        Ok(Box::new(SlicedWriter(writer)))
    }

    fn open(&self, name: &str) -> Result<Arc<dyn Blob>> {
        sliced(self.0.open(name)?)
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>> {
        self.0.list(prefix)
    }

    fn delete(&self, name: &str) -> Result<()> {
        self.0.delete(name)
    }

    fn barrier(&self, names: &[&str]) -> Result<()> {
        self.0.barrier(names)
    }
}

struct SlicedWriter(Box<dyn BlobWriter>);

impl BlobWriter for SlicedWriter {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.0.append(bytes)
    }

    fn len(&self) -> u64 {
        self.0.len() - BEFORE.len() as u64
    }

    fn held(&self) -> usize {
        self.0.held().min(self.len() as usize)
    }

    fn seal(&mut self) -> Result<Arc<dyn Blob>> {
        self.0.append(&BEHIND)?;
        sliced(self.0.seal()?)
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
