//! A directory of the file system.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use crate::disk::{Disk, DiskFile, platform};
use crate::error::{Error, Result};

/// A directory of the local file system. Only its user can read and write the files.
#[derive(Debug)]
pub struct LocalDisk {
    path: PathBuf,
    /// The open directory, to sync it.
    directory: File,
}

impl LocalDisk {
    /// Opens a directory. If it does not exist, it is created, durably, with all directories above it.
    pub fn open(path: impl AsRef<Path>) -> Result<LocalDisk> {
        let given = path.as_ref();
        let open = || {
            let path = std::path::absolute(given)?;
            create_directory(&path)?;
            let directory = platform::open_to_sync(&path)?;
            match directory.metadata()?.is_dir() {
                true => Ok(LocalDisk { path, directory }),
                false => Err(io::ErrorKind::NotADirectory.into()),
            }
        };
        open().map_err(|cause| Error::path("open", given, cause))
    }
}

/// Creates a directory and those above it, and syncs the parent of each new one.
fn create_directory(path: &Path) -> io::Result<()> {
    if path.try_exists()? {
        return Ok(());
    }
    let Some(parent) = path.parent() else { return Ok(()) };
    create_directory(parent)?;
    match platform::create_private_directory(path) {
        Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {}
        created => created?,
    }
    platform::sync(parent)
}

impl Disk for LocalDisk {
    fn place(&self, name: &str) -> String {
        match name {
            "" => self.path.display().to_string(),
            name => self.path.join(name).display().to_string(),
        }
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true);
        Ok(Box::new(platform::private(&mut options).open(self.path.join(name))?))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let file = OpenOptions::new().read(true).write(true).open(self.path.join(name))?;
        Ok(Box::new(file))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path)? {
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
        self.directory.sync_all()
    }
}

impl DiskFile for File {
    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        platform::read_exact_at(self, buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        platform::write_all_at(self, bytes, offset)
    }

    fn set_size(&self, size: u64) -> io::Result<()> {
        self.set_len(size)
    }

    fn sync_data(&self) -> io::Result<()> {
        File::sync_data(self)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_all()
    }
}
