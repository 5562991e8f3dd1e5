//! Spellings of nested types that sqlparser's generic SQL does not have.
//!
//! `INT ARRAY` is `INT[]`, and `ROW(a INT, b TEXT)` and `STRUCT(a INT, b TEXT)` are `STRUCT<a INT, b TEXT>`, and
//! `MAP(TEXT, INT)` is `MAP<TEXT, INT>`. They are replaced where a type can stand: in the columns of CREATE TABLE, in a CAST and
//! after `::`. Tokens that replace others have their positions, so that errors are where the user wrote.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::is_keyword;

/// The tokens of a statement with types spelled as sqlparser knows them.
pub(super) fn respell(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let is_table =
        is_keyword(tokens.first(), Keyword::CREATE) && is_keyword(tokens.get(1), Keyword::TABLE);
    let needed = tokens.iter().any(|token| {
        [Keyword::ARRAY, Keyword::ROW, Keyword::STRUCT, Keyword::MAP]
            .iter()
            .any(|keyword| is_keyword(Some(token), *keyword))
    });
    if !needed {
        return tokens;
    }
    let mut respelled = Respelled { tokens: Vec::with_capacity(tokens.len()), open: Vec::new() };
    for (place, token) in tokens.iter().enumerate() {
        respelled.take(token, tokens.get(place + 1), is_table);
    }
    respelled.tokens
}

/// The contents of an open bracket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Around {
    /// The columns of a table, or what follows the type of one.
    Columns { in_type: bool },
    /// The fields of a type, whose bracket is written as another.
    Fields,
    /// CAST and its like: a type stands after AS.
    Cast { in_type: bool },
    /// Anything else.
    Other,
}

struct Respelled {
    tokens: Vec<TokenWithSpan>,
    open: Vec<Around>,
}

impl Respelled {
    /// Whether the last word follows `::`.
    fn follows_cast(&self) -> bool {
        let before = self.tokens.len().checked_sub(2).and_then(|place| self.tokens.get(place));
        before.is_some_and(|before| before.token == Token::DoubleColon)
    }

    fn take(&mut self, token: &TokenWithSpan, next: Option<&TokenWithSpan>, is_table: bool) {
        let before = self.tokens.last();
        let in_type = matches!(
            self.open.last(),
            Some(
                Around::Columns { in_type: true } | Around::Cast { in_type: true } | Around::Fields
            )
        );
        let put =
            |token: &TokenWithSpan, put: Token| TokenWithSpan { token: put, span: token.span };
        match &token.token {
            Token::LParen => {
                let around = match before.map(|before| &before.token) {
                    Some(Token::Word(word)) => match word.keyword {
                        Keyword::ROW | Keyword::STRUCT | Keyword::MAP
                            if in_type || self.follows_cast() =>
                        {
                            Around::Fields
                        }
                        Keyword::CAST | Keyword::TRY_CAST => Around::Cast { in_type: false },
                        _ if is_table && self.open.is_empty() => Around::Columns { in_type: true },
                        _ => Around::Other,
                    },
                    _ => Around::Other,
                };
                self.open.push(around);
                if around == Around::Fields {
                    if let Some(name) = self.tokens.pop() {
                        let is_map = is_keyword(Some(&name), Keyword::MAP);
                        let word = Token::make_keyword(if is_map { "MAP" } else { "STRUCT" });
                        self.tokens.push(put(&name, word));
                    }
                    self.tokens.push(put(token, Token::Lt));
                } else {
                    self.tokens.push(token.clone());
                }
            }
            Token::RParen => {
                let closed = self.open.pop();
                let bracket =
                    if closed == Some(Around::Fields) { Token::Gt } else { Token::RParen };
                self.tokens.push(put(token, bracket));
            }
            Token::Comma => {
                if let Some(Around::Columns { in_type }) = self.open.last_mut() {
                    *in_type = true;
                }
                self.tokens.push(token.clone());
            }
            Token::Word(word) if word.quote_style.is_none() => {
                match (word.keyword, self.open.last_mut()) {
                    (Keyword::DEFAULT | Keyword::CHECK, Some(Around::Columns { in_type })) => {
                        *in_type = false;
                    }
                    (Keyword::AS, Some(Around::Cast { in_type })) => *in_type = true,
                    _ => {}
                }
                let follows_type = matches!(
                    self.tokens.last().map(|before| &before.token),
                    Some(Token::Word(_) | Token::RParen | Token::Gt | Token::RBracket)
                );
                let has_own = matches!(
                    next.map(|next| &next.token),
                    Some(Token::LBracket | Token::Lt | Token::LParen)
                );
                if word.keyword == Keyword::ARRAY && in_type && follows_type && !has_own {
                    self.tokens.push(put(token, Token::LBracket));
                    self.tokens.push(put(token, Token::RBracket));
                } else {
                    self.tokens.push(token.clone());
                }
            }
            _ => self.tokens.push(token.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::respelled;
    use super::*;

    #[test]
    fn types_are_respelled_and_nothing_else() {
        for (sql, expected) in [
            ("CREATE TABLE t (a INT ARRAY)", "CREATE TABLE t ( a INT [ ] )"),
            (
                "CREATE TABLE t (a VARCHAR(3) ARRAY ARRAY, b INT)",
                "CREATE TABLE t ( a VARCHAR ( 3 ) [ ] [ ] , b INT )",
            ),
            (
                "CREATE TABLE t (a ROW(x INT ARRAY, y STRUCT(z INT)) ARRAY)",
                "CREATE TABLE t ( a STRUCT < x INT [ ] , y STRUCT < z INT > > [ ] )",
            ),
            (
                "CREATE TABLE t (a INT[] DEFAULT ARRAY[1], row ROW(x INT) DEFAULT ROW(1), array INT)",
                "CREATE TABLE t ( a INT [ ] DEFAULT ARRAY [ 1 ] , row STRUCT < x INT > DEFAULT ROW ( 1 ) , array INT )",
            ),
            ("SELECT CAST(x AS INT ARRAY), ROW(1)", "SELECT CAST ( x AS INT [ ] ) , ROW ( 1 )"),
            ("SELECT x array, array FROM row", "SELECT x array , array FROM row"),
        ] {
            assert_eq!(respelled(sql, respell), expected);
        }
    }
}
