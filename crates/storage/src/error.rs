//! Errors of storage.

use std::io;
use std::ops::Range;
use std::path::Path;

/// The result of an operation on storage.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation on storage failed.
///
/// A *place* is the path of a file or directory, or `mem:` and the name of a blob in memory. Messages include the cause;
/// there is no [`source`](std::error::Error::source) to print after them.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The name is not valid.
    #[error(
        "`{name}` cannot name a blob: a name has 1 to 200 ASCII letters, digits, `-`, `_` and `.`, \
         and does not start with a dot"
    )]
    InvalidName {
        /// The name that was given.
        name: String,
    },
    /// The name of a new blob is taken.
    #[error("cannot create {place}: it exists, or is being written")]
    Exists {
        /// Where the blob is.
        place: String,
    },
    /// There is no sealed blob of the name.
    #[error("cannot {operation} {place}: there is no such blob")]
    Missing {
        /// Where the blob would be.
        place: String,
        /// The operation, as a verb.
        operation: &'static str,
    },
    /// The disk is full, or the user's quota is used up. When there is space again the operation may succeed.
    #[error("cannot {operation} {place}: no room is left ({cause})")]
    Full {
        /// The file or blob that was being written.
        place: String,
        /// The operation, as a verb.
        operation: &'static str,
        /// The error of the operating system.
        cause: io::Error,
    },
    /// A write to a sealed blob.
    #[error("cannot {operation} {place}: it is sealed")]
    Sealed {
        /// Where the blob is.
        place: String,
        /// The operation, as a verb.
        operation: &'static str,
    },
    /// A range that is not within a blob.
    #[error("cannot read bytes {} to {} of {place}, which has {length}", range.start, range.end)]
    OutOfBounds {
        /// Where the blob is.
        place: String,
        /// The range that was asked for.
        range: Range<u64>,
        /// The length of the blob.
        length: u64,
    },
    /// Any other error of the operating system.
    #[error("cannot {operation} {place}: {cause}")]
    Io {
        /// The file, directory or blob.
        place: String,
        /// The operation, as a verb.
        operation: &'static str,
        /// The error of the operating system.
        cause: io::Error,
    },
}

impl Error {
    /// The error of an operation, with a variant of its own where a caller may want to act on it.
    pub(crate) fn io(operation: &'static str, place: impl Into<String>, cause: io::Error) -> Error {
        let place = place.into();
        match cause.kind() {
            // ENOSPC and EDQUOT.
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Error::Full { place, operation, cause }
            }
            _ => Error::Io { place, operation, cause },
        }
    }

    /// The same, of a file or directory.
    pub(crate) fn path(operation: &'static str, path: &Path, cause: io::Error) -> Error {
        Error::io(operation, path.display().to_string(), cause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_and_an_exhausted_quota_are_errors_of_their_own() {
        // ENOSPC and EIO have these numbers on every Unix; EDQUOT's differ.
        let full = Error::io("append to", "x", io::Error::from_raw_os_error(28));
        assert!(matches!(full, Error::Full { .. }), "{full}");
        let quota = Error::io("append to", "x", io::ErrorKind::QuotaExceeded.into());
        assert!(matches!(quota, Error::Full { .. }), "{quota}");
        let device = Error::io("append to", "x", io::Error::from_raw_os_error(5));
        assert!(matches!(device, Error::Io { .. }), "{device}");
    }
}
