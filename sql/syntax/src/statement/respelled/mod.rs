//! Spellings that the parser does not read, in others that it does. They are replaced among the tokens, whose positions stay.
//!
//! - `asof`: ASOF joins;
//! - `nested_types`: types as `INT ARRAY`;
//! - `nested_sets`: GROUPING SETS among others.
mod asof;
mod nested_sets;
mod nested_types;

use sqlparser::tokenizer::TokenWithSpan;

/// The tokens of a statement as the parser reads them.
pub(super) fn respell(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    nested_sets::respell(nested_types::respell(asof::respell(tokens)))
}
