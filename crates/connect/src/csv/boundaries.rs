//! Where the records of a CSV file end, without their fields: as [`Records`](super::record::Records) has them.

use super::dialect::{Dialect, LineEnd};
use crate::blocks::{Boundaries, Seen};

/// Passes over records.
pub struct RecordEnds {
    dialect: Dialect,
    place: Place,
}

/// Where in a record a text is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    /// Before its first field.
    Start,
    /// Before another one.
    Field,
    /// In one without quotes, and after an escape, also one before CR.
    Plain,
    PlainEscape,
    PlainEscapeReturn,
    /// In one with quotes, and after an escape, which may be a quote, or a closing quote.
    Quoted,
    QuotedEscape,
    Closed,
    /// In the rest of a line that is a comment or malformed.
    Rest,
}

impl RecordEnds {
    pub fn new(dialect: Dialect) -> Self {
        Self { dialect, place: Place::Start }
    }

    /// Where the next line begins if no character of the dialect but delimiters comes before.
    fn plain_line(&self, text: &[u8]) -> Option<usize> {
        let end = self.dialect.line_end.byte();
        let found = match (self.dialect.quote, self.dialect.escape) {
            (None, None) => memchr::memchr(end, text),
            (Some(other), None) | (None, Some(other)) => memchr::memchr2(end, other, text),
            (Some(quote), Some(escape)) => memchr::memchr3(end, quote, escape, text),
        };
        found.filter(|&at| text[at] == end).map(|at| at + 1)
    }

    /// The place after a byte.
    fn after(&self, place: Place, byte: u8) -> Place {
        let Dialect { delimiter, quote, escape, comment, line_end } = self.dialect;
        let is_end = byte == line_end.byte();
        let is_escaped = byte == delimiter
            || [quote, escape].contains(&Some(byte))
            || matches!(byte, b'"' | b'\n' | b'\r');
        match place {
            Place::Start if comment == Some(byte) => Place::Rest,
            Place::Start | Place::Field if quote == Some(byte) => Place::Quoted,
            Place::Start | Place::Field | Place::Plain => match byte {
                _ if is_end => Place::Start,
                byte if byte == delimiter => Place::Field,
                byte if escape == Some(byte) => Place::PlainEscape,
                _ => Place::Plain,
            },
            Place::PlainEscape if byte == b'\r' && line_end == LineEnd::Feed => {
                Place::PlainEscapeReturn
            }
            Place::PlainEscape if is_escaped => Place::Plain,
            // CR is text there, unless it belongs to the end of a line.
            Place::PlainEscapeReturn if is_end => Place::Plain,
            Place::PlainEscape | Place::PlainEscapeReturn => self.after(Place::Plain, byte),
            Place::Quoted => match Some(byte) {
                byte if byte == quote && escape.is_some() => Place::Closed,
                byte if byte == escape.or(quote) => Place::QuotedEscape,
                _ => Place::Quoted,
            },
            Place::QuotedEscape if escape.is_none() => match quote == Some(byte) {
                true => Place::Quoted,
                false => self.after(Place::Closed, byte),
            },
            Place::QuotedEscape if is_escaped => Place::Quoted,
            Place::QuotedEscape => self.after(Place::Quoted, byte),
            Place::Closed if byte == delimiter => Place::Field,
            Place::Closed | Place::Rest if is_end => Place::Start,
            Place::Closed | Place::Rest => Place::Rest,
        }
    }
}

impl Boundaries for RecordEnds {
    fn pass(&mut self, text: &[u8], from: usize, seen: &mut Seen) {
        let end = self.dialect.line_end.byte();
        let mut at = from;
        while at < text.len() {
            if self.place == Place::Start
                && let Some(length) = self.plain_line(&text[at..])
            {
                at += length;
                seen.line();
                seen.row(at);
                continue;
            }
            let byte = text[at];
            at += 1;
            self.place = self.after(self.place, byte);
            if byte == end {
                seen.line();
                if self.place == Place::Start {
                    seen.row(at);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::{Reading, Record, Records};
    use super::*;
    use crate::input::Text;

    /// The records of a text after so many lines, and the problems, with their lines.
    fn records(text: &[u8], dialect: &Dialect, lines: u64) -> Vec<(u64, String)> {
        let mut records = Records::new(Text::of(Vec::new()), dialect, 0).unwrap();
        records.go_on(Text::of(text.to_vec()), (0, lines));
        let (mut record, mut all) = (Record::default(), Vec::new());
        loop {
            let found = match records.read(&mut record).unwrap() {
                Reading::End => return all,
                Reading::Malformed(problem) => problem.to_owned(),
                Reading::Record => {
                    let fields = (0..record.len()).map(|index| {
                        let field = record.field(index);
                        format!("{}{}", if field.quoted { "quoted " } else { "" }, field.text)
                    });
                    fields.collect::<Vec<_>>().join("\n|")
                }
            };
            all.push((record.line(), found));
        }
    }

    #[test]
    fn a_text_cut_where_a_record_ends_has_the_same_records() {
        let mut random = fastrand::Rng::with_seed(50);
        let mut cuts = 0;
        for _ in 0..6000 {
            let mut one = |of: &[Option<u8>]| of[random.usize(0..of.len())];
            let quote = one(&[Some(b'"'), Some(b'\''), None]);
            let dialect = Dialect {
                delimiter: one(&[Some(b','), Some(b';')]).unwrap(),
                quote,
                escape: one(&[None, None, Some(b'\\'), Some(b'!')]),
                comment: one(&[None, Some(b'#')]),
                line_end: match one(&[None, None, Some(b'\r')]) {
                    None => LineEnd::Feed,
                    Some(_) => LineEnd::Return,
                },
            };
            let letters = b"ab,;\"\"'\\!#\n\n\r\r\n\xC3\xA9";
            let text: Vec<u8> = (0..60).map(|_| letters[random.usize(0..letters.len())]).collect();
            let whole = records(&text, &dialect, 0);
            let (mut ends, mut seen) = (RecordEnds::new(dialect), Seen::default());
            for at in 0..text.len() {
                // However much of it is there at a time.
                ends.pass(&text[..=at], at, &mut seen);
                let Some((end, lines)) = seen.take_end() else { continue };
                let mut parts = records(&text[..end], &dialect, 0);
                parts.extend(records(&text[end..], &dialect, lines));
                assert_eq!(
                    parts,
                    whole,
                    "{dialect:?} {:?} at {end}",
                    String::from_utf8_lossy(&text)
                );
                cuts += 1;
            }
            let (mut at_once, mut last) = (Seen::default(), Seen::default());
            RecordEnds::new(dialect).pass(&text, 0, &mut at_once);
            let mut ends = RecordEnds::new(dialect);
            (0..text.len()).for_each(|at| ends.pass(&text[..=at], at, &mut last));
            assert_eq!(at_once.take_end(), last.take_end());
        }
        assert!(cuts > 20_000, "{cuts}");
    }
}
