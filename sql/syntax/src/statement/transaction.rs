//! `BEGIN`, `COMMIT`, `ROLLBACK` and savepoints, in all of Postgres's spellings.

use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

use super::nested::named;
use super::syntax_error::{expected, syntax_error};
use super::{Named, StatementKind};
use crate::error::Result;

/// The modes that `BEGIN` gives its transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransactionModes {
    /// The isolation level that is asked for, in lower case.
    pub isolation: Option<&'static str>,
    /// `READ ONLY` or `READ WRITE`.
    pub read_only: Option<bool>,
}

impl TransactionModes {
    /// Reads modes, with or without commas between them; of several of one kind the last counts. `DEFERRABLE` says nothing here:
    /// no transaction that only reads fails for the sake of others.
    pub(super) fn read(parser: &mut Parser<'_>) -> Result<Self> {
        let (mut modes, mut is_expected) = (Self::default(), false);
        loop {
            if parser.parse_keywords(&[Keyword::ISOLATION, Keyword::LEVEL]) {
                modes.isolation = Some(level(parser)?);
            } else if parser.parse_keywords(&[Keyword::READ, Keyword::ONLY]) {
                modes.read_only = Some(true);
            } else if parser.parse_keywords(&[Keyword::READ, Keyword::WRITE]) {
                modes.read_only = Some(false);
            } else if parser.parse_keywords(&[Keyword::NOT, Keyword::DEFERRABLE])
                || parser.parse_keyword(Keyword::DEFERRABLE)
            {
            } else if is_expected {
                let found = parser.next_token();
                return Err(expected(parser, "ISOLATION LEVEL, READ ONLY or READ WRITE", found));
            } else {
                return Ok(modes);
            }
            is_expected = parser.consume_token(&Token::Comma);
        }
    }
}

/// A name of a level, which has one word or two.
fn level(parser: &mut Parser<'_>) -> Result<&'static str> {
    let levels: [(&[Keyword], &str); 4] = [
        (&[Keyword::SERIALIZABLE], "serializable"),
        (&[Keyword::REPEATABLE, Keyword::READ], "repeatable read"),
        (&[Keyword::READ, Keyword::COMMITTED], "read committed"),
        (&[Keyword::READ, Keyword::UNCOMMITTED], "read uncommitted"),
    ];
    let found = levels.into_iter().find(|(words, _)| parser.parse_keywords(words));
    found.map(|(_, level)| level).ok_or_else(|| {
        let found = parser.next_token();
        expected(parser, "SERIALIZABLE, REPEATABLE READ or READ COMMITTED", found)
    })
}

/// Whether a statement of these words, in upper case, is one of those that this file reads.
pub(super) fn is_of_transactions(words: &[String]) -> bool {
    match words.first().map_or("", String::as_str) {
        "BEGIN" | "COMMIT" | "END" | "ROLLBACK" | "ABORT" => true,
        "START" | "SAVEPOINT" | "RELEASE" => words.len() > 1,
        _ => false,
    }
}

/// Reads a statement from its first word on.
pub(super) fn read(parser: &mut Parser<'_>) -> Result<StatementKind> {
    let first = parser.next_token();
    let keyword = match &first.token {
        Token::Word(word) => word.keyword,
        _ => Keyword::NoKeyword,
    };
    match keyword {
        Keyword::BEGIN => {
            work(parser);
            Ok(StatementKind::Begin(TransactionModes::read(parser)?))
        }
        Keyword::START => {
            parser.expect_keyword_is(Keyword::TRANSACTION).map_err(syntax_error)?;
            Ok(StatementKind::Begin(TransactionModes::read(parser)?))
        }
        Keyword::COMMIT | Keyword::END => {
            work(parser);
            Ok(StatementKind::Commit { and_chain: chain(parser)? })
        }
        Keyword::ROLLBACK | Keyword::ABORT => {
            work(parser);
            if keyword == Keyword::ROLLBACK && parser.parse_keyword(Keyword::TO) {
                return Ok(StatementKind::RollbackTo(savepoint(parser)?));
            }
            Ok(StatementKind::Rollback { and_chain: chain(parser)? })
        }
        Keyword::SAVEPOINT => Ok(StatementKind::Savepoint(named(parser)?)),
        Keyword::RELEASE => Ok(StatementKind::Release(savepoint(parser)?)),
        _ => Err(expected(parser, "a statement", first)),
    }
}

/// The words that mean nothing after BEGIN, COMMIT and ROLLBACK.
fn work(parser: &mut Parser<'_>) {
    let _ = parser.parse_one_of_keywords(&[Keyword::WORK, Keyword::TRANSACTION]);
}

/// `AND [NO] CHAIN`
fn chain(parser: &mut Parser<'_>) -> Result<bool> {
    parser.parse_commit_rollback_chain().map_err(syntax_error)
}

/// `[SAVEPOINT] name`. A savepoint may have this word for its name.
fn savepoint(parser: &mut Parser<'_>) -> Result<Named> {
    let is_name = parser.peek_nth_token_ref(1).token == Token::EOF;
    if !is_name {
        let _ = parser.parse_keyword(Keyword::SAVEPOINT);
    }
    named(parser)
}
