//! Connectors as clauses of statements: `FROM KAFKA connection (topic = 'bid') FORMAT JSON ENVELOPE DEBEZIUM`.
//!
//! A clause means what a [flat connector](super) of the same options does, with those of its connection.

use sqlparser::dialect::Dialect;
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::connection::{name, system};
use super::option_list::bracketed;
use super::{ConnectorDefinition, Setting, add};
use crate::error::{Error, Position, Result};
use crate::name::{Named, fold};
use crate::statement::json::{Json, Value};
use crate::statement::syntax_error::{place, syntax_error};

/// The option of a format that its ENVELOPE says.
const ENVELOPE: &str = "update_format";

/// The option of a format that its KEY says.
const KEY: &str = "key_columns";

/// The tokens of a statement without the connector that `CREATE TABLE t (…)` ends with, and that.
pub(in crate::statement) fn split<'a>(
    dialect: &dyn Dialect,
    tokens: &'a [TokenWithSpan],
) -> Result<(&'a [TokenWithSpan], Option<ConnectorDefinition>)> {
    let Some(at) = clause(tokens) else { return Ok((tokens, None)) };
    let (table, clause) = tokens.split_at(at);
    let mut parser = Parser::new(dialect).with_tokens_with_locations(clause.to_vec());
    parser.advance_token();
    let connector = read(&mut parser)?;
    if parser.peek_token_ref().token != Token::EOF {
        let found = parser.next_token();
        return parser
            .expected("FORMAT, ENVELOPE, KEY or the end of the statement", found)
            .map_err(syntax_error);
    }
    Ok((table, Some(connector)))
}

/// The connector of a table, which has a primary key or not. With one, rows take the place of those with their keys anyway.
pub(in crate::statement) fn of_table(
    mut connector: ConnectorDefinition,
    has_key: bool,
) -> Result<ConnectorDefinition> {
    let is_upsert = |it: &Setting| it.name == ENVELOPE && it.value == "upsert";
    match connector.options.iter().find(|option| is_upsert(option)) {
        Some(option) if !has_key => {
            let message =
                "ENVELOPE UPSERT needs a PRIMARY KEY, by which rows take the place of others";
            return Err(Error::new(message, option.position));
        }
        _ => connector.options.retain(|option| !is_upsert(option)),
    }
    Ok(connector)
}

/// Where `FROM` is that comes after the columns of a table.
fn clause(tokens: &[TokenWithSpan]) -> Option<usize> {
    let keyword = |token: &TokenWithSpan| match &token.token {
        Token::Word(word) if word.quote_style.is_none() => word.keyword,
        _ => Keyword::NoKeyword,
    };
    let is_table = keyword(tokens.first()?) == Keyword::CREATE
        && tokens.iter().take(5).any(|token| keyword(token) == Keyword::TABLE);
    let (mut depth, mut has_columns) = (0_usize, false);
    for (at, token) in tokens.iter().enumerate().filter(|_| is_table) {
        match (&token.token, keyword(token)) {
            (Token::LParen, _) => depth += 1,
            (Token::RParen, _) => {
                depth = depth.saturating_sub(1);
                has_columns = true;
            }
            (_, Keyword::AS) if depth == 0 => return None,
            (_, Keyword::FROM) if depth == 0 => return has_columns.then_some(at),
            _ => {}
        }
    }
    None
}

/// `KAFKA [connection] (name = value, …)`, and FORMAT, ENVELOPE and KEY in any order.
pub(in crate::statement) fn read(parser: &mut Parser<'_>) -> Result<ConnectorDefinition> {
    let transport = system(parser)?;
    let connection = match parser.peek_token_ref().token {
        Token::LParen => None,
        _ => Some(name(parser)?).map(|(name, position)| Named { name, position }),
    };
    let position = transport.position;
    let (mut config, mut format, mut options) = (Vec::new(), None, Vec::new());
    for Setting { name, value, position } in bracketed(parser).map_err(syntax_error)? {
        add(&mut config, Setting { name: name.to_ascii_lowercase(), value, position })?;
    }
    loop {
        let position = place(parser);
        let word = match &parser.peek_token_ref().token {
            Token::Word(word) if word.quote_style.is_none() => word.value.to_ascii_uppercase(),
            _ => break,
        };
        match word.as_str() {
            "FORMAT" => {
                parser.advance_token();
                let value = name(parser)?.0.to_ascii_lowercase();
                if format.replace(Setting { name: "format".to_owned(), value, position }).is_some()
                {
                    return Err(Error::new("FORMAT is said twice", position));
                }
                if parser.peek_token_ref().token == Token::LParen {
                    for setting in bracketed(parser).map_err(syntax_error)? {
                        add(&mut options, setting)?;
                    }
                }
            }
            "ENVELOPE" => {
                parser.advance_token();
                let value = name(parser)?.0.to_ascii_lowercase();
                if value != "none" {
                    add(&mut options, Setting { name: ENVELOPE.to_owned(), value, position })?;
                }
            }
            "KEY" => {
                parser.advance_token();
                let value = columns(parser, position)?;
                add(&mut options, Setting { name: KEY.to_owned(), value, position })?;
            }
            _ => break,
        }
    }
    Ok(ConnectorDefinition { position, name: None, transport, connection, config, format, options })
}

/// `(column, …)`, as JSON.
fn columns(parser: &mut Parser<'_>, position: Position) -> Result<String> {
    parser.expect_token(&Token::LParen).map_err(syntax_error)?;
    let columns = parser.parse_comma_separated(|parser| parser.parse_identifier());
    let columns = columns.map_err(syntax_error)?;
    parser.expect_token(&Token::RParen).map_err(syntax_error)?;
    let column = |column| Json { offset: 0, value: Value::Text(fold(column)) };
    match columns.is_empty() {
        true => Err(Error::new("KEY names no column", position)),
        false => Ok(Value::Array(columns.iter().map(column).collect()).to_string()),
    }
}
