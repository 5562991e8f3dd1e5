//! The dialect of a CSV file: which characters stand between and around its fields.

use std::fmt;

/// How the records of a file are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// The character between fields.
    pub delimiter: u8,
    /// The character around fields; `None` for none.
    pub quote: Option<u8>,
    /// The character before one that is text, inside and outside of quotes; `None` if a quote inside of quotes is doubled.
    pub escape: Option<u8>,
    /// The character that begins a line that is no record.
    pub comment: Option<u8>,
    /// The end of a line.
    pub line_end: LineEnd,
}

/// The end of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineEnd {
    /// LF, or CR LF.
    Feed,
    /// CR alone.
    Return,
}

impl LineEnd {
    /// The last byte of a line.
    pub fn byte(self) -> u8 {
        match self {
            Self::Feed => b'\n',
            Self::Return => b'\r',
        }
    }
}

impl Default for Dialect {
    /// That of RFC 4180.
    fn default() -> Self {
        Self {
            delimiter: b',',
            quote: Some(b'"'),
            escape: None,
            comment: None,
            line_end: LineEnd::Feed,
        }
    }
}

impl Dialect {
    /// The options that say it.
    pub fn options(&self) -> Vec<(&'static str, String)> {
        let one = |byte: Option<u8>| byte.map(spelt).unwrap_or_default();
        vec![
            ("DELIMITER", spelt(self.delimiter)),
            ("QUOTE", one(self.quote)),
            ("ESCAPE", one(self.escape.or(self.quote))),
            ("COMMENT", one(self.comment)),
            ("NEW_LINE", spelt(self.line_end.byte())),
        ]
    }
}

/// The options that differ from those of RFC 4180, as SQL has them.
impl fmt::Display for Dialect {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let usual = Self { delimiter: self.delimiter, ..Self::default() }.options();
        let mut separator = "";
        for (index, (name, value)) in self.options().into_iter().enumerate() {
            if index == 0 || usual[index].1 != value {
                write!(to, "{separator}{name} '{}'", value.replace('\'', "''"))?;
                separator = ", ";
            }
        }
        Ok(())
    }
}

/// A character as an option has it.
fn spelt(byte: u8) -> String {
    match byte {
        b'\t' => "\\t".to_owned(),
        b'\n' => "\\n".to_owned(),
        b'\r' => "\\r".to_owned(),
        0x01..=0x1F => format!("\\x{byte:02x}"),
        byte => char::from(byte).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dialect_is_shown_as_options() {
        let dialect = Dialect { delimiter: b'\t', quote: Some(b'\''), ..Dialect::default() };
        assert_eq!(dialect.to_string(), "DELIMITER '\\t', QUOTE '''', ESCAPE ''''");
        assert_eq!(Dialect::default().to_string(), "DELIMITER ','");
    }
}
