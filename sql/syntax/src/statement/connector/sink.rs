//! `CREATE SINK`.

use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;

use super::ConnectorDefinition;
use super::clause;
use super::connection::name;
use crate::error::{Position, Result};
use crate::name::relation_name;
use crate::statement::syntax_error::syntax_error;

/// `CREATE SINK name FROM relation INTO KAFKA connection (topic = 'out') KEY (id) FORMAT JSON ENVELOPE UPSERT`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SinkDefinition {
    /// Its folded name.
    pub name: String,
    /// Where it is named.
    pub position: Position,
    /// Whether it may be there already.
    pub if_not_exists: bool,
    /// The table or view whose changes it writes.
    pub relation: String,
    /// Where that is named.
    pub relation_position: Position,
    /// Where they go.
    pub connector: ConnectorDefinition,
    /// The statement's source.
    pub text: String,
}

/// Reads `CREATE SINK`, whose source is `text`.
pub(in crate::statement) fn create(parser: &mut Parser<'_>, text: &str) -> Result<SinkDefinition> {
    parser.advance_token();
    parser.advance_token();
    let if_not_exists = parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]);
    let (name, position) = name(parser)?;
    parser.expect_keyword_is(Keyword::FROM).map_err(syntax_error)?;
    let relation = parser.parse_object_name(false).map_err(syntax_error)?;
    let (relation, relation_position) = relation_name(&relation)?;
    parser.expect_keyword_is(Keyword::INTO).map_err(syntax_error)?;
    let connector = clause::read(parser)?;
    let text = text.to_owned();
    Ok(SinkDefinition {
        name,
        position,
        if_not_exists,
        relation,
        relation_position,
        connector,
        text,
    })
}
