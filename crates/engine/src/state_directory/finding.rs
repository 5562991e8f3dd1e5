//! Findings about files.

use std::fmt::{self, Display, Formatter};

use alluvium_storage::Error;
use alluvium_trace::file::FileError;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Severity {
    /// Nothing is lost: a crash has left it, or it is no file of an engine.
    Note,
    /// Written data is not there any more, or cannot be read by this version.
    Damage,
}

/// Something that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// The path of the file or folder.
    pub place: String,
    /// Where in the file the damaged part begins, if it is a part.
    pub offset: Option<u64>,
    /// A description.
    pub what: String,
}

impl Display for Finding {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        let Self { severity, place, offset, what } = self;
        let severity = match severity {
            Severity::Note => "note",
            Severity::Damage => "damage",
        };
        match offset {
            Some(offset) => write!(to, "{severity}: {place} at byte {offset}: {what}"),
            None => write!(to, "{severity}: {place}: {what}"),
        }
    }
}

impl Finding {
    /// Damage to a file as a whole, or to a folder.
    pub(super) fn damage(place: impl Into<String>, what: impl Into<String>) -> Self {
        Self { severity: Severity::Damage, place: place.into(), offset: None, what: what.into() }
    }

    /// Something harmless.
    pub(super) fn note(place: impl Into<String>, what: impl Into<String>) -> Self {
        Self { severity: Severity::Note, place: place.into(), offset: None, what: what.into() }
    }

    /// The same, at this offset.
    pub(super) fn at(self, offset: u64) -> Self {
        Self { offset: Some(offset), ..self }
    }

    /// An error of storage, which was met at `place`.
    pub(super) fn of_storage(error: &Error, place: &str) -> Self {
        match error {
            Error::Corrupt { place, offset, what } => Self::damage(place, what).at(*offset),
            Error::Lost { place, needed_by } => {
                Self::damage(place, format!("it is missing, and {needed_by} needs it"))
            }
            Error::Missing { place, .. } => Self::damage(place, "it is missing"),
            Error::Newer { place, found, known } => Self::damage(
                place,
                format!(
                    "it has version {found} of its format, and this program reads versions up to {known}: open the directory \
                     with the program that has written it, or a later one"
                ),
            ),
            Error::OutOfBounds { range, length, .. } => {
                Self::damage(place, format!("it ends before byte {}, and was longer", range.end))
                    .at(*length)
            }
            Error::Io { place, operation, cause } => {
                Self::damage(place, format!("cannot {operation} it: {cause}"))
            }
            other => Self::damage(place, other.to_string()),
        }
    }

    /// An error of a batch file, which was met in the blob at `place`.
    pub(super) fn of_file(error: &FileError, place: &str) -> Self {
        match error {
            FileError::Storage(error) => Self::of_storage(error, place),
            FileError::Damaged { offset, reason, .. } => Self::damage(place, *reason).at(*offset),
            FileError::Feature { bit, .. } => Self::damage(
                place,
                format!(
                    "it needs feature {bit} of its format, which this program does not have: open the directory with the \
                     program that has written it, or a later one"
                ),
            ),
        }
    }
}
