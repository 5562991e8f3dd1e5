//! Where each column of a row lies.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::new_null_array;
use arrow::datatypes::{DataType, IntervalUnit};
use arrow_row::{RowConverter, RowParser, SortField};

use super::super::{CodecError, is_reversible};

#[cfg(target_endian = "big")]
compile_error!("values are copied from Arrow's buffers, which are little-endian in the format");

/// The bytes of one end of a variable column.
pub(super) const END: usize = size_of::<u32>();

/// How a column is laid out.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// No bytes beyond the NULL bit.
    Null,
    /// A byte, 0 or 1.
    Boolean {
        /// Where in the row.
        at: usize,
    },
    /// The value as Arrow has it in memory.
    Fixed {
        /// Where in the row.
        at: usize,
        /// How many bytes.
        width: usize,
    },
    /// A string or binary string.
    Bytes {
        /// Which of the variable columns this is.
        variable: usize,
    },
    /// A nested value as arrow-row encodes it.
    Nested {
        /// Which of the variable columns this is.
        variable: usize,
        /// The codec that encodes it.
        codec: Arc<NestedCodec>,
    },
}

/// arrow-row for one column.
#[derive(Debug)]
pub(super) struct NestedCodec {
    pub(super) converter: RowConverter,
    pub(super) parser: RowParser,
    /// The bytes that stand for NULL when decoding; a row marks NULL with its bit alone.
    pub(super) null: Box<[u8]>,
}

impl NestedCodec {
    fn new(data_type: &DataType) -> Result<Self, CodecError> {
        let converter = RowConverter::new(vec![SortField::new(data_type.clone())])?;
        let null = converter.convert_columns(&[new_null_array(data_type, 1)])?;
        Ok(Self { parser: converter.parser(), null: null.row(0).data().into(), converter })
    }
}

/// The layout of rows of given types.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) types: Arc<[DataType]>,
    pub(super) kinds: Arc<[Kind]>,
    /// Where the ends of variable columns start: after NULL bits and fixed columns.
    pub(super) ends_at: usize,
    /// Where the bytes of variable columns start; the least length of a row.
    pub(super) bytes_at: usize,
    /// How many columns are of variable width.
    pub(super) variables: usize,
}

impl Layout {
    pub(super) fn new(types: &[DataType]) -> Result<Self, CodecError> {
        let mut at = types.len().div_ceil(8);
        let mut variables = 0;
        let mut kinds = Vec::with_capacity(types.len());
        for data_type in types {
            let mut next_variable = || {
                variables += 1;
                variables - 1
            };
            kinds.push(match data_type {
                DataType::Null => Kind::Null,
                DataType::Boolean => {
                    at += 1;
                    Kind::Boolean { at: at - 1 }
                }
                DataType::Utf8
                | DataType::LargeUtf8
                | DataType::Utf8View
                | DataType::Binary
                | DataType::LargeBinary
                | DataType::BinaryView => Kind::Bytes { variable: next_variable() },
                data_type if data_type.is_nested() && is_reversible(data_type) => Kind::Nested {
                    variable: next_variable(),
                    codec: Arc::new(NestedCodec::new(data_type)?),
                },
                data_type => match fixed_width(data_type) {
                    Some(width) => {
                        at += width;
                        Kind::Fixed { at: at - width, width }
                    }
                    None => return Err(CodecError::Unsupported(data_type.clone())),
                },
            });
        }
        Ok(Self {
            types: types.into(),
            kinds: kinds.into(),
            ends_at: at,
            bytes_at: at + END * variables.saturating_sub(1),
            variables,
        })
    }

    /// Where the bytes of variable column `variable` lie in `row`, which is at least `bytes_at` long.
    #[inline]
    pub(super) fn variable(&self, row: &[u8], variable: usize) -> Result<Range<usize>, CodecError> {
        let end_of = |variable: usize| {
            if variable + 1 == self.variables {
                return row.len();
            }
            let at = self.ends_at + END * variable;
            let end = row[at..at + END].try_into().map(u32::from_le_bytes);
            self.bytes_at + end.expect("an end has four bytes") as usize
        };
        let start = if variable == 0 { self.bytes_at } else { end_of(variable - 1) };
        let end = end_of(variable);
        if start <= end && end <= row.len() {
            Ok(start..end)
        } else {
            Err(CodecError::Corrupt("a column ends outside of its row"))
        }
    }
}

/// Whether `row` has NULL in column `column`.
#[inline]
pub(super) fn is_null(row: &[u8], column: usize) -> bool {
    row[column / 8] >> (column % 8) & 1 == 1
}

/// The bytes of a type whose values all have the same width and are kept as Arrow has them.
fn fixed_width(data_type: &DataType) -> Option<usize> {
    match data_type {
        DataType::Interval(IntervalUnit::YearMonth) => Some(4),
        DataType::Interval(IntervalUnit::DayTime) => Some(8),
        DataType::Interval(IntervalUnit::MonthDayNano) => Some(16),
        DataType::FixedSizeBinary(_) | DataType::Float16 => None,
        data_type => data_type.primitive_width(),
    }
}
