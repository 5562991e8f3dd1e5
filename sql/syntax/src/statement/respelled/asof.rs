//! How ASOF joins are written.
//!
//! The parser reads `a ASOF JOIN b MATCH_CONDITION (c) [ON …]`. Other spellings become this one: its kind, if it is not
//! inner, and a condition that stands in ON or USING, are told by a call in the place of the condition,
//! `MATCH_CONDITION ("LEFT ASOF JOIN"(c))`, which [`AsofJoin`](crate::syntax::AsofJoin) reads.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::is_keyword;

/// Words that end a join that has no condition.
const BEHIND: [Keyword; 22] = [
    Keyword::ASOF,
    Keyword::CROSS,
    Keyword::EXCEPT,
    Keyword::FETCH,
    Keyword::FULL,
    Keyword::GROUP,
    Keyword::HAVING,
    Keyword::INNER,
    Keyword::INTERSECT,
    Keyword::JOIN,
    Keyword::LEFT,
    Keyword::LIMIT,
    Keyword::NATURAL,
    Keyword::OFFSET,
    Keyword::ORDER,
    Keyword::QUALIFY,
    Keyword::RETURNING,
    Keyword::RIGHT,
    Keyword::SET,
    Keyword::UNION,
    Keyword::WHERE,
    Keyword::WINDOW,
];

/// The tokens of a statement with all ASOF joins as the parser reads them.
pub(super) fn respell(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let joins: Vec<Join> = (0..tokens.len()).filter_map(|at| Join::at(&tokens, at)).collect();
    if joins.is_empty() {
        return tokens;
    }
    // The tokens to put in front of each token, and whether it stays.
    let mut before: Vec<Vec<Token>> = vec![Vec::new(); tokens.len() + 1];
    let mut stays = vec![true; tokens.len()];
    for join in &joins {
        (join.words.clone()).filter(|&at| at != join.asof).for_each(|at| stays[at] = false);
        let name = Token::make_word(&join.name, Some('"'));
        let condition = condition(&tokens, join.words.end + 1);
        if !is_keyword(tokens.get(condition), Keyword::MATCH_CONDITION) {
            let matched = Token::make_keyword("MATCH_CONDITION");
            let call = [Token::LParen, name, Token::LParen, Token::RParen, Token::RParen];
            before[condition].push(matched);
            before[condition].extend(call);
        } else if join.name != PLAIN
            && let Some(end) = closing(&tokens, condition + 1)
        {
            before[condition + 2].splice(0..0, [name, Token::LParen]);
            before[end].push(Token::RParen);
        }
    }
    let spans: Vec<_> = tokens.iter().map(|token| token.span).collect();
    let mut respelled = Vec::with_capacity(tokens.len() + 8 * joins.len());
    for (at, token) in tokens.into_iter().map(Some).chain([None]).enumerate() {
        let span = spans[at.min(spans.len() - 1)];
        let inserted = std::mem::take(&mut before[at]).into_iter();
        respelled.extend(inserted.map(|token| TokenWithSpan { token, span }));
        respelled.extend(token.filter(|_| stays[at]));
    }
    respelled
}

/// The name of a join that keeps no rows without a match.
const PLAIN: &str = "ASOF JOIN";

/// The words `[LEFT [OUTER]] ASOF JOIN` or `ASOF [LEFT [OUTER]] JOIN`.
struct Join {
    /// The words before JOIN.
    words: std::ops::Range<usize>,
    asof: usize,
    name: String,
}

impl Join {
    fn at(tokens: &[TokenWithSpan], asof: usize) -> Option<Self> {
        if !is_keyword(tokens.get(asof), Keyword::ASOF) {
            return None;
        }
        use Keyword::{ANTI, FULL, INNER, LEFT, OUTER, RIGHT, SEMI};
        let is_one_of = |at: usize, kinds: &[Keyword]| {
            kinds.iter().any(|kind| is_keyword(tokens.get(at), *kind))
        };
        let mut words = asof..asof + 1;
        // SEMI and ANTI are names, too.
        while words.start > 0 && is_one_of(words.start - 1, &[FULL, INNER, LEFT, OUTER, RIGHT]) {
            words.start -= 1;
        }
        while is_one_of(words.end, &[ANTI, FULL, INNER, LEFT, OUTER, RIGHT, SEMI]) {
            words.end += 1;
        }
        // It may be a name.
        let is_name = asof > 0 && is_keyword(tokens.get(asof - 1), Keyword::AS);
        if is_name || !is_keyword(tokens.get(words.end), Keyword::JOIN) {
            return None;
        }
        let kinds = words.clone().filter(|&at| {
            let is = |kind| is_keyword(tokens.get(at), kind);
            at != asof && !is(Keyword::OUTER) && !is(Keyword::INNER)
        });
        let kinds = kinds.map(|at| tokens[at].token.to_string().to_uppercase() + " ");
        Some(Self { name: kinds.collect::<String>() + PLAIN, words, asof })
    }
}

/// Where the condition of a join begins whose right side begins here, or where it would have to.
fn condition(tokens: &[TokenWithSpan], from: usize) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(from) {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen | Token::Comma if depth == 0 => return at,
            Token::RParen => depth -= 1,
            Token::Word(word) if depth == 0 && word.quote_style.is_none() => {
                use Keyword::{MATCH_CONDITION, ON, USING};
                let begins = [MATCH_CONDITION, ON, USING].contains(&word.keyword);
                if begins || at > from && BEHIND.contains(&word.keyword) {
                    return at;
                }
            }
            _ => {}
        }
    }
    tokens.len()
}

/// Where the bracket that opens here is closed.
fn closing(tokens: &[TokenWithSpan], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return (at > open).then_some(at);
        }
    }
    None
}
