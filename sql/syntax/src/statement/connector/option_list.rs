//! Options of a statement: `(NAME value, …)`.

use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Span, Token};

use super::Setting;
use crate::error::Position;
use crate::name::fold;
use crate::statement::json::{Json, Member, Value};

/// `[WITH] (NAME [value], …)`, the same without parentheses as Postgres had it first, or nothing. An option without a value is on.
pub(in crate::statement) fn options(parser: &mut Parser<'_>) -> Result<Vec<Setting>, ParserError> {
    let _ = parser.parse_keyword(Keyword::WITH);
    match parser.peek_token_ref().token == Token::LParen {
        true => bracketed(parser),
        false => older_options(parser),
    }
}

/// `(NAME [value], …)`. An option without a value is on.
pub(in crate::statement) fn bracketed(
    parser: &mut Parser<'_>,
) -> Result<Vec<Setting>, ParserError> {
    let mut options: Vec<Setting> = Vec::new();
    parser.expect_token(&Token::LParen)?;
    if parser.consume_token(&Token::RParen) {
        return Ok(options);
    }
    loop {
        options.push(option(parser)?);
        if !parser.consume_token(&Token::Comma) {
            break;
        }
    }
    parser.expect_token(&Token::RParen)?;
    Ok(options)
}

/// The arguments of a function that reads files: `('path', name = value, …)`, where several paths are a list.
pub(in crate::statement) fn arguments(
    parser: &mut Parser<'_>,
) -> Result<(Vec<String>, Vec<Setting>), ParserError> {
    parser.expect_token(&Token::LParen)?;
    let first = parser.peek_token_ref().clone();
    let mut texts = Vec::new();
    for path in match json(parser)? {
        Value::Array(paths) => paths.into_iter().map(|path| path.value).collect(),
        path => vec![path],
    } {
        match path {
            Value::Text(path) => texts.push(path),
            _ => return parser.expected("the path of a file, or a list of paths", first),
        }
    }
    if texts.is_empty() {
        return parser.expected("the path of a file", first);
    }
    let mut options = Vec::new();
    while parser.consume_token(&Token::Comma) {
        options.push(option(parser)?);
    }
    parser.expect_token(&Token::RParen)?;
    Ok((texts, options))
}

fn option(parser: &mut Parser<'_>) -> Result<Setting, ParserError> {
    let token = parser.next_token();
    let name = match token.token {
        Token::Word(word) => word.value,
        Token::SingleQuotedString(text) => text,
        _ => return parser.expected("the name of an option", token),
    };
    let position = place(token.span);
    let assigned = [Token::Eq, Token::Assignment, Token::RArrow];
    let _ = assigned.iter().any(|token| parser.consume_token(token));
    if matches!(parser.peek_token_ref().token, Token::Comma | Token::RParen) {
        return Ok(Setting { name, value: ON.to_owned(), position });
    }
    let value = value(parser)?;
    Ok(Setting { name, value, position })
}

/// The value of an option that is only named.
const ON: &str = "true";

/// A word, a number, a text or `SECRET name`; several values, in brackets of any kind, become JSON: `('NA', '-')`, `{'id': 'BIGINT'}`.
fn value(parser: &mut Parser<'_>) -> Result<String, ParserError> {
    let is_secret = |token: &Token| matches!(token, Token::Word(word) if word.quote_style.is_none() && word.keyword == Keyword::SECRET);
    if is_secret(&parser.peek_token_ref().token)
        && matches!(parser.peek_nth_token_ref(1).token, Token::Word(_))
    {
        parser.advance_token();
        let name = fold(&parser.parse_identifier()?);
        return Ok(format!("${{secret:{name}}}"));
    }
    Ok(match json(parser)? {
        Value::Word(value) | Value::Text(value) => value,
        several => several.to_string(),
    })
}

fn json(parser: &mut Parser<'_>) -> Result<Value, ParserError> {
    let value = parser.next_token();
    let (offset, place) = (0, value.clone());
    match value.token {
        Token::Word(word) => Ok(Value::Word(word.value)),
        Token::Number(number, _) => Ok(Value::Word(number)),
        Token::Minus => match parser.next_token().token {
            Token::Number(number, _) => Ok(Value::Word(format!("-{number}"))),
            _ => parser.expected("the value of an option", place),
        },
        Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text) => {
            Ok(Value::Text(text))
        }
        Token::LParen | Token::LBracket => {
            let end = if value.token == Token::LParen { Token::RParen } else { Token::RBracket };
            let elements = parser.parse_comma_separated0(json, end.clone())?;
            parser.expect_token(&end)?;
            let elements = elements.into_iter().map(|value| Json { offset, value });
            Ok(Value::Array(elements.collect()))
        }
        Token::LBrace => {
            let member = |parser: &mut Parser<'_>| {
                let name = match parser.next_token().token {
                    Token::Word(word) => word.value,
                    Token::SingleQuotedString(text) | Token::DoubleQuotedString(text) => text,
                    _ => return parser.expected("a name", place.clone()),
                };
                parser.expect_token(&Token::Colon)?;
                Ok(Member { offset, name, value: Json { offset, value: json(parser)? } })
            };
            let members = parser.parse_comma_separated0(member, Token::RBrace)?;
            parser.expect_token(&Token::RBrace)?;
            Ok(Value::Object(members))
        }
        _ => parser.expected("the value of an option", value),
    }
}

/// `[BINARY] [FREEZE] [DELIMITER [AS] 'x'] [NULL [AS] 'x'] [CSV] [HEADER] [QUOTE [AS] 'x'] [ESCAPE [AS] 'x']`
fn older_options(parser: &mut Parser<'_>) -> Result<Vec<Setting>, ParserError> {
    const FORMAT: &str = "FORMAT";
    const NAMED: [&str; 4] = ["DELIMITER", "NULL", "QUOTE", "ESCAPE"];
    let mut options = Vec::new();
    loop {
        let position = place(parser.peek_token_ref().span);
        let Token::Word(word) = &parser.peek_token_ref().token else { return Ok(options) };
        let word = word.value.to_ascii_uppercase();
        let (name, value) = match word.as_str() {
            "BINARY" | "CSV" => (FORMAT.to_owned(), word.to_ascii_lowercase()),
            "FREEZE" | "HEADER" => (word, ON.to_owned()),
            name if NAMED.contains(&name) => {
                parser.advance_token();
                let _ = parser.parse_keyword(Keyword::AS);
                options.push(Setting { name: word, value: value(parser)?, position });
                continue;
            }
            _ => return Ok(options),
        };
        parser.advance_token();
        options.push(Setting { name, value, position });
    }
}

fn place(span: Span) -> Position {
    Position::of_span(span).unwrap_or(Position { line: 1, column: 1 })
}
