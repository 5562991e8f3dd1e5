//! Sequences: `CREATE SEQUENCE`, `ALTER SEQUENCE`, and the columns that have one of their own.

use arrow::datatypes::DataType;
use sqlparser::ast::{self, GeneratedAs};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::StatementKind;
use super::syntax_error::syntax_error;
use crate::error::{Error, Position, Result};
use crate::name::relation_name;

/// A sequence that is created.
#[derive(Clone, Debug)]
pub struct SequenceDefinition {
    /// The folded name.
    pub name: String,
    /// Where it is named.
    pub position: Position,
    /// Whether it may be there already.
    pub if_not_exists: bool,
    /// The options for its values.
    pub options: SequenceOptions,
    /// The statement's source.
    pub text: String,
}

/// `ALTER SEQUENCE … RESTART`
#[derive(Clone, Debug)]
pub struct SequenceRestart {
    /// The sequence.
    pub name: String,
    /// Where it is named.
    pub position: Position,
    /// Whether it may be missing.
    pub if_exists: bool,
    /// The next value; `None` is the one that it started with.
    pub with: Option<i64>,
}

/// The values of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequenceOptions {
    /// By how much each value differs from the one before. Not zero.
    pub increment: i64,
    /// The least value.
    pub minimum: i64,
    /// The greatest value.
    pub maximum: i64,
    /// The first value.
    pub start: i64,
    /// Whether it begins again at the other end when it has come to one.
    pub cycles: bool,
}

/// A column whose values come from a sequence of its own: `SERIAL`, or `GENERATED … AS IDENTITY`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generated {
    /// Whether statements cannot give it values.
    pub always: bool,
    /// The values of the sequence.
    pub options: SequenceOptions,
}

/// Options as they are written.
#[derive(Default)]
struct Written {
    increment: Option<i64>,
    minimum: Option<i64>,
    maximum: Option<i64>,
    start: Option<i64>,
    cycles: bool,
}

impl Written {
    /// The options of a sequence of this type.
    fn resolve(&self, data_type: &DataType, position: Position) -> Result<SequenceOptions> {
        let (least, greatest) = match data_type {
            DataType::Int16 => (i64::from(i16::MIN), i64::from(i16::MAX)),
            DataType::Int32 => (i64::from(i32::MIN), i64::from(i32::MAX)),
            DataType::Int64 => (i64::MIN, i64::MAX),
            other => {
                let message =
                    format!("a sequence has SMALLINT, INTEGER or BIGINT values, not {other}");
                return Err(Error::new(message, position));
            }
        };
        let increment = self.increment.unwrap_or(1);
        let (first, last) = if increment > 0 { (1, greatest) } else { (least, -1) };
        let minimum = self.minimum.unwrap_or(first);
        let maximum = self.maximum.unwrap_or(last);
        let start = self.start.unwrap_or(if increment > 0 { minimum } else { maximum });
        let message = if increment == 0 {
            "INCREMENT must not be zero".to_owned()
        } else if minimum < least || maximum > greatest {
            format!("the values of the sequence must be between {least} and {greatest}")
        } else if minimum >= maximum {
            format!("MINVALUE ({minimum}) must be less than MAXVALUE ({maximum})")
        } else if start < minimum || start > maximum {
            format!("START ({start}) must be between {minimum} and {maximum}")
        } else {
            let cycles = self.cycles;
            return Ok(SequenceOptions { increment, minimum, maximum, start, cycles });
        };
        Err(Error::new(message, position))
    }
}

/// Reads `CREATE SEQUENCE`, of which this is the source.
pub(super) fn create(parser: &mut Parser<'_>, text: &str) -> Result<StatementKind> {
    // CREATE SEQUENCE
    parser.advance_token();
    parser.advance_token();
    let if_not_exists = parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]);
    let (name, position) = named(parser)?;
    let data_type = match parser.parse_keyword(Keyword::AS) {
        true => parser.parse_data_type().map_err(syntax_error)?,
        false => ast::DataType::BigInt(None),
    };
    let data_type = integer(&data_type).ok_or_else(|| {
        let message = format!("a sequence has SMALLINT, INTEGER or BIGINT values, not {data_type}");
        Error::new(message, position)
    })?;
    let mut written = Written::default();
    while let Some(read) = option(parser, &mut written).transpose() {
        read.map_err(syntax_error)?;
    }
    if parser.parse_keywords(&[Keyword::OWNED, Keyword::BY]) && !parser.parse_keyword(Keyword::NONE)
    {
        let what = "OWNED BY (a column has a sequence of its own if it is SERIAL or IDENTITY)";
        return Err(Error::not_supported(what, position));
    }
    let (options, text) = (written.resolve(&data_type, position)?, text.to_owned());
    let created = SequenceDefinition { name, position, if_not_exists, options, text };
    Ok(StatementKind::CreateSequence(created))
}

/// Reads `ALTER SEQUENCE`.
pub(super) fn alter(parser: &mut Parser<'_>) -> Result<StatementKind> {
    parser.advance_token();
    parser.advance_token();
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    let (name, position) = named(parser)?;
    if !parser.parse_keyword(Keyword::RESTART) {
        return Err(Error::not_supported("ALTER SEQUENCE with anything but RESTART", position));
    }
    let with = match (parser.parse_keyword(Keyword::WITH), &parser.peek_token_ref().token) {
        (false, Token::EOF) => None,
        _ => Some(number(parser).map_err(syntax_error)?),
    };
    Ok(StatementKind::RestartSequence(SequenceRestart { name, position, if_exists, with }))
}

fn named(parser: &mut Parser<'_>) -> Result<(String, Position)> {
    relation_name(&parser.parse_object_name(false).map_err(syntax_error)?)
}

/// Reads an option. Each may be written wherever it likes; `None` if there is no more.
fn option(
    parser: &mut Parser<'_>,
    written: &mut Written,
) -> std::result::Result<Option<()>, ParserError> {
    if parser.parse_keyword(Keyword::INCREMENT) {
        let _ = parser.parse_keyword(Keyword::BY);
        written.increment = Some(number(parser)?);
    } else if parser.parse_keyword(Keyword::MINVALUE) {
        written.minimum = Some(number(parser)?);
    } else if parser.parse_keyword(Keyword::MAXVALUE) {
        written.maximum = Some(number(parser)?);
    } else if parser.parse_keyword(Keyword::START) {
        let _ = parser.parse_keyword(Keyword::WITH);
        written.start = Some(number(parser)?);
    } else if parser.parse_keyword(Keyword::CACHE) {
        // How many values are taken at a time is no business of whoever creates it.
        number(parser)?;
    } else if parser.parse_keywords(&[Keyword::NO, Keyword::MINVALUE]) {
        written.minimum = None;
    } else if parser.parse_keywords(&[Keyword::NO, Keyword::MAXVALUE]) {
        written.maximum = None;
    } else if parser.parse_keywords(&[Keyword::NO, Keyword::CYCLE]) {
        written.cycles = false;
    } else if parser.parse_keyword(Keyword::CYCLE) {
        written.cycles = true;
    } else {
        return Ok(None);
    }
    Ok(Some(()))
}

fn number(parser: &mut Parser<'_>) -> std::result::Result<i64, ParserError> {
    let is_negative = parser.consume_token(&Token::Minus);
    let found = parser.next_token();
    let digits = match &found.token {
        Token::Number(digits, _) => digits.clone(),
        _ => return parser.expected("a whole number", found),
    };
    let sign = if is_negative { "-" } else { "" };
    match format!("{sign}{digits}").parse() {
        Ok(number) => Ok(number),
        Err(_) => parser.expected("a whole number of at most 64 bits", found),
    }
}

/// The options of `AS IDENTITY (…)`, whose order the parser of `CREATE TABLE` prescribes.
const ORDER: [Keyword; 6] = [
    Keyword::INCREMENT,
    Keyword::MINVALUE,
    Keyword::MAXVALUE,
    Keyword::START,
    Keyword::CACHE,
    Keyword::CYCLE,
];

/// The tokens of a statement with the options of its identity columns as the parser reads them.
pub(super) fn respell(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let keyword = |token: &TokenWithSpan| match &token.token {
        Token::Word(word) => word.keyword,
        _ => Keyword::NoKeyword,
    };
    let mut at = 0;
    while at + 1 < tokens.len() {
        at += 1;
        if keyword(&tokens[at - 1]) != Keyword::IDENTITY || tokens[at].token != Token::LParen {
            continue;
        }
        let length = tokens[at + 1..].iter().position(|token| token.token == Token::RParen);
        // Without a bracket after this one there is none after later ones either.
        let Some(length) = length else { break };
        let options = at + 1..at + 1 + length;
        // An option goes up to the next one; NO belongs to what follows.
        let mut parts: Vec<(usize, Vec<TokenWithSpan>)> = Vec::new();
        let mut is_begun = false;
        for token in &tokens[options.clone()] {
            let place = ORDER.iter().position(|option| *option == keyword(token));
            match (place, keyword(token)) {
                (Some(place), _) if is_begun => {
                    is_begun = false;
                    parts.last_mut().into_iter().for_each(|part| part.0 = place);
                }
                (Some(place), _) => parts.push((place, Vec::new())),
                (None, Keyword::NO) => {
                    is_begun = true;
                    parts.push((ORDER.len(), Vec::new()));
                }
                (None, _) => {}
            }
            match parts.last_mut() {
                Some((_, part)) => part.push(token.clone()),
                None => parts.push((0, vec![token.clone()])),
            }
        }
        parts.sort_by_key(|(place, _)| *place);
        at = options.end;
        let sorted = parts.into_iter().flat_map(|(_, part)| part);
        tokens[options].iter_mut().zip(sorted).for_each(|(token, sorted)| *token = sorted);
    }
    tokens
}

/// The type of a column that is `SERIAL`, or another of its spellings.
pub(super) fn serial(data_type: &ast::DataType) -> Option<DataType> {
    let ast::DataType::Custom(name, _) = data_type else { return None };
    let [part] = name.0.as_slice() else { return None };
    let name = part.as_ident()?.value.to_ascii_lowercase();
    match name.as_str() {
        "smallserial" | "serial2" => Some(DataType::Int16),
        "serial" | "serial4" => Some(DataType::Int32),
        "bigserial" | "serial8" => Some(DataType::Int64),
        _ => None,
    }
}

impl Generated {
    /// A column that is `SERIAL`.
    pub(super) fn serial(data_type: &DataType, position: Position) -> Result<Self> {
        let options = Written::default().resolve(data_type, position)?;
        Ok(Self { always: false, options })
    }

    /// A column that is `GENERATED … AS IDENTITY`.
    pub(super) fn identity(
        generated: &GeneratedAs,
        options: Option<&[ast::SequenceOptions]>,
        data_type: &DataType,
        position: Position,
    ) -> Result<Self> {
        let mut written = Written::default();
        for option in options.unwrap_or_default() {
            let number = |value: &ast::Expr| {
                let wrong = || Error::new(format!("{value} is no whole number"), position);
                value.to_string().replace(' ', "").parse::<i64>().map_err(|_| wrong())
            };
            match option {
                ast::SequenceOptions::IncrementBy(value, _) => {
                    written.increment = Some(number(value)?);
                }
                ast::SequenceOptions::MinValue(value) => {
                    written.minimum = value.as_ref().map(number).transpose()?;
                }
                ast::SequenceOptions::MaxValue(value) => {
                    written.maximum = value.as_ref().map(number).transpose()?;
                }
                ast::SequenceOptions::StartWith(value, _) => written.start = Some(number(value)?),
                ast::SequenceOptions::Cache(_) => {}
                // The parser has it the other way round.
                ast::SequenceOptions::Cycle(is_no) => written.cycles = !is_no,
            }
        }
        let always = matches!(generated, GeneratedAs::Always);
        Ok(Self { always, options: written.resolve(data_type, position)? })
    }
}

/// The type of a sequence's values, if they can be of it.
fn integer(data_type: &ast::DataType) -> Option<DataType> {
    match data_type {
        ast::DataType::SmallInt(None) | ast::DataType::Int2(None) => Some(DataType::Int16),
        ast::DataType::Int(None) | ast::DataType::Integer(None) | ast::DataType::Int4(None) => {
            Some(DataType::Int32)
        }
        ast::DataType::BigInt(None) | ast::DataType::Int8(None) => Some(DataType::Int64),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    fn created(sql: &str) -> std::result::Result<SequenceOptions, String> {
        match parse(sql).next().expect("a statement").map_err(|error| error.message)?.kind {
            StatementKind::CreateSequence(sequence) => Ok(sequence.options),
            StatementKind::CreateTable(table) => Ok(table.generated[0].expect("it is").options),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn options_have_the_defaults_of_their_type_and_direction_in_any_order() {
        let bigint = SequenceOptions {
            increment: 1,
            minimum: 1,
            maximum: i64::MAX,
            start: 1,
            cycles: false,
        };
        assert_eq!(created("CREATE SEQUENCE s"), Ok(bigint));
        assert_eq!(created("CREATE TABLE t (a BIGSERIAL)"), Ok(bigint));
        let down = SequenceOptions {
            increment: -2,
            minimum: i64::from(i32::MIN),
            maximum: 10,
            start: 9,
            cycles: true,
        };
        for options in [
            "START WITH 9 INCREMENT BY -2 MAXVALUE 10 CYCLE",
            "CACHE 7 CYCLE MAXVALUE 10 NO MINVALUE INCREMENT -2 START 9",
            "NO MINVALUE CYCLE START 9 CACHE 1 INCREMENT BY -2 MAXVALUE 10",
        ] {
            let identity =
                format!("CREATE TABLE t (a INT GENERATED ALWAYS AS IDENTITY ({options}))");
            assert_eq!(created(&identity), Ok(down), "{options}");
            assert_eq!(created(&format!("CREATE SEQUENCE s AS INT {options}")), Ok(down));
        }
        let no_cycle =
            created("CREATE TABLE t (a INT GENERATED BY DEFAULT AS IDENTITY (NO CYCLE))");
        assert!(!no_cycle.unwrap().cycles);
    }

    #[test]
    fn options_that_contradict_each_other_are_refused() {
        for (options, why) in [
            ("INCREMENT 0", "zero"),
            ("MINVALUE 5 MAXVALUE 5", "less than"),
            ("START 0", "between 1 and"),
            ("MAXVALUE 99999999999999999999", "64 bits"),
            ("START 1.5", "whole number"),
            ("OWNED BY t.a", "OWNED BY"),
        ] {
            let error = created(&format!("CREATE SEQUENCE s {options}")).unwrap_err();
            assert!(error.contains(why), "{options}: {error}");
        }
        let error = created("CREATE SEQUENCE s AS SMALLINT MAXVALUE 40000").unwrap_err();
        assert!(error.contains("32767"), "{error}");
        let error = created("CREATE TABLE t (a TEXT GENERATED ALWAYS AS IDENTITY)").unwrap_err();
        assert!(error.contains("SMALLINT"), "{error}");
    }
}
