//! Alluvium's storage: immutable blobs by name.
//!
//! A *blob* is a sequence of bytes that is written once, from its beginning to its end, sealed, and from then
//! on only read or deleted. What the bytes mean, this crate does not know.
//!
//! Read the chapters in this order:
//!
//! - [`storage`]: the name space, and how a blob is written;
//! - [`blob`]: reading a sealed one;
//! - [`error`]: what can go wrong;
//! - [`local`]: blobs as files of a directory, mapped to memory when they are large;
//! - [`scratch`]: a directory for as long as a process runs;
//! - [`temporary`]: a blob that is deleted when nobody needs it any more;
//! - [`memory`] and `failing`: the twins for tests, one without a disk and one whose disk fails on command
//!   (with the feature `faults`).
//!
//! All twins pass the same tests, so a program that runs on one of them runs on all.
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
//! // The blob goes here, and with it, as nobody else has it, the scratch directory.
//! drop(blob);
//! # Ok(())
//! # }
//! ```
//!
//! # Known limitation
//!
//! Sealing makes a blob visible, not durable: nothing here survives a crash of the system by promise. Local
//! files are for Unix.

pub mod blob;
pub mod error;
#[cfg(any(test, feature = "faults"))]
pub mod failing;
pub mod local;
pub mod memory;
pub mod scratch;
pub mod storage;
pub mod temporary;

mod heap;
mod mapped;
mod name;

pub use blob::{Advice, Blob};
pub use error::{Error, Result};
#[cfg(any(test, feature = "faults"))]
pub use failing::Failing;
pub use local::LocalStorage;
pub use mapped::FAULT_AROUND;
pub use memory::MemoryStorage;
pub use scratch::Scratch;
pub use storage::{BlobWriter, Storage};
pub use temporary::TemporaryBlob;
