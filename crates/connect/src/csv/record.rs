//! Records of a CSV file, as RFC 4180 has them.

use std::io::{self, BufRead, Read};
use std::ops::Range;
use std::str;

use super::options::Options;

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

/// The records of a file, one after the other. Lines end with LF or CR LF.
pub struct Records<R> {
    input: R,
    delimiter: u8,
    quote: Option<u8>,
    /// The number of lines read, and of their bytes.
    lines: u64,
    offset: u64,
    /// The current line, with its end.
    raw: Vec<u8>,
    /// The record's text, while it is not yet known to be UTF-8.
    text: Vec<u8>,
}

impl<R: BufRead> Records<R> {
    /// Reads from the start of a file, past its byte order mark if it has one.
    pub fn new(mut input: R, options: &Options) -> io::Result<Self> {
        const MARK: &[u8] = b"\xEF\xBB\xBF";
        let mut offset = 0;
        if input.fill_buf()?.starts_with(MARK) {
            input.consume(MARK.len());
            offset = MARK.len() as u64;
        }
        let Options { delimiter, quote, .. } = *options;
        Ok(Self { input, delimiter, quote, lines: 0, offset, raw: Vec::new(), text: Vec::new() })
    }

    /// The input.
    pub fn input(&mut self) -> &mut R {
        &mut self.input
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
        record.line = self.lines + 1;
        record.fields.clear();
        self.text = std::mem::take(&mut record.text).into_bytes();
        self.text.clear();
        if !self.read_line()? {
            return Ok(Reading::End);
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
        let mut at = 0;
        loop {
            let quote = self.quote.filter(|quote| self.raw.get(at) == Some(quote));
            if let Some(quote) = quote {
                match self.unquote(quote, at + 1)? {
                    Some(after) => at = after,
                    None => return Ok(Some("a quote is opened and never closed")),
                }
            } else {
                let line = &self.raw[at..self.content().end];
                let delimiter = |&byte: &u8| byte == self.delimiter;
                let length = line.iter().position(delimiter).unwrap_or(line.len());
                self.text.extend_from_slice(&line[..length]);
                at += length;
            }
            fields.push(FieldEnd { end: self.text.len(), quoted: quote.is_some() });
            if at == self.content().end {
                return Ok(None);
            }
            if self.raw[at] != self.delimiter {
                return Ok(Some("there is text after a closing quote"));
            }
            at += 1;
        }
    }

    /// Reads the rest of a quoted field. Returns the position after its closing quote in the current line.
    fn unquote(&mut self, quote: u8, mut at: usize) -> io::Result<Option<usize>> {
        loop {
            let rest = &self.raw[at..];
            let Some(length) = rest.iter().position(|&byte| byte == quote) else {
                self.text.extend_from_slice(rest);
                if !self.read_line()? {
                    return Ok(None);
                }
                at = 0;
                continue;
            };
            self.text.extend_from_slice(&rest[..length]);
            at += length + 1;
            if self.raw.get(at) != Some(&quote) {
                return Ok(Some(at));
            }
            self.text.push(quote);
            at += 1;
        }
    }

    /// The current line without its end.
    fn content(&self) -> Range<usize> {
        let line = self.raw.strip_suffix(b"\n").unwrap_or(&self.raw);
        0..line.strip_suffix(b"\r").unwrap_or(line).len()
    }

    /// Reads a line; `false` at the end of the file.
    fn read_line(&mut self) -> io::Result<bool> {
        self.raw.clear();
        let left = LONGEST.saturating_sub(self.text.len() as u64);
        let read = (&mut self.input).take(left).read_until(b'\n', &mut self.raw)? as u64;
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
        let mut records = Records::new(text, &Options::default()).unwrap();
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
    fn a_record_without_end_fails_instead_of_filling_the_memory() {
        let endless = io::BufReader::new(io::repeat(b'x'));
        let input = io::Read::chain(&b"\"a\n"[..], endless);
        let mut records = Records::new(input, &Options::default()).unwrap();
        let error = records.read(&mut Record::default()).err().unwrap();
        assert!(error.to_string().starts_with("line 2 is part of a record"), "{error}");
    }
}
