//! A directory for as long as a process runs.
//!
//! # Design
//!
//! A scratch directory is called `alluvium-` and something unique, and has a lock file in it that its owner holds
//! locked. The operating system lets go of the lock when the owner ends, however it ends, so a lock that can be
//! taken tells that a crash has left the directory behind.
//!
//! A directory is never seen under its name before its lock is held: it is made under another name, locked, and
//! then renamed. And when it is removed the lock file goes last, so that a removal which is cut off can be taken up
//! by the next. What has no such lock file is not ours and is left alone.
//!
//! # Known limitation
//!
//! A crash within the few calls that make or unmake a directory can leave one behind that has nothing in it but,
//! perhaps, an empty lock file.

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

/// What the names of all scratch directories begin with.
const PREFIX: &str = "alluvium-";

/// The lock file. No blob can be called that.
const LOCK: &str = ".alluvium-scratch.lock";

/// A directory of blobs that is removed when this is dropped.
///
/// It is storage itself, so an `Arc` of it, as a [`TemporaryBlob`](crate::TemporaryBlob) holds one, keeps the
/// directory for as long as there are blobs in it. Only its user can read it.
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
    /// Scratch directories there that nobody owns any more are removed, as far as the user may do that; those in
    /// use, and whatever else there is, are left alone.
    pub fn create_in(parent: impl AsRef<Path>) -> Result<Scratch> {
        let given = parent.as_ref();
        let error = |cause| Error::path("create a scratch directory in", given, cause);
        let parent = std::path::absolute(given).map_err(error)?;
        fs::create_dir_all(&parent).map_err(error)?;
        let (directory, lock) = create_locked(&parent).map_err(error)?;
        // What cannot be removed takes up room, no more.
        let _ = lock.metadata().and_then(|own| remove_leftovers(&parent, own.uid()));
        let storage = LocalStorage::open(directory)?;
        Ok(Scratch { storage, _lock: lock })
    }

    /// The directory as storage. It is of no use any more once `self` is dropped, but what is open stays open.
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
        // What is not removed now, the next scratch directory's owner removes.
        let _ = remove(self.storage.directory());
    }
}

/// Makes a directory that has its name only once its lock is held.
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

/// Removes this user's scratch directories that no process has. In one of another user there may be anything.
fn remove_leftovers(parent: &Path, user: u32) -> io::Result<()> {
    for entry in fs::read_dir(parent)? {
        let entry = entry?;
        if entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX))
            // Not of what a link leads to.
            && let Ok(metadata) = entry.metadata()
            && metadata.is_dir()
            && metadata.uid() == user
        {
            // Another's, or being removed by another.
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

/// Removes a scratch directory whose lock is held: its files, the lock file last, and itself. Directories in it
/// are not ours; then it stays.
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
