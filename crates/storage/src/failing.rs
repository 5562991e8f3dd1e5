//! Storage that fails on command, for tests.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::blob::Blob;
use crate::error::{Error, Result};
use crate::heap::HeapBlob;
use crate::storage::{BlobWriter, Storage};

/// Storage over another, that does what that does until it is told to fail.
///
/// *Mutating* calls are `create`, `append`, `seal` and `delete`. A writer that is dropped unsealed leaves nothing,
/// whatever was told. Clones share what they were told.
#[derive(Clone, Debug)]
pub struct Failing<S> {
    storage: S,
    faults: Arc<Mutex<Faults>>,
}

#[derive(Debug, Default)]
struct Faults {
    /// How many mutating calls there were, failed ones too.
    calls: u64,
    /// The number of the first mutating call that fails, counted from 1.
    first: Option<u64>,
    /// How many bytes were appended.
    used: u64,
    /// How many can be.
    capacity: Option<u64>,
    damage: HashMap<String, Vec<Damage>>,
}

/// What becomes of a blob's bytes on their way to the reader.
#[derive(Clone, Copy, Debug)]
enum Damage {
    Bit(u64),
    Length(u64),
}

impl<S: Storage> Failing<S> {
    /// What this storage does, and no faults yet.
    pub fn new(storage: S) -> Failing<S> {
        Failing { storage, faults: Arc::default() }
    }

    /// Makes the `call`-th mutating call and all after it fail with an [`Error::Io`], counted from 1 for the first
    /// there ever was.
    pub fn fail_from(&self, call: u64) {
        self.faults().first = Some(call);
    }

    /// How many mutating calls there were, those that failed too.
    pub fn calls(&self) -> u64 {
        self.faults().calls
    }

    /// Makes appends fail as a full disk does, with [`Error::Full`], when there would be more than `capacity` bytes
    /// appended to all blobs together since the beginning. What is deleted or dropped does not count back.
    pub fn limit(&self, capacity: u64) {
        self.faults().capacity = Some(capacity);
    }

    /// How many bytes were appended to all blobs together, what was deleted or dropped since included.
    pub fn used(&self) -> u64 {
        self.faults().used
    }

    /// Makes room without limit.
    pub fn free(&self) {
        self.faults().capacity = None;
    }

    /// Flips a bit of a blob for all who open it from now on. Bit `n` is bit `n % 8`, counted from the lowest, of
    /// byte `n / 8`; a bit after the end is not there to be flipped.
    pub fn flip(&self, name: &str, bit: u64) {
        self.damage(name, Damage::Bit(bit));
    }

    /// Cuts a blob to its first `length` bytes for all who open it from now on.
    pub fn cut(&self, name: &str, length: u64) {
        self.damage(name, Damage::Length(length));
    }

    /// Takes back all damage to blobs. What is open stays as it is.
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

/// The faults, also after a panic: no change to them is ever half done.
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

    /// Fails if there is no room for so many more bytes.
    fn room(&self, name: &str, bytes: u64) -> Result<()> {
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
}

/// The blob, or what is left of it, on the heap.
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
        // Held throughout, so that no two writers take the same room.
        let mut faults = locked(&self.faults);
        faults.call("append to", &self.name)?;
        faults.room(&self.name, bytes.len() as u64)?;
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
