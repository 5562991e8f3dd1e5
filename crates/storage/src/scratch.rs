//! A directory that lives as long as its process.
//!
//! # Design
//!
//! The name of a scratch directory is `alluvium-` and a unique suffix: the number of the process, the time and a counter.
//! In it are the files of blobs, whose names end with `.alluvium`, and an empty lock file that its owner holds locked. The
//! operating system releases the lock when the owner ends, however it ends. So a lock that can be taken means that a
//! crash has left the directory.
//!
//! A directory has its name only once its lock is held: it is created under the same name with a dot in front, locked, and
//! then renamed. A removal deletes the lock file last, so that an interrupted removal can be continued by another process.
//! A leftover is removed only if nothing else is in it: a directory with any other file is not ours, whatever its name.
//!
//! A process that is about to end without dropping its scratch directories, because of a signal, calls
//! [`Scratch::remove_all`].

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::blob::Blob;
use crate::disk::platform;
use crate::error::{Error, Result};
use crate::local::{LocalStorage, is_file_of_blob};
use crate::storage::{BlobWriter, Storage};

/// The prefix of the names of all scratch directories.
const PREFIX: &str = "alluvium-";

/// The name of the lock file, which is not a valid name of a blob.
const LOCK: &str = ".alluvium-scratch.lock";

/// The suffix of the names of all files of blobs.
const SUFFIX: &str = ".alluvium";

/// How often a removal begins again because files were renamed meanwhile.
const ATTEMPTS: usize = 100;

/// Whether a directory has ended: then no file is created in it any more.
type Ended = Arc<RwLock<bool>>;

/// The scratch directories of this process.
static LIVE: Mutex<BTreeMap<PathBuf, Ended>> = Mutex::new(BTreeMap::new());

/// A directory of blobs that is removed when this is dropped.
///
/// It is a [`Storage`] itself: an `Arc` of it, as in a [`TemporaryBlob`](crate::TemporaryBlob), keeps the directory for as
/// long as there are blobs in it. Only its user can read it.
#[derive(Debug)]
pub struct Scratch {
    storage: LocalStorage,
    ended: Ended,
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
        let ended = Ended::default();
        live().insert(directory.clone(), ended.clone());
        // A directory that cannot be removed only takes up space.
        let _ = lock.metadata().and_then(|own| remove_leftovers(&parent, &own));
        let storage = LocalStorage::open_with_suffix(directory, SUFFIX)?;
        Ok(Scratch { storage, ended, _lock: lock })
    }

    /// The directory as storage. It cannot be used after `self` is dropped, but open blobs stay readable.
    pub fn storage(&self) -> &LocalStorage {
        &self.storage
    }

    /// Removes all scratch directories of this process, also while other threads use them: creating blobs fails from
    /// then on. For a process that is about to end without dropping them.
    pub fn remove_all() {
        for (directory, ended) in std::mem::take(&mut *live()) {
            // Waits for the files that are being created.
            *ended.write().unwrap_or_else(PoisonError::into_inner) = true;
            // If this fails, the owner of the next scratch directory removes it.
            let _ = remove(&directory);
        }
    }
}

fn live() -> MutexGuard<'static, BTreeMap<PathBuf, Ended>> {
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Storage for Scratch {
    fn create(&self, name: &str) -> Result<Box<dyn BlobWriter>> {
        let ended = self.ended.read().unwrap_or_else(PoisonError::into_inner);
        match *ended {
            true => {
                let cause = io::Error::other("the process is ending");
                Err(Error::path("create a file in", self.storage.directory(), cause))
            }
            false => self.storage.create(name),
        }
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

    fn barrier(&self, names: &[&str]) -> Result<()> {
        self.storage.barrier(names)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let directory = self.storage.directory();
        // If this fails, the owner of the next scratch directory removes it.
        let _ = remove(directory);
        live().remove(directory);
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
        match platform::create_private_directory(&nascent) {
            Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => continue,
            created => created?,
        }
        let directory = parent.join(unique);
        let locked = lock(&nascent).and_then(|lock| {
            fs::rename(&nascent, &directory)?;
            Ok(lock)
        });
        match locked {
            Ok(lock) => return Ok((directory, lock)),
            // Another process took it for a leftover before it was locked.
            Err(cause) if cause.kind() == io::ErrorKind::WouldBlock || !nascent.exists() => {}
            Err(cause) => {
                let _ = remove(&nascent);
                return Err(cause);
            }
        }
    }
}

fn lock(directory: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    let lock = platform::private(&mut options).open(directory.join(LOCK))?;
    lock.try_lock()?;
    Ok(lock)
}

/// Whether a scratch directory may have this name, before it is locked or later.
fn is_name(name: &str) -> bool {
    let hexadecimal = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit());
    let decimal = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let unique = name.strip_prefix('.').unwrap_or(name).strip_prefix(PREFIX);
    let mut parts = unique.into_iter().flat_map(|unique| unique.split('-'));
    parts.next().is_some_and(decimal)
        && parts.next().is_some_and(hexadecimal)
        && parts.next().is_some_and(decimal)
        && parts.next().is_none()
}

/// Removes the scratch directories of the owner of `own` that no process owns. Those of other users may contain anything.
fn remove_leftovers(parent: &Path, own: &Metadata) -> io::Result<()> {
    for entry in fs::read_dir(parent)? {
        let entry = entry?;
        if entry.file_name().to_str().is_some_and(is_name)
            // Of the entry itself, not of the target of a link.
            && let Ok(metadata) = entry.metadata()
            && metadata.is_dir()
            && platform::is_same_owner(&metadata, own)
        {
            // In use, or being removed by another process.
            let _ = remove_leftover(&entry.path());
        }
    }
    Ok(())
}

fn remove_leftover(directory: &Path) -> io::Result<()> {
    let path = directory.join(LOCK);
    match fs::symlink_metadata(&path) {
        // A lock that is no regular file is not ours, and opening it might wait for ever.
        Ok(lock) if !lock.is_file() || lock.len() > 0 => return Ok(()),
        // Remains of a removal, or of a creation that did not get as far as its lock.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return fs::remove_dir(directory),
        found => found.map(drop)?,
    }
    let lock = OpenOptions::new().write(true).open(path)?;
    lock.try_lock()?;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_name() != LOCK && !is_blob(&entry) {
            return Ok(());
        }
    }
    remove(directory)
}

/// Whether an entry of a scratch directory is a blob's file.
fn is_blob(entry: &fs::DirEntry) -> bool {
    entry.file_name().to_str().is_some_and(|name| is_file_of_blob(name, SUFFIX))
        && entry.file_type().is_ok_and(|kind| kind.is_file())
}

/// Removes a scratch directory whose lock is held: the files of blobs, then the lock file, then itself. It stays, with its
/// lock file, if anything else is in it.
fn remove(directory: &Path) -> io::Result<()> {
    for _ in 0..ATTEMPTS {
        let mut others = false;
        let mut removed = false;
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            if is_blob(&entry) {
                removed = true;
                match fs::remove_file(entry.path()) {
                    // Another thread has deleted or renamed it.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    other => other?,
                }
            } else if entry.file_name() != LOCK {
                others = true;
            }
        }
        match (others, removed) {
            (true, false) => return Err(io::ErrorKind::DirectoryNotEmpty.into()),
            // Files may have been renamed while they were listed.
            (_, true) => {}
            (false, false) => break,
        }
    }
    match fs::remove_file(directory.join(LOCK)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => fs::remove_dir(directory),
    }
}
