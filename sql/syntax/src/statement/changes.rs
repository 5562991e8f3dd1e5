//! Statements about the changes of relations: `SUBSCRIBE`, `COPY (SUBSCRIBE …) TO STDOUT`, `LISTEN` and `UNLISTEN`.

use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

use super::connector::Setting;
use super::connector::option_list;
use super::syntax_error::{expected, syntax_error};
use super::{Named, StatementKind};
use crate::error::{Error, Position, Result, SqlState};
use crate::name::relation_name;

/// `SUBSCRIBE [TO] relation [WITH (SNAPSHOT [= boolean], PROGRESS [= boolean])] [AS OF epoch]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscribe {
    /// The view or table.
    pub name: String,
    /// Where it is named.
    pub position: Position,
    /// Whether all rows come before the changes.
    pub has_snapshot: bool,
    /// Whether rows tell how far the changes have come.
    pub has_progress: bool,
    /// The epoch whose rows are the snapshot, and after which changes come; `None` is the last one.
    pub as_of: Option<u64>,
}

/// Reads SUBSCRIBE from its first word on.
pub(super) fn subscribe(parser: &mut Parser<'_>) -> Result<Subscribe> {
    parser.advance_token();
    // A relation may be called so.
    if !matches!(parser.peek_nth_token_ref(1).token, Token::EOF | Token::RParen | Token::Period) {
        let _ = parser.parse_keyword(Keyword::TO);
    }
    let Named { name, position } = named(parser)?;
    let mut read =
        Subscribe { name, position, has_snapshot: true, has_progress: false, as_of: None };
    if parser.parse_keyword(Keyword::WITH) {
        for option in option_list::bracketed(parser).map_err(syntax_error)? {
            match option.name.to_ascii_uppercase().as_str() {
                "SNAPSHOT" => read.has_snapshot = is_on(&option)?,
                "PROGRESS" => read.has_progress = is_on(&option)?,
                _ => {
                    let message = format!(
                        "SUBSCRIBE has no option \"{}\": there are SNAPSHOT and PROGRESS",
                        option.name
                    );
                    return Err(wrong(message, &option));
                }
            }
        }
    }
    if parser.parse_keywords(&[Keyword::AS, Keyword::OF]) {
        read.as_of = Some(parser.parse_literal_uint().map_err(syntax_error)?);
    }
    Ok(read)
}

/// Reads `COPY (SUBSCRIBE …) TO STDOUT [WITH] [(NAME value, …)]` from its first word on.
pub(super) fn copy(parser: &mut Parser<'_>) -> Result<StatementKind> {
    parser.advance_token();
    parser.expect_token(&Token::LParen).map_err(syntax_error)?;
    let changes = subscribe(parser)?;
    parser.expect_token(&Token::RParen).map_err(syntax_error)?;
    parser.expect_keyword_is(Keyword::TO).map_err(syntax_error)?;
    if !parser.parse_keyword(Keyword::STDOUT) {
        let found = parser.next_token();
        let place = Position::of_span(found.span);
        return match found.token {
            Token::SingleQuotedString(_) => Err(Error::not_supported(
                "COPY (SUBSCRIBE …) to a file (write TO STDOUT, or give a view a connector)",
                place,
            )),
            _ => Err(expected(parser, "STDOUT", found)),
        };
    }
    let options = option_list::options(parser).map_err(syntax_error)?;
    Ok(StatementKind::CopyChanges { changes, options })
}

/// Reads `LISTEN relation` from its first word on.
pub(super) fn listen(parser: &mut Parser<'_>) -> Result<StatementKind> {
    parser.advance_token();
    named(parser).map(StatementKind::Listen)
}

/// Reads `UNLISTEN relation`, or of all as `*`, from its first word on.
pub(super) fn unlisten(parser: &mut Parser<'_>) -> Result<StatementKind> {
    parser.advance_token();
    match parser.consume_token(&Token::Mul) {
        true => Ok(StatementKind::Unlisten(None)),
        false => Ok(StatementKind::Unlisten(Some(named(parser)?))),
    }
}

/// The name of a relation.
fn named(parser: &mut Parser<'_>) -> Result<Named> {
    let name = parser.parse_object_name(false).map_err(syntax_error)?;
    let (name, position) = relation_name(&name)?;
    Ok(Named { name, position })
}

fn is_on(option: &Setting) -> Result<bool> {
    match option.value.to_ascii_lowercase().as_str() {
        "true" | "on" | "1" => Ok(true),
        "false" | "off" | "0" => Ok(false),
        _ => Err(wrong(format!("{} is true or false", option.name), option)),
    }
}

fn wrong(message: String, option: &Setting) -> Error {
    Error::new(message, option.position).with_sqlstate(SqlState::INVALID_VALUE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::parse;

    fn read(sql: &str) -> std::result::Result<StatementKind, String> {
        let read = parse(sql).next().expect("a statement");
        read.map(|statement| statement.kind).map_err(|error| error.message)
    }

    fn subscribed(sql: &str) -> (String, bool, bool, Option<u64>) {
        match read(sql) {
            Ok(StatementKind::Subscribe(Subscribe {
                name,
                has_snapshot,
                has_progress,
                as_of,
                ..
            })) => (name, has_snapshot, has_progress, as_of),
            other => panic!("{sql}: {other:?}"),
        }
    }

    #[test]
    fn a_subscription_has_options_and_an_epoch() {
        let of = |name: &str| name.to_owned();
        assert_eq!(subscribed("SUBSCRIBE v"), (of("v"), true, false, None));
        assert_eq!(subscribed("subscribe to v"), (of("v"), true, false, None));
        assert_eq!(subscribed("SUBSCRIBE \"to\""), (of("to"), true, false, None));
        assert_eq!(subscribed("SUBSCRIBE v AS OF 7"), (of("v"), true, false, Some(7)));
        let all = "SUBSCRIBE s.v WITH (snapshot = false, PROGRESS) AS OF 0";
        assert_eq!(subscribed(all), (of("s.v"), false, true, Some(0)));
        assert_eq!(subscribed("SUBSCRIBE v WITH (PROGRESS false)"), (of("v"), true, false, None));
        for (sql, part) in [
            ("SUBSCRIBE v WITH (UPTO 5)", "option"),
            ("SUBSCRIBE v WITH (PROGRESS = 5)", "true or false"),
            ("SUBSCRIBE v AS OF -1", "-"),
            ("SUBSCRIBE v AS OF now()", "now"),
            ("SUBSCRIBE v WHERE 1", "WHERE"),
            ("SUBSCRIBE", "a name"),
        ] {
            let error = read(sql).expect_err(sql);
            assert!(error.contains(part), "{sql}: {error}");
        }
    }

    #[test]
    fn changes_are_copied_to_clients_alone() {
        let copied = read("COPY (SUBSCRIBE v AS OF 3) TO STDOUT WITH (FORMAT csv, HEADER)");
        let Ok(StatementKind::CopyChanges { changes, options }) = copied else {
            panic!("{copied:?}")
        };
        assert_eq!((changes.name.as_str(), changes.as_of, options.len()), ("v", Some(3), 2));
        assert!(read("COPY (SUBSCRIBE v) TO 'f.csv'").is_err_and(|error| error.contains("STDOUT")));
        assert!(read("COPY (SUBSCRIBE v) FROM STDIN").is_err());
    }

    #[test]
    fn listeners_name_relations() {
        assert!(matches!(read("LISTEN v"), Ok(StatementKind::Listen(v)) if v.name == "v"));
        assert!(matches!(read("UNLISTEN *"), Ok(StatementKind::Unlisten(None))));
        let unlistened = read("UNLISTEN s.\"V\"");
        assert!(
            matches!(&unlistened, Ok(StatementKind::Unlisten(Some(v))) if v.name == "s.V"),
            "{unlistened:?}"
        );
        assert!(read("NOTIFY v").is_err_and(|error| error.contains("commit")));
        assert!(read("LISTEN").is_err());
    }
}
