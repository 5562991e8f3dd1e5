//! How much a statement may hold.
//!
//! Planning compares the parts of some lists to each other, and prints what it plans again and again. So a long statement
//! is refused before it is planned: one within the limits takes a second or two.

use std::collections::HashSet;
use std::ops::ControlFlow;

use alluvium_sql_functions::{FunctionKind, LONGEST_PATTERN, function_kind};
use sqlparser::ast::{
    Array, BinaryOperator, Distinct, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArguments, GroupByExpr, GroupByWithModifier, Interval, OrderBy, OrderByKind, Query,
    Select, SelectItem, SetExpr, Value, WindowType, visit_expressions,
};

use super::shape::end_of;
use crate::error::{Error, Position, Result};
use crate::statement::MOST_COLUMNS;

/// The largest number of grouping sets of a SELECT.
const MOST_GROUPING_SETS: usize = 4_096;

/// The largest number of keys that these have together: each is planned with all keys.
const MOST_GROUPING_KEYS: usize = 100_000;

/// The largest number of relations that a SELECT joins.
const MOST_RELATIONS: usize = 100;

/// The largest number of expressions in a statement but literals, each part of one with its own.
const MOST_EXPRESSIONS: usize = 40_000;

/// The largest number of calls of aggregate and window functions in a statement: planning compares each to all others.
const MOST_AGGREGATES: usize = 1_000;

/// The largest number of different windows in a statement: each is sorted for and planned above the others.
const MOST_WINDOWS: usize = 200;

/// The largest number of arguments of a call, of branches of a CASE, of entries of a map or struct, of keys to order or
/// group by, and of selected columns that are computed.
const MOST_PARTS: usize = 1_000;

/// The largest number of elements of an array that is written out.
const MOST_ELEMENTS: usize = 32_768;

/// The largest number of consecutive subscripts and fields.
const MOST_SUBSCRIPTS: usize = 64;

/// How many `= ANY(list)` a list may be computed with, one in another.
const MOST_NESTED_ANY: usize = 4;

/// The findings of a walk over a statement.
#[derive(Default)]
pub(super) struct Counts {
    expressions: usize,
    /// Calls of aggregate and window functions.
    aggregates: usize,
    /// The windows of these calls, as they are written.
    windows: HashSet<String>,
}

impl Counts {
    pub(super) fn query(&self, query: &Query) -> Result<()> {
        let order = |order_by: &OrderBy| match &order_by.kind {
            OrderByKind::Expressions(keys) => keys.len(),
            OrderByKind::All(_) => 0,
        };
        let keys = query.order_by.as_ref().map_or(0, order);
        within(keys, MOST_PARTS, "ORDER BY has at most", "keys", || None)?;
        match &*query.body {
            SetExpr::Values(values) => {
                let columns = values.rows.first().map_or(0, |row| row.len());
                within(columns, MOST_COLUMNS, "VALUES has at most", "columns", || None)
            }
            _ => Ok(()),
        }
    }

    pub(super) fn select(&self, select: &Select) -> Result<()> {
        let at = || Position::of_span(select.select_token.0.span);
        let items = select.projection.len();
        within(items, MOST_COLUMNS, "a SELECT has at most", "columns", at)?;
        let computed = select.projection.iter().filter(|item| is_computed(item)).count();
        within(computed, MOST_PARTS, "a SELECT computes at most", "columns", at)?;
        if let Some(Distinct::On(keys)) = &select.distinct {
            within(keys.len(), MOST_PARTS, "DISTINCT ON has at most", "keys", at)?;
        }
        if let GroupByExpr::Expressions(keys, _) = &select.group_by {
            within(keys.len(), MOST_PARTS, "GROUP BY has at most", "keys", at)?;
        }
        let sets = grouping_sets(&select.group_by);
        within(sets, MOST_GROUPING_SETS, "GROUP BY has at most", "grouping sets", at)?;
        let all = sets.saturating_mul(keys(&select.group_by));
        let kind = "keys in all grouping sets together";
        within(all, MOST_GROUPING_KEYS, "GROUP BY has at most", kind, at)?;
        within(relations(select), MOST_RELATIONS, "a SELECT reads at most", "relations", at)
    }

    pub(super) fn expression(&mut self, expression: &Expr) -> Result<()> {
        let at = || end_of(expression);
        self.expressions += usize::from(!is_literal(expression));
        let most = MOST_EXPRESSIONS;
        within(
            self.expressions,
            most,
            "a statement has at most",
            "columns, operators and calls",
            at,
        )?;
        match expression {
            Expr::Function(function) => {
                self.aggregates += usize::from(is_aggregate(function));
                let kind = "calls of aggregate and window functions";
                within(self.aggregates, MOST_AGGREGATES, "a statement has at most", kind, at)?;
                if let Some(window) = &function.over {
                    self.windows.insert(window.to_string());
                    let windows = self.windows.len();
                    let kind = "different windows";
                    within(windows, MOST_WINDOWS, "a statement has at most", kind, at)?;
                }
                check_call(function, at)
            }
            Expr::Case { conditions, .. } => {
                within(conditions.len(), MOST_PARTS, "a CASE has at most", "branches", at)
            }
            Expr::Dictionary(fields) => {
                within(fields.len(), MOST_PARTS, "a struct has at most", "fields", at)
            }
            Expr::Struct { values: fields, .. } | Expr::Tuple(fields) => {
                within(fields.len(), MOST_PARTS, "a struct has at most", "fields", at)
            }
            Expr::Map(map) => {
                within(map.entries.len(), MOST_PARTS, "a map has at most", "entries", at)
            }
            Expr::Array(Array { elem: elements, .. }) => {
                within(elements.len(), MOST_ELEMENTS, "an array has at most", "elements", at)
            }
            Expr::Like { pattern, .. }
            | Expr::ILike { pattern, .. }
            | Expr::SimilarTo { pattern, .. } => check_pattern(pattern, at),
            Expr::BinaryOp { op, right, .. } if is_match(op) => check_pattern(right, at),
            Expr::AnyOp { right, .. } => {
                let most = MOST_NESTED_ANY;
                within(nested_any(right), most, "a list is computed with at most", "nested ANY", at)
            }
            Expr::CompoundFieldAccess { access_chain, .. } => {
                let most = MOST_SUBSCRIPTS;
                within(access_chain.len(), most, "an expression has at most", "subscripts", at)
            }
            _ => Ok(()),
        }
    }
}

/// Refuses more than there may be.
fn within(
    count: usize,
    most: usize,
    whole: &str,
    parts: &str,
    at: impl FnOnce() -> Option<Position>,
) -> Result<()> {
    match count <= most {
        true => Ok(()),
        false => Err(Error::new(format!("{whole} {most} {parts}"), at())),
    }
}

/// Whether an expression is a value that is written out, as in a row of VALUES.
fn is_literal(expression: &Expr) -> bool {
    match expression {
        Expr::Value(_) | Expr::TypedString(_) => true,
        Expr::UnaryOp { expr: value, .. }
        | Expr::Cast { expr: value, .. }
        | Expr::Interval(Interval { value, .. }) => matches!(**value, Expr::Value(_)),
        _ => false,
    }
}

fn is_computed(item: &SelectItem) -> bool {
    match item {
        SelectItem::UnnamedExpr(expression)
        | SelectItem::ExprWithAlias { expr: expression, .. }
        | SelectItem::ExprWithAliases { expr: expression, .. } => {
            !matches!(expression, Expr::Identifier(_) | Expr::CompoundIdentifier(_))
        }
        SelectItem::QualifiedWildcard(..) | SelectItem::Wildcard(_) => false,
    }
}

/// Whether planning compares a call to all others of its kind.
fn is_aggregate(function: &Function) -> bool {
    let kind = function_kind(&function.name.to_string().to_lowercase(), function.over.is_some());
    matches!(kind, Some(FunctionKind::Aggregate | FunctionKind::Window))
}

/// Whether an operator matches a regular expression.
fn is_match(operator: &BinaryOperator) -> bool {
    use BinaryOperator::{PGRegexIMatch, PGRegexMatch, PGRegexNotIMatch, PGRegexNotMatch};
    matches!(operator, PGRegexMatch | PGRegexIMatch | PGRegexNotMatch | PGRegexNotIMatch)
}

/// Patterns are compiled, which takes far more memory than they have.
fn check_pattern(pattern: &Expr, at: impl FnOnce() -> Option<Position>) -> Result<()> {
    let Expr::Value(value) = pattern else { return Ok(()) };
    let length = match &value.value {
        Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => text.len(),
        _ => 0,
    };
    within(length, LONGEST_PATTERN, "a pattern has at most", "characters", at)
}

/// How deeply `= ANY(list)` nests in the list of another.
fn nested_any(list: &Expr) -> usize {
    let mut deepest = 0;
    let _: ControlFlow<()> = visit_expressions(list, |part| {
        if let Expr::AnyOp { right, .. } = part
            && deepest <= MOST_NESTED_ANY
        {
            deepest = deepest.max(1 + nested_any(right));
        }
        ControlFlow::Continue(())
    });
    deepest
}

fn check_call(function: &Function, at: impl Fn() -> Option<Position>) -> Result<()> {
    if let FunctionArguments::List(list) = &function.args {
        if function.name.to_string().to_lowercase().starts_with("regexp_")
            && let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(pattern))) = list.args.get(1)
        {
            check_pattern(pattern, &at)?;
        }
        within(list.args.len(), MOST_PARTS, "a call has at most", "arguments", &at)?;
    }
    if let Some(WindowType::WindowSpec(window)) = &function.over {
        let keys = window.partition_by.len() + window.order_by.len();
        within(keys, MOST_PARTS, "a window has at most", "keys", &at)?;
    }
    Ok(())
}

/// The relations that a SELECT joins, which are planned one above the other.
pub(super) fn relations(select: &Select) -> usize {
    select.from.iter().map(|relation| 1 + relation.joins.len()).sum()
}

/// The number of keys to group by, also in lists of grouping sets.
fn keys(group_by: &GroupByExpr) -> usize {
    let GroupByExpr::Expressions(groups, _) = group_by else { return 0 };
    let of_group = |group: &Expr| match group {
        Expr::Cube(sets) | Expr::Rollup(sets) | Expr::GroupingSets(sets) => {
            sets.iter().map(Vec::len).sum()
        }
        _ => 1,
    };
    groups.iter().map(of_group).sum()
}

/// The number of grouping sets, which multiply if several lists of them are side by side.
fn grouping_sets(group_by: &GroupByExpr) -> usize {
    let GroupByExpr::Expressions(groups, modifiers) = group_by else { return 1 };
    let of_group = |group: &Expr| match group {
        Expr::Cube(columns) => 1_usize.checked_shl(columns.len() as u32).unwrap_or(usize::MAX),
        Expr::Rollup(columns) => columns.len() + 1,
        Expr::GroupingSets(sets) => sets.len(),
        _ => 1,
    };
    let of_modifier = |modifier: &GroupByWithModifier| match modifier {
        GroupByWithModifier::Cube => 1_usize.checked_shl(groups.len() as u32).unwrap_or(usize::MAX),
        GroupByWithModifier::Rollup => groups.len() + 1,
        _ => 1,
    };
    let all = groups.iter().map(of_group).chain(modifiers.iter().map(of_modifier));
    all.fold(1, usize::saturating_mul)
}
