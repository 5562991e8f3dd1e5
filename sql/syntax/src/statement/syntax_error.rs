//! Syntax errors in our words.

use alluvium_dataflow::messages::wording::{Rewording, reworded};
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::error::{Error, Position, SqlState};

/// The message where the parser does not follow any further.
pub(super) const TOO_DEEP: &str =
    "expressions are nested too deeply: brackets, functions and subqueries nest some 50 levels";

/// The parser's messages, and ours.
#[rustfmt::skip]
const TEXTS: &[Rewording] = &[
    ("unterminated string literal", "this text has no end: ' is missing, and a quotation mark in a text is written ''"),
    ("expected close delimiter '\"' before EOF.", "this name has no end: \" is missing"),
    ("unexpected EOF while in a multi-line comment", "a comment has no end: */ is missing"),
    ("expected identifier, found {}", "expected a name, found {0}"),
    ("expected literal int, found {}", "expected a whole number, found {0}"),
    ("expected literal string, found {}", "expected a text in '…', found {0}"),
    ("expected SELECT, VALUES, or a subquery in the query body, found {}", "expected SELECT, WITH or VALUES, found {0}"),
    ("expected an object type after CREATE, found {}", "expected TABLE, VIEW or MATERIALIZED VIEW behind CREATE, found {0}"),
    ("expected COLLATION, {} after DROP, found {}", "expected TABLE, VIEW or MATERIALIZED VIEW behind DROP, found {1}"),
    ("expected APPLY, found JOIN", "an OUTER JOIN has a side: write LEFT, RIGHT or FULL JOIN"),
    ("expected OUTER, SEMI, ANTI or JOIN after {}", "expected JOIN behind {0}"),
    ("expected MATCH_CONDITION, found {}", "an ASOF JOIN has a condition of times: write MATCH_CONDITION (a.ts >= b.ts) ON a.k = b.k, or ON a.k = b.k AND a.ts >= b.ts"),
    ("expected [NOT] NULL | TRUE | FALSE | DISTINCT | [form] NORMALIZED FROM after IS, found {}", "expected NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM behind IS, found {0}"),
    ("expected an expression, found `", "names are quoted with \"…\", not with `…`"),
    ("expected 'FROM' or ','", "expected FROM: write EXTRACT(part FROM time)"),
];

/// A parser's error in our words, at the position that its message ends with.
pub(super) fn syntax_error(error: ParserError) -> Error {
    let text = match error {
        ParserError::TokenizerError(text) | ParserError::ParserError(text) => text,
        ParserError::RecursionLimitExceeded => {
            return Error::new(TOO_DEEP, None).with_sqlstate(SqlState::SYNTAX);
        }
    };
    let (message, position) = match text.rsplit_once(" at Line: ") {
        Some((message, place)) => (
            message,
            place.split_once(", Column: ").and_then(|(line, column)| {
                Some(Position { line: line.parse().ok()?, column: column.parse().ok()? })
            }),
        ),
        None => (text.as_str(), None),
    };
    let message = message
        .replace("Expected: ", "expected ")
        .replace(", found: EOF", ", found the end of the statement");
    Error::new(in_our_words(&message.replace(", found: ", ", found ")), position)
        .with_sqlstate(SqlState::SYNTAX)
}

/// The error where `what` is expected, and another token is found.
pub(super) fn expected(parser: &Parser<'_>, what: &str, found: TokenWithSpan) -> Error {
    match parser.expected::<()>(what, found) {
        Err(error) => syntax_error(error),
        Ok(()) => Error::new(format!("expected {what}"), None).with_sqlstate(SqlState::SYNTAX),
    }
}

/// A message of the parser or the tokenizer in our words.
pub(super) fn in_our_words(message: &str) -> String {
    let message = lower_first(message);
    reworded(TEXTS, &message).unwrap_or(message)
}

/// The error for the first bracket of a statement that has no partner, if there is one: it explains any other.
pub(super) fn lonely_bracket(tokens: &[TokenWithSpan]) -> Option<Error> {
    let mut open: Vec<(&TokenWithSpan, Token)> = Vec::new();
    for token in tokens {
        let partner = match token.token {
            Token::LParen => Token::RParen,
            Token::LBracket => Token::RBracket,
            Token::LBrace => Token::RBrace,
            Token::RParen | Token::RBracket | Token::RBrace => match open.pop() {
                Some((_, partner)) if partner == token.token => continue,
                Some((opening, partner)) => return Some(missing(opening, &partner)),
                None => {
                    let message = format!("this {} closes nothing", token.token);
                    let error = Error::new(message, Position::of_span(token.span));
                    return Some(error.with_sqlstate(SqlState::SYNTAX));
                }
            },
            _ => continue,
        };
        open.push((token, partner));
    }
    let (opening, partner) = open.last()?;
    Some(missing(opening, partner))
}

fn missing(opening: &TokenWithSpan, partner: &Token) -> Error {
    let message = format!("this {} is not closed: {partner} is missing", opening.token);
    Error::new(message, Position::of_span(opening.span)).with_sqlstate(SqlState::SYNTAX)
}

/// Messages start in lower case; names such as `LATENESS` stay as they are.
fn lower_first(message: &str) -> String {
    let mut characters = message.chars();
    match (characters.next(), characters.clone().next()) {
        (Some(first), Some(second)) if second.is_lowercase() => {
            first.to_lowercase().chain(characters).collect()
        }
        _ => message.to_string(),
    }
}

/// Where the next token is.
pub(super) fn place(parser: &Parser<'_>) -> Position {
    let span = parser.peek_token_ref().span;
    Position::of_span(span).unwrap_or(Position { line: 1, column: 1 })
}
