//! `x > ANY (SELECT …)` and `x > ALL (SELECT …)` as conditions.
//!
//! - `x = ANY (…)` is `x IN (…)`, and `x <> ALL (…)` is `x NOT IN (…)`, wherever they stand.
//! - As one of the conditions of WHERE that must all be true, `x > ANY (…)` says that there is a row with a smaller value,
//!   and `x > ALL (…)` that there is none for which the comparison is not true. So they become semi and anti joins. Elsewhere
//!   the result may be NULL, which EXISTS never is.

use sqlparser::ast::{
    BinaryOperator, Expr, Ident, Query, Select, SelectItem, TableAlias, TableAliasColumnDef,
    TableFactor, TableWithJoins, Value,
};

use super::simple_query::simple_query;

/// The name of the values that are compared, as a relation and as a column of it.
const VALUES: &str = "compared values";

/// The expression as one with IN; `None` if it is not one of the two that mean the same.
pub(super) fn as_in(expression: &mut Expr) -> Option<Expr> {
    let (left, right, negated) = match expression {
        Expr::AnyOp { left, compare_op: BinaryOperator::Eq, right, is_some: _ } => {
            (left, right, false)
        }
        Expr::AllOp { left, compare_op: BinaryOperator::NotEq, right } => (left, right, true),
        _ => return None,
    };
    let Expr::Subquery(subquery) = right.as_mut() else { return None };
    let expr = Box::new(std::mem::replace(left.as_mut(), Expr::value(Value::Null)));
    let subquery = std::mem::replace(subquery.as_mut(), simple_query(Vec::new(), Vec::new(), None));
    Some(Expr::InSubquery { expr, subquery: Box::new(subquery), negated })
}

/// Puts EXISTS in the place of comparisons among the conditions of WHERE.
pub(super) fn as_exists(select: &mut Select) {
    let Some(condition) = &mut select.selection else { return };
    let mut waiting = vec![condition];
    while let Some(condition) = waiting.pop() {
        match condition {
            Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
                waiting.extend([left.as_mut(), right.as_mut()]);
            }
            Expr::Nested(inner) => waiting.push(inner),
            Expr::AnyOp { left, compare_op, right, is_some: _ }
                if *compare_op != BinaryOperator::Eq =>
            {
                if let Expr::Subquery(query) = right.as_ref() {
                    let value = compared(left, compare_op);
                    *condition = exists(query, value, false);
                }
            }
            Expr::AllOp { left, compare_op, right } if *compare_op != BinaryOperator::NotEq => {
                if let Expr::Subquery(query) = right.as_ref() {
                    let value = Expr::IsNotTrue(Box::new(compared(left, compare_op)));
                    *condition = exists(query, value, true);
                }
            }
            _ => {}
        }
    }
}

/// `(left op value)`
fn compared(left: &Expr, op: &BinaryOperator) -> Expr {
    let name = || Ident::with_quote('"', VALUES);
    Expr::Nested(Box::new(Expr::BinaryOp {
        left: Box::new(left.clone()),
        op: op.clone(),
        right: Box::new(Expr::CompoundIdentifier(vec![name(), name()])),
    }))
}

/// `EXISTS (SELECT 1 FROM (query) AS values (value) WHERE condition)`
fn exists(query: &Query, condition: Expr, negated: bool) -> Expr {
    let name = || Ident::with_quote('"', VALUES);
    let alias = TableAlias {
        explicit: true,
        name: name(),
        columns: vec![TableAliasColumnDef { name: name(), data_type: None }],
        at: None,
    };
    let values = TableFactor::Derived {
        lateral: false,
        subquery: Box::new(query.clone()),
        alias: Some(alias),
        sample: None,
    };
    let one = SelectItem::UnnamedExpr(Expr::value(Value::Number("1".to_owned(), false)));
    let from = TableWithJoins { relation: values, joins: Vec::new() };
    let subquery = simple_query(vec![one], vec![from], Some(condition));
    Expr::Exists { subquery: Box::new(subquery), negated }
}
