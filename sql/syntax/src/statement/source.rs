//! The source of a definition, as ALTER edits it: a relation is defined by one statement, in its present shape.
//!
//! An edit is checked by reading its result: what the text then says must be what was meant.

use std::ops::Range;

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Location, Token, Tokenizer, Word};

use super::dialect::Alluvium;
use crate::error::{Error, Position, Result};

/// The text of one statement, and its tokens.
pub(super) struct Source<'a> {
    text: &'a str,
    /// Without white space, each with its bytes and where it starts.
    tokens: Vec<(Token, Range<usize>, Location)>,
}

/// A declaration between the brackets of a CREATE TABLE.
struct Part {
    /// Its tokens.
    tokens: Range<usize>,
    /// Whether it is no column.
    is_constraint: bool,
}

impl<'a> Source<'a> {
    /// Reads a text that was parsed before.
    pub(super) fn new(text: &'a str) -> Result<Self> {
        let mut read = Vec::new();
        Tokenizer::new(&Alluvium::new(0), text)
            .tokenize_with_location_into_buf(&mut read)
            .map_err(|error| Error::new(error.message, None))?;
        let mut places = text.char_indices();
        let (mut at, mut reached) = (0, Location { line: 1, column: 1 });
        let mut offset = |location: Location| {
            while reached < location
                && let Some((place, character)) = places.next()
            {
                at = place + character.len_utf8();
                reached = match character {
                    '\n' => Location { line: reached.line + 1, column: 1 },
                    _ => Location { column: reached.column + 1, ..reached },
                };
            }
            at
        };
        let mut tokens = Vec::with_capacity(read.len());
        for token in read {
            let bytes = offset(token.span.start)..offset(token.span.end);
            if !matches!(token.token, Token::Whitespace(_) | Token::EOF) {
                tokens.push((token.token, bytes, token.span.start));
            }
        }
        Ok(Self { text, tokens })
    }

    /// The text from a position on, in a text in which this one begins at `start`.
    pub(super) fn from(&self, start: Position, position: Position) -> &'a str {
        let line = position.line.saturating_sub(start.line) + 1;
        let column = match line {
            1 => position.column.saturating_sub(start.column) + 1,
            _ => position.column,
        };
        let at = Location { line, column };
        let found = self.tokens.iter().find(|(_, _, start)| *start == at);
        found.map_or("", |(_, bytes, _)| &self.text[bytes.start..])
    }

    /// The statement with another name for its object.
    pub(super) fn renamed(&self, name: &str) -> Option<String> {
        let name_at = self.name()?;
        Some(self.with([(self.bytes(&name_at), name.to_owned())]))
    }

    /// The statement with other texts in the places of these tokens, which are in order.
    pub(super) fn replaced(
        &self,
        edits: impl IntoIterator<Item = (Range<usize>, String)>,
    ) -> String {
        self.with(edits.into_iter().map(|(tokens, text)| (self.bytes(&tokens), text)))
    }

    /// CREATE TABLE with one more column, as it is written.
    pub(super) fn with_column(&self, column: &str) -> Option<String> {
        let end = self.parts()?.last()?.tokens.end;
        let end = self.tokens.get(end.checked_sub(1)?)?.1.end;
        Some(self.with([(end..end, format!(", {column}"))]))
    }

    /// CREATE TABLE without one of its columns, which is not the only one.
    pub(super) fn without_column(&self, column: &str) -> Option<String> {
        let parts = self.parts()?;
        let place = parts.iter().position(|part| self.declares(part, column))?;
        let start = |part: &Part| Some(self.tokens.get(part.tokens.start)?.1.start);
        let end = |part: &Part| Some(self.tokens.get(part.tokens.end.checked_sub(1)?)?.1.end);
        let removed = match (parts.get(place + 1), place.checked_sub(1)) {
            (Some(next), _) => start(&parts[place])?..start(next)?,
            (None, Some(before)) => end(&parts[before])?..end(&parts[place])?,
            (None, None) => return None,
        };
        Some(self.with([(removed, String::new())]))
    }

    /// CREATE TABLE with another name of one of its columns.
    pub(super) fn with_renamed_column(&self, column: &str, name: &str) -> Option<String> {
        let mut edits = Vec::new();
        for part in self.parts()? {
            let mut named = Vec::new();
            if part.is_constraint {
                named.push(part.tokens.clone());
            } else {
                if self.declares(&part, column) {
                    named.push(part.tokens.start..part.tokens.start + 1);
                }
                named.extend(self.checks(&part));
            }
            for named in named {
                let named = self.tokens.get(named)?.iter();
                let named = named.filter(
                    |(token, ..)| matches!(token, Token::Word(word) if folded(word) == column),
                );
                edits.extend(named.map(|(_, bytes, _)| (bytes.clone(), name.to_owned())));
            }
        }
        Some(self.with(edits))
    }

    /// The tokens of the conditions of CHECKs of a column.
    fn checks(&self, part: &Part) -> Vec<Range<usize>> {
        let mut checks = Vec::new();
        let mut at = part.tokens.start;
        while at < part.tokens.end {
            at += 1;
            if !self.is(at - 1, Keyword::CHECK) {
                continue;
            }
            let (start, mut depth) = (at, 0_usize);
            while at < part.tokens.end {
                match &self.tokens[at].0 {
                    Token::LParen => depth += 1,
                    Token::RParen => depth = depth.saturating_sub(1),
                    _ => {}
                }
                at += 1;
                if depth == 0 {
                    break;
                }
            }
            checks.push(start..at);
        }
        checks
    }

    /// The tokens of the name of the object that the statement creates.
    fn name(&self) -> Option<Range<usize>> {
        let is_kind = |at: &usize| self.is(*at, Keyword::TABLE) || self.is(*at, Keyword::VIEW);
        let mut start = (0..self.tokens.len()).find(is_kind)? + 1;
        if self.is(start, Keyword::IF) {
            start += 3;
        }
        let mut end = start + 1;
        while matches!(self.tokens.get(end)?.0, Token::Period) {
            end += 2;
        }
        Some(start..end)
    }

    /// The tokens of the name that begins at a position, and has at most so many parts.
    pub(super) fn name_from(&self, position: Position, parts: usize) -> Option<Range<usize>> {
        let start = self.word_at(position)?;
        let (mut end, mut left) = (start + 1, parts);
        while left > 1 && self.is_period(end) && self.name_part(end + 1).is_some() {
            (end, left) = (end + 2, left - 1);
        }
        Some(start..end)
    }

    /// The tokens of the name whose last part is at a position, and its folded parts.
    pub(super) fn name_to(&self, position: Position) -> Option<(Range<usize>, Vec<String>)> {
        let last = self.word_at(position)?;
        let mut start = last;
        while start > 1 && self.is_period(start - 1) && self.name_part(start - 2).is_some() {
            start -= 2;
        }
        let parts = (start..=last).step_by(2).filter_map(|at| self.name_part(at));
        Some((start..last + 1, parts.collect()))
    }

    /// The token at a position that may be part of a name.
    fn word_at(&self, position: Position) -> Option<usize> {
        let at = Location { line: position.line, column: position.column };
        let at = self.tokens.binary_search_by_key(&at, |(_, _, start)| *start).ok()?;
        self.name_part(at).map(|_| at)
    }

    fn name_part(&self, at: usize) -> Option<String> {
        match &self.tokens.get(at)?.0 {
            Token::Word(word) => Some(folded(word)),
            _ => None,
        }
    }

    fn is_period(&self, at: usize) -> bool {
        self.tokens.get(at).is_some_and(|(token, ..)| *token == Token::Period)
    }

    /// The declarations between the brackets of a CREATE TABLE.
    fn parts(&self) -> Option<Vec<Part>> {
        let open = self.name()?.end;
        if self.tokens.get(open)?.0 != Token::LParen {
            return None;
        }
        let (mut parts, mut start, mut depth) = (Vec::new(), open + 1, 1_usize);
        // Those of types: any other `>` compares.
        let mut angles = 0_usize;
        for at in open + 1..self.tokens.len() {
            let is_outer = depth == 1;
            match &self.tokens[at].0 {
                Token::LParen | Token::LBracket | Token::LBrace => depth += 1,
                Token::Lt if self.begins_type(at) => (depth, angles) = (depth + 1, angles + 1),
                Token::RParen | Token::RBracket | Token::RBrace => depth = depth.checked_sub(1)?,
                Token::Gt if angles > 0 => (depth, angles) = (depth.checked_sub(1)?, angles - 1),
                Token::ShiftRight if angles > 1 => {
                    (depth, angles) = (depth.checked_sub(2)?, angles - 2)
                }
                _ => {}
            }
            let is_comma = self.tokens[at].0 == Token::Comma;
            if depth == 0 || is_outer && is_comma {
                parts.push(Part { tokens: start..at, is_constraint: self.is_constraint(start) });
                start = at + 1;
            }
            if depth == 0 {
                return Some(parts);
            }
        }
        None
    }

    /// Whether a `<` opens the parameters of a type.
    fn begins_type(&self, at: usize) -> bool {
        let word = at.checked_sub(1).and_then(|before| self.word(before));
        word.is_some_and(|word| {
            matches!(word.keyword, Keyword::ARRAY | Keyword::MAP | Keyword::STRUCT)
        })
    }

    fn is_constraint(&self, at: usize) -> bool {
        use Keyword::{CHECK, CONSTRAINT, FOREIGN, PRIMARY, UNIQUE};
        let watermark = |word: &Word| word.value.eq_ignore_ascii_case("WATERMARK");
        [CHECK, CONSTRAINT, FOREIGN, PRIMARY, UNIQUE].into_iter().any(|word| self.is(at, word))
            || self.word(at).is_some_and(watermark) && self.is(at + 1, Keyword::FOR)
    }

    fn declares(&self, part: &Part, column: &str) -> bool {
        let first = self.tokens.get(part.tokens.start).map(|(token, ..)| token);
        !part.is_constraint && matches!(first, Some(Token::Word(word)) if folded(word) == column)
    }

    /// The word without quotes at this place, if it is one.
    fn word(&self, at: usize) -> Option<&Word> {
        match &self.tokens.get(at)?.0 {
            Token::Word(word) if word.quote_style.is_none() => Some(word),
            _ => None,
        }
    }

    fn is(&self, at: usize, keyword: Keyword) -> bool {
        self.word(at).is_some_and(|word| word.keyword == keyword)
    }

    fn bytes(&self, tokens: &Range<usize>) -> Range<usize> {
        self.tokens[tokens.start].1.start..self.tokens[tokens.end - 1].1.end
    }

    /// The text with other texts in these places, which are in order.
    fn with(&self, edits: impl IntoIterator<Item = (Range<usize>, String)>) -> String {
        let (mut edited, mut at) = (String::with_capacity(self.text.len()), 0);
        for (place, text) in edits {
            edited.push_str(&self.text[at..place.start]);
            edited.push_str(&text);
            at = place.end;
        }
        edited.push_str(&self.text[at..]);
        edited
    }
}

fn folded(word: &Word) -> String {
    match word.quote_style {
        Some(_) => word.value.clone(),
        None => word.value.to_ascii_lowercase(),
    }
}
