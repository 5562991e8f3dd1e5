//! Values without brackets in FROM, as Postgres has them.
//!
//! `FROM current_schema` is `FROM (SELECT current_schema AS "current_schema")`.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::is_keyword;

/// The values that no table is called by.
const VALUES: [&str; 5] =
    ["current_catalog", "current_role", "current_schema", "current_user", "session_user"];

/// The tokens of a statement with queries in the place of values that are read from.
pub(super) fn respell(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let is_value = |at: usize| {
        let before = at.checked_sub(1).and_then(|before| tokens.get(before));
        let follows =
            [Keyword::FROM, Keyword::JOIN].iter().any(|keyword| is_keyword(before, *keyword));
        let is_part = |token: &TokenWithSpan| matches!(token.token, Token::LParen | Token::Period);
        follows
            && matches!(&tokens[at].token, Token::Word(word) if word.quote_style.is_none()
                && VALUES.iter().any(|value| word.value.eq_ignore_ascii_case(value)))
            && !tokens.get(at + 1).is_some_and(is_part)
    };
    let values: Vec<usize> = (0..tokens.len()).filter(|at| is_value(*at)).collect();
    if values.is_empty() || is_keyword(tokens.first(), Keyword::DELETE) {
        return tokens;
    }
    let mut respelled = Vec::with_capacity(tokens.len() + 5 * values.len());
    let mut values = values.into_iter().peekable();
    for (at, token) in tokens.into_iter().enumerate() {
        if values.next_if_eq(&at).is_none() {
            respelled.push(token);
            continue;
        }
        let name = token.token.to_string().to_ascii_lowercase();
        let query = [
            Token::LParen,
            Token::make_keyword("SELECT"),
            token.token,
            Token::make_keyword("AS"),
            Token::make_word(&name, Some('"')),
            Token::RParen,
        ];
        respelled
            .extend(query.into_iter().map(|part| TokenWithSpan { token: part, span: token.span }));
    }
    respelled
}

#[cfg(test)]
mod tests {
    use super::super::tests::respelled;
    use super::*;

    #[test]
    fn values_are_read_from_and_nothing_else_changes() {
        for (sql, expected) in [
            (
                "SELECT * FROM Current_Schema s",
                "SELECT * FROM ( SELECT Current_Schema AS \"current_schema\" ) s",
            ),
            (
                "SELECT 1 FROM t JOIN current_user ON true",
                "SELECT 1 FROM t JOIN ( SELECT current_user AS \"current_user\" ) ON true",
            ),
            ("SELECT current_schema FROM t", "SELECT current_schema FROM t"),
            ("SELECT * FROM current_schema ( )", "SELECT * FROM current_schema ( )"),
            ("SELECT * FROM current_user . t", "SELECT * FROM current_user . t"),
            ("SELECT * FROM \"current_user\"", "SELECT * FROM \"current_user\""),
            ("DELETE FROM current_user", "DELETE FROM current_user"),
        ] {
            assert_eq!(respelled(sql, respell), expected);
        }
    }
}
