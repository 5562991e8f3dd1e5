//! A directory that lives as long as its process.
//!
//! # Design
//!
//! The name of a scratch directory is `alluvium-` and a unique suffix. In it is a lock file that its owner holds locked.
//! The operating system releases the lock when the owner ends, however it ends. So a lock that can be taken means that a
//! crash has left the directory behind.
//!
//! A directory has its name only once its lock is held: it is created under another name, locked, and then renamed. A
//! removal deletes the lock file last, so that an interrupted removal can be continued by another process. A directory
//! without such a lock file is not ours and is ignored.
//!
//! # Known limitation
//!
//! A crash within the few calls that create or remove a directory can leave one behind that is empty or has an empty lock
//! file.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::blob::Blob;
use crate::error::{Error, Result};
use crate::local::LocalStorage;
use crate::storage::{BlobWriter, Storage};

/// The prefix of the names of all scratch directories.
const PREFIX: &str = "alluvium-";

/// The name of the lock file, which is not a valid name of a blob.
const LOCK: &str = ".alluvium-scratch.lock";

/// A directory of blobs that is removed when this is dropped.
///
/// It is a [`Storage`] itself: an `Arc` of it, as in a [`TemporaryBlob`](crate::TemporaryBlob), keeps the directory for as
/// long as there are blobs in it. Only its user can read it.
#[derive(Debug)]
pub struct Scratch {
    storage: LocalStorage,
    /// Held locked.
    _lock: File,
}

impl Scratch {
    /// A new directory in the system's temporary directory. See [`create_in`](Scratch::create_in).
    pub fn create() -> Result<Scratch> {
        Scratch::create_in(std::env::temp_dir())
    }

    /// A new directory in this one, which is created if it does not exist.
    ///
    /// This also removes scratch directories that crashed processes of the same user have left there. Others, and
    /// everything else, are left alone.
    pub fn create_in(parent: impl AsRef<Path>) -> Result<Scratch> {
        let given = parent.as_ref();
        let error = |cause| Error::path("create a scratch directory in", given, cause);
        let parent = std::path::absolute(given).map_err(error)?;
        fs::create_dir_all(&parent).map_err(error)?;
        let (directory, lock) = create_locked(&parent).map_err(error)?;
        // A directory that cannot be removed only takes up space.
        let _ = lock.metadata().and_then(|own| remove_leftovers(&parent, own.uid()));
        let storage = LocalStorage::open(directory)?;
        Ok(Scratch { storage, _lock: lock })
    }

    /// The directory as storage. It cannot be used after `self` is dropped, but open blobs stay readable.
    pub fn storage(&self) -> &LocalStorage {
        &self.storage
    }
}

impl Storage for Scratch {
    fn create(&self, name: &str) -> Result<Box<dyn BlobWriter>> {
        self.storage.create(name)
    }

    fn open(&self, name: &str) -> Result<Arc<dyn Blob>> {
        self.storage.open(name)
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>> {
        self.storage.list(prefix)
    }

    fn delete(&self, name: &str) -> Result<()> {
        self.storage.delete(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // If this fails, the owner of the next scratch directory removes it.
        let _ = remove(self.storage.directory());
    }
}

/// Creates a directory that has its name only once its lock is held.
fn create_locked(parent: &Path) -> io::Result<(PathBuf, File)> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    loop {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let unique = format!("{PREFIX}{}-{since:x}-{next}", process::id());
        let nascent = parent.join(format!(".{unique}"));
        match DirBuilder::new().mode(0o700).create(&nascent) {
            Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => continue,
            created => created?,
        }
        let directory = parent.join(unique);
        let locked = lock(&nascent).and_then(|lock| {
            fs::rename(&nascent, &directory)?;
            Ok(lock)
        });
        if locked.is_err() {
            let _ = remove(&nascent);
        }
        return Ok((directory, locked?));
    }
}

fn lock(directory: &Path) -> io::Result<File> {
    let lock = File::create_new(directory.join(LOCK))?;
    lock.try_lock()?;
    Ok(lock)
}

/// Removes this user's scratch directories that no process owns. Those of other users may contain anything.
fn remove_leftovers(parent: &Path, user: u32) -> io::Result<()> {
    for entry in fs::read_dir(parent)? {
        let entry = entry?;
        if entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX))
            // Of the entry itself, not of the target of a link.
            && let Ok(metadata) = entry.metadata()
            && metadata.is_dir()
            && metadata.uid() == user
        {
            // In use, or being removed by another process.
            let _ = remove_leftover(&entry.path());
        }
    }
    Ok(())
}

fn remove_leftover(directory: &Path) -> io::Result<()> {
    let lock = OpenOptions::new().write(true).open(directory.join(LOCK))?;
    lock.try_lock()?;
    remove(directory)
}

/// Removes a scratch directory whose lock is held: its files, then the lock file, then itself. It stays if there are
/// directories in it, which are not ours.
fn remove(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_name() != LOCK {
            fs::remove_file(entry.path())?;
        }
    }
    fs::remove_file(directory.join(LOCK))?;
    fs::remove_dir(directory)
}
