//! Blobs as files of a [`Disk`], for tests that crash it.
//!
//! A blob survives as with [`LocalStorage`](crate::LocalStorage), whose files have the same names: until it is
//! made durable, its name and its bytes survive or vanish independently.

use std::collections::HashSet;
use std::fmt::{self, Debug, Formatter};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::blob::Blob;
use crate::disk::{Disk, DiskFile};
use crate::error::{Error, Failure, Result};
use crate::heap::HeapBlob;
use crate::local::{is_unsealed, unsealed};
use crate::name;
use crate::storage::{BlobWriter, Storage};

/// The files of a disk as blobs, which are read to the heap. The disk has no other user. Clones are the same storage.
#[derive(Clone)]
pub struct DiskStorage {
    disk: Arc<dyn Disk>,
    /// The names under which blobs are being written.
    writing: Arc<Mutex<HashSet<String>>>,
    /// The first sync that failed.
    failure: Arc<OnceLock<Failure>>,
}

impl DiskStorage {
    /// Opens a disk, and deletes the unsealed files that are left of writers that ended with their process.
    pub fn open(disk: Arc<dyn Disk>) -> Result<DiskStorage> {
        let names = disk.list().map_err(|cause| Error::io("list", disk.place(""), cause))?;
        for name in names.iter().filter(|name| is_unsealed(name)) {
            disk.remove(name).map_err(|cause| Error::io("delete", disk.place(name), cause))?;
        }
        Ok(DiskStorage { disk, writing: Arc::default(), failure: Arc::default() })
    }

    /// The names that are taken, also after a panic: no change is ever half done.
    fn writing(&self) -> MutexGuard<'_, HashSet<String>> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The error of an operation on the file of a blob.
    fn error(&self, operation: &'static str, name: &str) -> impl FnOnce(io::Error) -> Error {
        let place = self.disk.place(name);
        move |cause| Error::blob(operation, place, cause)
    }

    /// The error of a sync, for this and all later ones.
    fn fail(&self, name: &str, cause: io::Error) -> Error {
        let failure = Failure::new("sync", self.disk.place(name), cause);
        self.failure.get_or_init(|| failure).final_error()
    }
}

impl Debug for DiskStorage {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DiskStorage").field(&self.disk).finish()
    }
}

impl Storage for DiskStorage {
    fn create(&self, name: &str) -> Result<Box<dyn BlobWriter>> {
        name::check(name)?;
        let mut writing = self.writing();
        let is_taken = match self.disk.open(name) {
            Ok(_) => true,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => writing.contains(name),
            Err(cause) => return Err(self.error("create", name)(cause)),
        };
        if is_taken {
            return Err(Error::Exists { place: self.disk.place(name) });
        }
        let unsealed = unsealed(name, "");
        let file = self.disk.create(&unsealed).map_err(self.error("create", name))?;
        writing.insert(name.to_owned());
        let (storage, name) = (self.clone(), name.to_owned());
        Ok(Box::new(Writer { storage, name, unsealed, file, length: 0, is_sealed: false }))
    }

    fn open(&self, name: &str) -> Result<Arc<dyn Blob>> {
        name::check(name)?;
        let blob = self.disk.open(name).and_then(|file| read(&*self.disk, name, &*file));
        blob.map_err(self.error("open", name))
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>> {
        let names = self.disk.list();
        let mut names = names.map_err(|cause| Error::io("list", self.disk.place(""), cause))?;
        names.retain(|name| name.starts_with(prefix) && name::is_valid(name));
        Ok(names)
    }

    fn delete(&self, name: &str) -> Result<()> {
        name::check(name)?;
        self.disk.remove(name).map_err(self.error("delete", name))
    }

    fn barrier(&self, names: &[&str]) -> Result<()> {
        if let Some(failure) = self.failure.get() {
            return Err(failure.final_error());
        }
        let mut files = Vec::with_capacity(names.len());
        for name in names {
            name::check(name)?;
            files.push((name, self.disk.open(name).map_err(self.error("sync", name))?));
        }
        for (name, file) in files {
            file.sync_data().map_err(|cause| self.fail(name, cause))?;
        }
        self.disk.sync_directory().map_err(|cause| self.fail("", cause))
    }
}

/// The blob in a complete file.
fn read(disk: &dyn Disk, name: &str, file: &dyn DiskFile) -> io::Result<Arc<dyn Blob>> {
    let mut bytes = vec![0; file.size()? as usize];
    file.read_at(&mut bytes, 0)?;
    Ok(Arc::new(HeapBlob::new(name, disk.place(name), bytes.into())))
}

struct Writer {
    storage: DiskStorage,
    name: String,
    unsealed: String,
    file: Box<dyn DiskFile>,
    length: u64,
    is_sealed: bool,
}

impl Writer {
    /// Fails if the blob is sealed: readers rely on its bytes.
    fn check(&self, operation: &'static str) -> Result<()> {
        match self.is_sealed {
            true => Err(Error::Sealed { place: self.storage.disk.place(&self.name), operation }),
            false => Ok(()),
        }
    }

    /// Opens the file as a blob, and only then gives it its name.
    fn finish(&self) -> io::Result<Arc<dyn Blob>> {
        // A failed write may have left some bytes.
        self.file.set_size(self.length)?;
        let disk = &*self.storage.disk;
        let blob = read(disk, &self.name, &*self.file)?;
        disk.rename(&self.unsealed, &self.name)?;
        Ok(blob)
    }
}

impl BlobWriter for Writer {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.check("append to")?;
        let written = self.file.write_at(bytes, self.length);
        written.map_err(self.storage.error("append to", &self.name))?;
        self.length += bytes.len() as u64;
        Ok(())
    }

    fn len(&self) -> u64 {
        self.length
    }

    fn held(&self) -> usize {
        // All bytes are on the disk.
        0
    }

    fn seal(&mut self) -> Result<Arc<dyn Blob>> {
        self.check("seal")?;
        let blob = self.finish().map_err(self.storage.error("seal", &self.name))?;
        self.is_sealed = true;
        self.storage.writing().remove(&self.name);
        Ok(blob)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if !self.is_sealed {
            // There is no caller to report an error to. Another writer of the name replaces the file.
            let _ = self.storage.disk.remove(&self.unsealed);
            self.storage.writing().remove(&self.name);
        }
    }
}
