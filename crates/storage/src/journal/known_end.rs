//! How far a journal is known to go.

use crate::error::Error;
use crate::journal::Position;

/// Something that lasts and says that all records before a position were durable. A journal that ends before is damaged, and was
/// not torn by a crash.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownEnd {
    /// The position.
    pub position: Position,
    /// The file that says so.
    pub known_by: String,
}

impl KnownEnd {
    /// Fails if the journal at `place` ends before.
    pub(crate) fn check(&self, place: &str, end: u64) -> Result<(), Error> {
        if self.position.0 <= end {
            return Ok(());
        }
        let place = format!("the segment of {place} with record {}", self.position.0 - 1);
        Err(Error::Lost { place, needed_by: self.known_by.clone() })
    }
}
