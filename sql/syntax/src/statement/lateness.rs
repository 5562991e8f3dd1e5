//! How late the rows of a table or view may come: `LATENESS` of a column, and `WATERMARK FOR` it.
//!
//! ```sql
//! CREATE TABLE t (ts TIMESTAMP LATENESS INTERVAL '1' HOUR, n BIGINT LATENESS 10)
//! CREATE TABLE t (ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '1' HOUR)
//! LATENESS v.ts INTERVAL '1' HOUR
//! ```
//!
//! sqlparser knows neither. The dialect [parses](parse) them where the options of a column stand, as options with names that
//! no text can spell; a `WATERMARK FOR` is there as a column of this name and type. [`take`] takes both out again.

use alluvium_dataflow::messages::wording::type_name;
use alluvium_sql_functions::microseconds::nanoseconds;
use arrow::datatypes::{DataType, Field, Schema};
use sqlparser::ast::{
    self, BinaryOperator, ColumnOption, Expr, Ident, ObjectName, SqlOption, UnaryOperator, Value,
};
use sqlparser::dialect::{Dialect, GenericDialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::column_type::interval;
use super::syntax_error::syntax_error;
use crate::error::{Error, Position, Result, no_column};
use crate::name::{fold, relation_name};
use crate::syntax;

/// How late the rows of a table or view may come, by one of its columns.
///
/// The waterline of the column is the largest value that was inserted, less this much. Rows below it as it stood before
/// their epoch come too late. Rows with NULL never do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lateness {
    /// The number of the column: of type TIMESTAMP, DATE, BIGINT, INTEGER or SMALLINT.
    pub column: usize,
    /// How much, at least 0, as Arrow has the column's values: units of time, days or numbers.
    pub by: i64,
}

/// The name of the option that stands for `LATENESS`.
const LATENESS: &str = "LATENESS of a column";

/// The name of the option that stands for `WATERMARK FOR`.
const WATERMARK: &str = "WATERMARK FOR a column";

/// Parses `LATENESS` or the words after `WATERMARK FOR`, if one of them is next.
pub(super) fn parse(
    parser: &mut Parser<'_>,
) -> std::result::Result<Option<ColumnOption>, ParserError> {
    if is_word(parser.peek_token_ref(), "LATENESS") {
        let key = Ident::with_span(parser.next_token().span, LATENESS);
        let value = amount(parser)?;
        return Ok(Some(ColumnOption::Options(vec![SqlOption::KeyValue { key, value }])));
    }
    if !is_word(parser.get_current_token(), "FOR")
        || !is_word(parser.get_previous_token(), "WATERMARK")
    {
        return Ok(None);
    }
    let key = Ident::with_span(parser.get_previous_token().span, WATERMARK);
    let column = Expr::Identifier(parser.parse_identifier()?);
    parser.expect_keyword(Keyword::AS)?;
    let (left, right) = (Box::new(column), Box::new(amount(parser)?));
    let value = Expr::BinaryOp { left, op: BinaryOperator::Assignment, right };
    Ok(Some(ColumnOption::Options(vec![SqlOption::KeyValue { key, value }])))
}

/// Parses sums and what binds more tightly: a NOT NULL that follows is another option.
fn amount(parser: &mut Parser<'_>) -> std::result::Result<Expr, ParserError> {
    parser.parse_subexpr(GenericDialect.prec_value(Precedence::Between))
}

fn is_word(token: &TokenWithSpan, word: &str) -> bool {
    matches!(&token.token, Token::Word(found)
        if found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word))
}

/// `LATENESS view.column expression`
#[derive(Clone, Debug)]
pub struct ViewLateness {
    /// The view.
    pub view: String,
    /// Where it is named.
    pub position: Position,
    /// The statement's source.
    pub text: String,
    declared: Declared,
}

/// Reads a statement that begins with LATENESS, whose source is `text`.
pub(super) fn read_statement(parser: &mut Parser<'_>, text: &str) -> Result<ViewLateness> {
    let start = Position::of_span(parser.next_token().span);
    let name = parser.parse_object_name(false).map_err(syntax_error)?;
    let position = Position::of(&name).or(start).unwrap_or(Position { line: 1, column: 1 });
    let parts: Option<Vec<&Ident>> = name.0.iter().map(|part| part.as_ident()).collect();
    let Some([view @ .., column]) = parts.as_deref() else {
        return Err(usage(position));
    };
    if view.is_empty() {
        return Err(usage(position));
    }
    let view = ObjectName::from(view.iter().map(|part| (*part).clone()).collect::<Vec<Ident>>());
    let (view, _) = relation_name(&view)?;
    let mut by = amount(parser).map_err(syntax_error)?;
    syntax::normalize(&mut by)?;
    syntax::check(&by)?;
    let (clause, column) = ("LATENESS", (*column).clone());
    let declared = Declared { clause, position: start, column, by: Some(by) };
    Ok(ViewLateness { view, position, text: text.to_owned(), declared })
}

fn usage(position: Position) -> Error {
    let message = "LATENESS names a view and a column: write LATENESS view.column INTERVAL '1' HOUR; \
                   that of a table's column stands in CREATE TABLE";
    Error::new(message, position)
}

impl ViewLateness {
    /// The lateness, as declared of one of these columns.
    pub fn read(&self, schema: &Schema) -> Result<Lateness> {
        self.declared.read(schema.fields())
    }
}

/// A lateness as it was written.
#[derive(Clone, Debug)]
pub(super) struct Declared {
    /// The clause that declared it.
    clause: &'static str,
    position: Option<Position>,
    column: Ident,
    /// How much; `None` for nothing.
    by: Option<Expr>,
}

/// Takes the declarations out of a definition.
pub(super) fn take(create: &mut ast::CreateTable) -> Result<Vec<Declared>> {
    let mut declared = Vec::new();
    for column in &mut create.columns {
        for option in std::mem::take(&mut column.options) {
            match declaration(&option.option) {
                Some((key, value)) => declared.push(Declared::new(key, value, &column.name)?),
                None => column.options.push(option),
            }
        }
    }
    let is_watermark = |column: &ast::ColumnDef| {
        declared.iter().any(|declared: &Declared| {
            declared.clause == "WATERMARK"
                && declared.position == Position::of_span(column.name.span)
        })
    };
    let mut watermarks = create.columns.iter().filter(|column| is_watermark(column));
    if let Some(column) = watermarks.find(|column| !column.options.is_empty()) {
        let message = "nothing can follow a WATERMARK: write ',' or ')' behind it";
        return Err(Error::new(message, Position::of_span(column.name.span)));
    }
    create.columns.retain(|column| !is_watermark(column));
    for Declared { by, .. } in &mut declared {
        by.as_mut().map(syntax::normalize).transpose()?;
        by.as_ref().map(syntax::check).transpose()?;
    }
    Ok(declared)
}

/// The name and the value of an option that stands for a declaration.
fn declaration(option: &ColumnOption) -> Option<(&Ident, &Expr)> {
    let ColumnOption::Options(options) = option else { return None };
    let [SqlOption::KeyValue { key, value }] = options.as_slice() else { return None };
    let is_ours = key.quote_style.is_none() && [LATENESS, WATERMARK].contains(&&*key.value);
    is_ours.then_some((key, value))
}

impl Declared {
    fn new(key: &Ident, value: &Expr, column: &Ident) -> Result<Self> {
        let position = Position::of_span(key.span);
        let (clause, column) = ("LATENESS", column.clone());
        if key.value == LATENESS {
            return Ok(Self { clause, position, column, by: Some(value.clone()) });
        }
        let clause = "WATERMARK";
        let Expr::BinaryOp { left, right, .. } = value else {
            return Err(Error::not_supported("this WATERMARK", position));
        };
        let Expr::Identifier(column) = left.as_ref() else {
            return Err(Error::not_supported("this WATERMARK", position));
        };
        let is_it =
            |expr: &Expr| matches!(expr, Expr::Identifier(name) if fold(name) == fold(column));
        let by = match right.as_ref() {
            itself if is_it(itself) => None,
            Expr::BinaryOp { left, op: BinaryOperator::Minus, right } if is_it(left) => {
                Some(right.as_ref().clone())
            }
            other => {
                let message = format!(
                    "write WATERMARK FOR {column} AS {column} - INTERVAL '1' HOUR, with the time that rows may come late by"
                );
                return Err(Error::new(message, Position::of(other).or(position)));
            }
        };
        Ok(Self { clause, position, column: column.clone(), by })
    }

    /// Where it was written.
    pub(super) fn position(&self) -> Option<Position> {
        self.position
    }

    /// The lateness, as declared of one of these columns.
    pub(super) fn read(&self, fields: &[impl AsRef<Field>]) -> Result<Lateness> {
        let fields: Vec<&Field> = fields.iter().map(AsRef::as_ref).collect();
        let name = fold(&self.column);
        let position = Position::of_span(self.column.span).or(self.position);
        let Some(column) = fields.iter().position(|field| *field.name() == name) else {
            let names = fields.iter().map(|field| field.name().as_str());
            return Err(no_column(&name, None, names).at(position));
        };
        let data_type = fields[column].data_type();
        let kind = Kind::of(data_type).ok_or_else(|| {
            let message = format!(
                "{} is for columns of type TIMESTAMP, DATE, BIGINT, INTEGER or SMALLINT; \"{name}\" is {}",
                self.clause,
                type_name(data_type)
            );
            Error::new(message, self.position)
        })?;
        let by = match &self.by {
            None => 0,
            Some(expression) => {
                let at = Position::of(expression).or(self.position);
                self.by(expression, &name, data_type, kind).map_err(|error| error.at(at))?
            }
        };
        Ok(Lateness { column, by })
    }

    fn by(&self, expression: &Expr, name: &str, data_type: &DataType, kind: Kind) -> Result<i64> {
        let clause = self.clause;
        let negative =
            || Error::new(format!("the {clause} of \"{name}\" cannot be negative"), None);
        let expected = || {
            let example = match kind {
                Kind::Number => "a whole number, such as 100",
                Kind::Time { .. } => "one interval, such as INTERVAL '1' HOUR",
                Kind::Days => "one interval of whole days, such as INTERVAL '1' DAY",
            };
            let data_type = type_name(data_type);
            let message = format!("the {clause} of \"{name}\", which is {data_type}, is {example}");
            Error::new(message, None)
        };
        match (expression, kind) {
            (Expr::UnaryOp { op: UnaryOperator::Minus, .. }, _) => Err(negative()),
            (Expr::Value(value), Kind::Number) => match &value.value {
                Value::Number(number, _) => number.parse().map_err(|_| expected()),
                _ => Err(expected()),
            },
            (Expr::Interval(_), Kind::Time { .. } | Kind::Days) => {
                let interval = interval(expression)?.ok_or_else(expected)?;
                if interval.months != 0 {
                    let message = format!(
                        "the {clause} of \"{name}\" cannot have months or years, which differ in length: write it in days"
                    );
                    return Err(Error::new(message, None));
                }
                let day = 86_400_000_000_000;
                let nanoseconds =
                    i128::from(interval.days) * day + i128::from(interval.nanoseconds);
                let unit = match kind {
                    Kind::Time { unit } => unit,
                    _ => day,
                };
                if nanoseconds < 0 {
                    return Err(negative());
                }
                if kind == Kind::Days && nanoseconds % day != 0 {
                    return Err(expected());
                }
                // A part of a unit makes rows late that are not later than this.
                let by = nanoseconds / unit + i128::from(nanoseconds % unit != 0);
                i64::try_from(by).map_err(|_| expected())
            }
            _ => Err(expected()),
        }
    }
}

/// The kind of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Number,
    Days,
    /// Units of so many nanoseconds.
    Time {
        unit: i128,
    },
}

impl Kind {
    fn of(data_type: &DataType) -> Option<Self> {
        Some(match data_type {
            DataType::Int16 | DataType::Int32 | DataType::Int64 => Self::Number,
            DataType::Date32 => Self::Days,
            DataType::Timestamp(unit, _) => Self::Time { unit: i128::from(nanoseconds(*unit)) },
            _ => return None,
        })
    }
}
