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
    /// A record that a journal does not have: it was released, or never appended.
    #[error("cannot {operation} record {position} of {place}, which has {}", records(range))]
    NoRecord {
        /// The journal.
        place: String,
        /// The operation, as a verb.
        operation: &'static str,
        /// The position that was asked for.
        position: u64,
        /// The positions that the journal has.
        range: Range<u64>,
    },
    /// A file whose bytes are not those that were written.
    #[error("{place} is damaged at byte {offset}: {what}; restore it from a backup")]
    Corrupt {
        /// The file.
        place: String,
        /// Where in the file the damaged part begins.
        offset: u64,
        /// The defect.
        what: String,
    },
    /// A file that another one needs is missing.
    #[error(
        "{place} is missing, and {needed_by} needs it; put it back, or restore the directory from \
         a backup"
    )]
    Lost {
        /// The missing file.
        place: String,
        /// The file that needs it.
        needed_by: String,
    },
    /// A file in a format of a later version.
    #[error(
        "{place} has version {found} of its format, and this program reads versions up to {known}; \
         open it with the program that has written it, or a later one"
    )]
    Newer {
        /// The file.
        place: String,
        /// Its version.
        found: u32,
        /// The latest version that can be read.
        known: u32,
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
    /// Whether there is no file, or no blob, of the name.
    pub fn is_missing(&self) -> bool {
        match self {
            Error::Missing { .. } => true,
            Error::Io { cause, .. } => cause.kind() == io::ErrorKind::NotFound,
            _ => false,
        }
    }

    /// The error of an operation, with a variant of its own where a caller may want to act on it.
    pub(crate) fn io(operation: &'static str, place: impl Into<String>, cause: io::Error) -> Error {
        let place = place.into();
        match is_full(&cause) {
            true => Error::Full { place, operation, cause },
            false => Error::Io { place, operation, cause },
        }
    }

    /// The same, of the file of a blob.
    pub(crate) fn blob(operation: &'static str, place: String, cause: io::Error) -> Error {
        match cause.kind() {
            io::ErrorKind::NotFound if operation != "create" => Error::Missing { place, operation },
            io::ErrorKind::AlreadyExists => Error::Exists { place },
            _ => Error::io(operation, place, cause),
        }
    }

    /// The same, of a file or directory.
    pub(crate) fn path(operation: &'static str, path: &Path, cause: io::Error) -> Error {
        Error::io(operation, path.display().to_string(), cause)
    }
}

/// A failed operation that is reported more than once.
#[derive(Debug)]
pub struct Failure {
    operation: &'static str,
    place: String,
    cause: io::Error,
}

impl Failure {
    /// The failure of an operation, named by a verb.
    pub fn new(operation: &'static str, place: impl Into<String>, cause: io::Error) -> Failure {
        Failure { operation, place: place.into(), cause }
    }

    /// The error, for one caller.
    pub fn error(&self) -> Error {
        let cause = match self.cause.raw_os_error() {
            Some(code) => io::Error::from_raw_os_error(code),
            None => io::Error::new(self.cause.kind(), self.cause.to_string()),
        };
        Error::io(self.operation, self.place.clone(), cause)
    }

    /// The error, for one caller, after which nothing can be repeated: not [`Error::Full`], whatever the cause.
    pub fn final_error(&self) -> Error {
        match self.error() {
            Error::Full { place, operation, cause } => Error::Io { place, operation, cause },
            error => error,
        }
    }
}

/// Whether there is no room on the disk, or for the user: ENOSPC and EDQUOT.
pub(crate) fn is_full(cause: &io::Error) -> bool {
    matches!(cause.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Positions in words.
fn records(range: &Range<u64>) -> String {
    match range.is_empty() {
        true => format!("no records, and goes on with {}", range.end),
        false => format!("records {} to {}", range.start, range.end - 1),
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
        let synced = Failure::new("sync", "x", io::Error::from_raw_os_error(28));
        assert!(matches!(synced.final_error(), Error::Io { .. }), "a sync is not repeated");
    }
}
