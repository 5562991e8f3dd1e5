//! Messages about a damaged directory.

use alluvium_storage::Error;
use alluvium_trace::file::FileError;

/// A remedy besides restoring a backup.
const HINT: &str =
    "; `alluvium check` lists everything that is damaged, and says whether there is a way back";

/// The message of an error of storage.
pub(crate) fn of_storage(error: &Error) -> String {
    match is_damage(error) {
        true => format!("{error}{HINT}"),
        false => error.to_string(),
    }
}

/// The message of an error of a batch file.
pub(crate) fn of_file(error: &FileError) -> String {
    match error {
        FileError::Storage(error) => of_storage(error),
        FileError::Damaged { .. } => format!("{error}{HINT}"),
        FileError::Feature { .. } => error.to_string(),
    }
}

/// The message about something that is missing or cannot be read.
pub(crate) fn of(what: &str) -> String {
    format!("{what}{HINT}")
}

fn is_damage(error: &Error) -> bool {
    use Error::{Corrupt, Lost, Missing, NoRecord, OutOfBounds};
    matches!(
        error,
        Corrupt { .. } | Lost { .. } | Missing { .. } | NoRecord { .. } | OutOfBounds { .. }
    )
}
