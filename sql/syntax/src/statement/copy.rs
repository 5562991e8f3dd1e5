//! `COPY table [(columns)] FROM 'path' | STDIN (NAME value, …)`, `COPY table [(columns)] | (query) TO 'path' | STDOUT (…)`,
//! and `CREATE TABLE table FROM 'path' (…)`.

use sqlparser::ast::{Ident, ObjectName, Query, Spanned};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{IsOptional, Parser, ParserError};
use sqlparser::tokenizer::{Span, Token, TokenWithSpan};

use super::StatementKind;
use super::connector::Setting;
use super::dialect::Alluvium;
use super::json::{Json, Member, Value};
use super::syntax_error::syntax_error;
use crate::error::Position;
use crate::name::{fold, relation_name};

/// Reads COPY from its first word on. Sources and sinks interpret the options.
pub(super) fn read(parser: &mut Parser<'_>) -> crate::error::Result<StatementKind> {
    named(parse(parser).map_err(syntax_error)?)
}

/// Reads `CREATE TABLE name FROM 'path' (…)`.
pub(super) fn create_table(parser: &mut Parser<'_>) -> crate::error::Result<StatementKind> {
    named(parse_create(parser).map_err(syntax_error)?)
}

/// The statement, with the name of its table.
fn named(
    (name, mut statement): (Option<ObjectName>, StatementKind),
) -> crate::error::Result<StatementKind> {
    if let StatementKind::Copy { table, .. } | StatementKind::CreateTableFrom { name: table, .. } =
        &mut statement
        && let Some(name) = &name
    {
        *table = relation_name(name)?.0;
    }
    Ok(statement)
}

/// A statement, and the name of its table, which is not part of it yet.
type Parsed = Result<(Option<ObjectName>, StatementKind), ParserError>;

fn parse(parser: &mut Parser<'_>) -> Parsed {
    parser.expect_keyword_is(Keyword::COPY)?;
    let start = parser.peek_token_ref().clone();
    if start.token == Token::LParen {
        parser.advance_token();
        let query = parser.parse_query()?;
        parser.expect_token(&Token::RParen)?;
        parser.expect_keyword_is(Keyword::TO)?;
        let path = path(parser, Keyword::STDOUT)?;
        let position = place(start.span);
        let options = options(parser)?;
        return Ok((None, StatementKind::CopyTo { query, position, path, options }));
    }
    let table = parser.parse_object_name(false)?;
    let columns = match parser.peek_token_ref().token {
        Token::LParen => parser.parse_parenthesized_column_list(IsOptional::Mandatory, false)?,
        _ => Vec::new(),
    };
    let position = place(table.span());
    if parser.parse_keyword(Keyword::TO) {
        let path = path(parser, Keyword::STDOUT)?;
        let query = select(&table.to_string(), &columns, start.span)?;
        let options = options(parser)?;
        return Ok((None, StatementKind::CopyTo { query, position, path, options }));
    }
    parser.expect_keyword_is(Keyword::FROM)?;
    let path = path(parser, Keyword::STDIN)?;
    let columns = columns.iter().map(|column| (fold(column), place(column.span))).collect();
    let (name, options) = (String::new(), options(parser)?);
    Ok((Some(table), StatementKind::Copy { table: name, position, columns, path, options }))
}

fn parse_create(parser: &mut Parser<'_>) -> Parsed {
    parser.expect_keywords(&[Keyword::CREATE, Keyword::TABLE])?;
    let table = parser.parse_object_name(false)?;
    parser.expect_keyword_is(Keyword::FROM)?;
    let path = parser.parse_literal_string()?;
    let (name, position, options) = (String::new(), place(table.span()), options(parser)?);
    Ok((Some(table), StatementKind::CreateTableFrom { name, position, path, options }))
}

/// `SELECT columns FROM table`, at the place of the table's name.
fn select(table: &str, columns: &[Ident], span: Span) -> Result<Box<Query>, ParserError> {
    let columns = match columns {
        [] => "*".to_owned(),
        columns => columns.iter().map(Ident::to_string).collect::<Vec<_>>().join(", "),
    };
    let text = format!("SELECT {columns} FROM {table}");
    let dialect = Alluvium::new(columns.len());
    let mut parser = Parser::new(&dialect).try_with_sql(&text)?;
    let mut tokens = Vec::new();
    loop {
        let token = parser.next_token();
        if token.token == Token::EOF {
            break;
        }
        tokens.push(TokenWithSpan::new(token.token, span));
    }
    Parser::new(&dialect).with_tokens_with_locations(tokens).parse_query()
}

fn place(span: Span) -> Position {
    Position::of_span(span).unwrap_or(Position { line: 1, column: 1 })
}

/// The path of a file, or the word for the client.
fn path(parser: &mut Parser<'_>, client: Keyword) -> Result<Option<String>, ParserError> {
    match parser.parse_keyword(client) {
        true => Ok(None),
        false => parser.parse_literal_string().map(Some),
    }
}

/// `[WITH] (NAME [value], …)`, the same without parentheses as Postgres had it first, or nothing. An option without a value is on.
pub(super) fn options(parser: &mut Parser<'_>) -> Result<Vec<Setting>, ParserError> {
    let _ = parser.parse_keyword(Keyword::WITH);
    match parser.peek_token_ref().token == Token::LParen {
        true => bracketed(parser),
        false => older_options(parser),
    }
}

/// `(NAME [value], …)`. An option without a value is on.
pub(super) fn bracketed(parser: &mut Parser<'_>) -> Result<Vec<Setting>, ParserError> {
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
pub(super) fn arguments(
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

/// A word, a number or a text; several values, in brackets of any kind, become JSON: `('NA', '-')`, `{'id': 'BIGINT'}`.
fn value(parser: &mut Parser<'_>) -> Result<String, ParserError> {
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
