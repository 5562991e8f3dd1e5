//! `ALTER SOURCE`: the source of a table pauses, or goes on.

use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;

use crate::error::{Position, Result};
use crate::name::{self, relation_name};
use crate::statement::syntax_error::syntax_error;

/// `ALTER SOURCE table PAUSE | RESUME`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceChange {
    /// The table whose connectors are its source.
    pub name: String,
    /// Where it is named.
    pub position: Position,
    /// Whether it may be missing.
    pub if_exists: bool,
    /// Whether rows stop coming, or come again.
    pub pauses: bool,
}

impl SourceChange {
    /// The statement by which the source of a table pauses, or comes to go on.
    pub fn statement(table: &str, pauses: bool) -> String {
        let change = if pauses { "PAUSE" } else { "RESUME" };
        format!("ALTER SOURCE {} {change}", name::written(table))
    }
}

/// Reads the rest of `ALTER SOURCE`, from `ALTER` on.
pub(in crate::statement) fn alter(parser: &mut Parser<'_>) -> Result<SourceChange> {
    parser.advance_token();
    parser.advance_token();
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    let name = parser.parse_object_name(false).map_err(syntax_error)?;
    let (name, position) = relation_name(&name)?;
    let token = parser.next_token();
    let pauses = match token.token.to_string().to_ascii_uppercase().as_str() {
        "PAUSE" => true,
        "RESUME" => false,
        _ => return parser.expected("PAUSE or RESUME", token).map_err(syntax_error),
    };
    Ok(SourceChange { name, position, if_exists, pauses })
}
