//! The standard's codes of errors.

use std::fmt;

use arrow::error::ArrowError;
use datafusion_common::DataFusionError;

use super::Error;

/// A code of five characters for the kind of an error, as the SQL standard and Postgres have it: a program that asks for it needs
/// not read the message. The first two characters are its class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SqlState(&'static str);

impl SqlState {
    /// A value that a statement does not take.
    pub const DATA: Self = Self("22000");
    /// A number or a time beyond what its type holds.
    pub const OUT_OF_RANGE: Self = Self("22003");
    /// A value that a setting, an option or a function does not take.
    pub const INVALID_VALUE: Self = Self("22023");
    /// A division by zero.
    pub const DIVISION_BY_ZERO: Self = Self("22012");
    /// A text that is no value of the type that it is read as.
    pub const INVALID_TEXT: Self = Self("22P02");
    /// A sequence that has no value left.
    pub const EXHAUSTED: Self = Self("2200H");
    /// A NULL in a NOT NULL column.
    pub const NOT_NULL: Self = Self("23502");
    /// A key that another row has.
    pub const UNIQUE: Self = Self("23505");
    /// A CHECK that does not hold.
    pub const CHECK: Self = Self("23514");
    /// A constraint whose name another one has.
    pub const DUPLICATE_OBJECT: Self = Self("42710");
    /// Two rows of one statement that change the same row.
    pub const CHANGED_TWICE: Self = Self("21000");
    /// `BEGIN` inside of a transaction, and statements that cannot be there.
    pub const ACTIVE_TRANSACTION: Self = Self("25001");
    /// A write in a transaction that only reads.
    pub const READ_ONLY: Self = Self("25006");
    /// `COMMIT` and its like without a transaction.
    pub const NO_TRANSACTION: Self = Self("25P01");
    /// A statement in a transaction that was aborted.
    pub const ABORTED: Self = Self("25P02");
    /// A prepared statement that does not exist.
    pub const NO_STATEMENT: Self = Self("26000");
    /// A cursor that does not exist.
    pub const NO_CURSOR: Self = Self("34000");
    /// A savepoint that does not exist.
    pub const NO_SAVEPOINT: Self = Self("3B001");
    /// A schema that does not exist.
    pub const NO_SCHEMA: Self = Self("3F000");
    /// A conflict with another transaction, which has changed rows that were read. The transaction can be repeated.
    pub const SERIALIZATION: Self = Self("40001");
    /// A deadlock with other transactions. The transaction can be repeated.
    pub const DEADLOCK: Self = Self("40P01");
    /// A statement that is wrong in itself.
    pub const WRONG: Self = Self("42000");
    /// A text that is no statement.
    pub const SYNTAX: Self = Self("42601");
    /// An action that the session has no right to.
    pub const DENIED: Self = Self("42501");
    /// A column that does not exist.
    pub const NO_COLUMN: Self = Self("42703");
    /// A column of which there are two.
    pub const AMBIGUOUS_COLUMN: Self = Self("42702");
    /// A column that is defined twice.
    pub const DUPLICATE_COLUMN: Self = Self("42701");
    /// A setting, or another object, that does not exist.
    pub const NO_OBJECT: Self = Self("42704");
    /// A value for a column that is generated always.
    pub const GENERATED_ALWAYS: Self = Self("428C9");
    /// Something that others depend on.
    pub const DEPENDED_ON: Self = Self("2BP01");
    /// A function that does not exist.
    pub const NO_FUNCTION: Self = Self("42883");
    /// A table or a view that does not exist.
    pub const NO_RELATION: Self = Self("42P01");
    /// A cursor that there is already.
    pub const DUPLICATE_CURSOR: Self = Self("42P03");
    /// A prepared statement that there is already.
    pub const DUPLICATE_STATEMENT: Self = Self("42P05");
    /// A name that cannot be given.
    pub const RESERVED_NAME: Self = Self("42939");
    /// A privilege that an object does not have.
    pub const INVALID_GRANT: Self = Self("0LP01");
    /// A schema that there is already.
    pub const DUPLICATE_SCHEMA: Self = Self("42P06");
    /// A function that there is already.
    pub const DUPLICATE_FUNCTION: Self = Self("42723");
    /// A relation or an index that there is already.
    pub const DUPLICATE_RELATION: Self = Self("42P07");
    /// A relation of another kind than the statement needs.
    pub const WRONG_KIND: Self = Self("42809");
    /// More memory than there may be.
    pub const OUT_OF_MEMORY: Self = Self("53200");
    /// A limit that is the program's or its configuration's.
    pub const LIMIT: Self = Self("53400");
    /// No room on the disk.
    pub const DISK_FULL: Self = Self("53100");
    /// Something that is not in the state for it, such as a cursor that goes forward only.
    pub const NOT_IN_STATE: Self = Self("55000");
    /// Something that is in use.
    pub const OBJECT_IN_USE: Self = Self("55006");
    /// A lock that was not to be had in time.
    pub const LOCKED: Self = Self("55P03");
    /// A statement that was interrupted, or took too long.
    pub const CANCELED: Self = Self("57014");
    /// A file or another system that cannot be read or written.
    pub const IO: Self = Self("58030");
    /// Something that is not supported.
    pub const NOT_SUPPORTED: Self = Self("0A000");
    /// A fault of the engine.
    pub const INTERNAL: Self = Self("XX000");

    /// Its five characters.
    pub const fn as_str(self) -> &'static str {
        self.0
    }

    /// The code for an error in the data of a statement that ran.
    pub fn of_run(error: &DataFusionError) -> Self {
        match error.find_root() {
            DataFusionError::ResourcesExhausted(_) => Self::OUT_OF_MEMORY,
            DataFusionError::ArrowError(error, _) => Self::of_arrow(error),
            DataFusionError::NotImplemented(_) => Self::NOT_SUPPORTED,
            DataFusionError::IoError(_) => Self::IO,
            DataFusionError::External(inner) => {
                inner.downcast_ref::<Error>().map_or(Self::DATA, |error| error.sqlstate)
            }
            _ => Self::DATA,
        }
    }

    fn of_arrow(error: &ArrowError) -> Self {
        match error {
            ArrowError::DivideByZero => Self::DIVISION_BY_ZERO,
            ArrowError::ArithmeticOverflow(_) => Self::OUT_OF_RANGE,
            ArrowError::ParseError(_) => Self::INVALID_TEXT,
            // All other values cannot be cast because the type does not hold them.
            ArrowError::CastError(message) => match message.starts_with("Cannot cast string") {
                true => Self::INVALID_TEXT,
                false => Self::OUT_OF_RANGE,
            },
            ArrowError::NotYetImplemented(_) => Self::NOT_SUPPORTED,
            ArrowError::IoError(..) => Self::IO,
            _ => Self::DATA,
        }
    }
}

impl fmt::Display for SqlState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0)
    }
}
