//! `COPY table FROM 'path' (NAME value, …)`.

use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

use super::StatementKind;
use super::kind::fold;
use crate::error::Position;

/// Reads COPY from its first word on. What options mean is the source's affair.
pub(super) fn read(parser: &mut Parser<'_>) -> Result<StatementKind, ParserError> {
    parser.expect_keyword_is(Keyword::COPY)?;
    let name = parser.parse_identifier()?;
    let position = Position::of_span(name.span).unwrap_or(Position { line: 1, column: 1 });
    parser.expect_keyword_is(Keyword::FROM)?;
    let path = parser.parse_literal_string()?;
    let mut options = Vec::new();
    let _ = parser.parse_keyword(Keyword::WITH);
    if parser.consume_token(&Token::LParen) && !parser.consume_token(&Token::RParen) {
        loop {
            options.push(option(parser)?);
            if !parser.consume_token(&Token::Comma) {
                break;
            }
        }
        parser.expect_token(&Token::RParen)?;
    }
    Ok(StatementKind::Copy { table: fold(&name), position, path, options })
}

fn option(parser: &mut Parser<'_>) -> Result<(String, String), ParserError> {
    let name = parser.next_token();
    let Token::Word(name) = name.token else {
        return parser.expected("the name of an option", name);
    };
    let value = parser.next_token();
    let value = match value.token {
        Token::Word(word) => word.value,
        Token::Number(number, _) => number,
        Token::SingleQuotedString(text) => text,
        _ => return parser.expected("the value of an option", value),
    };
    Ok((name.value.to_uppercase(), value))
}
