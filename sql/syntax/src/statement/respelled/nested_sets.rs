//! GROUPING SETS among others.
//!
//! `GROUPING SETS (GROUPING SETS ((a), (b)), (c))` has the sets of both lists, which the parser reads as one:
//! `GROUPING SETS ((a), (b), (c))`.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::is_keyword;

/// The contents of an open bracket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Around {
    /// A list of grouping sets.
    Sets,
    /// A list among the sets of another one, whose brackets are left out.
    Among,
    Other,
}

/// The tokens of a statement with each list of grouping sets in one piece.
pub(super) fn respell(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let begins = |at: &usize| {
        is_keyword(tokens.get(*at), Keyword::GROUPING)
            && is_keyword(tokens.get(at + 1), Keyword::SETS)
            && tokens.get(at + 2).is_some_and(|token| token.token == Token::LParen)
    };
    if (0..tokens.len()).filter(begins).count() < 2 {
        return tokens;
    }
    let begins: Vec<bool> = (0..tokens.len()).map(|at| begins(&at)).collect();
    let mut respelled = Vec::with_capacity(tokens.len());
    let (mut open, mut words) = (Vec::new(), 0_usize);
    for (token, begins) in tokens.into_iter().zip(begins) {
        let is_inside = matches!(open.last(), Some(Around::Sets | Around::Among));
        if begins {
            open.push(if is_inside { Around::Among } else { Around::Sets });
            words = 3;
        } else if words == 0 && token.token == Token::LParen {
            open.push(Around::Other);
        }
        let stays = match words {
            0 if token.token == Token::RParen => open.pop() != Some(Around::Among),
            0 => true,
            _ => open.last() != Some(&Around::Among),
        };
        words = words.saturating_sub(1);
        respelled.extend(stays.then_some(token));
    }
    respelled
}

#[cfg(test)]
mod tests {
    use super::super::tests::respelled;
    use super::*;

    #[test]
    fn lists_among_others_are_taken_apart_and_nothing_else() {
        for (sql, expected) in [
            (
                "GROUP BY GROUPING SETS (GROUPING SETS ((a), (b, f(c))), (d))",
                "GROUP BY GROUPING SETS ( ( a ) , ( b , f ( c ) ) , ( d ) )",
            ),
            (
                "grouping sets (grouping sets (a, grouping sets (rollup (b), ())), c), (e)",
                "grouping sets ( a , rollup ( b ) , ( ) , c ) , ( e )",
            ),
            (
                "GROUP BY GROUPING SETS ((a)), GROUPING SETS ((b))",
                "GROUP BY GROUPING SETS ( ( a ) ) , GROUPING SETS ( ( b ) )",
            ),
            (
                "GROUPING SETS (((SELECT 1 GROUP BY GROUPING SETS ((a)))))",
                "GROUPING SETS ( ( ( SELECT 1 GROUP BY GROUPING SETS ( ( a ) ) ) ) )",
            ),
            ("GROUPING SETS (GROUPING SETS ((a)", "GROUPING SETS ( ( a )"),
        ] {
            assert_eq!(respelled(sql, respell), expected);
        }
    }
}
