//! JSON inside SQL, read so that everything in it has a position.

use std::fmt;

use crate::error::{Error, Position, Result};

/// The maximum depth of nesting.
const DEEPEST: usize = 32;

/// A JSON value, and where it starts: a byte of the text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Json {
    pub(super) offset: usize,
    pub(super) value: Value,
}

/// A JSON value without its position. Numbers, booleans and null are kept as they were written.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Word(String),
    Text(String),
    Array(Vec<Json>),
    Object(Vec<Member>),
}

/// The value as JSON.
impl fmt::Display for Value {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word(word) => to.write_str(word),
            Self::Text(text) => write_text(text, to),
            Self::Array(elements) => {
                to.write_str("[")?;
                for (index, element) in elements.iter().enumerate() {
                    to.write_str(if index == 0 { "" } else { "," })?;
                    element.value.fmt(to)?;
                }
                to.write_str("]")
            }
            Self::Object(members) => {
                to.write_str("{")?;
                for (index, member) in members.iter().enumerate() {
                    to.write_str(if index == 0 { "" } else { "," })?;
                    write_text(&member.name, to)?;
                    to.write_str(":")?;
                    member.value.value.fmt(to)?;
                }
                to.write_str("}")
            }
        }
    }
}

fn write_text(text: &str, to: &mut fmt::Formatter<'_>) -> fmt::Result {
    to.write_str("\"")?;
    for character in text.chars() {
        match character {
            '"' | '\\' => write!(to, "\\{character}")?,
            '\0'..='\x1F' => write!(to, "\\u{:04x}", u32::from(character))?,
            character => write!(to, "{character}")?,
        }
    }
    to.write_str("\"")
}

/// A name in an object, and its value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Member {
    pub(super) offset: usize,
    pub(super) name: String,
    pub(super) value: Json,
}

/// A string literal of a statement: its text and position.
#[derive(Clone, Copy, Debug)]
pub(super) struct Literal<'a> {
    pub(super) text: &'a str,
    /// The position of its opening quote.
    pub(super) start: Position,
}

impl Literal<'_> {
    /// The position in the statement of a byte of the text; a quote in the text is doubled there.
    pub(super) fn position(&self, offset: usize) -> Position {
        let mut at = Position { column: self.start.column + 1, ..self.start };
        for character in self.text[..offset].chars() {
            match character {
                '\n' => at = Position { line: at.line + 1, column: 1 },
                '\'' => at.column += 2,
                _ => at.column += 1,
            }
        }
        at
    }

    /// The text as JSON.
    pub(super) fn json(&self) -> Result<Json> {
        let mut reader = Reader { text: self.text, at: 0 };
        let value = reader.value(0).and_then(|value| {
            reader.skip_blanks();
            if reader.rest().is_empty() { Ok(value) } else { Err("the end of the JSON") }
        });
        value.map_err(|wanted| {
            let found = match reader.rest().chars().next() {
                Some(character) => format!("'{character}'"),
                None => "the end of the text".to_owned(),
            };
            let message = format!("expected {wanted}, found {found}");
            Error::new(message, self.position(reader.at))
        })
    }
}

/// Reads a text from its start; an error says what was expected.
struct Reader<'a> {
    text: &'a str,
    at: usize,
}

type Expected<T> = std::result::Result<T, &'static str>;

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_blanks(&mut self) {
        let blank = [' ', '\t', '\r', '\n'];
        self.at = self.text.len() - self.rest().trim_start_matches(blank).len();
    }

    fn take(&mut self, token: char) -> bool {
        self.skip_blanks();
        let found = self.rest().starts_with(token);
        self.at += if found { token.len_utf8() } else { 0 };
        found
    }

    fn value(&mut self, depth: usize) -> Expected<Json> {
        self.skip_blanks();
        let offset = self.at;
        if depth > DEEPEST {
            return Err("JSON that is less nested");
        }
        let value = if self.take('{') {
            Value::Object(self.list('}', "a member or }", |reader| reader.member(depth))?)
        } else if self.take('[') {
            Value::Array(self.list(']', "a value or ]", |reader| reader.value(depth + 1))?)
        } else if self.rest().starts_with('"') {
            Value::Text(self.string()?)
        } else {
            Value::Word(self.word()?)
        };
        Ok(Json { offset, value })
    }

    fn list<T>(
        &mut self,
        end: char,
        wanted: &'static str,
        mut item: impl FnMut(&mut Self) -> Expected<T>,
    ) -> Expected<Vec<T>> {
        let mut items = Vec::new();
        if self.take(end) {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if self.take(end) {
                return Ok(items);
            }
            if !self.take(',') {
                return Err(if end == '}' { ", or }" } else { ", or ]" });
            }
            self.skip_blanks();
            if self.rest().is_empty() {
                return Err(wanted);
            }
        }
    }

    fn member(&mut self, depth: usize) -> Expected<Member> {
        self.skip_blanks();
        let offset = self.at;
        let name = self.string()?;
        if !self.take(':') {
            return Err(":");
        }
        Ok(Member { offset, name, value: self.value(depth + 1)? })
    }

    fn word(&mut self) -> Expected<String> {
        let rest = self.rest();
        let end = rest.find(|character: char| {
            !character.is_ascii_alphanumeric() && !matches!(character, '+' | '-' | '.')
        });
        let word = &rest[..end.unwrap_or(rest.len())];
        let is_number = || {
            word.starts_with(['-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'])
                && word.parse::<f64>().is_ok()
        };
        if !matches!(word, "true" | "false" | "null") && !is_number() {
            return Err("a JSON value");
        }
        self.at += word.len();
        Ok(word.to_owned())
    }

    fn string(&mut self) -> Expected<String> {
        if !self.take('"') {
            return Err("a string in double quotes");
        }
        let mut text = String::new();
        loop {
            let rest = self.rest();
            let Some(length) = rest.find(['"', '\\']) else {
                self.at = self.text.len();
                return Err("the closing \"");
            };
            text.push_str(&rest[..length]);
            self.at += length;
            if self.take('"') {
                return Ok(text);
            }
            text.push(self.escape()?);
        }
    }

    /// The character of an escape sequence, after its backslash.
    fn escape(&mut self) -> Expected<char> {
        let character = match self.rest().as_bytes().get(1) {
            Some(b'n') => '\n',
            Some(b't') => '\t',
            Some(b'r') => '\r',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{C}',
            Some(&quoted @ (b'"' | b'\\' | b'/')) => char::from(quoted),
            Some(b'u') => return self.unicode(),
            _ => return Err("an escape such as \\n or \\u00E9"),
        };
        self.at += 2;
        Ok(character)
    }

    fn unicode(&mut self) -> Expected<char> {
        let unit = |text: &str| {
            let digits = text.strip_prefix("\\u")?.get(..4)?;
            let digits = digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then_some(digits)?;
            u16::from_str_radix(digits, 16).ok()
        };
        let rest = self.rest();
        let first = unit(rest).ok_or("four hexadecimal digits after \\u")?;
        let second = rest.get(6..).and_then(unit);
        let units = [Some(first), second].into_iter().flatten();
        match char::decode_utf16(units).next() {
            Some(Ok(character)) => {
                self.at += 6 * character.len_utf16();
                Ok(character)
            }
            _ => Err("the other half of this character"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn literal(text: &str) -> Literal<'_> {
        Literal { text, start: Position { line: 3, column: 10 } }
    }

    fn json(text: &str) -> Value {
        literal(text).json().expect("it is JSON").value
    }

    fn problem(text: &str) -> (String, u64, u64) {
        let error = literal(text).json().expect_err("it is not JSON");
        let position = error.position.expect("it is somewhere");
        (error.message, position.line, position.column)
    }

    #[test]
    fn values_are_what_they_say() {
        let Value::Object(members) =
            json(r#" {"a": [1, -2.5e3, true, null], "b\u00e9\ud83d\ude00\n": {}} "#)
        else {
            panic!("an object")
        };
        let Value::Array(values) = &members[0].value.value else { panic!("an array") };
        let words: Vec<_> = values.iter().map(|value| value.value.clone()).collect();
        assert_eq!(words, ["1", "-2.5e3", "true", "null"].map(|word| Value::Word(word.to_owned())));
        assert_eq!(members[1].name, "bé😀\n");
        assert_eq!(members[1].value.value, Value::Object(Vec::new()));
    }

    #[test]
    fn what_is_wrong_is_found_in_the_statement() {
        assert_eq!(problem("[\n  {\"a\" 1}]"), ("expected :, found '1'".to_owned(), 4, 8));
        assert_eq!(problem("[1, 2").0, "expected , or ], found the end of the text");
        assert_eq!(problem("[1,").0, "expected a value or ], found the end of the text");
        assert_eq!(problem("{a: 1}").0, "expected a string in double quotes, found 'a'");
        assert_eq!(problem("nul").0, "expected a JSON value, found 'n'");
        assert_eq!(problem("{} {}"), ("expected the end of the JSON, found '{'".to_owned(), 3, 14));
        assert_eq!(problem("\"it's \\x\"").2, 18);
        assert_eq!(problem(&"[".repeat(10_000)).0, "expected JSON that is less nested, found '['");
        for text in ["\"\\ud800\"", "\"\\u12", "\"", "", "-", "1x", "{\"a\":}"] {
            problem(text);
        }
    }
}
