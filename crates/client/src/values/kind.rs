//! The types of columns.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, Field, IntervalUnit, TimeUnit};
use tokio_postgres::types::{Kind as PgKind, Type};

use crate::error::{Error, Result};

/// The bytes before the digits in a modifier.
const MODIFIER_HEAD: i32 = 4;

/// The type of the values of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(super) scalar: Scalar,
    /// Whether they are lists of it, and the batches that have them may be of lists of lists.
    pub(super) is_list: bool,
    /// The integers that they are, if these have a type that Postgres does not have: their own goes over the wire as a wider one.
    exact: Option<Exact>,
}

/// A type of integers that Postgres does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exact {
    TinyInt,
    UTinyInt,
    USmallInt,
    UInteger,
    UBigInt,
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
    /// The type of a column that the server has described by its type, its modifier and its number.
    ///
    /// # Errors
    ///
    /// If it is a type that the server does not send.
    pub(crate) fn of(of: &Type, modifier: i32, number: Option<i16>) -> Result<Self> {
        let (scalar, is_list) = match *of {
            // Arrays as the catalog has them, which count from zero.
            Type::INT2_VECTOR => (Scalar::Int2, true),
            Type::OID_VECTOR => (Scalar::Oid, true),
            _ => match of.kind() {
                PgKind::Array(item) => (Scalar::of(item, modifier)?, true),
                _ => (Scalar::of(of, modifier)?, false),
            },
        };
        Ok(Self { scalar, is_list, exact: number.and_then(Exact::of_number) })
    }

    /// The type in Arrow; of arrays that of lists of so many dimensions.
    pub(crate) fn data_type(self, dimensions: usize) -> DataType {
        self.lists(self.exact.map_or_else(|| self.scalar.data_type(), Exact::data_type), dimensions)
    }

    /// The type in Arrow of what goes over the wire.
    pub(super) fn wire_type(self, dimensions: usize) -> DataType {
        self.lists(self.scalar.data_type(), dimensions)
    }

    /// Values that came over the wire, as those that they are.
    pub(super) fn exact(self, values: ArrayRef) -> Result<ArrayRef> {
        match self.exact {
            None => Ok(values),
            Some(_) => {
                let (_, dimensions) = leaf_of(values.data_type());
                let options = CastOptions { safe: false, ..CastOptions::default() };
                Ok(cast_with_options(&values, &self.data_type(dimensions), &options)?)
            }
        }
    }

    fn lists(self, leaf: DataType, dimensions: usize) -> DataType {
        match self.is_list {
            true => (0..dimensions.max(1))
                .fold(leaf, |item, _| DataType::List(Arc::new(Field::new_list_field(item, true)))),
            false => leaf,
        }
    }
}

impl Exact {
    /// The one that the server means by the number of a column that is none of a table.
    fn of_number(number: i16) -> Option<Self> {
        Some(match number {
            1 => Self::TinyInt,
            2 => Self::UTinyInt,
            3 => Self::USmallInt,
            4 => Self::UInteger,
            5 => Self::UBigInt,
            _ => return None,
        })
    }

    fn data_type(self) -> DataType {
        match self {
            Self::TinyInt => DataType::Int8,
            Self::UTinyInt => DataType::UInt8,
            Self::USmallInt => DataType::UInt16,
            Self::UInteger => DataType::UInt32,
            Self::UBigInt => DataType::UInt64,
        }
    }
}

/// The type within lists, and how many lists are inside of each other.
pub(super) fn leaf_of(mut of: &DataType) -> (&DataType, usize) {
    let mut dimensions = 0;
    while let DataType::List(item)
    | DataType::LargeList(item)
    | DataType::ListView(item)
    | DataType::LargeListView(item)
    | DataType::FixedSizeList(item, _) = of
    {
        of = item.data_type();
        dimensions += 1;
    }
    (of, dimensions)
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
        self.of_postgres().oid()
    }

    /// The type in Postgres.
    fn of_postgres(self) -> Type {
        match self {
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
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_in_the_modifier() {
        let numeric = |modifier| {
            Kind::of(&Type::NUMERIC, modifier, None).map(|kind| kind.data_type(0)).map_err(|_| ())
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
        let kind = Kind::of(&Type::TEXT_ARRAY, -1, None).expect("a kind");
        let list = DataType::new_list(DataType::Utf8, true);
        assert_eq!(kind.data_type(0), list);
        assert_eq!(kind.data_type(2), DataType::new_list(list, true));
        assert!(Kind::of(&Type::POINT, -1, None).is_err());
    }

    #[test]
    fn the_number_of_a_column_tells_integers_that_postgres_does_not_have() {
        let kind = Kind::of(&Type::INT2_ARRAY, -1, Some(2)).expect("a kind");
        assert_eq!(kind.data_type(1), DataType::new_list(DataType::UInt8, true));
        assert_eq!(kind.wire_type(1), DataType::new_list(DataType::Int16, true));
        let unsigned = Kind::of(&Type::NUMERIC, (20 << 16) + 4, Some(5)).expect("a kind");
        assert_eq!(unsigned.data_type(0), DataType::UInt64);
        let other = Kind::of(&Type::INT4, -1, Some(6)).expect("a kind");
        assert_eq!(other.data_type(0), DataType::Int32);
    }
}
