//! The text of an array: `{1,"a b",NULL,{…}}`.

use super::super::numbers::number::trim;
use super::super::rejected::{Rejected, Result, code, shown};
use super::list::{MOST_DIMENSIONS, too_deep};

/// The unread rest of an array's text.
pub(in super::super) struct ArrayText<'a> {
    text: &'a [u8],
    rest: &'a [u8],
    /// The last element, without its escapes.
    element: Vec<u8>,
}

impl<'a> ArrayText<'a> {
    /// A text, of which the bounds of its dimensions are left out: `[0:1]={1,2}`.
    pub(in super::super) fn new(text: &'a [u8]) -> Result<Self> {
        let mut rest = trim(text);
        if rest.first() == Some(&b'[') {
            let is_bound = |byte: &u8| byte.is_ascii_digit() || b"[]:+- ".contains(byte);
            let end = rest.iter().position(|byte| !is_bound(byte)).unwrap_or(rest.len());
            rest = match &rest[end..] {
                [b'=', rest @ ..] => trim(rest),
                _ => return Err(malformed(text)),
            };
        }
        Ok(Self { text, rest, element: Vec::new() })
    }

    /// How many arrays begin with its first element.
    ///
    /// # Errors
    ///
    /// If there are more than there may be.
    pub(in super::super) fn depth(&self) -> Result<usize> {
        let is_part = |byte: &&u8| **byte == b'{' || byte.is_ascii_whitespace();
        let begins = self.rest.iter().take_while(is_part).filter(|byte| **byte == b'{').count();
        if begins > MOST_DIMENSIONS { Err(too_deep()) } else { Ok(begins.max(1)) }
    }

    /// Takes the begin of an array.
    pub(in super::super) fn open(&mut self) -> Result<()> {
        if self.takes(b'{') { Ok(()) } else { Err(malformed(self.text)) }
    }

    /// Takes the end of an array, if it comes next.
    pub(in super::super) fn closes(&mut self) -> bool {
        self.takes(b'}')
    }

    /// Takes the comma or the end of the array after an element, and returns whether another element follows.
    pub(in super::super) fn continues(&mut self) -> Result<bool> {
        if self.takes(b',') {
            Ok(true)
        } else if self.closes() {
            Ok(false)
        } else {
            Err(malformed(self.text))
        }
    }

    /// Takes NULL in the place of an array, if it comes next.
    pub(in super::super) fn opens_null(&mut self) -> bool {
        let rest = self.rest.trim_ascii_start();
        let is_null = rest.split_at_checked(4).filter(|(word, after)| {
            word.eq_ignore_ascii_case(b"null")
                && matches!(after.trim_ascii_start(), [b',' | b'}', ..])
        });
        if let Some((_, after)) = is_null {
            self.rest = after;
        }
        is_null.is_some()
    }

    /// Takes an element; `None` if it is NULL.
    pub(in super::super) fn element(&mut self) -> Result<Option<&[u8]>> {
        self.rest = self.rest.trim_ascii_start();
        self.element.clear();
        if let [b'"', rest @ ..] = self.rest {
            self.rest = rest;
            self.quoted()?;
            return Ok(Some(&self.element));
        }
        // Escaped bytes are never blanks around an element, and never NULL.
        let mut escaped = 0;
        loop {
            self.rest = match self.rest {
                [b',' | b'}', ..] => break,
                [b'\\', byte, rest @ ..] => {
                    self.element.push(*byte);
                    escaped = self.element.len();
                    rest
                }
                [] | [b'\\' | b'"' | b'{', ..] => return Err(malformed(self.text)),
                [byte, rest @ ..] => {
                    self.element.push(*byte);
                    rest
                }
            };
        }
        let end = escaped + self.element[escaped..].trim_ascii_end().len();
        self.element.truncate(end);
        match self.element.as_slice() {
            [] => Err(malformed(self.text)),
            word if escaped == 0 && word.eq_ignore_ascii_case(b"null") => Ok(None),
            word => Ok(Some(word)),
        }
    }

    /// Ends the text.
    pub(in super::super) fn end(self) -> Result<()> {
        if trim(self.rest).is_empty() { Ok(()) } else { Err(malformed(self.text)) }
    }

    fn quoted(&mut self) -> Result<()> {
        loop {
            self.rest = match self.rest {
                [b'"', rest @ ..] => {
                    self.rest = rest;
                    return Ok(());
                }
                [b'\\', byte, rest @ ..] => {
                    self.element.push(*byte);
                    rest
                }
                [] | [b'\\'] => return Err(malformed(self.text)),
                [byte, rest @ ..] => {
                    self.element.push(*byte);
                    rest
                }
            };
        }
    }

    fn takes(&mut self, byte: u8) -> bool {
        match self.rest.trim_ascii_start() {
            [first, rest @ ..] if *first == byte => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }
}

fn malformed(text: &[u8]) -> Rejected {
    Rejected::new(code::TEXT, format!("malformed array literal: \"{}\"", shown(text)))
}
