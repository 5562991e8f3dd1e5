//! Records of a CSV file, as RFC 4180 has them or another dialect.

use std::io::{self, BufRead, Read};
use std::ops::Range;
use std::str;

use super::dialect::{Dialect, LineEnd};
use super::sniff::separator;

/// The longest record that is read, in bytes: an open quote would make a record of the rest of a file.
const LONGEST: u64 = 16 << 20;

/// One record: its fields without their quotes, and where it began.
///
/// Meant to be filled again and again by [`Records::read`].
#[derive(Default)]
pub struct Record {
    text: String,
    fields: Vec<FieldEnd>,
    line: u64,
}

struct FieldEnd {
    /// Where the field ends in the text; it begins where the one before ends.
    end: usize,
    quoted: bool,
}

/// A field of a record. A quoted field is never NULL: `""` is an empty string.
#[derive(Clone, Copy)]
pub struct Field<'a> {
    /// The text of the field, without quotes.
    pub text: &'a str,
    /// Whether it stood in quotes.
    pub quoted: bool,
}

impl Record {
    /// The line on which the record begins; the first line of a file is 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// The number of fields. A line without any text has one, an empty one.
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// The length of all fields.
    pub fn bytes(&self) -> usize {
        self.text.len()
    }

    /// Whether nothing at all stood on the line.
    pub fn is_blank(&self) -> bool {
        self.fields.len() == 1 && self.field(0).text.is_empty() && !self.field(0).quoted
    }

    /// The field `index`, which must be below [`Record::len`].
    pub fn field(&self, index: usize) -> Field<'_> {
        let FieldEnd { end, quoted } = self.fields[index];
        Field { text: &self.text[self.start(index)..end], quoted }
    }

    fn start(&self, index: usize) -> usize {
        index.checked_sub(1).map_or(0, |before| self.fields[before].end)
    }
}

/// The result of reading a record.
pub enum Reading {
    /// A record.
    Record,
    /// Something that is not a record, for the reason given; the next one can be read all the same.
    Malformed(&'static str),
    /// The end of the file.
    End,
}

/// The records of a file, one after the other.
pub struct Records<R> {
    input: R,
    dialect: Dialect,
    /// The number of lines read, and of their bytes.
    lines: u64,
    offset: u64,
    /// The current line, with its end.
    raw: Vec<u8>,
    /// The record's text, while it is not yet known to be UTF-8.
    text: Vec<u8>,
}

impl<R: BufRead> Records<R> {
    /// Reads from the start of a file, past its byte order mark if it has one, so many lines, and a line `sep=;`.
    pub fn new(mut input: R, dialect: &Dialect, skip: u64) -> io::Result<Self> {
        const MARK: &[u8] = b"\xEF\xBB\xBF";
        let mut offset = 0;
        let start = input.fill_buf()?;
        if start.starts_with(MARK) {
            input.consume(MARK.len());
            offset = MARK.len() as u64;
        } else if start.starts_with(b"\xFF\xFE") || start.starts_with(b"\xFE\xFF") {
            let message = "it is UTF-16; convert it to UTF-8, as iconv -f UTF-16 -t UTF-8 does";
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        let (raw, text) = Default::default();
        let mut records = Self { input, dialect: *dialect, lines: 0, offset, raw, text };
        for _ in 0..skip {
            records.read_line()?;
        }
        let is_separator = |start: &[u8]| {
            start.split(|byte| matches!(byte, b'\n' | b'\r')).next().and_then(separator).is_some()
        };
        if is_separator(records.input.fill_buf()?) {
            records.read_line()?;
        }
        Ok(records)
    }

    /// The input.
    pub fn input(&mut self) -> &mut R {
        &mut self.input
    }

    /// The input, without what was read of it.
    pub fn into_input(self) -> R {
        self.input
    }

    /// How records are written.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// How many bytes and lines come before the next record.
    pub fn place(&self) -> (u64, u64) {
        (self.offset, self.lines)
    }

    /// Continues in `input`, before which so many bytes and lines come.
    pub fn go_on(&mut self, input: R, (offset, lines): (u64, u64)) {
        (self.input, self.offset, self.lines) = (input, offset, lines);
    }

    /// Reads the next record into `record`. Its line number is right for malformed records, too.
    ///
    /// Fails if the input does, or if there is no end to a record.
    pub fn read(&mut self, record: &mut Record) -> io::Result<Reading> {
        record.fields.clear();
        self.text = std::mem::take(&mut record.text).into_bytes();
        self.text.clear();
        loop {
            record.line = self.lines + 1;
            if !self.read_line()? {
                return Ok(Reading::End);
            }
            if self.dialect.comment.is_none() || self.raw.first().copied() != self.dialect.comment {
                break;
            }
        }
        if let Some(problem) = self.split(&mut record.fields)? {
            return Ok(Reading::Malformed(problem));
        }
        match str::from_utf8(&self.text) {
            // Checked as a whole, because fields are short; a field may still end inside a character
            // whose other half is the next field.
            Ok(text) if record.fields.iter().all(|field| text.is_char_boundary(field.end)) => {
                record.text = String::from_utf8(std::mem::take(&mut self.text))
                    .expect("the text was found to be UTF-8");
                Ok(Reading::Record)
            }
            _ => Ok(Reading::Malformed("the text is not UTF-8")),
        }
    }

    /// Splits the current line, and those that follow while a quote is open, into fields.
    fn split(&mut self, fields: &mut Vec<FieldEnd>) -> io::Result<Option<&'static str>> {
        let Dialect { delimiter, quote, escape, .. } = self.dialect;
        let mut at = 0;
        loop {
            let quote = quote.filter(|quote| self.raw.get(at) == Some(quote));
            if let Some(quote) = quote {
                match self.unquote(quote, escape.unwrap_or(quote), at + 1)? {
                    Some(after) => at = after,
                    None => return Ok(Some("a quote is opened and never closed")),
                }
            } else if let Some(escape) = escape {
                match self.unescape(escape, at)? {
                    Some(after) => at = after,
                    None => return Ok(Some("the file ends after the character of ESCAPE")),
                }
            } else {
                let line = &self.raw[at..self.content().end];
                let delimiter = |&byte: &u8| byte == delimiter;
                let length = line.iter().position(delimiter).unwrap_or(line.len());
                self.text.extend_from_slice(&line[..length]);
                at += length;
            }
            fields.push(FieldEnd { end: self.text.len(), quoted: quote.is_some() });
            if at == self.content().end {
                return Ok(None);
            }
            if self.raw[at] != delimiter {
                return Ok(Some("there is text after a closing quote"));
            }
            at += 1;
        }
    }

    /// Reads the rest of a quoted field, in which `escape`, which may be the quote, stands before a quote. Returns the position
    /// after its closing quote in the current line.
    fn unquote(&mut self, quote: u8, escape: u8, mut at: usize) -> io::Result<Option<usize>> {
        loop {
            let rest = &self.raw[at..];
            let Some(length) = rest.iter().position(|&byte| byte == quote || byte == escape) else {
                self.text.extend_from_slice(rest);
                if !self.read_line()? {
                    return Ok(None);
                }
                at = 0;
                continue;
            };
            self.text.extend_from_slice(&rest[..length]);
            at += length + 1;
            let next = self.raw.get(at).copied();
            if rest[length] == quote && (quote != escape || next != Some(quote)) {
                return Ok(Some(at));
            }
            match next {
                Some(next) if self.is_escaped(next) => self.text.push(next),
                // Before anything else it is text.
                _ => {
                    self.text.push(escape);
                    continue;
                }
            }
            at += 1;
        }
    }

    /// Reads a field without quotes, in which `escape` stands before a delimiter, a quote, the end of a line or itself.
    /// Returns the position after it in the current line.
    fn unescape(&mut self, escape: u8, mut at: usize) -> io::Result<Option<usize>> {
        loop {
            let content = self.content().end;
            let line = &self.raw[at..content];
            let ends = |&byte: &u8| byte == self.dialect.delimiter || byte == escape;
            let length = line.iter().position(ends).unwrap_or(line.len());
            self.text.extend_from_slice(&line[..length]);
            at += length;
            if at == content || self.raw[at] != escape {
                return Ok(Some(at));
            }
            match self.raw.get(at + 1).copied() {
                // The line goes on after its end.
                Some(_) if at + 1 >= content => {
                    self.text.extend_from_slice(&self.raw[at + 1..]);
                    if !self.read_line()? {
                        return Ok(None);
                    }
                    at = 0;
                }
                Some(next) if self.is_escaped(next) => {
                    self.text.push(next);
                    at += 2;
                }
                _ => {
                    self.text.push(escape);
                    at += 1;
                }
            }
        }
    }

    /// Whether a byte is text after an escape, and means something else without one.
    fn is_escaped(&self, byte: u8) -> bool {
        let Dialect { delimiter, quote, escape, .. } = self.dialect;
        [Some(delimiter), quote, escape].contains(&Some(byte))
            || matches!(byte, b'"' | b'\n' | b'\r')
    }

    /// The current line without its end.
    fn content(&self) -> Range<usize> {
        let line = match self.dialect.line_end {
            LineEnd::Feed => self.raw.strip_suffix(b"\n").unwrap_or(&self.raw),
            LineEnd::Return => &self.raw,
        };
        0..line.strip_suffix(b"\r").unwrap_or(line).len()
    }

    /// Reads a line; `false` at the end of the file.
    fn read_line(&mut self) -> io::Result<bool> {
        self.raw.clear();
        let left = LONGEST.saturating_sub(self.text.len() as u64);
        let read = (&mut self.input)
            .take(left)
            .read_until(self.dialect.line_end.byte(), &mut self.raw)? as u64;
        if read == left {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!(
                    "line {} is part of a record of more than 16 MiB; is a quote left open?",
                    self.lines + 1
                ),
            ));
        }
        self.lines += u64::from(read > 0);
        self.offset += read;
        Ok(read > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The records of `text` as (line, fields); quoted fields keep quotes, malformed ones say why.
    fn read(text: &[u8]) -> Vec<(u64, String)> {
        read_as(Dialect::default(), 0, text)
    }

    fn read_as(dialect: Dialect, skip: u64, text: &[u8]) -> Vec<(u64, String)> {
        let mut records = Records::new(text, &dialect, skip).unwrap();
        let mut record = Record::default();
        let mut all = Vec::new();
        loop {
            let content = match records.read(&mut record).unwrap() {
                Reading::End => return all,
                Reading::Malformed(problem) => problem.to_string(),
                Reading::Record => (0..record.len())
                    .map(|index| record.field(index))
                    .map(|field| match field.quoted {
                        true => format!("<{}>", field.text),
                        false => field.text.to_string(),
                    })
                    .collect::<Vec<_>>()
                    .join("|"),
            };
            all.push((record.line(), content));
        }
    }

    #[test]
    fn a_field_knows_whether_it_was_quoted() {
        assert_eq!(read(b"a,,\"\",\"b\"\n"), [(1, "a||<>|<b>".into())]);
    }

    #[test]
    fn a_quoted_field_may_hold_delimiters_quotes_and_lines() {
        let text = b"1,\"a,\"\"b\"\"\r\nc\"\r\n2,d\r\n";
        assert_eq!(read(text), [(1, "1|<a,\"b\"\r\nc>".into()), (3, "2|d".into())]);
    }

    #[test]
    fn the_last_line_needs_no_end_and_a_trailing_delimiter_begins_a_field() {
        assert_eq!(read(b"1,a\n2,"), [(1, "1|a".into()), (2, "2|".into())]);
    }

    #[test]
    fn a_byte_order_mark_is_not_text() {
        assert_eq!(read(b"\xEF\xBB\xBFa,b\n"), [(1, "a|b".into())]);
    }

    #[test]
    fn an_empty_line_is_one_empty_field() {
        assert_eq!(read(b"\n\r\na\n"), [(1, "".into()), (2, "".into()), (3, "a".into())]);
    }

    #[test]
    fn a_quote_inside_an_unquoted_field_is_text() {
        assert_eq!(read(b"5\" pipe,6\n"), [(1, "5\" pipe|6".into())]);
    }

    #[test]
    fn what_is_malformed_is_named_and_the_rest_goes_on() {
        let text = b"a\n\"b\"c,d\n\xFF,e\n\xC3,\xA9\nf\n\"g\nh\n";
        let found = read(text);
        let expected = [
            (1, "a"),
            (2, "there is text after a closing quote"),
            (3, "the text is not UTF-8"),
            (4, "the text is not UTF-8"),
            (5, "f"),
            (6, "a quote is opened and never closed"),
        ];
        assert_eq!(found, expected.map(|(line, text)| (line, text.to_string())));
    }

    #[test]
    fn an_escape_stands_before_what_is_text_in_quotes_and_outside() {
        let escaped = Dialect { escape: Some(b'\\'), ..Dialect::default() };
        let text = br#"1,"say \"hi\"",C:\new,\N
2,a\,b,"\\",x\
y
"#;
        let found = read_as(escaped, 0, text);
        let lines = [(1, r#"1|<say "hi">|C:\new|\N"#), (2, "2|a,b|<\\>|x\ny")];
        assert_eq!(found, lines.map(|(line, text)| (line, text.to_owned())));
        assert_eq!(
            read_as(escaped, 0, b"a\\\n")[0].1,
            "the file ends after the character of ESCAPE"
        );
    }

    #[test]
    fn lines_may_end_with_cr_alone_and_lines_of_comments_are_none() {
        let dialect =
            Dialect { line_end: LineEnd::Return, comment: Some(b'#'), ..Dialect::default() };
        let found = read_as(dialect, 1, b"title\r#a\ra,\"b\r#c\"\r#d\r1,2");
        let lines = [(3, "a|<b\r#c>"), (6, "1|2")];
        assert_eq!(found, lines.map(|(line, text)| (line, text.to_owned())));
    }

    #[test]
    fn a_line_that_names_the_separator_is_no_record() {
        assert_eq!(read(b"\xEF\xBB\xBFsep=,\r\na\r\n"), [(2, "a".into())]);
        assert_eq!(read(b"sep=ab\n"), [(1, "sep=ab".into())]);
    }

    #[test]
    fn a_record_without_end_fails_instead_of_filling_the_memory() {
        let endless = io::BufReader::new(io::repeat(b'x'));
        let input = io::Read::chain(&b"\"a\n"[..], endless);
        let mut records = Records::new(input, &Dialect::default(), 0).unwrap();
        let error = records.read(&mut Record::default()).err().unwrap();
        assert!(error.to_string().starts_with("line 2 is part of a record"), "{error}");
    }
}
