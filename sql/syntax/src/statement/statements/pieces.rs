//! The tokens of a text, in pieces of whole statements: a token takes many times the bytes of its text.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan, Tokenizer};

use crate::error::{Error, Position, SqlState};
use crate::statement::dialect::Alluvium;
use crate::statement::syntax_error::in_our_words;

/// The most tokens of a statement, blanks and comments included.
const MOST_TOKENS: usize = 5_000_000;

/// After so many tokens a piece ends with its statement.
const PIECE: usize = 200_000;

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
fn read(text: &str, start: Location, (piece, most): (usize, usize)) -> Piece {
    let place = |location: Location| Location {
        line: start.line + location.line - 1,
        column: match location.line {
            1 => start.column + location.column - 1,
            _ => location.column,
        },
    };
    let mut tokens = Vec::new();
    let (mut count, mut of_statement) = (0, 0);
    let mut is_closed = false;
    let mut stopped = None;
    let take = |token: TokenWithSpan| {
        let span = Span { start: place(token.span.start), end: place(token.span.end) };
        let is_new = std::mem::replace(&mut is_closed, token.token == Token::SemiColon);
        of_statement = if is_new { 1 } else { of_statement + 1 };
        count += 1;
        if of_statement > most || is_new && count > piece {
            stopped = Some((span.start, of_statement > most));
            // The tokenizer has no other way to end before its text does.
            resume_unwind(Box::new(()));
        }
        TokenWithSpan { token: token.token, span }
    };
    let dialect = Alluvium::new(0);
    let mut tokenizer = Tokenizer::new(&dialect, text);
    let read = catch_unwind(AssertUnwindSafe(|| {
        tokenizer.tokenize_with_location_into_buf_with_mapper(&mut tokens, take)
    }));
    let (rest, failure) = match (read, stopped) {
        (Ok(Ok(())), _) => (None, None),
        (Ok(Err(error)), _) => {
            let position = Position::of_location(place(error.location));
            let error = Error::new(in_our_words(&error.message), position);
            (None, Some(error.with_sqlstate(SqlState::SYNTAX)))
        }
        (Err(_), Some((location, false))) => (Some(location), None),
        (Err(_), Some((location, true))) => {
            let message = format!(
                "a statement has at most {most} tokens, with its blanks: load rows with COPY, or write several statements"
            );
            let is_end = |token: &TokenWithSpan| token.token == Token::SemiColon;
            let whole = tokens.iter().rposition(is_end).map_or(0, |end| end + 1);
            tokens.truncate(whole);
            tokens.shrink_to_fit();
            (None, Some(Error::new(message, Position::of_location(location))))
        }
        (Err(panic), None) => resume_unwind(panic),
    };
    Piece { tokens, rest, failure }
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
        for piece in 1..whole.tokens.len() {
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
