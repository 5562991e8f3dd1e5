//! Keywords among tokens.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

/// Whether a token is this keyword, and no name in quotes.
pub(crate) fn is_keyword(token: &Token, keyword: Keyword) -> bool {
    matches!(token, Token::Word(word) if word.keyword == keyword && word.quote_style.is_none())
}
