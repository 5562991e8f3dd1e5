//! `CREATE SECRET`: the name by which statements know a secret that is stored elsewhere.

use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

use super::Setting;
use super::option_list::bracketed;
use crate::error::{Error, Position, Result};
use crate::name::fold;
use crate::statement::syntax_error::syntax_error;

/// `CREATE SECRET name [(stored = 'name', hosts = 'host, host:port')]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretDefinition {
    /// Its folded name.
    pub name: String,
    /// Where it is named.
    pub position: Position,
    /// Whether it may be there already.
    pub if_not_exists: bool,
    /// What it is stored as: a file of the directory of secrets, or a variable of the environment.
    pub stored: String,
    /// The hosts that it is sent to, with a port or without; any if there are none.
    pub hosts: Vec<String>,
    /// The statement's source.
    pub text: String,
}

impl SecretDefinition {
    /// Whether it may be sent to a host, `name:port`.
    pub fn is_for(&self, host: &str) -> bool {
        let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
        let is_it =
            |known: &String| known.eq_ignore_ascii_case(host) || known.eq_ignore_ascii_case(name);
        self.hosts.is_empty() || self.hosts.iter().any(is_it)
    }
}

/// Reads `CREATE SECRET`, whose source is `text`.
pub(in crate::statement) fn create(
    parser: &mut Parser<'_>,
    text: &str,
) -> Result<SecretDefinition> {
    parser.advance_token();
    parser.advance_token();
    let if_not_exists = parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]);
    let ident = parser.parse_identifier().map_err(syntax_error)?;
    let position = Position::of_span(ident.span).unwrap_or(Position { line: 1, column: 1 });
    if parser.parse_keyword(Keyword::AS) {
        let message = "a secret is not written in a statement: store it in the directory of secrets, or in the environment";
        return Err(Error::new(message, position));
    }
    let name = fold(&ident);
    let options = match parser.peek_token_ref().token {
        Token::LParen => bracketed(parser).map_err(syntax_error)?,
        _ => Vec::new(),
    };
    let (mut stored, mut hosts) = (name.clone(), Vec::new());
    for Setting { name, value, position } in options {
        match name.to_ascii_lowercase().as_str() {
            "stored" => stored = value,
            "hosts" => {
                let named = value.split(',').map(|host| host.trim().to_owned());
                hosts = named.filter(|host| !host.is_empty()).collect();
                if hosts.is_empty() {
                    return Err(Error::new("\"hosts\" names no host", position));
                }
            }
            _ => {
                let message =
                    format!("a secret has no option \"{name}\"; there are stored and hosts");
                return Err(Error::new(message, position));
            }
        }
    }
    let text = text.to_owned();
    Ok(SecretDefinition { name, position, if_not_exists, stored, hosts, text })
}
