//! What can go wrong with blobs.

use std::io;
use std::ops::Range;
use std::path::Path;

/// The result of an operation on storage.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation on storage failed.
///
/// A *place* is the path of a file or directory, or `mem:` and the name of a blob in memory. A message is
/// complete: it has the cause in it, and no [`source`](std::error::Error::source) has to be printed after it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No blob can have this name.
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
        /// What was tried, as a verb.
        operation: &'static str,
    },
    /// The disk is full, or its user's quota is used up. When there is room again the operation may succeed.
    #[error("cannot {operation} {place}: no room is left ({cause})")]
    Full {
        /// What was being written.
        place: String,
        /// What was tried, as a verb.
        operation: &'static str,
        /// What the operating system said.
        cause: io::Error,
    },
    /// A blob was to be written that is sealed.
    #[error("cannot {operation} {place}: it is sealed")]
    Sealed {
        /// Where the blob is.
        place: String,
        /// What was tried, as a verb.
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
    /// Anything else that the operating system refuses or fails to do.
    #[error("cannot {operation} {place}: {cause}")]
    Io {
        /// What it was to be done to.
        place: String,
        /// What was tried, as a verb.
        operation: &'static str,
        /// What the operating system said.
        cause: io::Error,
    },
}

impl Error {
    /// What the operating system said of an operation, told apart where a caller may want to act on it.
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
    fn a_full_disk_and_a_used_up_quota_are_told_apart_from_other_errors() {
        // ENOSPC and EIO have these numbers on every Unix; EDQUOT's differ.
        let full = Error::io("append to", "x", io::Error::from_raw_os_error(28));
        assert!(matches!(full, Error::Full { .. }), "{full}");
        let quota = Error::io("append to", "x", io::ErrorKind::QuotaExceeded.into());
        assert!(matches!(quota, Error::Full { .. }), "{quota}");
        let device = Error::io("append to", "x", io::Error::from_raw_os_error(5));
        assert!(matches!(device, Error::Io { .. }), "{device}");
    }
}
