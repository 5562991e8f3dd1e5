//! The stack that a statement needs, by its tokens.

use std::mem;

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::error::{Error, Position, Result};
use crate::keyword::is_keyword;
use crate::stack;
use crate::statement::table::MOST_COLUMNS;
use crate::syntax::{LEVELS, is_defined};

/// The largest number of tokens one after the other in one element of a list.
const LONGEST_CHAIN: usize = 250_000;

/// The largest number of words and operators of a statement. Literals and lists of them may be as long as they are.
const MOST_WORDS: usize = 200_000;

/// The largest number of SELECTs in a statement, with those of subqueries and set operations. The tree of each takes some
/// 20 kB.
const MOST_SELECTS: usize = 1_000;

/// The largest number of ASOF joins in a statement.
const MOST_ASOF: usize = 1_000;

/// Reads a statement of these tokens on a stack on which the parser's tree can be walked and dropped. Also returns a bound
/// of the depth of the tree.
pub(super) fn with_room<R>(
    tokens: Vec<TokenWithSpan>,
    read: impl FnOnce(Vec<TokenWithSpan>) -> Result<R>,
) -> Result<(R, usize)> {
    let start = || tokens.first().and_then(|token| Position::of_span(token.span));
    let chain = chain(&tokens);
    if chain > LONGEST_CHAIN {
        return Err(Error::new("this statement is too long a chain of operators", start()));
    }
    if tokens.iter().filter(|token| is_word(&token.token)).count() > MOST_WORDS {
        let message = format!(
            "a statement has at most {MOST_WORDS} names, keywords and operators: load rows with COPY, \
             or write several statements"
        );
        return Err(Error::new(message, start()));
    }
    let mut selects = tokens.iter().filter(|token| is_keyword(&token.token, Keyword::SELECT));
    if let Some(select) = selects.nth(MOST_SELECTS) {
        let message = format!("a statement has at most {MOST_SELECTS} SELECTs");
        return Err(Error::new(message, Position::of_span(select.span)));
    }
    // Each looks for its condition among the tokens after it.
    let mut asof = tokens.iter().filter(|token| is_keyword(&token.token, Keyword::ASOF));
    if let Some(asof) = asof.nth(MOST_ASOF) {
        let message = format!("a statement has at most {MOST_ASOF} ASOF joins");
        return Err(Error::new(message, Position::of_span(asof.span)));
    }
    if let Some(key) = longest_key(&tokens) {
        return Err(Error::new(format!("a key has at most {MOST_COLUMNS} columns"), key));
    }
    stack::with_bytes((512 << 10) + chain * (4 << 10), || read(tokens)).map(|read| (read, chain))
}

/// Where a key begins that has more columns than any table: the parser's tree of each column takes some 3 kB.
fn longest_key(tokens: &[TokenWithSpan]) -> Option<Option<Position>> {
    // The first one of those whose columns end at one bracket has the most.
    let (mut key, mut commas) = (None, 0);
    for token in tokens {
        match &token.token {
            Token::RParen => (key, commas) = (None, 0),
            Token::Comma if key.is_some() => commas += 1,
            other if key.is_none() && is_keyword(other, Keyword::KEY) => {
                key = Some(Position::of_span(token.span))
            }
            _ => {}
        }
        if commas >= MOST_COLUMNS {
            return key;
        }
    }
    None
}

/// Whether a token is a name, a keyword or an operator: neither a literal nor what separates literals.
fn is_word(token: &Token) -> bool {
    match token {
        Token::Word(word) => {
            !matches!(word.keyword, Keyword::NULL | Keyword::TRUE | Keyword::FALSE)
        }
        Token::Number(..)
        | Token::SingleQuotedString(_)
        | Token::HexStringLiteral(_)
        | Token::Comma
        | Token::LParen
        | Token::RParen
        | Token::LBracket
        | Token::RBracket
        | Token::Minus => false,
        _ => true,
    }
}

/// Whether `<` after a token begins the parts of a type.
fn is_nested_type(before: &Token) -> bool {
    matches!(before, Token::Word(word) if matches!(word.keyword, Keyword::MAP | Keyword::STRUCT | Keyword::ARRAY))
}

/// The levels that a token has beyond one: those of the definition of a call.
fn levels(token: &TokenWithSpan) -> usize {
    match &token.token {
        Token::Word(word) if is_defined(&word.value.to_ascii_lowercase()) => LEVELS,
        _ => 0,
    }
}

/// A bound of the depth of the syntax tree: the largest number of tokens one after the other, where a bracket counts with
/// its contents, and of a list only its longest element.
fn chain(tokens: &[TokenWithSpan]) -> usize {
    /// The length of the element so far, and of the longest one.
    #[derive(Default)]
    struct List {
        element: usize,
        longest: usize,
    }

    impl List {
        fn end(&self) -> usize {
            self.longest.max(self.element)
        }
    }

    let mut open = Vec::new();
    let mut list = List::default();
    let mut before = &Token::EOF;
    for token in tokens {
        list.element += 1 + levels(token);
        match token.token {
            Token::LParen | Token::LBracket | Token::LBrace => open.push(mem::take(&mut list)),
            // As it may have no closing token, it counts as a bracket that is not closed: the bound is only larger.
            Token::Lt if is_nested_type(before) => open.push(mem::take(&mut list)),
            Token::RParen | Token::RBracket | Token::RBrace => {
                let inner = list.end();
                list = open.pop().unwrap_or_default();
                list.element += inner;
            }
            Token::Comma => list = List { element: 0, longest: list.end() },
            _ => {}
        }
        before = &token.token;
    }
    open.iter().map(List::end).sum::<usize>() + list.end()
}
