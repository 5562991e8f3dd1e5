//! The types of Postgres.

use arrow::datatypes::{DataType, Field, IntervalUnit, TimeUnit};

use super::catalog_type::{Kind, is_of_oids};
use super::rejected::{Rejected, Result, code};

/// The OID of `bytea`.
pub(crate) const BYTEA: u32 = 17;
/// The OID of `text`.
pub(crate) const TEXT: u32 = 25;
/// The OIDs of vectors.
const INT2VECTOR: u32 = 22;
const OIDVECTOR: u32 = 30;

/// The type of a column or a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PgType {
    scalar: Scalar,
    is_array: bool,
    is_vector: bool,
    modifier: i32,
    number: i16,
}

/// A type of single values. The last ones are those of parameters only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scalar {
    Bool,
    Bytea,
    Int2,
    Int4,
    Int8,
    Float4,
    Float8,
    Numeric,
    Text,
    Date,
    Time,
    Timestamp,
    Timestamptz,
    Interval,
    Oid,
    Varchar,
    Bpchar,
    Name,
    Char,
    Json,
    Jsonb,
    Uuid,
    Unknown,
}

/// A type, its OID, that of its arrays, the bytes of a value (−1 where they vary) and its name. No array has the OID zero.
type Row = (Scalar, u32, u32, i16, &'static str);

/// The rows of all types, in their order.
const ROWS: [Row; Scalar::Unknown as usize + 1] = [
    (Scalar::Bool, 16, 1000, 1, "boolean"),
    (Scalar::Bytea, BYTEA, 1001, -1, "bytea"),
    (Scalar::Int2, 21, 1005, 2, "smallint"),
    (Scalar::Int4, 23, 1007, 4, "integer"),
    (Scalar::Int8, 20, 1016, 8, "bigint"),
    (Scalar::Float4, 700, 1021, 4, "real"),
    (Scalar::Float8, 701, 1022, 8, "double precision"),
    (Scalar::Numeric, 1700, 1231, -1, "numeric"),
    (Scalar::Text, TEXT, 1009, -1, "text"),
    (Scalar::Date, 1082, 1182, 4, "date"),
    (Scalar::Time, 1083, 1183, 8, "time"),
    (Scalar::Timestamp, 1114, 1115, 8, "timestamp"),
    (Scalar::Timestamptz, 1184, 1185, 8, "timestamp with time zone"),
    (Scalar::Interval, 1186, 1187, 16, "interval"),
    (Scalar::Oid, 26, 1028, 4, "oid"),
    (Scalar::Varchar, 1043, 1015, -1, "character varying"),
    (Scalar::Bpchar, 1042, 1014, -1, "character"),
    (Scalar::Name, 19, 1003, 64, "name"),
    (Scalar::Char, 18, 1002, 1, "\"char\""),
    (Scalar::Json, 114, 199, -1, "json"),
    (Scalar::Jsonb, 3802, 3807, -1, "jsonb"),
    (Scalar::Uuid, 2950, 2951, 16, "uuid"),
    (Scalar::Unknown, 705, 0, -2, "unknown"),
];

impl Scalar {
    fn row(self) -> &'static Row {
        // The rows are in the order of the types.
        &ROWS[self as usize]
    }

    /// Its OID.
    pub(super) fn oid(self) -> u32 {
        self.row().1
    }

    /// Its name, as messages have it.
    pub(super) fn name(self) -> &'static str {
        self.row().4
    }

    /// Whether its values are texts.
    pub(super) fn is_text(self) -> bool {
        use Scalar::{Bpchar, Char, Json, Name, Text, Unknown, Varchar};
        matches!(self, Text | Varchar | Bpchar | Name | Char | Json | Unknown)
    }

    /// The type of single values that has this OID.
    pub(super) fn of_oid(oid: u32) -> Option<Self> {
        ROWS.iter().find(|row| row.1 == oid).map(|row| row.0)
    }

    /// The type that values of this type have in Arrow; of a number, with the digits that it has.
    pub(super) fn data_type(self) -> DataType {
        match self {
            Self::Bool => DataType::Boolean,
            Self::Bytea => DataType::Binary,
            Self::Int2 => DataType::Int16,
            Self::Int4 => DataType::Int32,
            Self::Int8 | Self::Oid => DataType::Int64,
            Self::Float4 => DataType::Float32,
            Self::Float8 => DataType::Float64,
            Self::Numeric => DataType::Decimal128(38, 0),
            Self::Date => DataType::Date32,
            Self::Time => DataType::Time64(TimeUnit::Microsecond),
            Self::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
            Self::Timestamptz => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            Self::Interval => DataType::Interval(IntervalUnit::MonthDayNano),
            _ => DataType::Utf8,
        }
    }

    /// The type of the single values of an Arrow type that is no list, and its modifier.
    fn of(data_type: &DataType) -> (Self, i32) {
        let scalar = match data_type {
            DataType::Boolean => Self::Bool,
            DataType::Int8 | DataType::UInt8 | DataType::Int16 => Self::Int2,
            DataType::UInt16 | DataType::Int32 => Self::Int4,
            DataType::UInt32 | DataType::Int64 => Self::Int8,
            DataType::UInt64 => return (Self::Numeric, modifier(20, 0)),
            DataType::Float16 | DataType::Float32 => Self::Float4,
            DataType::Float64 => Self::Float8,
            DataType::Decimal32(precision, scale)
            | DataType::Decimal64(precision, scale)
            | DataType::Decimal128(precision, scale)
            | DataType::Decimal256(precision, scale) => {
                return (Self::Numeric, modifier(*precision, *scale));
            }
            DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
            | DataType::FixedSizeBinary(_) => Self::Bytea,
            DataType::Date32 | DataType::Date64 => Self::Date,
            DataType::Time32(_) | DataType::Time64(_) => Self::Time,
            DataType::Timestamp(_, None) => Self::Timestamp,
            DataType::Timestamp(_, Some(_)) => Self::Timestamptz,
            DataType::Interval(_) | DataType::Duration(_) => Self::Interval,
            DataType::Dictionary(_, values) => return Self::of(values),
            DataType::RunEndEncoded(_, values) => return Self::of(values.data_type()),
            _ => Self::Text,
        };
        (scalar, -1)
    }
}

impl PgType {
    /// The type of a column.
    pub(crate) fn of(data_type: &DataType) -> Self {
        let mut leaf = data_type;
        while let Some(item) = item(leaf) {
            leaf = item.data_type();
        }
        let (scalar, modifier) = Scalar::of(leaf);
        let is_array = item(data_type).is_some();
        Self { scalar, is_array, is_vector: false, modifier, number: number(leaf) }
    }

    /// The type of a column, which may be one that only the catalog has.
    pub(crate) fn of_field(field: &Field) -> Self {
        let of = Self::of(field.data_type());
        match Kind::of(field) {
            Kind::Plain => of,
            Kind::Oid => Self { scalar: Scalar::Oid, number: 0, ..of },
            Kind::Vector if is_of_oids(field.data_type()) => {
                Self { scalar: Scalar::Oid, is_array: false, is_vector: true, number: 0, ..of }
            }
            Kind::Vector => Self { scalar: Scalar::Int2, is_array: false, is_vector: true, ..of },
        }
    }

    /// The type of a parameter of a query of the catalog.
    pub(crate) fn of_catalog(data_type: &DataType) -> Self {
        let of = Self::of(data_type);
        if is_of_oids(data_type) { Self { scalar: Scalar::Oid, number: 0, ..of } } else { of }
    }

    /// The type of a parameter for which a client has given an OID.
    ///
    /// # Errors
    ///
    /// If values of the type cannot be read.
    pub(super) fn of_oid(oid: u32) -> Result<Self> {
        let of =
            |scalar, is_array| Self { scalar, is_array, is_vector: false, modifier: -1, number: 0 };
        if let Some(scalar) = Scalar::of_oid(oid) {
            return Ok(of(scalar, false));
        }
        match ROWS.iter().find(|row| row.2 == oid && oid != 0) {
            Some(row) => Ok(of(row.0, true)),
            None => {
                let message = format!(
                    "values of the type with OID {oid} cannot be read: send them as text, and write CAST where they are used"
                );
                Err(Rejected::new(code::UNSUPPORTED, message))
            }
        }
    }

    /// Its OID.
    pub(crate) fn oid(self) -> u32 {
        match (self.is_vector, self.scalar) {
            (true, Scalar::Oid) => OIDVECTOR,
            (true, _) => INT2VECTOR,
            (false, scalar) if self.is_array => scalar.row().2,
            (false, scalar) => scalar.oid(),
        }
    }

    /// The bytes of a value, −1 where they vary.
    pub(crate) fn length(self) -> i16 {
        if self.is_array || self.is_vector { -1 } else { self.scalar.row().3 }
    }

    /// The digits of a number, as Postgres writes them; −1 of other types.
    pub(crate) fn modifier(self) -> i32 {
        self.modifier
    }

    /// The number that tells an integer whose type Postgres does not have; zero of other types. Rows are described with it as the number of
    /// a column in its table, which means nothing of a column that is none of a table.
    pub(crate) fn number(self) -> i16 {
        self.number
    }

    /// The type of the values, or of an array's elements.
    pub(super) fn scalar(self) -> Scalar {
        self.scalar
    }

    /// Whether the values are arrays.
    pub(super) fn is_array(self) -> bool {
        self.is_array
    }
}

/// The elements of a list of any kind.
pub(super) fn item(data_type: &DataType) -> Option<&Field> {
    match data_type {
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _) => Some(item),
        DataType::Dictionary(_, values) => item(values),
        DataType::RunEndEncoded(_, values) => item(values.data_type()),
        _ => None,
    }
}

/// The [number](PgType::number) of a type.
fn number(data_type: &DataType) -> i16 {
    match data_type {
        DataType::Int8 => 1,
        DataType::UInt8 => 2,
        DataType::UInt16 => 3,
        DataType::UInt32 => 4,
        DataType::UInt64 => 5,
        DataType::Dictionary(_, values) => number(values),
        DataType::RunEndEncoded(_, values) => number(values.data_type()),
        _ => 0,
    }
}

/// The modifier of `numeric(precision, scale)`.
fn modifier(precision: u8, scale: i8) -> i32 {
    ((i32::from(precision) << 16) | (i32::from(scale) & 0x7ff)) + 4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_has_its_row() {
        for (scalar, oid, ..) in ROWS {
            assert_eq!(scalar.row().0, scalar);
            assert_eq!(scalar.oid(), oid);
            assert_eq!(Scalar::of_oid(oid), Some(scalar));
        }
    }

    #[test]
    fn digits_are_in_the_modifier() {
        assert_eq!(PgType::of(&DataType::Decimal128(10, 2)).modifier(), 655_366);
        assert_eq!(PgType::of(&DataType::UInt64).modifier(), (20 << 16) + 4);
        assert_eq!(PgType::of(&DataType::Int64).modifier(), -1);
    }

    #[test]
    fn integers_that_postgres_does_not_have_are_told_by_a_number() {
        let lists = DataType::new_list(DataType::UInt8, true);
        let numbers = [DataType::Int8, DataType::Int16, DataType::UInt64, lists];
        assert_eq!(numbers.map(|of| PgType::of(&of).number()), [1, 0, 5, 2]);
        assert_eq!(PgType::of_catalog(&DataType::UInt32).number(), 0);
    }

    #[test]
    fn lists_of_lists_are_arrays_of_their_leaves() {
        let list = DataType::new_list(DataType::new_list(DataType::Int64, true), true);
        assert_eq!((PgType::of(&list).oid(), PgType::of(&list).length()), (1016, -1));
        let dictionary = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
        assert_eq!(PgType::of(&DataType::new_list(dictionary, true)).oid(), 1009);
        assert!(PgType::of_oid(0).is_err());
        assert!(PgType::of_oid(1).is_err());
    }
}
