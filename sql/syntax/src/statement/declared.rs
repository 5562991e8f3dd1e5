//! `DECLARE RECURSIVE VIEW`.

use arrow::datatypes::SchemaRef;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::dialect::Alluvium;
use super::syntax_error::syntax_error;
use super::{StatementKind, TableDefinition, kind};
use crate::error::{Error, Position, Result};

/// A view that others, or itself, may name before it is created.
#[derive(Clone, Debug)]
pub struct ViewDeclaration {
    /// Its folded name.
    pub name: String,
    /// Where it is named.
    pub position: Position,
    /// Its columns.
    pub schema: SchemaRef,
    /// The statement's source.
    pub text: String,
}

/// Reads a declaration, whose tokens and source these are. Its columns are written as those of a table.
pub(super) fn read(
    dialect: &Alluvium,
    tokens: &[TokenWithSpan],
    text: &str,
) -> Result<StatementKind> {
    let spans = [&tokens[0], &tokens[2]].map(|token| token.span);
    let words = ["CREATE", "TABLE"].map(Token::make_keyword);
    let words = words.into_iter().zip(spans).map(|(token, span)| TokenWithSpan { token, span });
    let tokens = words.chain(tokens[3..].iter().cloned()).collect();
    let mut parser = Parser::new(dialect).with_tokens_with_locations(tokens);
    let created = kind::create_table(&mut parser, text)?;
    if parser.peek_token_ref().token != Token::EOF {
        let found = parser.next_token();
        return Err(syntax_error(
            parser.expected::<()>("the end of the statement", found).expect_err("it is an error"),
        ));
    }
    let StatementKind::CreateTable(TableDefinition {
        name,
        position,
        if_taken: super::IfTaken::Fail,
        schema,
        primary_key,
        promised_key,
        checks,
        uniques,
        defaults,
        generated,
        lateness,
        options,
        connectors,
        temporary: None,
        text,
    }) = created
    else {
        return Err(not_a_column(None));
    };
    let is_plain = primary_key.is_empty()
        && promised_key.is_empty()
        && checks.is_empty()
        && uniques.is_empty()
        && defaults.iter().all(Option::is_none)
        && generated.iter().all(Option::is_none)
        && lateness.is_empty()
        && options.is_empty()
        && connectors.is_empty();
    match is_plain {
        true => Ok(StatementKind::DeclareView(ViewDeclaration { name, position, schema, text })),
        false => Err(not_a_column(Some(position))),
    }
}

fn not_a_column(position: Option<Position>) -> Error {
    let what = "anything but columns, with types and NOT NULL, in DECLARE RECURSIVE VIEW (options stand in CREATE VIEW)";
    Error::not_supported(what, position)
}
