//! Errors of batch files.

use alluvium_storage::Error as StorageError;
use thiserror::Error;

/// A batch file that cannot be written or read.
#[derive(Debug, Error)]
pub enum FileError {
    /// The storage failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The bytes differ from those that were written.
    #[error(
        "the batch file {place} is damaged at byte {offset}: {reason}; check the disk, and restore a state directory from a \
         backup"
    )]
    Damaged {
        /// The file.
        place: String,
        /// The offset of the damaged part.
        offset: u64,
        /// The defect.
        reason: &'static str,
    },
    /// The file was written by a newer version.
    #[error(
        "the batch file {place} needs feature {bit} of the format, which this version does not have; open it with the program \
         that has written it, or a later one"
    )]
    Feature {
        /// The file.
        place: String,
        /// The number of the lowest unknown bit.
        bit: u32,
    },
}
