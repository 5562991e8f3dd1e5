//! Types.

use sqlparser::ast::{ArrayElemTypeDef, DataType, ExactNumberInfo, StructField};
use sqlparser::tokenizer::Span;

use super::clause::{none_of, refuse};
use crate::error::Result;

// Together the three name every type that says nothing but itself: a new one breaks `check`.

/// Types of text.
macro_rules! texts {
    () => {
        DataType::Character(_)
            | DataType::Char(_)
            | DataType::CharacterVarying(_)
            | DataType::CharVarying(_)
            | DataType::Varchar(_)
            | DataType::Nvarchar(_)
            | DataType::String(_)
            | DataType::Text
    };
}

/// Types of numbers.
macro_rules! numbers {
    () => {
        DataType::Numeric(_)
            | DataType::Decimal(_)
            | DataType::DecimalUnsigned(_)
            | DataType::BigNumeric(_)
            | DataType::BigDecimal(_)
            | DataType::Dec(_)
            | DataType::DecUnsigned(_)
            | DataType::FloatUnsigned(_)
            | DataType::UTinyInt
            | DataType::USmallInt
            | DataType::MediumInt(_)
            | DataType::MediumIntUnsigned(_)
            | DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::Int128
            | DataType::Int256
            | DataType::HugeInt
            | DataType::UHugeInt
            | DataType::UInt8
            | DataType::UInt16
            | DataType::UInt32
            | DataType::UInt64
            | DataType::UInt128
            | DataType::UInt256
            | DataType::UBigInt
            | DataType::Signed
            | DataType::SignedInteger
            | DataType::Unsigned
            | DataType::UnsignedInteger
            | DataType::Float4
            | DataType::Float32
            | DataType::Float64
            | DataType::Real
            | DataType::RealUnsigned
            | DataType::Float8
            | DataType::Double(_)
            | DataType::DoubleUnsigned(_)
            | DataType::DoublePrecision
            | DataType::DoublePrecisionUnsigned
    };
}

/// All other types without parts.
macro_rules! others {
    () => {
        DataType::Table(_)
            | DataType::NamedTable { name: _, columns: _ }
            | DataType::Uuid
            | DataType::CharacterLargeObject(_)
            | DataType::CharLargeObject(_)
            | DataType::Clob(_)
            | DataType::Binary(_)
            | DataType::Varbinary(_)
            | DataType::Blob(_)
            | DataType::TinyBlob
            | DataType::MediumBlob
            | DataType::LongBlob
            | DataType::Bytes(_)
            | DataType::Bool
            | DataType::Boolean
            | DataType::Date
            | DataType::Date32
            | DataType::Time(_, _)
            | DataType::Datetime(_)
            | DataType::Datetime64(_, _)
            | DataType::Timestamp(_, _)
            | DataType::TimestampNtz(_)
            | DataType::Interval { fields: _, precision: _ }
            | DataType::JSON
            | DataType::JSONB
            | DataType::Regclass
            | DataType::TinyText
            | DataType::MediumText
            | DataType::LongText
            | DataType::FixedString(_)
            | DataType::Bytea
            | DataType::Bit(_)
            | DataType::BitVarying(_)
            | DataType::VarBit(_)
            | DataType::Custom(_, _)
            | DataType::Tuple(_)
            | DataType::Nested(_)
            | DataType::Enum(_, _)
            | DataType::Set(_)
            | DataType::Union(_)
            | DataType::Nullable(_)
            | DataType::LowCardinality(_)
            | DataType::Unspecified
            | DataType::Trigger
            | DataType::AnyType
            | DataType::GeometricType(_)
            | DataType::TsVector
            | DataType::TsQuery
    };
}

/// Refuses the parts of a type that have no effect. The planner refuses types that it does not know, and reads the others
/// wholly.
pub fn check(data_type: &DataType, at: impl Fn() -> Span + Copy) -> Result<()> {
    match data_type {
        DataType::TinyInt(width)
        | DataType::TinyIntUnsigned(width)
        | DataType::Int2(width)
        | DataType::Int2Unsigned(width)
        | DataType::SmallInt(width)
        | DataType::SmallIntUnsigned(width)
        | DataType::Int(width)
        | DataType::Int4(width)
        | DataType::Int8(width)
        | DataType::Integer(width)
        | DataType::IntUnsigned(width)
        | DataType::Int4Unsigned(width)
        | DataType::IntegerUnsigned(width)
        | DataType::BigInt(width)
        | DataType::BigIntUnsigned(width)
        | DataType::Int8Unsigned(width) => {
            let name = format!("the width of a number in {data_type}");
            none_of(&[(width, name.as_str())], at)
        }
        DataType::Float(digits) => match digits {
            ExactNumberInfo::None => Ok(()),
            ExactNumberInfo::Precision(_) | ExactNumberInfo::PrecisionAndScale(_, _) => {
                refuse(format_args!("{data_type} (write REAL or DOUBLE)"), at)
            }
        },
        DataType::Struct(fields, _) => {
            for StructField { field_name: _, field_type, options } in fields {
                none_of(&[(options, "OPTIONS of a field")], at)?;
                check(field_type, at)?;
            }
            Ok(())
        }
        DataType::Map(key, value) => {
            check(key, at)?;
            check(value, at)
        }
        DataType::Array(
            ArrayElemTypeDef::AngleBracket(element)
            | ArrayElemTypeDef::SquareBracket(element, _)
            | ArrayElemTypeDef::Parenthesis(element),
        ) => check(element, at),
        DataType::Array(ArrayElemTypeDef::None) => Ok(()),
        // Lengths of text are accepted and not enforced.
        texts!() | numbers!() | others!() => Ok(()),
    }
}
