//! Blobs in memory, for tests.

use std::collections::btree_map::{BTreeMap, Entry};
use std::fmt::{self, Debug, Formatter};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::blob::Blob;
use crate::error::{Error, Result};
use crate::heap::HeapBlob;
use crate::name;
use crate::storage::{BlobWriter, Storage};

/// Blobs in memory, for as long as there is a clone of the storage or an open blob.
#[derive(Clone, Default)]
pub struct MemoryStorage {
    blobs: Arc<Mutex<Blobs>>,
}

/// The bytes of sealed blobs by name; `None` for a name that is being written.
type Blobs = BTreeMap<String, Option<Bytes>>;

impl MemoryStorage {
    /// Storage without blobs.
    pub fn new() -> MemoryStorage {
        MemoryStorage::default()
    }

    fn blobs(&self) -> MutexGuard<'_, Blobs> {
        // No change is ever half done, so a panic has left nothing inconsistent.
        self.blobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The lengths of blobs by name, without their bytes.
impl Debug for MemoryStorage {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let blobs = self.blobs();
        let lengths = blobs.iter().map(|(name, bytes)| (name, bytes.as_ref().map(Bytes::len)));
        f.debug_map().entries(lengths).finish()
    }
}

impl Storage for MemoryStorage {
    fn create(&self, name: &str) -> Result<Box<dyn BlobWriter>> {
        name::check(name)?;
        match self.blobs().entry(name.to_owned()) {
            Entry::Occupied(_) => Err(Error::Exists { place: place(name) }),
            Entry::Vacant(entry) => {
                entry.insert(None);
                let storage = self.clone();
                Ok(Box::new(Writer {
                    storage,
                    name: name.to_owned(),
                    bytes: Vec::new(),
                    sealed: false,
                }))
            }
        }
    }

    fn open(&self, name: &str) -> Result<Arc<dyn Blob>> {
        name::check(name)?;
        match self.blobs().get(name) {
            Some(Some(bytes)) => Ok(Arc::new(HeapBlob::new(name, place(name), bytes.clone()))),
            _ => Err(Error::Missing { place: place(name), operation: "open" }),
        }
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>> {
        let blobs = self.blobs();
        let sealed =
            blobs.iter().filter(|(name, bytes)| bytes.is_some() && name.starts_with(prefix));
        Ok(sealed.map(|(name, _)| name.clone()).collect())
    }

    fn delete(&self, name: &str) -> Result<()> {
        name::check(name)?;
        match self.blobs().entry(name.to_owned()) {
            Entry::Occupied(entry) if entry.get().is_some() => {
                entry.remove();
                Ok(())
            }
            _ => Err(Error::Missing { place: place(name), operation: "delete" }),
        }
    }

    fn barrier(&self, names: &[&str]) -> Result<()> {
        let blobs = self.blobs();
        names.iter().try_for_each(|name| {
            name::check(name)?;
            match blobs.get(*name) {
                Some(Some(_)) => Ok(()),
                _ => Err(Error::Missing { place: place(name), operation: "sync" }),
            }
        })
    }
}

fn place(name: &str) -> String {
    format!("mem:{name}")
}

struct Writer {
    storage: MemoryStorage,
    name: String,
    bytes: Vec<u8>,
    sealed: bool,
}

impl Writer {
    fn check(&self, operation: &'static str) -> Result<()> {
        match self.sealed {
            true => Err(Error::Sealed { place: place(&self.name), operation }),
            false => Ok(()),
        }
    }
}

impl BlobWriter for Writer {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.check("append to")?;
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn held(&self) -> usize {
        // All bytes stand for bytes on the disk.
        0
    }

    fn seal(&mut self) -> Result<Arc<dyn Blob>> {
        self.check("seal")?;
        let bytes = Bytes::from(std::mem::take(&mut self.bytes));
        self.storage.blobs().insert(self.name.clone(), Some(bytes.clone()));
        self.sealed = true;
        Ok(Arc::new(HeapBlob::new(&self.name, place(&self.name), bytes)))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if !self.sealed {
            self.storage.blobs().remove(&self.name);
        }
    }
}
