//! Storage that fails on command, for tests.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::blob::Blob;
use crate::error::{Error, Result};
use crate::heap::HeapBlob;
use crate::storage::{BlobWriter, Storage};

/// A storage that passes calls on to another until it is set to fail.
///
/// *Mutating* calls are `create`, `append`, `seal`, `delete` and `barrier`. A writer that is dropped unsealed leaves nothing in any
/// case. Clones share their settings.
#[derive(Clone, Debug)]
pub struct Failing<S> {
    storage: S,
    faults: Arc<Mutex<Faults>>,
}

#[derive(Debug, Default)]
struct Faults {
    /// The number of mutating calls, including failed ones.
    calls: u64,
    /// The first mutating call that fails, counted from 1.
    first: Option<u64>,
    /// The bytes appended so far.
    used: u64,
    /// The most that can be.
    capacity: Option<u64>,
    damage: HashMap<String, Vec<Damage>>,
}

/// Damage to a blob's bytes, as readers see it.
#[derive(Clone, Copy, Debug)]
enum Damage {
    Bit(u64),
    Length(u64),
}

impl<S: Storage> Failing<S> {
    /// A storage over this one, without faults yet.
    pub fn new(storage: S) -> Failing<S> {
        Failing { storage, faults: Arc::default() }
    }

    /// Makes the `call`-th mutating call, counted from 1, and all later ones fail with an [`Error::Io`].
    pub fn fail_from(&self, call: u64) {
        self.faults().first = Some(call);
    }

    /// The number of mutating calls so far, including failed ones.
    pub fn calls(&self) -> u64 {
        self.faults().calls
    }

    /// Makes appends fail as on a full disk, with [`Error::Full`], when the bytes appended to all blobs since the beginning
    /// would exceed `capacity`. Deleted blobs still count.
    pub fn limit(&self, capacity: u64) {
        self.faults().capacity = Some(capacity);
    }

    /// The bytes appended to all blobs so far, including deleted ones.
    pub fn used(&self) -> u64 {
        self.faults().used
    }

    /// Removes the limit.
    pub fn free(&self) {
        self.faults().capacity = None;
    }

    /// Flips a bit of a blob for everyone who opens it from now on. Bit `n` is bit `n % 8`, counted from the lowest, of byte
    /// `n / 8`; bits past the end are ignored.
    pub fn flip(&self, name: &str, bit: u64) {
        self.damage(name, Damage::Bit(bit));
    }

    /// Truncates a blob to its first `length` bytes for everyone who opens it from now on.
    pub fn cut(&self, name: &str, length: u64) {
        self.damage(name, Damage::Length(length));
    }

    /// Repairs all blobs. Open ones stay as they are.
    pub fn mend(&self) {
        self.faults().damage.clear();
    }

    fn damage(&self, name: &str, damage: Damage) {
        self.faults().damage.entry(name.to_owned()).or_default().push(damage);
    }

    fn faults(&self) -> MutexGuard<'_, Faults> {
        locked(&self.faults)
    }
}

/// The faults, also after a panic: no change is ever half done.
fn locked(faults: &Mutex<Faults>) -> MutexGuard<'_, Faults> {
    faults.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Faults {
    /// Counts a mutating call, and fails if its time has come.
    fn call(&mut self, operation: &'static str, name: &str) -> Result<()> {
        self.calls += 1;
        match self.first {
            Some(first) if first <= self.calls => {
                let cause = io::Error::other(format!("call {} fails on command", self.calls));
                Err(Error::io(operation, format!("failing:{name}"), cause))
            }
            _ => Ok(()),
        }
    }

    /// Fails if `bytes` more would exceed the limit.
    fn reserve(&self, name: &str, bytes: u64) -> Result<()> {
        match self.capacity {
            Some(capacity) if self.used + bytes > capacity => {
                let cause = io::ErrorKind::StorageFull.into();
                Err(Error::io("append to", format!("failing:{name}"), cause))
            }
            _ => Ok(()),
        }
    }
}

impl<S: Storage> Storage for Failing<S> {
    fn create(&self, name: &str) -> Result<Box<dyn BlobWriter>> {
        self.faults().call("create", name)?;
        let writer = self.storage.create(name)?;
        Ok(Box::new(Writer { writer, name: name.to_owned(), faults: self.faults.clone() }))
    }

    fn open(&self, name: &str) -> Result<Arc<dyn Blob>> {
        let blob = self.storage.open(name)?;
        Ok(damaged(&self.faults(), blob))
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>> {
        self.storage.list(prefix)
    }

    fn delete(&self, name: &str) -> Result<()> {
        self.faults().call("delete", name)?;
        self.storage.delete(name)
    }

    fn barrier(&self, names: &[&str]) -> Result<()> {
        self.faults().call("sync", &names.join(", "))?;
        self.storage.barrier(names)
    }
}

/// The blob with its damage, on the heap.
fn damaged(faults: &Faults, blob: Arc<dyn Blob>) -> Arc<dyn Blob> {
    let Some(damage) = faults.damage.get(blob.name()) else { return blob };
    let mut bytes = blob.bytes().to_vec();
    for damage in damage {
        match *damage {
            Damage::Bit(bit) => {
                let byte = usize::try_from(bit / 8).ok().and_then(|byte| bytes.get_mut(byte));
                if let Some(byte) = byte {
                    *byte ^= 1 << (bit % 8);
                }
            }
            Damage::Length(length) => {
                bytes.truncate(usize::try_from(length).unwrap_or(usize::MAX));
            }
        }
    }
    Arc::new(HeapBlob::new(blob.name(), blob.place(), Bytes::from(bytes)))
}

struct Writer {
    writer: Box<dyn BlobWriter>,
    name: String,
    faults: Arc<Mutex<Faults>>,
}

impl BlobWriter for Writer {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        // Locked throughout, so that two writers do not use the same space.
        let mut faults = locked(&self.faults);
        faults.call("append to", &self.name)?;
        faults.reserve(&self.name, bytes.len() as u64)?;
        self.writer.append(bytes)?;
        faults.used += bytes.len() as u64;
        Ok(())
    }

    fn len(&self) -> u64 {
        self.writer.len()
    }

    fn held(&self) -> usize {
        self.writer.held()
    }

    fn seal(&mut self) -> Result<Arc<dyn Blob>> {
        locked(&self.faults).call("seal", &self.name)?;
        let blob = self.writer.seal()?;
        Ok(damaged(&locked(&self.faults), blob))
    }
}
