//! A folder on a disk, which the stores are in while they are measured.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{major, minor, statfs};

use crate::Result;

/// A new folder. Dropping it removes it.
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Creates a folder below this one, which is created too if it is missing.
    ///
    /// Fails if its file system is in memory.
    pub fn new(parent: &Path) -> Result<Self> {
        fs::create_dir_all(parent)?;
        // tmpfs and ramfs.
        if matches!(statfs(parent)?.f_type, 0x0102_1994 | 0x8584_58f6) {
            let parent = parent.display();
            return Err(format!("{parent} is in memory: name a directory on a disk").into());
        }
        let path = parent.join(format!("alluvium-peers-{}", std::process::id()));
        fs::create_dir(&path)?;
        Ok(Self { path: path.canonicalize()? })
    }

    /// Where a store of this name is.
    pub fn of(&self, store: &str) -> PathBuf {
        self.path.join(store)
    }

    /// Its file system, the disk of that, how many cores there are, and how busy they were in the last minute.
    pub fn machine(&self) -> Result<String> {
        let device = fs::metadata(&self.path)?.dev();
        let device = format!("{}:{}", major(device), minor(device));
        let mounts = fs::read_to_string("/proc/self/mountinfo")?;
        // "… major:minor root mount-point options … - file-system disk options"
        let mount = mounts.lines().find(|line| line.split(' ').nth(2) == Some(&device));
        let source = mount.and_then(|line| line.split_once(" - ")).map_or("", |(_, source)| source);
        let mut source = source.split(' ');
        let (system, disk) = (source.next().unwrap_or("?"), source.next().unwrap_or("?"));
        let cores = std::thread::available_parallelism()?;
        let load = fs::read_to_string("/proc/loadavg")?;
        let load = load.split(' ').next().unwrap_or("?");
        Ok(format!("{system} on {disk}, {cores} cores, load before: {load}"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // If this fails, it leaves a folder with a telling name.
        let _ = fs::remove_dir_all(&self.path);
    }
}
