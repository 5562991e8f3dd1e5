//! `COPY table [(columns)] FROM 'path' | STDIN (NAME value, …)`, `COPY table [(columns)] | (query) TO 'path' | STDOUT (…)`,
//! and `CREATE TABLE table FROM 'path' (…)`.

use sqlparser::ast::{Ident, ObjectName, Query, Spanned};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{IsOptional, Parser, ParserError};
use sqlparser::tokenizer::{Span, Token, TokenWithSpan};

use super::StatementKind;
use super::connector::option_list::options;
use super::dialect::Alluvium;
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
