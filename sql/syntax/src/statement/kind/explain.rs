//! The options of EXPLAIN, as Postgres's list has them.

use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

use crate::error::{Error, Position, Result, SqlState};
use crate::statement::syntax_error::syntax_error;

/// What the answer to an EXPLAIN is written as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExplainFormat {
    /// Lines for people.
    #[default]
    Text,
    /// A JSON object, for programs.
    Json,
    /// A graph in the language of Graphviz.
    Dot,
    /// A picture.
    Svg,
}

/// The list of options between brackets.
#[derive(Clone, Copy, Default)]
pub(super) struct Options {
    pub(super) analyze: bool,
    pub(super) format: ExplainFormat,
}

/// The options, if there is a list of them.
pub(super) fn options(parser: &mut Parser<'_>) -> Result<Options> {
    let mut options = Options::default();
    let second = parser.peek_nth_token_ref(1).token.to_string().to_uppercase();
    if parser.peek_token_ref().token != Token::LParen || begins_query(&second) {
        return Ok(options);
    }
    parser.advance_token();
    loop {
        let option = parser.next_token();
        let at = Position::of_span(option.span);
        match option.token.to_string().to_uppercase().as_str() {
            "ANALYZE" => options.analyze = is_on(parser)?,
            "FORMAT" => options.format = format(parser)?,
            other => {
                let message = format!("EXPLAIN has no option {other}, only ANALYZE and FORMAT");
                return Err(Error::new(message, at).with_sqlstate(SqlState::SYNTAX));
            }
        }
        if !parser.consume_token(&Token::Comma) {
            break;
        }
    }
    parser.expect_token(&Token::RParen).map_err(syntax_error)?;
    Ok(options)
}

/// The value of an option that is on without one.
fn is_on(parser: &mut Parser<'_>) -> Result<bool> {
    if matches!(parser.peek_token_ref().token, Token::Comma | Token::RParen) {
        return Ok(true);
    }
    let value = parser.next_token();
    match value.token.to_string().to_uppercase().as_str() {
        "TRUE" | "ON" | "1" => Ok(true),
        "FALSE" | "OFF" | "0" => Ok(false),
        other => {
            let message = format!("ANALYZE is TRUE or FALSE, not {other}");
            let at = Position::of_span(value.span);
            Err(Error::new(message, at).with_sqlstate(SqlState::INVALID_VALUE))
        }
    }
}

fn format(parser: &mut Parser<'_>) -> Result<ExplainFormat> {
    let value = parser.next_token();
    let word = match &value.token {
        Token::SingleQuotedString(text) => text.to_uppercase(),
        token => token.to_string().to_uppercase(),
    };
    match word.as_str() {
        "TEXT" => Ok(ExplainFormat::Text),
        "JSON" => Ok(ExplainFormat::Json),
        "DOT" => Ok(ExplainFormat::Dot),
        "SVG" => Ok(ExplainFormat::Svg),
        other => {
            let message = format!("EXPLAIN has no format {other}, only TEXT, JSON, DOT and SVG");
            let at = Position::of_span(value.span);
            Err(Error::new(message, at).with_sqlstate(SqlState::INVALID_VALUE))
        }
    }
}

/// Whether a query begins with this word.
pub(super) fn begins_query(word: &str) -> bool {
    matches!(word, "SELECT" | "WITH" | "VALUES" | "(")
}

/// The next word in upper case, `EOF` at the end.
pub(super) fn upcoming(parser: &Parser<'_>) -> String {
    parser.peek_token_ref().token.to_string().to_uppercase()
}
