//! The fields of a row, one after another.

use super::super::rejected::Result;

/// The rest of a row.
pub(super) struct Fields<'a> {
    /// `None` after the last field.
    pub(super) rest: Option<&'a [u8]>,
    pub(super) delimiter: u8,
}

/// A field as it is written.
pub(super) enum Raw<'a> {
    Null,
    /// It stands for itself.
    Same(&'a [u8]),
    /// It was escaped or quoted, and its value was written to the space that the reader has given.
    Unescaped,
}

/// How fields are written.
pub(super) trait Notation {
    /// Takes the next field of a row that has one.
    ///
    /// # Errors
    ///
    /// If it is malformed.
    fn field<'a>(&self, fields: &mut Fields<'a>, space: &mut Vec<u8>) -> Result<Raw<'a>>;
}

impl<'a> Fields<'a> {
    /// The fields of a row.
    pub(super) fn new(row: &'a [u8], delimiter: u8) -> Self {
        Self { rest: Some(row), delimiter }
    }

    /// Takes the bytes before a place of the rest, at which there is a delimiter or the end.
    pub(super) fn take(&mut self, end: usize) -> &'a [u8] {
        let rest = self.rest.unwrap_or_default();
        self.rest = rest.get(end + 1..);
        &rest[..end.min(rest.len())]
    }
}
