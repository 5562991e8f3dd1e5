//! The keys that a statement writes.

use std::collections::BTreeMap;

use alluvium_dataflow::state::key_ranges::KeyRanges;
use arrow::array::{Array, ArrayRef};

use super::key::KeyColumns;
use crate::error::Result;

/// Beyond so many keys a statement counts as one that writes the whole table.
const MOST: usize = 10_000;

/// The keys of the rows that a statement deletes and inserts in a table.
#[derive(Debug)]
pub(crate) enum WrittenKeys {
    /// These.
    Keys(BTreeMap<Box<[u8]>, Writes>),
    /// Maybe any: there are very many, or the table has no key.
    All,
}

/// The writes of a statement to a key.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Writes {
    /// Whether it deletes a row with the key.
    pub(super) deletes: bool,
    /// How many rows it inserts.
    pub(super) inserts: usize,
}

impl Default for WrittenKeys {
    fn default() -> Self {
        Self::Keys(BTreeMap::new())
    }
}

impl WrittenKeys {
    /// Adds keys of rows that a statement locks, of which these are the columns.
    pub(crate) fn lock(&mut self, key: Option<&KeyColumns>, columns: &[ArrayRef]) -> Result<()> {
        let Self::Keys(keys) = self else { return Ok(()) };
        let rows = columns.first().map_or(0, Array::len);
        match key.filter(|_| keys.len() + rows <= MOST) {
            None => *self = Self::All,
            Some(key) => {
                for key in &key.of_parts(columns.iter())? {
                    keys.entry(key.as_ref().into()).or_default();
                }
            }
        }
        Ok(())
    }

    /// Adds those of rows of which these are all columns, with the writes to each.
    pub(super) fn add(
        &mut self,
        key: Option<&KeyColumns>,
        columns: &[ArrayRef],
        mut note: impl FnMut(&mut Writes),
    ) -> Result<()> {
        let Self::Keys(keys) = self else { return Ok(()) };
        let rows = columns.first().map_or(0, Array::len);
        match key.filter(|_| keys.len() + rows <= MOST) {
            None if rows == 0 => {}
            None => *self = Self::All,
            Some(key) => {
                for key in &key.of(columns)? {
                    note(keys.entry(key.as_ref().into()).or_default());
                }
            }
        }
        Ok(())
    }

    /// The ranges of these keys.
    pub(super) fn ranges(&self) -> KeyRanges {
        match self {
            Self::Keys(keys) => KeyRanges::of_keys(keys.keys().map(|key| &**key)),
            Self::All => KeyRanges::all(),
        }
    }
}
