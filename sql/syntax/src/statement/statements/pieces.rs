//! The tokens of a text, in pieces of whole statements: a token takes many times the bytes of its text.

use sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan, Tokenizer};

use crate::error::{Error, Position, SqlState};
use crate::statement::dialect::Alluvium;
use crate::statement::syntax_error::in_our_words;

/// The most tokens of a statement, blanks and comments included.
const MOST_TOKENS: usize = 5_000_000;

/// How many bytes of a text are read at a time, unless a statement has more.
const PIECE: usize = 1 << 20;

/// The statements that a text begins with.
pub(super) struct Piece {
    pub(super) tokens: Vec<TokenWithSpan>,
    /// Where the next piece begins, if there is one.
    pub(super) rest: Option<Location>,
    /// The error at which tokenizing stopped, if it did.
    pub(super) failure: Option<Error>,
}

/// The first piece of a text that begins at `start`.
pub(super) fn first(text: &str, start: Location) -> Piece {
    read(text, start, (PIECE, MOST_TOKENS))
}

/// As [`first`], with other lengths of a piece and of a statement.
fn read(text: &str, start: Location, (mut piece, most): (usize, usize)) -> Piece {
    loop {
        let part = &text[..text.floor_char_boundary(piece)];
        let (mut tokens, failure) = tokens_of(part, start);
        if let Some((whole, location)) = too_many(&tokens, most) {
            tokens.truncate(whole);
            tokens.shrink_to_fit();
            let message = format!(
                "a statement has at most {most} tokens, with its blanks: load rows with COPY, or write several statements"
            );
            let failure = Some(Error::new(message, Position::of_location(location)));
            return Piece { tokens, rest: None, failure };
        }
        if part.len() == text.len() {
            return Piece { tokens, rest: None, failure };
        }
        // After the last semicolon a statement is cut off, and perhaps a token.
        if let Some(last) = tokens.iter().rposition(|token| token.token == Token::SemiColon) {
            tokens.truncate(last + 1);
            return Piece { rest: Some(tokens[last].span.end), tokens, failure: None };
        }
        piece = piece.saturating_mul(2);
    }
}

/// The tokens of a text that begins at `start`, up to the first one that is none.
fn tokens_of(text: &str, start: Location) -> (Vec<TokenWithSpan>, Option<Error>) {
    let place = |location: Location| Location {
        line: start.line + location.line - 1,
        column: match location.line {
            1 => start.column + location.column - 1,
            _ => location.column,
        },
    };
    let mut tokens = Vec::new();
    let read = Tokenizer::new(&Alluvium::new(0), text).tokenize_with_location_into_buf_with_mapper(
        &mut tokens,
        |TokenWithSpan { token, span }| {
            let span = Span { start: place(span.start), end: place(span.end) };
            TokenWithSpan { token, span }
        },
    );
    let failure = read.err().map(|error| {
        let position = Position::of_location(place(error.location));
        Error::new(in_our_words(&error.message), position).with_sqlstate(SqlState::SYNTAX)
    });
    (tokens, failure)
}

/// How many tokens come before a statement that has too many, and where it has them.
fn too_many(tokens: &[TokenWithSpan], most: usize) -> Option<(usize, Location)> {
    let mut first = 0;
    for (number, token) in tokens.iter().enumerate() {
        if number - first >= most {
            return Some((first, token.span.start));
        }
        if token.token == Token::SemiColon {
            first = number + 1;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: Location = Location { line: 1, column: 1 };

    #[test]
    fn pieces_are_whole_statements_with_the_places_of_the_whole_text() {
        let text = "SELECT 'a;b', 1;SELECT\n 2; SELECT 3;\n\nSELECT '4\n'; ;SELECT 5";
        let whole = first(text, BEGIN);
        assert!(whole.rest.is_none() && whole.failure.is_none());
        for piece in 1..text.len() {
            let (mut all, mut next) = (Vec::new(), Some(BEGIN));
            while let Some(location) = next {
                let lines = text.split_inclusive('\n').take(location.line as usize - 1);
                let from = lines.map(str::len).sum::<usize>() + location.column as usize - 1;
                let read = read(&text[from..], location, (piece, 100));
                assert!(
                    read.rest.is_none()
                        || read.tokens.last().is_some_and(|last| last.token == Token::SemiColon)
                );
                all.extend(read.tokens);
                next = read.rest;
            }
            assert_eq!(all, whole.tokens, "{piece}");
        }
    }

    #[test]
    fn a_statement_has_so_many_tokens() {
        for (text, is_short, kept) in
            [("((((;((((;1", true, 11), ("1;((((((", false, 2), ("      1", false, 0)]
        {
            let piece = read(text, BEGIN, (100, 5));
            assert_eq!((piece.failure.is_none(), piece.tokens.len()), (is_short, kept), "{text}");
        }
    }
}
