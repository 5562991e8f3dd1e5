//! Values as dense bytes, equal exactly when rows are.
//!
//! The layout is ours and is specified in `docs/reference/value-format.md`: NULL bits, then the columns of
//! fixed width, then where each column of variable width ends, then their bytes. Any column is found
//! without reading the others, so decoding touches only what is asked for.

mod decode;
mod encode;
mod layout;

use alluvium_trace::BoundColumn;
use arrow::array::ArrayRef;
use arrow::datatypes::DataType;

use self::layout::{Kind, Layout};
use super::{CodecError, Encoded, fixed};

/// Encodes rows to dense bytes that are equal exactly when the rows are, to the bit of every float.
///
/// Rows without columns encode to no bytes. Clones share what they hold.
#[derive(Clone, Debug)]
pub struct ValueCodec {
    layout: Layout,
}

impl ValueCodec {
    /// A codec for rows of these column types.
    ///
    /// Fails with [`CodecError::Unsupported`] for a type that has no place in the format yet.
    pub fn new(types: &[DataType]) -> Result<Self, CodecError> {
        Ok(Self { layout: Layout::new(types)? })
    }

    /// The types of the columns.
    pub fn types(&self) -> &[DataType] {
        &self.layout.types
    }

    /// Where a signed number lies in every row.
    pub(crate) fn bound_column(&self, column: usize) -> Option<BoundColumn> {
        let data_type = &self.layout.types[column];
        let is_signed = !data_type.is_unsigned_integer();
        match self.layout.kinds[column] {
            Kind::Fixed { at, width } if is_signed && fixed::width(data_type) == Some(width) => {
                Some(BoundColumn::Value { at, width, null: column })
            }
            _ => None,
        }
    }

    /// Appends the `rows` rows of `columns` to `out`.
    ///
    /// On an error `out` holds what it held before.
    pub fn encode(
        &self,
        columns: &[ArrayRef],
        rows: usize,
        out: &mut Encoded,
    ) -> Result<(), CodecError> {
        self.encode_behind(0, columns, rows, out)
    }

    /// As [`ValueCodec::encode`], with `gap` zeros before each row, for the caller to fill.
    pub(crate) fn encode_behind(
        &self,
        gap: usize,
        columns: &[ArrayRef],
        rows: usize,
        out: &mut Encoded,
    ) -> Result<(), CodecError> {
        super::check(columns, rows, &self.layout.types)?;
        encode::encode(&self.layout, gap, columns, rows, out)
    }

    /// The columns numbered `columns`, in that order, of `rows`.
    ///
    /// Bytes that no row encodes to give [`CodecError::Corrupt`] or a wrong row; nested columns, which
    /// are arrow-row's inside, may panic on them instead.
    pub fn decode<'a>(
        &self,
        rows: impl IntoIterator<Item = &'a [u8]>,
        columns: &[usize],
    ) -> Result<Vec<ArrayRef>, CodecError> {
        let rows: Vec<&[u8]> = rows.into_iter().collect();
        decode::decode(&self.layout, &rows, columns)
    }
}

#[cfg(test)]
mod tests;
