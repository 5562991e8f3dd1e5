//! Cutting a text into statements.

mod pieces;

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan};

use self::pieces::Piece;
use super::{Statement, kind, room};
use crate::error::{Error, Position, Result};

/// Reads a text statement by statement.
///
/// A syntax error is reported when its statement is reached, and ends the iteration.
pub fn parse(text: &str) -> Statements {
    let location = Location { line: 1, column: 1 };
    let Piece { tokens, rest, failure } = pieces::first(text, location);
    Statements {
        text: text.to_string(),
        tokens: tokens.into_iter(),
        rest,
        failure,
        reached: Reached { offset: 0, location },
        ended: false,
    }
}

/// The statements of a text, in order.
#[derive(Debug)]
pub struct Statements {
    text: String,
    /// Those of a piece of the text that are left.
    tokens: std::vec::IntoIter<TokenWithSpan>,
    /// Where the next piece begins, if there is one.
    rest: Option<Location>,
    /// The error at which tokenizing stopped, if it did.
    failure: Option<Error>,
    reached: Reached,
    ended: bool,
}

/// A place in the text, by byte and by line and column.
#[derive(Clone, Copy, Debug)]
struct Reached {
    offset: usize,
    location: Location,
}

impl Iterator for Statements {
    type Item = Result<Statement>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended {
            let mut tokens = Vec::new();
            let mut closed = false;
            for token in self.tokens.by_ref() {
                match token.token {
                    Token::SemiColon => {
                        closed = true;
                        break;
                    }
                    Token::Whitespace(_) | Token::EOF => {}
                    _ => {
                        let before = tokens.last().map(|token: &TokenWithSpan| &token.token);
                        let begins = matches!(before, Some(Token::LParen | Token::Comma));
                        let token = without_underscores(token);
                        tokens.push(if begins { column_name(token) } else { token });
                    }
                }
            }
            // A piece ends after a statement.
            let next = self.rest.filter(|_| !closed && tokens.is_empty());
            if let Some(next) = next {
                self.begin_piece(next);
                continue;
            }
            if !closed {
                self.ended = true;
                if let Some(failure) = self.failure.take() {
                    return Some(Err(failure));
                }
            }
            let (Some(first), Some(last)) = (tokens.first(), tokens.last()) else { continue };
            let (start, end) = (first.span.start, last.span.end);
            let from = self.offset(start);
            let to = self.offset(end);
            let text = self.text[from..to].to_string();
            let position = Position { line: start.line, column: start.column };
            let read = room::with_room(tokens, |tokens| kind::read(tokens, &text));
            let read = read
                .map_err(|error| error.at(Some(Position { line: end.line, column: end.column })));
            self.ended |= read.is_err();
            return Some(read.map(|(kind, depth)| Statement { kind, text, position, depth }));
        }
        None
    }
}

impl Statements {
    /// Goes on with the piece of the text that begins at a location.
    fn begin_piece(&mut self, location: Location) {
        let from = self.offset(location);
        let Piece { tokens, rest, failure } = pieces::first(&self.text[from..], location);
        (self.tokens, self.rest, self.failure) = (tokens.into_iter(), rest, failure);
    }

    /// The byte at which a location starts; calls are in ascending order of locations.
    fn offset(&mut self, location: Location) -> usize {
        let mut at = self.reached;
        for character in self.text[at.offset..].chars() {
            if at.location >= location {
                break;
            }
            at.offset += character.len_utf8();
            if character == '\n' {
                at.location = Location { line: at.location.line + 1, column: 1 };
            } else {
                at.location.column += 1;
            }
        }
        self.reached = at;
        at.offset
    }
}

/// `16_000` is 16000.
fn without_underscores(mut token: TokenWithSpan) -> TokenWithSpan {
    if let Token::Number(digits, _) = &mut token.token {
        digits.retain(|digit| digit != '_');
    }
    token
}

/// The first token of an element of a list. KEY and INDEX are names there: the parser would take a column of this name for
/// MySQL's way to define an index.
fn column_name(mut token: TokenWithSpan) -> TokenWithSpan {
    if let Token::Word(word) = &mut token.token
        && matches!(word.keyword, Keyword::KEY | Keyword::INDEX)
    {
        word.keyword = Keyword::NoKeyword;
    }
    token
}
