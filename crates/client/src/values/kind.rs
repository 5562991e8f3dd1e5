//! The types of columns.

use std::sync::Arc;

use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, Field, IntervalUnit, TimeUnit};
use tokio_postgres::types::{Kind as PgKind, Type};

use crate::error::{Error, Result};

/// The bytes before the digits in a modifier.
const MODIFIER_HEAD: i32 = 4;

/// The type of the values of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(super) scalar: Scalar,
    /// Whether they are arrays.
    pub(super) is_array: bool,
    /// Whether they are arrays as the catalog has them, which count from zero.
    pub(super) is_vector: bool,
}

/// A type of single values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scalar {
    Bool,
    Bytea,
    Int2,
    Int4,
    Int8,
    Oid,
    Float4,
    Float8,
    /// A number of at most 38 digits; of how many, and how many of them are after the point.
    Numeric(u8, i8),
    /// A number of more digits.
    LongNumeric(u8, i8),
    Text,
    Date,
    Time,
    Timestamp,
    Timestamptz,
    Interval,
}

impl Kind {
    /// The type of a column that the server has described by its type and its modifier.
    ///
    /// # Errors
    ///
    /// If it is a type that the server does not send.
    pub(crate) fn of(of: &Type, modifier: i32) -> Result<Self> {
        let of_scalar = |scalar| Self { scalar, is_array: false, is_vector: false };
        match *of {
            Type::INT2_VECTOR => Ok(Self { is_vector: true, ..of_scalar(Scalar::Int2) }),
            Type::OID_VECTOR => Ok(Self { is_vector: true, ..of_scalar(Scalar::Oid) }),
            _ => match of.kind() {
                PgKind::Array(item) => {
                    Ok(Self { is_array: true, ..of_scalar(Scalar::of(item, modifier)?) })
                }
                _ => Scalar::of(of, modifier).map(of_scalar),
            },
        }
    }

    /// Whether its values are lists, and the batches that have them may be of lists of lists.
    pub(crate) fn is_list(self) -> bool {
        self.is_array || self.is_vector
    }

    /// The type in Arrow; of arrays that of lists of so many dimensions.
    pub(crate) fn data_type(self, dimensions: usize) -> DataType {
        let scalar = self.scalar.data_type();
        match self.is_list() {
            true => (0..dimensions.max(1)).fold(scalar, |item, _| {
                DataType::List(Arc::new(Field::new_list_field(item, true)))
            }),
            false => scalar,
        }
    }
}

impl Scalar {
    fn of(of: &Type, modifier: i32) -> Result<Self> {
        Ok(match *of {
            Type::BOOL => Self::Bool,
            Type::BYTEA => Self::Bytea,
            Type::INT2 => Self::Int2,
            Type::INT4 => Self::Int4,
            Type::INT8 => Self::Int8,
            Type::OID => Self::Oid,
            Type::FLOAT4 => Self::Float4,
            Type::FLOAT8 => Self::Float8,
            Type::NUMERIC => Self::numeric(modifier)?,
            Type::TEXT
            | Type::VARCHAR
            | Type::BPCHAR
            | Type::NAME
            | Type::CHAR
            | Type::JSON
            | Type::UNKNOWN => Self::Text,
            Type::DATE => Self::Date,
            Type::TIME => Self::Time,
            Type::TIMESTAMP => Self::Timestamp,
            Type::TIMESTAMPTZ => Self::Timestamptz,
            Type::INTERVAL => Self::Interval,
            _ => {
                return Err(Error::value(format!(
                    "values of type {of} cannot be read: CAST them to TEXT"
                )));
            }
        })
    }

    fn numeric(modifier: i32) -> Result<Self> {
        let digits = modifier.wrapping_sub(MODIFIER_HEAD);
        // Eleven bits with a sign.
        let scale = i8::try_from(((digits & 0x7ff) ^ 0x400) - 0x400);
        match (u8::try_from(digits >> 16), scale) {
            (Ok(precision @ 1..=DECIMAL128_MAX_PRECISION), Ok(scale)) if modifier >= 0 => {
                Ok(Self::Numeric(precision, scale))
            }
            (Ok(precision @ 39..=76), Ok(scale)) if modifier >= 0 => {
                Ok(Self::LongNumeric(precision, scale))
            }
            _ => Err(Error::value(
                "a column of numbers without a number of digits cannot be read: CAST it to DECIMAL(p, s)",
            )),
        }
    }

    /// The type in Arrow.
    pub(super) fn data_type(self) -> DataType {
        match self {
            Self::Bool => DataType::Boolean,
            Self::Bytea => DataType::Binary,
            Self::Int2 => DataType::Int16,
            Self::Int4 => DataType::Int32,
            Self::Int8 => DataType::Int64,
            Self::Oid => DataType::UInt32,
            Self::Float4 => DataType::Float32,
            Self::Float8 => DataType::Float64,
            Self::Numeric(precision, scale) => DataType::Decimal128(precision, scale),
            Self::LongNumeric(precision, scale) => DataType::Decimal256(precision, scale),
            Self::Text => DataType::Utf8,
            Self::Date => DataType::Date32,
            Self::Time => DataType::Time64(TimeUnit::Microsecond),
            Self::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
            Self::Timestamptz => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            Self::Interval => DataType::Interval(IntervalUnit::MonthDayNano),
        }
    }

    /// The OID, by which an array names the type of its elements.
    pub(super) fn oid(self) -> u32 {
        let of = match self {
            Self::Bool => Type::BOOL,
            Self::Bytea => Type::BYTEA,
            Self::Int2 => Type::INT2,
            Self::Int4 => Type::INT4,
            Self::Int8 => Type::INT8,
            Self::Oid => Type::OID,
            Self::Float4 => Type::FLOAT4,
            Self::Float8 => Type::FLOAT8,
            Self::Numeric(..) | Self::LongNumeric(..) => Type::NUMERIC,
            Self::Text => Type::TEXT,
            Self::Date => Type::DATE,
            Self::Time => Type::TIME,
            Self::Timestamp => Type::TIMESTAMP,
            Self::Timestamptz => Type::TIMESTAMPTZ,
            Self::Interval => Type::INTERVAL,
        };
        of.oid()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_in_the_modifier() {
        let numeric = |modifier| {
            Kind::of(&Type::NUMERIC, modifier).map(|kind| kind.data_type(0)).map_err(|_| ())
        };
        assert_eq!(numeric(655_366), Ok(DataType::Decimal128(10, 2)));
        assert_eq!(numeric((5 << 16 | 0x7fe) + 4), Ok(DataType::Decimal128(5, -2)));
        assert_eq!(numeric((76 << 16 | 38) + 4), Ok(DataType::Decimal256(76, 38)));
        for wrong in [-1, 3, 4, i32::MIN, i32::MAX, (77 << 16) + 4] {
            assert_eq!(numeric(wrong), Err(()), "{wrong}");
        }
    }

    #[test]
    fn arrays_are_lists() {
        let kind = Kind::of(&Type::TEXT_ARRAY, -1).expect("a kind");
        let list = DataType::new_list(DataType::Utf8, true);
        assert_eq!(kind.data_type(0), list);
        assert_eq!(kind.data_type(2), DataType::new_list(list, true));
        assert!(Kind::of(&Type::POINT, -1).is_err());
    }
}
