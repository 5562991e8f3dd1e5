//! The dialects that may be meant.

use super::Columns;
use super::sample::Sample;
use crate::csv::dialect::{Dialect, LineEnd};
use crate::csv::options::Given;

/// The delimiters that are detected.
pub const COMMON: [u8; 4] = [b',', b';', b'\t', b'|'];

/// Whether comments are assumed.
#[derive(Clone, Copy, PartialEq)]
pub enum Comments {
    /// As they are given.
    Given,
    /// Lines that begin with `#`.
    Detected,
}

/// Characters that are delimiters here and there: the user is asked if one explains a file.
fn is_rare(byte: u8) -> bool {
    byte.is_ascii_graphic() && !byte.is_ascii_alphanumeric() && !b"\"'.\\".contains(&byte)
        || matches!(byte, b' ' | 0x01..=0x1F) && !matches!(byte, b'\n' | b'\r')
}

/// Every dialect that a sample may have, the usual one first.
pub fn dialects(
    sample: &Sample,
    given: &Given,
    usual: Dialect,
    comments: Comments,
    columns: Columns<'_>,
) -> Vec<Dialect> {
    let comments = match (given.comment, comments) {
        (Some(comment), Comments::Given) => vec![comment],
        (None, Comments::Given) => vec![usual.comment],
        (None, Comments::Detected) if sample.has_line_of(b'#') => vec![Some(b'#')],
        _ => Vec::new(),
    };
    let mut line_ends = vec![usual.line_end];
    if given.line_end.is_none() && sample.has_lone_return() {
        line_ends = vec![LineEnd::Feed, LineEnd::Return];
    }
    let mut quotes = vec![usual.quote];
    if given.quote.is_none() {
        quotes.extend(sample.has(b'\'').then_some(Some(b'\'')));
        quotes.extend(sample.has(b'"').then_some(None));
    }
    let mut dialects = Vec::new();
    for comment in comments {
        for &line_end in &line_ends {
            for delimiter in delimiters(sample, given, usual, columns) {
                for &quote in &quotes {
                    let escapes = escapes(sample, given, usual, delimiter, quote);
                    let dialect = |escape| Dialect { delimiter, quote, escape, comment, line_end };
                    dialects.extend(escapes.into_iter().map(dialect));
                }
            }
        }
    }
    dialects
}

fn delimiters(sample: &Sample, given: &Given, usual: Dialect, columns: Columns<'_>) -> Vec<u8> {
    let mut delimiters = vec![usual.delimiter];
    if given.delimiter.is_none() {
        // Of known columns the usual dialect is read if none of the common delimiters gives them.
        let rare = matches!(columns, Columns::Unknown).then_some(0..=u8::MAX).into_iter().flatten();
        let rare = rare.filter(|byte| is_rare(*byte) && !COMMON.contains(byte));
        let others = COMMON.into_iter().chain(rare);
        delimiters.extend(others.filter(|byte| *byte != usual.delimiter && sample.has(*byte)));
    }
    delimiters
}

/// The characters before one that is text. A backslash before anything else is text itself, so that it is no escape.
fn escapes(
    sample: &Sample,
    given: &Given,
    usual: Dialect,
    delimiter: u8,
    quote: Option<u8>,
) -> Vec<Option<u8>> {
    let not_quote = |escape: &u8| Some(*escape) != quote;
    if let Some(escape) = given.escape {
        return vec![escape.filter(not_quote)];
    }
    let usual = usual.escape.filter(not_quote);
    let is_special = |byte: u8| {
        byte == delimiter
            || Some(byte) == quote
            || matches!(byte, b'\\' | b'\n' | b'\r' | b'"' | b'N')
    };
    let mut text = sample.text.iter();
    let mut escapes = 0;
    while let Some(byte) = text.next() {
        if *byte == b'\\' {
            match text.next() {
                Some(next) if !is_special(*next) => return vec![usual],
                _ => escapes += 1,
            }
        }
    }
    if escapes > 0 { vec![usual, Some(b'\\')] } else { vec![usual] }
}
