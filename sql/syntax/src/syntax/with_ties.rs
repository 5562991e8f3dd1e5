//! `ORDER BY k FETCH FIRST n ROWS WITH TIES` as `QUALIFY RANK() OVER (ORDER BY k) <= n`.
//!
//! The ties of the last row have its rank, so these are the rows up to rank `n`. ORDER BY may name the selected columns by
//! name or number, which a window may not: it gets what they stand for. The ORDER BY of the query stays.

use std::ops::ControlFlow;

use sqlparser::ast::{
    BinaryOperator, Distinct, Expr, Fetch, Function, FunctionArgumentList, FunctionArguments,
    Ident, LimitClause, ObjectName, OrderBy, OrderByExpr, OrderByKind, Query, Select, SelectItem,
    SelectItemQualifiedWildcardKind, SetExpr, Spanned, Value, WildcardAdditionalOptions,
    WindowSpec, WindowType, visit_expressions,
};

use crate::error::{Error, Position, Result};
use crate::statement::fold;

/// Puts QUALIFY in the place of FETCH … WITH TIES.
///
/// # Errors
/// If there is no ORDER BY, or if a rank among the rows of the SELECT is not what decides.
pub(super) fn with_ties_as_rank(query: &mut Query) -> Result<()> {
    let Some(Fetch { with_ties: true, percent: false, quantity }) = &query.fetch else {
        return Ok(());
    };
    let position = || Position::of_span(query.body.span());
    let refused = |what: &str| Err(Error::not_supported(what, position()));
    let count =
        quantity.clone().unwrap_or_else(|| Expr::value(Value::Number("1".to_owned(), false)));
    if !is_count(&count) {
        return refused("FETCH … WITH TIES of anything but a whole number of rows");
    }
    match &query.limit_clause {
        None => {}
        Some(LimitClause::LimitOffset { limit: None, offset: Some(_), .. }) => {
            return refused("OFFSET beside FETCH … WITH TIES");
        }
        // FETCH stays, and is refused beside LIMIT.
        Some(_) => return Ok(()),
    }
    let Some(OrderBy { kind: OrderByKind::Expressions(order), .. }) = &query.order_by else {
        let message = "FETCH … WITH TIES needs an ORDER BY, which says what rows are ties";
        return Err(Error::new(message.to_owned(), position()));
    };
    let SetExpr::Select(select) = query.body.as_ref() else {
        return refused("FETCH … WITH TIES of anything but a SELECT (put the query into FROM)");
    };
    if let Some(clause) = decides_later(select) {
        let clause = format!("FETCH … WITH TIES beside {clause} (put the query into FROM)");
        return refused(&clause);
    }
    let order = order.iter().map(|key| of_rows(key, select)).collect::<Result<Vec<_>>>()?;
    let qualify = Expr::BinaryOp {
        left: Box::new(rank(order)),
        op: BinaryOperator::LtEq,
        right: Box::new(count),
    };
    if let SetExpr::Select(select) = query.body.as_mut() {
        select.qualify = Some(qualify);
    }
    query.fetch = None;
    Ok(())
}

/// The part of a SELECT that changes the number of ranked rows, or their columns beside those that are listed.
fn decides_later(select: &Select) -> Option<&'static str> {
    let is_replaced = |options: &WildcardAdditionalOptions| options.opt_replace.is_some();
    let has_unnest = |expression: &Expr| expression.to_string().to_lowercase().contains("unnest");
    if select.qualify.is_some() {
        return Some("QUALIFY");
    }
    if matches!(select.distinct, Some(Distinct::Distinct | Distinct::On(_))) {
        return Some("DISTINCT");
    }
    select.projection.iter().find_map(|item| match item {
        SelectItem::Wildcard(options)
        | SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(_), options) => {
            is_replaced(options).then_some("* REPLACE")
        }
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
            has_unnest(expr).then_some("UNNEST among the selected columns")
        }
        _ => None,
    })
}

/// A key of ORDER BY as one of the rows that the SELECT reads.
fn of_rows(key: &OrderByExpr, select: &Select) -> Result<OrderByExpr> {
    let position = || Position::of_span(key.expr.span());
    let expr = match &key.expr {
        Expr::Identifier(name) => aliased(name, select).unwrap_or(&key.expr),
        Expr::Value(value) => match &value.value {
            Value::Number(number, _) => match selected(number, select) {
                Some(expr) => expr,
                None => {
                    let what = "a number of a column behind * beside FETCH … WITH TIES";
                    return Err(Error::not_supported(what, position()));
                }
            },
            _ => &key.expr,
        },
        expr => {
            let names_alias = visit_expressions(expr, |inner| match inner {
                Expr::Identifier(name) if aliased(name, select).is_some() => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            });
            if names_alias.is_break() {
                let what = "an expression of a selected column's new name in the ORDER BY of FETCH … WITH TIES";
                return Err(Error::not_supported(what, position()));
            }
            expr
        }
    };
    let has_window = visit_expressions(expr, |inner| match inner {
        Expr::Function(function) if function.over.is_some() => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    if has_window.is_break() {
        let what = "FETCH … WITH TIES by a window function (put the query into FROM)";
        return Err(Error::not_supported(what, position()));
    }
    Ok(OrderByExpr { expr: expr.clone(), ..key.clone() })
}

/// The selected column of a number, if no `*` is in front of it. Of a number that is too large, which ORDER BY refuses, any.
fn selected<'a>(number: &str, select: &'a Select) -> Option<&'a Expr> {
    let place: usize = number.parse().ok()?;
    let mut columns = select.projection.iter().take(place).map(|item| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    });
    columns.try_fold(None, |_, column| column.map(Some))?
}

/// The expression of the selected column that has this name by AS.
fn aliased<'a>(name: &Ident, select: &'a Select) -> Option<&'a Expr> {
    let name = fold(name);
    select.projection.iter().find_map(|item| match item {
        SelectItem::ExprWithAlias { expr, alias } if fold(alias) == name => Some(expr),
        _ => None,
    })
}

/// `RANK() OVER (ORDER BY order)`
fn rank(order: Vec<OrderByExpr>) -> Expr {
    let window = WindowSpec {
        window_name: None,
        partition_by: Vec::new(),
        order_by: order,
        window_frame: None,
    };
    let none =
        FunctionArgumentList { duplicate_treatment: None, args: Vec::new(), clauses: Vec::new() };
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new("rank")]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(none),
        filter: None,
        null_treatment: None,
        over: Some(WindowType::WindowSpec(window)),
        within_group: Vec::new(),
    })
}

/// Whether a count of rows is written out, or a parameter.
fn is_count(count: &Expr) -> bool {
    match count {
        Expr::Value(value) => match &value.value {
            Value::Number(number, _) => number.parse::<u64>().is_ok(),
            Value::Placeholder(_) => true,
            _ => false,
        },
        _ => false,
    }
}
