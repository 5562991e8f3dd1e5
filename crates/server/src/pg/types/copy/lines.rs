//! The ends of rows in text and CSV.

use super::super::rejected::Result;
use super::options::{CopyFormat, CopyOptions, malformed};

/// The end of a line. All lines end as the first one does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineEnd {
    Newline,
    Return,
    Both,
}

/// Finds the ends of rows, which may be parts of values where these are escaped or quoted.
pub(super) struct Lines {
    /// The quote and the escape of CSV; no escape if it is the quote.
    quotes: Option<(u8, Option<u8>)>,
    end: Option<LineEnd>,
    /// How many bytes of the row have been looked at.
    scanned: usize,
    is_quoted: bool,
    is_escaped: bool,
    /// How many ends of lines are in values of the row.
    inner: u64,
}

/// A row that was found.
pub(super) struct Line {
    /// Its bytes.
    pub(super) length: usize,
    /// Its bytes with the end of the line.
    pub(super) whole: usize,
    /// How many lines it takes.
    pub(super) lines: u64,
}

impl Lines {
    /// Rows with these options.
    pub(super) fn new(options: &CopyOptions) -> Self {
        let escape = Some(options.escape).filter(|escape| *escape != options.quote);
        let quotes = (options.format == CopyFormat::Csv).then_some((options.quote, escape));
        Self { quotes, end: None, scanned: 0, is_quoted: false, is_escaped: false, inner: 0 }
    }

    /// The row at the begin of the data; `None` if its end has not come. At the end of all data a row needs no end.
    pub(super) fn next(&mut self, data: &[u8], is_last: bool) -> Result<Option<Line>> {
        while let Some(byte) = data.get(self.scanned) {
            let is_end = match self.quotes {
                Some((quote, escape)) => self.is_csv_end(*byte, quote, escape),
                None => self.is_text_end(*byte),
            };
            if is_end {
                let after = data.get(self.scanned + 1).copied();
                if *byte == b'\r'
                    && after.is_none()
                    && !is_last
                    && self.end != Some(LineEnd::Return)
                {
                    return Ok(None);
                }
                let width = self.width(*byte, after)?;
                return Ok(Some(self.found(self.scanned, width)));
            }
            self.scanned += 1;
        }
        if !is_last || data.is_empty() {
            return Ok(None);
        }
        if self.is_quoted {
            return Err(malformed("unterminated CSV quoted field"));
        }
        Ok(Some(self.found(data.len(), 0)))
    }

    fn found(&mut self, length: usize, width: usize) -> Line {
        let line = Line { length, whole: length + width, lines: self.inner + 1 };
        (self.scanned, self.inner) = (0, 0);
        (self.is_quoted, self.is_escaped) = (false, false);
        line
    }

    fn is_text_end(&mut self, byte: u8) -> bool {
        let is_end = matches!(byte, b'\n' | b'\r');
        if self.is_escaped {
            self.is_escaped = false;
            self.inner += u64::from(byte == b'\n');
            return false;
        }
        self.is_escaped = byte == b'\\';
        is_end
    }

    /// An escape counts within quotes only, and not after another one.
    fn is_csv_end(&mut self, byte: u8, quote: u8, escape: Option<u8>) -> bool {
        let is_end = matches!(byte, b'\n' | b'\r');
        if is_end && !self.is_quoted {
            return true;
        }
        let is_escape = Some(byte) == escape;
        if is_escape && self.is_quoted {
            self.is_escaped = !self.is_escaped;
        }
        if byte == quote && !self.is_escaped {
            self.is_quoted = !self.is_quoted;
        }
        if !is_escape {
            self.is_escaped = false;
        }
        self.inner += u64::from(byte == b'\n');
        false
    }

    /// The bytes of the end of a line.
    fn width(&mut self, byte: u8, after: Option<u8>) -> Result<usize> {
        let found = match (byte, after) {
            (b'\n', _) => LineEnd::Newline,
            (_, Some(b'\n')) if self.end != Some(LineEnd::Return) => LineEnd::Both,
            _ => LineEnd::Return,
        };
        if *self.end.get_or_insert(found) != found {
            let what = if byte == b'\n' { "newline" } else { "carriage return" };
            let message = match self.quotes {
                Some(_) => format!("unquoted {what} found in data"),
                None => format!("literal {what} found in data"),
            };
            return Err(malformed(message));
        }
        Ok(if found == LineEnd::Both { 2 } else { 1 })
    }
}
