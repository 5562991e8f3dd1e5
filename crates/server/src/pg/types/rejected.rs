//! The error of a value.

use std::fmt::Display;

/// How many characters of a value a message shows.
const SHOWN: usize = 40;

/// The codes that Postgres has for errors of values.
pub(super) mod code {
    /// A text that is no value of its type.
    pub(in super::super) const TEXT: &str = "22P02";
    /// Bytes that are no value of their type.
    pub(in super::super) const BINARY: &str = "22P03";
    /// Data of COPY whose rows are malformed.
    pub(in super::super) const COPY: &str = "22P04";
    /// A part of a value that has no meaning: a digit, a time zone.
    pub(in super::super) const PARAMETER: &str = "22023";
    /// A number beyond the ends of its type.
    pub(in super::super) const NUMBER_RANGE: &str = "22003";
    /// A text that is no date or time.
    pub(in super::super) const TIME_FORMAT: &str = "22007";
    /// A date or time beyond the ends of its type.
    pub(in super::super) const TIME_RANGE: &str = "22008";
    /// An offset that no time zone has.
    pub(in super::super) const ZONE: &str = "22009";
    /// An interval beyond the ends of its type.
    pub(in super::super) const INTERVAL_RANGE: &str = "22015";
    /// Bytes that are not UTF-8.
    pub(in super::super) const ENCODING: &str = "22021";
    /// An array whose dimensions differ.
    pub(in super::super) const DIMENSIONS: &str = "2202E";
    /// NULL where there may be none.
    pub(in super::super) const NOT_NULL: &str = "23502";
    /// An array of another type.
    pub(in super::super) const MISMATCH: &str = "42804";
    /// A type without values here.
    pub(in super::super) const UNSUPPORTED: &str = "0A000";
    /// More than the protocol can carry.
    pub(in super::super) const TOO_LARGE: &str = "54000";
    /// A message that breaks the protocol.
    pub(in super::super) const PROTOCOL: &str = "08P01";
    /// A failure of this program.
    pub(in super::super) const INTERNAL: &str = "XX000";
}

/// The reason why a value cannot be sent or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Rejected {
    code: &'static str,
    message: String,
}

/// The result of reading or sending a value.
pub(super) type Result<T> = std::result::Result<T, Rejected>;

impl Rejected {
    /// A rejection with the code of an SQLSTATE.
    pub(super) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// A text that is no value of a type.
    pub(super) fn text(kind: &str, text: &[u8]) -> Self {
        let message = format!("invalid input syntax for type {kind}: \"{}\"", shown(text));
        Self::new(code::TEXT, message)
    }

    /// A text that is no date, time or interval.
    pub(super) fn time(kind: &str, text: &[u8]) -> Self {
        let message = format!("invalid input syntax for type {kind}: \"{}\"", shown(text));
        Self::new(code::TIME_FORMAT, message)
    }

    /// Bytes that are no value of a type.
    pub(super) fn binary(kind: &str) -> Self {
        Self::new(code::BINARY, format!("incorrect binary data format for type {kind}"))
    }

    /// A number that its type does not have.
    pub(super) fn number_range(kind: &str, value: impl Display) -> Self {
        Self::new(code::NUMBER_RANGE, format!("value \"{value}\" is out of range for type {kind}"))
    }

    /// A date or time that its type does not have.
    pub(super) fn time_range(kind: &str) -> Self {
        Self::new(code::TIME_RANGE, format!("{kind} out of range"))
    }

    /// A row or value that no message can carry.
    pub(super) fn too_large() -> Self {
        let message = "a row is too large for a message, which has at most 2 GB: select fewer or shorter columns";
        Self::new(code::TOO_LARGE, message)
    }

    /// The same, about a column of a line that was copied. Both are counted from one.
    pub(super) fn at(self, line: u64, column: Option<&str>) -> Self {
        let message = match column {
            Some(column) => format!("line {line}, column \"{column}\": {}", self.message),
            None => format!("line {line}: {}", self.message),
        };
        Self { message, ..self }
    }

    /// The code of its SQLSTATE.
    pub(crate) fn code(&self) -> &'static str {
        self.code
    }
}

impl From<arrow::error::ArrowError> for Rejected {
    fn from(error: arrow::error::ArrowError) -> Self {
        let error = alluvium::Error::from(error);
        Self::new(error.sqlstate().as_str(), error.to_string())
    }
}

impl From<alluvium::Error> for Rejected {
    fn from(error: alluvium::Error) -> Self {
        Self::new(error.sqlstate().as_str(), error.to_string())
    }
}

/// The beginning of a text, for a message.
pub(super) fn shown(text: &[u8]) -> String {
    let beginning = &text[..text.len().min(SHOWN * 4)];
    let text = String::from_utf8_lossy(beginning);
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into_owned(),
    }
}

/// Bytes as text, which has to be UTF-8 without zeros.
pub(super) fn utf8(bytes: &[u8]) -> Result<&str> {
    match std::str::from_utf8(bytes) {
        Ok(text) if !bytes.contains(&0) => Ok(text),
        Ok(_) => Err(encoding(&[0])),
        Err(error) => {
            let rest = &bytes[error.valid_up_to()..];
            Err(encoding(&rest[..rest.len().min(4)]))
        }
    }
}

fn encoding(bytes: &[u8]) -> Rejected {
    let bytes: Vec<String> = bytes.iter().map(|byte| format!("0x{byte:02x}")).collect();
    let message = format!("invalid byte sequence for encoding \"UTF8\": {}", bytes.join(" "));
    Rejected::new(code::ENCODING, message)
}
