//! The replaceable root of stored state: numbered manifests, of which one is current.
//!
//! A manifest is any bytes; for its owner it names everything else that belongs to a state. To publish one is the only
//! commit point: before, a crash leaves the old one current, and after, the new one.
//!
//! - this file: what manifests are;
//! - [`mod@format`]: the bytes of the files;
//! - [`mod@file`]: manifests in files, and the order of a publication;
//! - [`files`]: looking at the files without changing them, and copying one;
//! - [`memory`]: manifests without a disk.

mod file;
mod files;
mod format;
mod memory;

use std::fmt::Debug;

use bytes::Bytes;

use crate::error::Result;

pub use file::FileManifests;
pub use files::ManifestFiles;
pub use memory::MemoryManifests;

/// A manifest and its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// How many were published up to this one.
    pub number: u64,
    /// The published bytes.
    pub bytes: Bytes,
}

/// The outcome of a publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Published {
    /// It is current, and durable.
    Done,
    /// Another one is current than its publisher knew, and nothing has changed.
    Conflict {
        /// The number of the current one; 0 if there is none.
        current: u64,
    },
}

/// Numbered manifests, of which the last is current.
///
/// All methods may be called from several threads at once.
pub trait Manifests: Send + Sync + Debug {
    /// Makes a manifest current if its number is one more than that of the current one; the first has the number 1.
    ///
    /// It is durable when this returns [`Published::Done`]; the blobs that it names must be durable before.
    ///
    /// # Errors
    ///
    /// [`Error::Full`](crate::Error::Full) if the disk is full: nothing has changed, and it can be repeated. If a
    /// name could not be changed or the directory not be synced, it is unknown which manifest is current after a
    /// crash: then this and [`retain`](Manifests::retain) fail with the same error from then on.
    fn publish(&self, next: u64, manifest: &[u8]) -> Result<Published>;

    /// The current manifest, if one was published.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`](crate::Error::Corrupt), [`Error::Lost`](crate::Error::Lost) or
    /// [`Error::Newer`](crate::Error::Newer).
    fn current(&self) -> Result<Option<Manifest>>;

    /// The numbers of all manifests that are kept, in order. The last is that of the current one.
    fn list(&self) -> Result<Vec<u64>>;

    /// A manifest that is kept.
    ///
    /// # Errors
    ///
    /// As [`current`](Manifests::current), and [`Error::Missing`](crate::Error::Missing) if there is none of this number.
    fn read(&self, number: u64) -> Result<Bytes>;

    /// Deletes all manifests but the last `count`, durably. The current one is always kept.
    fn retain(&self, count: usize) -> Result<()>;

    /// Where a manifest is, for messages.
    fn place(&self, number: u64) -> String {
        format!("manifest {number}")
    }
}
