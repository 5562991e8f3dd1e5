//! Expressions.

use sqlparser::ast::{Array, CeilFloorKind, DateTimeField, Expr, Interval, Spanned, TypedString};

use super::clause::{Clause, none_of, refuse};
use super::{data_type, function};
use crate::error::Result;

/// Expressions of which every part is read, or is an expression that is checked by itself.
macro_rules! read_wholly {
    () => {
        Expr::Identifier(_)
        | Expr::CompoundIdentifier(_)
        | Expr::CompoundFieldAccess { root: _, access_chain: _ }
        | Expr::JsonAccess { value: _, path: _ }
        | Expr::IsFalse(_)
        | Expr::IsNotFalse(_)
        | Expr::IsTrue(_)
        | Expr::IsNotTrue(_)
        | Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::IsUnknown(_)
        | Expr::IsNotUnknown(_)
        | Expr::IsDistinctFrom(_, _)
        | Expr::IsNotDistinctFrom(_, _)
        | Expr::InList { expr: _, list: _, negated: _ }
        | Expr::InSubquery { expr: _, subquery: _, negated: _ }
        | Expr::Between { expr: _, negated: _, low: _, high: _ }
        | Expr::BinaryOp { left: _, op: _, right: _ }
        | Expr::AnyOp { left: _, compare_op: _, right: _, is_some: _ }
        | Expr::AllOp { left: _, compare_op: _, right: _ }
        | Expr::UnaryOp { op: _, expr: _ }
        | Expr::AtTimeZone { timestamp: _, time_zone: _ }
        | Expr::Extract { field: _, syntax: _, expr: _ }
        | Expr::SimilarTo { negated: _, expr: _, pattern: _, escape_char: _ }
        | Expr::Substring {
            expr: _,
            substring_from: _,
            substring_for: _,
            special: _,
            shorthand: _,
        }
        | Expr::Trim { trim_where: _, trim_what: _, expr: _, trim_characters: _ }
        | Expr::Position { expr: _, r#in: _ }
        | Expr::Overlay { expr: _, overlay_what: _, overlay_from: _, overlay_for: _ }
        | Expr::Nested(_)
        | Expr::Value(_)
        // `TABLE t` as an argument of a function of relations, which reads it.
        | Expr::Prefixed { prefix: _, value: _ }
        | Expr::Exists { subquery: _, negated: _ }
        | Expr::Subquery(_)
        | Expr::GroupingSets(_)
        | Expr::Cube(_)
        | Expr::Rollup(_)
        | Expr::Tuple(_)
        | Expr::Named { expr: _, name: _ }
        | Expr::Array(Array { elem: _, named: _ })
        | Expr::Wildcard(_)
        | Expr::QualifiedWildcard(_, _)
        | Expr::Case { case_token: _, end_token: _, operand: _, conditions: _, else_result: _ }
        | Expr::Dictionary(_)
        | Expr::Map(_)
        | Expr::Lambda(_)
    };
}

pub(super) fn check(expression: &Expr) -> Result<()> {
    let at = || expression.span();
    match expression {
        read_wholly!() => Ok(()),
        Expr::Function(called) => function::check(called),
        Expr::Cast { kind: _, expr: _, data_type, array, format } => {
            none_of(&[(array, "CAST to an ARRAY"), (format, "CAST … FORMAT")], at)?;
            data_type::check(data_type, at)
        }
        Expr::TypedString(TypedString { data_type, value: _, uses_odbc_syntax: _ }) => {
            data_type::check(data_type, at)
        }
        Expr::Struct { values: _, fields } => {
            none_of(&[(fields, "STRUCT with types (CAST it)")], at)
        }
        Expr::Like { negated: _, any, expr: _, pattern: _, escape_char: _ }
        | Expr::ILike { negated: _, any, expr: _, pattern: _, escape_char: _ } => {
            none_of(&[(any, "LIKE ANY")], at)
        }
        Expr::Ceil { expr: _, field } | Expr::Floor { expr: _, field } => match field {
            CeilFloorKind::DateTimeField(DateTimeField::NoDateTime) => Ok(()),
            CeilFloorKind::DateTimeField(_) => refuse("CEIL or FLOOR … TO (see date_trunc)", at),
            CeilFloorKind::Scale(_) => refuse("CEIL or FLOOR to a number of digits", at),
        },
        Expr::Interval(interval) => check_interval(interval),
        Expr::Convert { .. } => refuse("CONVERT (write CAST)", at),
        Expr::IsNormalized { .. } => refuse("IS NORMALIZED", at),
        Expr::InUnnest { .. } => refuse("IN UNNEST(…) (write array_has)", at),
        Expr::RLike { .. } => refuse("RLIKE (write ~)", at),
        Expr::Collate { expr: _, collation } => refuse(
            format!("COLLATE {collation} (text is ordered by its bytes, as by COLLATE \"C\")"),
            at,
        ),
        Expr::MatchAgainst { .. } => refuse("MATCH … AGAINST", at),
        Expr::OuterJoin(_) => refuse("(+) for an outer join", at),
        Expr::Prior(_) => refuse("PRIOR", at),
        Expr::MemberOf(_) => refuse("MEMBER OF (write array_has)", at),
    }
}

fn check_interval(interval: &Interval) -> Result<()> {
    let Interval {
        value,
        leading_field: _,
        leading_precision,
        last_field,
        fractional_seconds_precision,
    } = interval;
    let refused: &[(&dyn Clause, &str)] = &[
        (leading_precision, "the precision of an INTERVAL"),
        (last_field, "INTERVAL … TO"),
        (fractional_seconds_precision, "the precision of an INTERVAL"),
    ];
    none_of(refused, || value.span())
}
