//! Alluvium's storage: immutable blobs by name, threads that merge their contents, and a journal.
//!
//! A *blob* is a sequence of bytes that is written once, from beginning to end, then sealed, and from then on only read or
//! deleted. This crate does not know what the bytes mean.
//!
//! Read the chapters in this order:
//!
//! - [`storage`]: the name space, and writing a blob;
//! - [`blob`]: reading a sealed one;
//! - [`error`]: the errors of all of these;
//! - [`local`]: blobs as files of a directory, mapped to memory when they are large;
//! - [`scratch`]: a directory that lives as long as its process;
//! - [`temporary`]: a blob that is deleted with its last owner;
//! - [`claimed`]: blobs that are kept for as long as a manifest names them;
//! - [`slice`](mod@slice): a part of a blob, as a blob of its own;
//! - [`compaction`] and [`pool`]: merges as jobs, and threads that do them;
//! - [`disk`]: the operations of a file system that durable files are made of, and, for tests, a simulated disk and blobs
//!   on any disk;
//! - [`journal`]: a durable log of records;
//! - [`manifests`]: the replaceable root of stored state;
//! - [`memory`], `failing` and `haphazard`: implementations for tests, one without a disk, and, with the feature
//!   `faults`, one whose disk fails on command, and threads that do jobs at any time.
//!
//! All implementations pass the same tests: a program that runs on one runs on all.
//!
//! ```
//! use std::sync::Arc;
//!
//! use alluvium_storage::{Blob, Scratch, Storage, TemporaryBlob};
//!
//! # fn main() -> alluvium_storage::Result<()> {
//! let scratch: Arc<dyn Storage> = Arc::new(Scratch::create()?);
//! let mut writer = scratch.create("batch-1")?;
//! writer.append(b"some ")?;
//! writer.append(b"bytes")?;
//! let blob = TemporaryBlob::new(scratch, writer.seal()?);
//! assert_eq!(blob.bytes(), "some bytes");
//! assert_eq!(blob.read(5..10)?, "bytes");
//! // This deletes the blob and, as nobody else uses it, the scratch directory.
//! drop(blob);
//! # Ok(())
//! # }
//! ```
//!
//! # Known limitation
//!
//! Sealing makes a blob visible, not durable: after a crash of the system it may be gone, unless it was made durable by
//! [`Storage::barrier`]. Local files are for Unix; they compile for Windows and are not tested there.

pub mod blob;
pub mod claimed;
pub mod compaction;
pub mod disk;
pub mod error;
#[cfg(any(test, feature = "faults"))]
pub mod failing;
#[cfg(any(test, feature = "faults"))]
pub mod haphazard;
pub mod journal;
pub mod local;
pub mod manifests;
pub mod memory;
pub mod pool;
pub mod scratch;
pub mod slice;
pub mod storage;
pub mod temporary;

mod heap;
mod mapped;
mod name;
mod sync;

pub use blob::{Advice, Blob};
pub use claimed::ClaimedStorage;
pub use compaction::{Compaction, Job, Slice, Work};
#[cfg(any(test, feature = "faults"))]
pub use disk::blobs::DiskStorage;
#[cfg(any(test, feature = "faults"))]
pub use disk::simulated::SimulatedDisk;
pub use disk::{Disk, DiskFile, LocalDisk, ReadOnlyDisk};
pub use error::{Error, Result};
#[cfg(any(test, feature = "faults"))]
pub use failing::Failing;
#[cfg(any(test, feature = "faults"))]
pub use haphazard::Haphazard;
pub use journal::{
    Arriving, Elsewhere, Expected, FileJournal, FileJournalOptions, Followed, Heard, Journal,
    JournalDamage, JournalSurvey, KnownEnd, MemoryJournal, Position, Replay, SentRecords,
    SurveyedRecord, copy_journal, cut_journal, rewrite_journal, survey_journal,
};
pub use local::LocalStorage;
pub use manifests::{
    FileManifests, Manifest, ManifestFiles, Manifests, MemoryManifests, Published,
};
pub use mapped::FAULT_AROUND;
pub use memory::MemoryStorage;
pub use pool::MergePool;
pub use scratch::Scratch;
pub use slice::BlobSlice;
pub use storage::{BlobWriter, Storage};
pub use temporary::TemporaryBlob;
