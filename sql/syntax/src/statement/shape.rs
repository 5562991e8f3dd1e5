//! The shape of a statement: its text without the literals that may differ from run to run.
//!
//! `SELECT v FROM t WHERE k = 17` and `… = 18` have one shape. It is found from the text alone, in less time than a
//! statement takes to parse, so that a plan that is kept can be looked up by it. Only integers and texts are cut out, and only
//! after `=`, `<`, `>`, `(`, `,`, BETWEEN and AND; integers also after `+`, `-` and `*`. Whether such a literal can be a
//! parameter is known once the statement is parsed; all else stays in the text.

use crate::error::Position;

/// Placeholders for an integer and for a text in the text of a shape. No statement contains these characters.
const INTEGER: char = '\u{1}';
const TEXT: char = '\u{2}';

/// The most digits of an integer that is cut out: any such number is a BIGINT.
const DIGITS: usize = 18;

/// A statement without its literals.
#[derive(Debug)]
pub struct Shape {
    /// The text with a mark in the place of each literal.
    text: String,
    /// The literals, in order.
    literals: Vec<Literal>,
}

/// A literal that was cut out.
#[derive(Clone, Debug, PartialEq)]
pub struct Literal {
    /// Its value.
    pub value: LiteralValue,
    /// Where it starts, its sign included, counted from the begin of the statement.
    pub position: Position,
}

/// The value of a literal.
#[derive(Clone, Debug, PartialEq)]
pub enum LiteralValue {
    /// An integer.
    Integer(i64),
    /// A text.
    Text(String),
}

impl Shape {
    /// The shape of a text that is one SELECT, INSERT, UPDATE or DELETE. `None` if it is not, and of one that takes the parser to
    /// be read: with comments, escapes, or quotes that are rare.
    pub fn of(text: &str) -> Option<Self> {
        let text = text.trim_ascii();
        let text = text.strip_suffix(';').unwrap_or(text).trim_ascii_end();
        let begins = |word: &str| {
            let (first, rest) = text.as_bytes().split_at_checked(word.len())?;
            let is_it = first.eq_ignore_ascii_case(word.as_bytes())
                && rest.first().is_some_and(u8::is_ascii_whitespace);
            is_it.then_some(())
        };
        ["SELECT", "INSERT", "UPDATE", "DELETE"].into_iter().find_map(begins)?;
        let mut scan =
            Scan { text, at: 0, line: 1, line_begins: 0, shape: Self::empty(text.len()) };
        let mut before = Before::Else;
        while let Some(next) = scan.text.as_bytes().get(scan.at) {
            before = scan.token(*next, before)?;
        }
        Some(scan.shape)
    }

    /// The shape of a text with everything in it.
    pub fn whole(text: &str) -> Self {
        Self { text: text.to_owned(), literals: Vec::new() }
    }

    fn empty(bytes: usize) -> Self {
        Self { text: String::with_capacity(bytes), literals: Vec::new() }
    }

    /// The text with marks in the places of literals.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The literals, in order.
    pub fn literals(&self) -> &[Literal] {
        &self.literals
    }

    /// The text with those literals in it that are not open.
    pub fn with_fixed(&self, is_open: &[bool]) -> String {
        let mut text = String::with_capacity(self.text.len() + 8 * self.literals.len());
        let mut literals = self.literals.iter().zip(is_open);
        for character in self.text.chars() {
            match (
                character,
                matches!(character, INTEGER | TEXT).then(|| literals.next()).flatten(),
            ) {
                (_, Some((Literal { value: LiteralValue::Integer(number), .. }, false))) => {
                    text.push_str(&number.to_string());
                }
                (_, Some((Literal { value: LiteralValue::Text(value), .. }, false))) => {
                    text.push('\'');
                    text.push_str(&value.replace('\'', "''"));
                    text.push('\'');
                }
                (character, _) => text.push(character),
            }
        }
        text
    }
}

/// The kind of token before another.
#[derive(Clone, Copy, PartialEq)]
enum Before {
    /// A token that a value may follow, without a special meaning for it.
    Comparison,
    /// An operator of arithmetic, which a number may follow.
    Arithmetic,
    /// A word or number.
    Word,
    Else,
}

impl Before {
    fn may_cut_integer(self) -> bool {
        matches!(self, Self::Comparison | Self::Arithmetic)
    }
}

struct Scan<'a> {
    text: &'a str,
    /// The byte that is next.
    at: usize,
    /// Its line.
    line: u64,
    /// The byte that this begins with.
    line_begins: usize,
    shape: Shape,
}

impl Scan<'_> {
    /// Reads what begins with a byte; returns what it is for the next token. `None` if that is not clear.
    fn token(&mut self, first: u8, before: Before) -> Option<Before> {
        let bytes = self.text.as_bytes();
        let second = bytes.get(self.at + 1).copied();
        match first {
            b'\'' => match before {
                Before::Comparison => self.cut_text(),
                _ => self.copy_quoted(b'\''),
            },
            b'"' => self.copy_quoted(b'"'),
            b'0'..=b'9' => Some(self.number(before, self.at)),
            b'-' if before.may_cut_integer()
                && second.is_some_and(|next| next.is_ascii_digit()) =>
            {
                self.at += 1;
                Some(self.number(before, self.at - 1))
            }
            b'-' if second == Some(b'-') => None,
            b'/' if second == Some(b'*') => None,
            b'$' if second.is_some_and(|next| next.is_ascii_digit()) => {
                self.copy_while(1, |byte| byte.is_ascii_digit());
                Some(Before::Word)
            }
            b';' | b'`' | b'\\' | b'$' | b'#' | 1 | 2 => None,
            b'A'..=b'Z' | b'a'..=b'z' | b'_' | 128.. => {
                let word = self.copy_while(1, is_of_word);
                let opens = ["and", "between"].into_iter().any(|of| word.eq_ignore_ascii_case(of));
                Some(if opens { Before::Comparison } else { Before::Word })
            }
            b' ' | b'\t' | b'\r' | b'\n' => {
                self.copy_while(1, |byte| byte.is_ascii_whitespace());
                Some(before)
            }
            first => {
                self.copy_while(1, |_| false);
                Some(match first {
                    b'=' | b'<' | b'>' | b'(' | b',' => Before::Comparison,
                    b'+' | b'-' | b'*' => Before::Arithmetic,
                    _ => Before::Else,
                })
            }
        }
    }

    /// Copies so many bytes and those alike that follow; returns them.
    fn copy_while(&mut self, first: usize, is_alike: impl Fn(u8) -> bool) -> &str {
        let bytes = self.text.as_bytes();
        let mut end = self.at + first;
        while bytes.get(end).is_some_and(|byte| is_alike(*byte)) {
            end += 1;
        }
        self.copy_to(end)
    }

    fn copy_to(&mut self, end: usize) -> &str {
        let copied = &self.text[self.at..end];
        self.shape.text.push_str(copied);
        self.pass(end);
        copied
    }

    /// Counts the lines up to a byte, which is next.
    fn pass(&mut self, end: usize) {
        for (place, byte) in self.text.as_bytes()[self.at..end].iter().enumerate() {
            if *byte == b'\n' {
                self.line += 1;
                self.line_begins = self.at + place + 1;
            }
        }
        self.at = end;
    }

    /// Cuts an integer out that begins with the next digit, and starts with its sign. Copies other numbers.
    fn number(&mut self, before: Before, start: usize) -> Before {
        let bytes = self.text.as_bytes();
        let mut end = self.at;
        while bytes.get(end).is_some_and(u8::is_ascii_digit) {
            end += 1;
        }
        let is_integer = end - self.at <= DIGITS
            && !bytes.get(end).is_some_and(|byte| is_of_word(*byte) || *byte == b'.');
        let value = match before.may_cut_integer() && is_integer {
            true => self.text[start..end].parse().ok(),
            false => None,
        };
        let position = self.position(start);
        match value {
            Some(value) => {
                self.shape.text.push(INTEGER);
                self.shape.literals.push(Literal { value: LiteralValue::Integer(value), position });
                self.pass(end);
            }
            None => {
                self.at = start;
                self.copy_while(end - start, |byte| is_of_word(byte) || byte == b'.');
            }
        }
        Before::Word
    }

    /// The end of a quoted part, after its last quote.
    fn quoted_end(&self, quote: u8) -> Option<usize> {
        let bytes = self.text.as_bytes();
        let mut end = self.at + 1;
        loop {
            match bytes.get(end)? {
                b'\\' | 1 | 2 => return None,
                byte if *byte != quote => end += 1,
                _ if bytes.get(end + 1) == Some(&quote) => end += 2,
                _ => return Some(end + 1),
            }
        }
    }

    fn copy_quoted(&mut self, quote: u8) -> Option<Before> {
        let end = self.quoted_end(quote)?;
        self.copy_to(end);
        Some(Before::Word)
    }

    fn cut_text(&mut self) -> Option<Before> {
        let end = self.quoted_end(b'\'')?;
        let value = self.text[self.at + 1..end - 1].replace("''", "'");
        let position = self.position(self.at);
        self.shape.text.push(TEXT);
        self.shape.literals.push(Literal { value: LiteralValue::Text(value), position });
        self.pass(end);
        Some(Before::Word)
    }

    /// The place of a byte in the current line.
    fn position(&self, at: usize) -> Position {
        let characters = self.text[self.line_begins..at].chars().count() as u64;
        Position { line: self.line, column: 1 + characters }
    }
}

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 128
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text of a shape with its marks as `#` and `?`, and its literals.
    fn shape(text: &str) -> Option<(String, Vec<String>)> {
        let shape = Shape::of(text)?;
        let literal = |literal: &Literal| match &literal.value {
            LiteralValue::Integer(number) => number.to_string(),
            LiteralValue::Text(text) => format!("'{text}'"),
        };
        let literals = shape.literals.iter().map(literal).collect();
        Some((shape.text.replace(INTEGER, "#").replace(TEXT, "?"), literals))
    }

    fn cut(text: &str, expected: &str, literals: &[&str]) {
        let literals = literals.iter().map(|literal| (*literal).to_owned()).collect();
        assert_eq!(shape(text), Some((expected.to_owned(), literals)), "{text}");
    }

    #[test]
    fn integers_and_texts_are_cut_out_where_they_are_compared_and_listed() {
        cut(" SELECT v FROM t WHERE k = 17 ; ", "SELECT v FROM t WHERE k = #", &["17"]);
        cut(
            "select v from t where k=-17 and s>='it''s'",
            "select v from t where k=# and s>=?",
            &["-17", "'it's'"],
        );
        cut(
            "INSERT INTO t VALUES (1, '', -2),(3,'a',4)",
            "INSERT INTO t VALUES (#, ?, #),(#,?,#)",
            &["1", "''", "-2", "3", "'a'", "4"],
        );
        cut(
            "DELETE FROM t WHERE k BETWEEN 1 AND 20",
            "DELETE FROM t WHERE k BETWEEN # AND #",
            &["1", "20"],
        );
        cut(
            "UPDATE \"t 1\" SET s = 'ä', v = v + 1 WHERE k = $1",
            "UPDATE \"t 1\" SET s = ?, v = v + # WHERE k = $1",
            &["'ä'", "1"],
        );
    }

    #[test]
    fn integers_are_cut_out_after_arithmetic() {
        cut(
            "UPDATE t SET v = v + -17, w = w -3, x = x*2 - -5 WHERE k = 1",
            "UPDATE t SET v = v + #, w = w -#, x = x*# - # WHERE k = #",
            &["-17", "3", "2", "-5", "1"],
        );
        for text in ["SELECT v + '1', v - 1.5 FROM t", "SELECT * FROM t LIMIT 5"] {
            cut(text, text, &[]);
        }
    }

    #[test]
    fn other_literals_stay() {
        for text in [
            "SELECT 1, t1.a2 FROM t1 LIMIT 5",
            "SELECT v FROM t WHERE k = 1.5 AND w = 1e3 AND x = 2_000",
            "SELECT v FROM t WHERE d = DATE '2024-01-01' AND k = v / 3",
            "SELECT v FROM t WHERE k = 1234567890123456789",
            "SELECT v FROM t WHERE k LIKE 'a%' ORDER BY 1",
        ] {
            cut(text, text, &[]);
        }
    }

    #[test]
    fn what_takes_a_parser_has_no_shape() {
        for text in [
            "CREATE TABLE t (a INT)",
            "SELECTED",
            "SELECT 1; SELECT 2",
            "SELECT v FROM t -- WHERE k = 1",
            "SELECT v /* = 1 */ FROM t",
            "SELECT v FROM t WHERE s = 'a\\'b'",
            "SELECT v FROM t WHERE s = 'a",
            "SELECT $$a$$",
            "SELECT `v` FROM t",
            "",
            "ä",
        ] {
            assert_eq!(shape(text), None, "{text}");
        }
    }

    #[test]
    fn literals_have_positions_and_those_that_stay_are_part_of_the_key() {
        let shape = Shape::of("SELECT 'ä', v\nFROM t WHERE s = 'x\ny' AND\n k = -3").unwrap();
        let places = shape.literals.iter().map(|of| (of.position.line, of.position.column));
        assert_eq!(places.collect::<Vec<_>>(), [(2, 18), (4, 6)]);
        assert_eq!(
            shape.with_fixed(&[false, true]).replace(INTEGER, "#"),
            "SELECT 'ä', v\nFROM t WHERE s = 'x\ny' AND\n k = #"
        );
        assert_eq!(shape.with_fixed(&[true, true]), shape.text());
    }
}
