//! `SET`, `SHOW`, `RESET` and `DISCARD ALL`.
//!
//! All of Postgres's spellings become the name of a setting and the words that it is set to. Which settings there are, and
//! which values they take, is the engine's to say.

use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

use super::rights::role;
use super::syntax_error::{place, syntax_error};
use super::{RoleChange, StatementKind, TransactionModes};
use crate::error::{Error, Position, Result};

/// The setting with the isolation level of the open transaction.
const ISOLATION: &str = "transaction_isolation";

/// The setting by which the open transaction cannot write.
const READ_ONLY: &str = "transaction_read_only";

/// Settings that are set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetSettings {
    /// Each with its value; mostly there is one.
    pub settings: Vec<SetSetting>,
    /// For how long.
    pub lasts: Lasts,
}

/// One setting that is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetSetting {
    /// Its name, in lower case.
    pub name: String,
    /// Where it is named.
    pub position: Position,
    /// Its value; `None` is its default.
    pub value: Option<Vec<SettingValue>>,
}

/// One of the values in the list that a setting is set to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingValue {
    /// Text without its quotes, and names without quotes in lower case.
    pub text: String,
    /// Whether it is a name that was written without quotes, a number, or a word such as ON.
    pub is_bare: bool,
}

/// For how long a setting is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lasts {
    /// For the session; as it was before, if its transaction is rolled back.
    Session,
    /// Until the end of the transaction.
    Transaction,
}

impl TransactionModes {
    /// The settings that they stand for, whose names begin with `prefix`.
    fn settings(self, prefix: &str, position: Position) -> Vec<SetSetting> {
        let bare = |text: &str| vec![SettingValue { text: text.to_owned(), is_bare: true }];
        let isolation = self.isolation.map(|level| (ISOLATION, bare(level)));
        let access = self.read_only.map(|only| (READ_ONLY, bare(if only { "on" } else { "off" })));
        let set = |(name, value)| SetSetting {
            name: format!("{prefix}{name}"),
            position,
            value: Some(value),
        };
        isolation.into_iter().chain(access).map(set).collect()
    }
}

/// Reads SET from its first word on.
pub(super) fn set(parser: &mut Parser<'_>) -> Result<StatementKind> {
    parser.advance_token();
    let lasts = match parser.parse_one_of_keywords(&[Keyword::SESSION, Keyword::LOCAL]) {
        Some(Keyword::LOCAL) => Lasts::Transaction,
        Some(_)
            if parser.parse_keywords(&[
                Keyword::CHARACTERISTICS,
                Keyword::AS,
                Keyword::TRANSACTION,
            ]) =>
        {
            let position = place(parser);
            let settings = TransactionModes::read(parser)?.settings("default_", position);
            return Ok(StatementKind::Set(SetSettings { settings, lasts: Lasts::Session }));
        }
        _ => Lasts::Session,
    };
    let position = place(parser);
    if parser.parse_keyword(Keyword::TRANSACTION) {
        let settings = TransactionModes::read(parser)?.settings("", position);
        return Ok(StatementKind::Set(SetSettings { settings, lasts: Lasts::Transaction }));
    }
    let (name, value) = match spelled(parser) {
        Some(Spelled::TimeZone) => ("timezone".to_owned(), time_zone(parser)?),
        Some(Spelled::Names) => ("client_encoding".to_owned(), values(parser)?),
        Some(Spelled::Schema) => ("search_path".to_owned(), values(parser)?),
        Some(Spelled::Authorization) => {
            return role::set(parser, true);
        }
        Some(Spelled::Role) => return role::set(parser, false),
        None => {
            let name = name(parser)?;
            let equals = [Token::Eq, Token::Assignment];
            if !equals.iter().any(|token| parser.consume_token(token)) {
                parser.expect_keyword_is(Keyword::TO).map_err(syntax_error)?;
            }
            let value = match name == "timezone" {
                true => time_zone(parser)?,
                false => values(parser)?,
            };
            (name, value)
        }
    };
    let settings = vec![SetSetting { name, position, value }];
    Ok(StatementKind::Set(SetSettings { settings, lasts }))
}

/// Reads SHOW from its first word on.
pub(super) fn show(parser: &mut Parser<'_>, start: Option<Position>) -> Result<StatementKind> {
    parser.advance_token();
    let (name, position) = named(parser, start)?;
    Ok(StatementKind::Show { name, position })
}

/// Reads RESET from its first word on.
pub(super) fn reset(parser: &mut Parser<'_>, start: Option<Position>) -> Result<StatementKind> {
    parser.advance_token();
    let is_of_session = parser.parse_keywords(&[Keyword::SESSION, Keyword::AUTHORIZATION]);
    if is_of_session || parser.parse_keyword(Keyword::ROLE) {
        return Ok(StatementKind::SetRole(RoleChange { role: None, is_of_session }));
    }
    let (name, position) = named(parser, start)?;
    Ok(StatementKind::Reset { name, position })
}

/// The setting that SHOW and RESET name; `None` is ALL.
fn named(parser: &mut Parser<'_>, start: Option<Position>) -> Result<(Option<String>, Position)> {
    let position = place(parser);
    if parser.parse_keyword(Keyword::ALL) {
        return Ok((None, position));
    }
    if parser.parse_keywords(&[Keyword::TRANSACTION, Keyword::ISOLATION, Keyword::LEVEL]) {
        return Ok((Some(ISOLATION.to_owned()), position));
    }
    let name = match spelled(parser) {
        Some(Spelled::TimeZone) => "timezone".to_owned(),
        Some(Spelled::Names) => "client_encoding".to_owned(),
        Some(Spelled::Schema) => "search_path".to_owned(),
        Some(Spelled::Authorization | Spelled::Role) => {
            return Err(Error::not_supported("the role of a session", start));
        }
        None => name(parser)?,
    };
    Ok((Some(name), position))
}

/// Settings with a spelling of their own.
enum Spelled {
    TimeZone,
    Names,
    Schema,
    Authorization,
    Role,
}

fn spelled(parser: &mut Parser<'_>) -> Option<Spelled> {
    if parser.parse_keywords(&[Keyword::TIME, Keyword::ZONE]) {
        return Some(Spelled::TimeZone);
    }
    let is_name = matches!(parser.peek_nth_token_ref(1).token, Token::Eq | Token::Period)
        || matches!(&parser.peek_nth_token_ref(1).token, Token::Word(word) if word.keyword == Keyword::TO);
    if is_name {
        return None;
    }
    match parser.parse_one_of_keywords(&[
        Keyword::NAMES,
        Keyword::SCHEMA,
        Keyword::AUTHORIZATION,
        Keyword::ROLE,
    ])? {
        Keyword::NAMES => Some(Spelled::Names),
        Keyword::SCHEMA => Some(Spelled::Schema),
        Keyword::AUTHORIZATION => Some(Spelled::Authorization),
        _ => Some(Spelled::Role),
    }
}

/// The name of a setting: in lower case, however it is written.
fn name(parser: &mut Parser<'_>) -> Result<String> {
    let name = parser.parse_object_name(false).map_err(syntax_error)?;
    let parts = name.0.iter().filter_map(|part| part.as_ident());
    Ok(parts.map(|part| part.value.to_ascii_lowercase()).collect::<Vec<_>>().join("."))
}

/// The values that a setting is set to; `None` is DEFAULT.
fn values(parser: &mut Parser<'_>) -> Result<Option<Vec<SettingValue>>> {
    if parser.parse_keyword(Keyword::DEFAULT) {
        return Ok(None);
    }
    let values = parser.parse_comma_separated(value).map_err(syntax_error)?;
    Ok(Some(values))
}

fn value(parser: &mut Parser<'_>) -> std::result::Result<SettingValue, ParserError> {
    let is_negative = parser.consume_token(&Token::Minus);
    let _ = is_negative || parser.consume_token(&Token::Plus);
    let found = parser.next_token();
    let (text, is_bare) = match found.token {
        Token::Number(number, _) if is_negative => (format!("-{number}"), true),
        Token::Number(number, _) => (number, true),
        _ if is_negative => return parser.expected("a number", found),
        Token::SingleQuotedString(text) => (text, false),
        Token::EscapedStringLiteral(text) => (text, false),
        Token::Word(word) if word.quote_style.is_some() => (word.value, false),
        Token::Word(word) => (word.value.to_ascii_lowercase(), true),
        _ => return parser.expected("the value of a setting", found),
    };
    Ok(SettingValue { text, is_bare })
}

/// The time zone: also `LOCAL`, which is the default, and an interval of hours.
fn time_zone(parser: &mut Parser<'_>) -> Result<Option<Vec<SettingValue>>> {
    if parser.parse_keyword(Keyword::LOCAL) {
        return Ok(None);
    }
    if !parser.parse_keyword(Keyword::INTERVAL) {
        return values(parser);
    }
    let value = value(parser).map_err(syntax_error)?;
    if parser.parse_keyword(Keyword::HOUR) && parser.parse_keyword(Keyword::TO) {
        parser.expect_keyword_is(Keyword::MINUTE).map_err(syntax_error)?;
    }
    Ok(Some(vec![value]))
}
