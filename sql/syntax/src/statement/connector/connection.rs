//! `CREATE CONNECTION`, and `DROP` of what connectors name.

use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;

use super::Setting;
use super::option_list::bracketed;
use crate::error::{Position, Result};
use crate::name::{Named, fold};
use crate::statement::syntax_error::{place, syntax_error};

/// `CREATE CONNECTION name TO KAFKA (name = value, …)`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionDefinition {
    /// Its folded name.
    pub name: String,
    /// Where it is named.
    pub position: Position,
    /// Whether it may be there already.
    pub if_not_exists: bool,
    /// The system, in lower case.
    pub system: Setting,
    /// How it is reached: options of the system. A secret is `${secret:name}`.
    pub options: Vec<Setting>,
    /// The statement's source.
    pub text: String,
}

/// Reads `CREATE CONNECTION`, whose source is `text`.
pub(in crate::statement) fn create(
    parser: &mut Parser<'_>,
    text: &str,
) -> Result<ConnectionDefinition> {
    parser.advance_token();
    parser.advance_token();
    let if_not_exists = parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]);
    let (name, position) = name(parser)?;
    parser.expect_keyword_is(Keyword::TO).map_err(syntax_error)?;
    let system = system(parser)?;
    let options = bracketed(parser).map_err(syntax_error)?;
    let text = text.to_owned();
    Ok(ConnectionDefinition { name, position, if_not_exists, system, options, text })
}

/// Reads `DROP` of what connectors name: which, whether it may be missing, and whether what uses it is dropped with it.
pub(in crate::statement) fn drop(parser: &mut Parser<'_>) -> Result<(Named, bool, bool)> {
    parser.advance_token();
    parser.advance_token();
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    let (name, position) = name(parser)?;
    let cascade = parser.parse_keyword(Keyword::CASCADE);
    if !cascade {
        // The default.
        let _ = parser.parse_keyword(Keyword::RESTRICT);
    }
    Ok((Named { name, position }, if_exists, cascade))
}

/// A name without a schema, folded.
pub(super) fn name(parser: &mut Parser<'_>) -> Result<(String, Position)> {
    let position = place(parser);
    let name = parser.parse_identifier().map_err(syntax_error)?;
    Ok((fold(&name), position))
}

/// The word for a system.
pub(super) fn system(parser: &mut Parser<'_>) -> Result<Setting> {
    let (value, position) = name(parser)?;
    Ok(Setting { name: "transport".to_owned(), value: value.to_ascii_lowercase(), position })
}
