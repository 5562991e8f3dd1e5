//! The options of COPY.

use super::super::rejected::{Rejected, Result, code};

/// How rows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CopyFormat {
    Text,
    Csv,
    Binary,
}

/// The line before the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Header {
    /// There is none.
    Absent,
    /// It has the names of the columns; it is not read.
    Present,
    /// It has the names of the columns in their order; others are an error.
    Checked,
}

/// The options of COPY.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CopyOptions {
    pub(crate) format: CopyFormat,
    /// The byte between two fields.
    pub(crate) delimiter: u8,
    /// The text of NULL.
    pub(crate) null: String,
    pub(crate) header: Header,
    /// The byte around fields of CSV.
    pub(crate) quote: u8,
    /// The byte before a quote, or before itself, within quotes.
    pub(crate) escape: u8,
    /// The most bytes of a row that is read, at most 1 GB.
    pub(crate) most_bytes: usize,
}

impl CopyOptions {
    /// The options of a format where a statement has none.
    pub(crate) fn new(format: CopyFormat) -> Self {
        let (delimiter, null) = match format {
            CopyFormat::Csv => (b',', ""),
            CopyFormat::Text | CopyFormat::Binary => (b'\t', "\\N"),
        };
        Self {
            format,
            delimiter,
            null: null.to_owned(),
            header: Header::Absent,
            quote: b'"',
            escape: b'"',
            most_bytes: 1 << 30,
        }
    }

    /// Refuses options with which rows could not be read again.
    ///
    /// # Errors
    ///
    /// If bytes that have to differ are the same.
    pub(crate) fn check(&self) -> Result<()> {
        let refuse = |message: &str| Err(Rejected::new(code::UNSUPPORTED, message));
        let is_line_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
        let null = self.null.as_bytes();
        let ends = [self.delimiter, self.quote, self.escape];
        if ends.iter().any(|byte| is_line_end(byte) || !byte.is_ascii() || *byte == 0) {
            return refuse(
                "COPY delimiter, quote and escape must be single one-byte characters, and no ends of lines",
            );
        }
        if null.iter().any(is_line_end) {
            return refuse("COPY null representation cannot use newline or carriage return");
        }
        match self.format {
            CopyFormat::Binary => return Ok(()),
            CopyFormat::Text => {
                let special = |byte: u8| {
                    byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"\\.".contains(&byte)
                };
                if special(self.delimiter) {
                    return refuse(
                        "COPY delimiter cannot be a small letter, a digit, a backslash or a point",
                    );
                }
            }
            CopyFormat::Csv => {
                if self.quote == self.delimiter {
                    return refuse("COPY delimiter and quote must be different");
                }
                if null.contains(&self.quote) {
                    return refuse("CSV quote character must not appear in the NULL specification");
                }
            }
        }
        if null.contains(&self.delimiter) {
            return refuse("COPY delimiter must not appear in the NULL specification");
        }
        Ok(())
    }
}

/// An error of malformed data.
pub(super) fn malformed(message: impl Into<String>) -> Rejected {
    Rejected::new(code::COPY, message)
}

/// The error of a row with more than so many bytes.
pub(super) fn too_long(most: usize, line: u64) -> Rejected {
    let message = format!("a row is longer than the {most} bytes that it may have");
    Rejected::new(code::TOO_LARGE, message).at(line, None)
}
