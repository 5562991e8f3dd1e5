//! The keys that a statement writes.

use std::collections::BTreeSet;

use alluvium_dataflow::key_ranges::KeyRanges;
use arrow::array::ArrayRef;

use super::key::KeyColumns;
use crate::error::Result;

/// Beyond so many keys a statement counts as one that writes the whole table.
const MOST: usize = 10_000;

/// The keys of the rows that a statement deletes and inserts in a table.
#[derive(Debug)]
pub(super) enum WrittenKeys {
    /// These.
    Keys(BTreeSet<Box<[u8]>>),
    /// Maybe any: there are very many, or the table has no key.
    All,
}

impl Default for WrittenKeys {
    fn default() -> Self {
        Self::Keys(BTreeSet::new())
    }
}

impl WrittenKeys {
    /// Adds those of rows of which these are all columns.
    pub(super) fn add(&mut self, key: Option<&KeyColumns>, columns: &[ArrayRef]) -> Result<()> {
        let Self::Keys(keys) = self else { return Ok(()) };
        let rows = columns.first().map_or(0, |column| column.len());
        match key.filter(|_| keys.len() + rows <= MOST) {
            None if rows == 0 => {}
            None => *self = Self::All,
            Some(key) => keys.extend(key.of(columns)?.iter().map(|key| Box::from(key.as_ref()))),
        }
        Ok(())
    }

    /// The ranges of these keys.
    pub(super) fn ranges(&self) -> KeyRanges {
        match self {
            Self::Keys(keys) => KeyRanges::of_keys(keys.iter().map(|key| &**key)),
            Self::All => KeyRanges::all(),
        }
    }
}
