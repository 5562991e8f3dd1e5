//! Temporary directories, which no end of the process leaves behind.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The directories that exist.
static DIRECTORIES: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// How often a directory is removed in which another thread still creates files.
const ATTEMPTS: usize = 5;

/// A directory that is removed when dropped, or by [`remove_all`].
pub(crate) struct Temporary(PathBuf);

impl Temporary {
    /// A new directory, whose name begins with `prefix`.
    pub(crate) fn new(prefix: &str) -> io::Result<Self> {
        // A signal finds it here as soon as it exists.
        let mut directories = directories();
        let directory = tempfile::Builder::new().prefix(prefix).tempdir()?.keep();
        directories.insert(directory.clone());
        Ok(Self(directory))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let mut directories = directories();
        remove(&self.0);
        directories.remove(&self.0);
    }
}

/// Removes all temporary directories: the process ends.
pub(crate) fn remove_all() {
    directories().iter().for_each(|directory| remove(directory));
}

fn remove(directory: &Path) {
    for _ in 0..ATTEMPTS {
        match fs::remove_dir_all(directory) {
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => {}
            // A directory that cannot be removed is left to the system's cleaning of temporary files.
            _ => break,
        }
    }
}

fn directories() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    DIRECTORIES.lock().unwrap_or_else(PoisonError::into_inner)
}
