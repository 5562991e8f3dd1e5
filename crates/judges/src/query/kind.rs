//! The types of columns.

/// An SQL type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Kind {
    Boolean,
    Tiny,
    Small,
    Integer,
    Big,
    Unsigned,
    Float,
    Real,
    /// DECIMAL(12, 2)
    Decimal,
    Text,
    Bytes,
    Date,
    Clock,
    Moment,
    Zoned,
    /// A list of integers.
    List,
    /// STRUCT<x INT, y TEXT>
    Struct,
    /// MAP<TEXT, INT>
    Map,
}

impl Kind {
    /// All of them.
    pub(crate) const ALL: [Kind; 18] = [
        Kind::Boolean,
        Kind::Tiny,
        Kind::Small,
        Kind::Integer,
        Kind::Big,
        Kind::Unsigned,
        Kind::Float,
        Kind::Real,
        Kind::Decimal,
        Kind::Text,
        Kind::Bytes,
        Kind::Date,
        Kind::Clock,
        Kind::Moment,
        Kind::Zoned,
        Kind::List,
        Kind::Struct,
        Kind::Map,
    ];

    /// Its name in CREATE TABLE and CAST.
    pub(crate) fn sql(self) -> &'static str {
        match self {
            Kind::Boolean => "BOOLEAN",
            Kind::Tiny => "TINYINT",
            Kind::Small => "SMALLINT",
            Kind::Integer => "INT",
            Kind::Big => "BIGINT",
            Kind::Unsigned => "INT UNSIGNED",
            Kind::Float => "REAL",
            Kind::Real => "DOUBLE",
            Kind::Decimal => "DECIMAL(12, 2)",
            Kind::Text => "TEXT",
            Kind::Bytes => "BYTEA",
            Kind::Date => "DATE",
            Kind::Clock => "TIME",
            Kind::Moment => "TIMESTAMP",
            Kind::Zoned => "TIMESTAMPTZ",
            Kind::List => "INT[]",
            Kind::Struct => "STRUCT<x INT, y TEXT>",
            Kind::Map => "MAP<TEXT, INT>",
        }
    }

    /// Its name in casts and column declarations in SQLite; `None` if such casts mean something else there.
    pub(crate) fn sqlite(self) -> Option<&'static str> {
        match self {
            kind if kind.is_whole() => Some("INTEGER"),
            Kind::Real => Some("REAL"),
            Kind::Text => Some("TEXT"),
            _ => None,
        }
    }

    /// Whether its values are integers.
    pub(crate) fn is_whole(self) -> bool {
        matches!(self, Kind::Tiny | Kind::Small | Kind::Integer | Kind::Big | Kind::Unsigned)
    }

    /// Whether its values are floating-point numbers.
    pub(crate) fn is_float(self) -> bool {
        matches!(self, Kind::Float | Kind::Real)
    }

    /// Whether its values are numbers.
    pub(crate) fn is_number(self) -> bool {
        self.is_whole() || matches!(self, Kind::Float | Kind::Real | Kind::Decimal)
    }

    /// Whether it is a list, a struct or a map.
    pub(crate) fn is_nested(self) -> bool {
        matches!(self, Kind::List | Kind::Struct | Kind::Map)
    }

    /// The least and the greatest integer of the type.
    pub(crate) fn range(self) -> (i128, i128) {
        match self {
            Kind::Tiny => (i8::MIN.into(), i8::MAX.into()),
            Kind::Small => (i16::MIN.into(), i16::MAX.into()),
            Kind::Integer => (i32::MIN.into(), i32::MAX.into()),
            Kind::Unsigned => (0, u32::MAX.into()),
            _ => (i64::MIN.into(), i64::MAX.into()),
        }
    }
}
