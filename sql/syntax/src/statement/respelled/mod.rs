//! Spellings that the parser does not read, in others that it does. They are replaced among the tokens, whose positions stay.
//!
//! - `asof`: ASOF joins;
//! - `files`: files with options;
//! - `nested_types`: types as `INT ARRAY`;
//! - `nested_sets`: GROUPING SETS among others;
//! - `values`: values in FROM, as `current_schema`.
mod asof;
mod files;
mod nested_sets;
mod nested_types;
mod values;

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::TokenWithSpan;

use crate::keyword;

/// The tokens of a statement as the parser reads them.
pub(super) fn respell(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let tokens = files::respell(asof::respell(tokens));
    values::respell(nested_sets::respell(nested_types::respell(tokens)))
}

/// Whether there is a token, and it is this keyword.
fn is_keyword(token: Option<&TokenWithSpan>, keyword: Keyword) -> bool {
    token.is_some_and(|token| keyword::is_keyword(&token.token, keyword))
}

#[cfg(test)]
mod tests {
    use sqlparser::tokenizer::{Token, Tokenizer};

    use super::super::dialect::Alluvium;
    use super::*;

    /// The tokens of a text as they are respelled, with a blank between them.
    pub(super) fn respelled(
        sql: &str,
        respell: fn(Vec<TokenWithSpan>) -> Vec<TokenWithSpan>,
    ) -> String {
        let tokens = Tokenizer::new(&Alluvium::new(0), sql).tokenize_with_location();
        let tokens = tokens.expect("tokens").into_iter();
        let tokens = tokens.filter(|token| !matches!(token.token, Token::Whitespace(_)));
        let respelled = respell(tokens.collect());
        respelled.iter().map(|token| token.token.to_string()).collect::<Vec<_>>().join(" ")
    }
}
