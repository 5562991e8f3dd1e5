//! `CREATE FUNCTION` and `DROP FUNCTION`.

use sqlparser::ast::{DataType, Expr, Ident, ObjectName, Value, ValueWithSpan};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

use super::kind::if_taken;
use super::syntax_error::syntax_error;
use super::{Drop, IfTaken, StatementKind};
use crate::error::{Error, Position, Result};
use crate::name::fold;
use crate::syntax;

/// A function that is an expression with parameters, as it was written.
#[derive(Clone, Debug)]
pub struct FunctionDefinition {
    /// Its folded name.
    pub name: String,
    /// Where it is named.
    pub position: Position,
    /// The action if a function of its name exists: it does not replace that.
    pub if_taken: IfTaken,
    /// Its parameters in order.
    pub parameters: Vec<Parameter>,
    /// The type that its result is cast to.
    pub returns: Option<DataType>,
    /// The expression.
    pub body: Box<Expr>,
    /// The statement's source.
    pub text: String,
}

/// A parameter of a function.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// Its folded name.
    pub name: String,
    /// Where it is named.
    pub position: Option<Position>,
    /// The type that its arguments are cast to.
    pub data_type: Option<DataType>,
}

/// Reads `CREATE FUNCTION`, or `CREATE MACRO`, of which this is the source.
pub(super) fn create(parser: &mut Parser<'_>, text: &str) -> Result<StatementKind> {
    // CREATE, and the kind of its object.
    parser.advance_token();
    parser.advance_token();
    let if_not_exists = parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]);
    let name = parser.parse_object_name(false).map_err(syntax_error)?;
    let (name, position) = function_name(&name)?;
    let if_taken = if_taken(false, if_not_exists, position)?;
    let parameters = parameters(parser).map_err(syntax_error)?;
    let returns = match parser.parse_keyword(Keyword::RETURNS) {
        true => {
            refuse_table(parser)?;
            Some(parser.parse_data_type().map_err(syntax_error)?)
        }
        false => None,
    };
    loop {
        if parser.parse_keyword(Keyword::LANGUAGE) {
            let language = parser.parse_identifier().map_err(syntax_error)?;
            if !language.value.eq_ignore_ascii_case("sql") {
                let what = format!("a function in {language}");
                return Err(Error::not_supported(what, Position::of_span(language.span)));
            }
        } else if !parser.parse_keyword(Keyword::IMMUTABLE) {
            break;
        }
    }
    if parser.parse_one_of_keywords(&[Keyword::AS, Keyword::RETURN]).is_none() {
        let found = parser.next_token();
        let expected = parser.expected::<()>("AS or RETURN, and an expression", found);
        return Err(syntax_error(expected.expect_err("it is an error")));
    }
    refuse_table(parser)?;
    let mut body = parser.parse_expr().map_err(syntax_error)?;
    if let Expr::Value(ValueWithSpan { value: Value::DollarQuotedString(_), span }) = &body {
        let message =
            "the body of a function stands for itself, and not in quotes: write RETURN x + 1";
        return Err(Error::new(message, Position::of_span(*span)));
    }
    syntax::normalize(&mut body)?;
    syntax::check(&body)?;
    for data_type in parameters.iter().filter_map(|parameter| parameter.data_type.as_ref()) {
        syntax::check_type(data_type)?;
    }
    returns.as_ref().map_or(Ok(()), syntax::check_type)?;
    Ok(StatementKind::CreateFunction(FunctionDefinition {
        name,
        position,
        if_taken,
        parameters,
        returns,
        body: Box::new(body),
        text: text.to_owned(),
    }))
}

/// Reads `DROP FUNCTION`, or `DROP MACRO`.
pub(super) fn drop(parser: &mut Parser<'_>) -> Result<StatementKind> {
    parser.advance_token();
    parser.advance_token();
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    let name = parser.parse_object_name(false).map_err(syntax_error)?;
    let (name, position) = function_name(&name)?;
    if parser.parse_keyword(Keyword::CASCADE) {
        let message =
            "DROP FUNCTION … CASCADE is not supported yet: drop what calls the function first";
        return Err(Error::new(message, position));
    }
    // The default.
    let _ = parser.parse_keyword(Keyword::RESTRICT);
    Ok(StatementKind::DropFunction(Drop { name, position, if_exists, cascade: false }))
}

fn refuse_table(parser: &Parser<'_>) -> Result<()> {
    let table = parser.peek_token_ref();
    match &table.token {
        Token::Word(word) if word.keyword == Keyword::TABLE => {
            let position = Position::of_span(table.span);
            Err(Error::not_supported("a function that returns a table", position))
        }
        _ => Ok(()),
    }
}

fn parameters(parser: &mut Parser<'_>) -> std::result::Result<Vec<Parameter>, ParserError> {
    parser.expect_token(&Token::LParen)?;
    if parser.consume_token(&Token::RParen) {
        return Ok(Vec::new());
    }
    let parameters = parser.parse_comma_separated(|parser| {
        let name = parser.parse_identifier()?;
        let data_type = match parser.peek_token_ref().token {
            Token::Comma | Token::RParen => None,
            _ => Some(parser.parse_data_type()?),
        };
        let position = Position::of_span(name.span);
        Ok(Parameter { name: fold(&name), position, data_type })
    })?;
    parser.expect_token(&Token::RParen)?;
    Ok(parameters)
}

/// The folded name of a function, and its position. Functions are in no schema.
pub(super) fn function_name(name: &ObjectName) -> Result<(String, Position)> {
    let position = Position::of(name).unwrap_or(Position { line: 1, column: 1 });
    let parts: Vec<&Ident> = name.0.iter().filter_map(|part| part.as_ident()).collect();
    match parts[..] {
        [name] => Ok((fold(name), position)),
        _ => Err(Error::not_supported("a function in a schema", position)),
    }
}
