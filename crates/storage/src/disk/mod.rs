//! The operations of a file system that durable files are made of.
//!
//! Data that must survive a crash is written through a [`Disk`] and its [`DiskFile`]s, so that tests can put a
//! simulated one in the place of [`LocalDisk`]. The rules are those of POSIX, read strictly:
//!
//! - bytes written to a file survive for certain only once the file is [synced](DiskFile::sync);
//! - a new name, a rename or a removal survives for certain only once the directory is
//!   [synced](Disk::sync_directory);
//! - until then each of them may survive or not, in any combination, and a write in parts;
//! - a sync that has failed says nothing about what was written before it, and neither does a sync after it.

#[cfg(any(test, feature = "faults"))]
pub mod blobs;
mod local;
pub mod platform;
mod read_only;
#[cfg(any(test, feature = "faults"))]
pub mod simulated;

use std::fmt::Debug;
use std::io;

pub use local::LocalDisk;
pub use read_only::ReadOnlyDisk;

/// A directory of files.
///
/// Names are file names, without a path. All methods may be called from several threads at once.
pub trait Disk: Send + Sync + Debug {
    /// Where a file is, for messages. The empty name is the directory itself.
    fn place(&self, name: &str) -> String;

    /// Creates an empty file, in the place of one that has the name.
    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;

    /// Opens a file to read and write it.
    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;

    /// Gives a file another name, in the place of a file that has it.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// The names of all files, in order.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Makes the names of all files durable.
    fn sync_directory(&self) -> io::Result<()>;
}

/// An open file of a [`Disk`].
pub trait DiskFile: Send + Sync + Debug {
    /// How many bytes it has.
    fn size(&self) -> io::Result<u64>;

    /// Fills the buffer with the bytes from `offset` on.
    ///
    /// # Errors
    ///
    /// [`UnexpectedEof`](io::ErrorKind::UnexpectedEof) if the file ends before.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;

    /// Writes all of these bytes, and makes the file longer if they end past its end. A gap reads as zeros. If it
    /// fails, any part of them may be written.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Truncates the file, or extends it with zeros.
    fn set_size(&self, size: u64) -> io::Result<()>;

    /// Makes written bytes durable, and the size as far as it is needed to read them.
    fn sync_data(&self) -> io::Result<()>;

    /// Makes written bytes and the size durable.
    fn sync(&self) -> io::Result<()>;
}
