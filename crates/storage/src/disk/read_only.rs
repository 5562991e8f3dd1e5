//! A directory that is only looked at.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::disk::{Disk, DiskFile};

/// A directory of the local file system, of which nothing is changed: all operations that would are errors. It may belong
/// to a running program. If it does not exist, it has no files.
#[derive(Debug)]
pub struct ReadOnlyDisk {
    path: PathBuf,
}

impl ReadOnlyDisk {
    /// The directory at this path.
    pub fn new(path: impl Into<PathBuf>) -> ReadOnlyDisk {
        ReadOnlyDisk { path: path.into() }
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn refused<T>() -> io::Result<T> {
    Err(io::ErrorKind::ReadOnlyFilesystem.into())
}

impl Disk for ReadOnlyDisk {
    fn place(&self, name: &str) -> String {
        match name {
            "" => self.path.display().to_string(),
            name => self.path.join(name).display().to_string(),
        }
    }

    fn create(&self, _: &str) -> io::Result<Box<dyn DiskFile>> {
        refused()
    }

    /// Opens a file to read it.
    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(File::open(self.path.join(name))?))
    }

    fn rename(&self, _: &str, _: &str) -> io::Result<()> {
        refused()
    }

    fn remove(&self, _: &str) -> io::Result<()> {
        refused()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(&self.path) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry?;
            if let Ok(name) = entry.file_name().into_string()
                && entry.file_type()?.is_file()
            {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn sync_directory(&self) -> io::Result<()> {
        refused()
    }
}
