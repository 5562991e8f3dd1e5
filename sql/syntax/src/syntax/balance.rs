//! Long chains of AND, OR and UNION, balanced.
//!
//! The parser makes `a OR b OR c OR …` a tree as deep as the chain is long, and everything after it recurses. Programs
//! write chains of thousands of these, so they are balanced, which changes neither their result nor their order.

use std::mem;

use sqlparser::ast::{BinaryOperator, Expr, SetExpr, SetOperator, SetQuantifier, Value};

/// Chains up to this length keep their shape.
const SHORT_CHAIN: usize = 64;

/// Balances a long chain of AND or of OR, which group in any way.
pub(super) fn balance(expression: &mut Expr) {
    let Expr::BinaryOp { op: operator @ (BinaryOperator::And | BinaryOperator::Or), .. } =
        expression
    else {
        return;
    };
    let operator = operator.clone();
    let mut length = 0;
    let mut first = &*expression;
    while let Expr::BinaryOp { left, op, .. } = first
        && *op == operator
    {
        (first, length) = (left, length + 1);
    }
    if length <= SHORT_CHAIN {
        return;
    }
    let mut operands = Vec::with_capacity(length + 1);
    let mut rest = mem::replace(expression, Expr::value(Value::Null));
    loop {
        match rest {
            Expr::BinaryOp { left, op, right } if op == operator => {
                operands.push(*right);
                rest = *left;
            }
            first => {
                operands.push(first);
                break;
            }
        }
    }
    let length = operands.len();
    let mut operands = operands.into_iter().rev();
    let join = |left, right| Expr::BinaryOp {
        left: Box::new(left),
        op: operator.clone(),
        right: Box::new(right),
    };
    if let Some(balanced) = joined(&mut operands, length, &join) {
        *expression = balanced;
    }
}

/// Balances a long chain of UNION.
///
/// UNION ALL groups in any way. The last UNION of a chain that removes duplicates removes those of all before it too.
pub(super) fn balance_unions(body: &mut SetExpr) {
    let mut length = 0;
    let mut first = &*body;
    while let Some(left) = union(first) {
        (first, length) = (left, length + 1);
    }
    if length <= SHORT_CHAIN {
        return;
    }
    let nothing = || {
        SetExpr::Values(sqlparser::ast::Values {
            explicit_row: false,
            value_keyword: false,
            rows: Vec::new(),
        })
    };
    let mut terms = Vec::with_capacity(length + 1);
    let mut distinct = 0;
    let mut rest = mem::replace(body, nothing());
    while union(&rest).is_some() {
        let SetExpr::SetOperation { left, set_quantifier, right, .. } = rest else { break };
        // The chain is taken apart from its end: the first that is found is the last one.
        if set_quantifier != SetQuantifier::All && distinct == 0 {
            distinct = length + 1 - terms.len();
        }
        terms.push(*right);
        rest = *left;
    }
    terms.push(rest);
    terms.reverse();
    let all = |left, right| united(SetQuantifier::All, left, right);
    let mut repeated = terms.split_off(distinct);
    let half = terms.len() / 2;
    let mut terms = terms.into_iter();
    if let (Some(left), Some(right)) =
        (joined(&mut terms, half, &all), joined(&mut terms, distinct - half, &all))
    {
        repeated.insert(0, united(SetQuantifier::Distinct, left, right));
    }
    let length = repeated.len();
    if let Some(balanced) = joined(&mut repeated.into_iter(), length, &all) {
        *body = balanced;
    }
}

/// The left side of a UNION whose columns are paired by position.
fn union(body: &SetExpr) -> Option<&SetExpr> {
    match body {
        SetExpr::SetOperation {
            left,
            op: SetOperator::Union,
            set_quantifier: SetQuantifier::All | SetQuantifier::Distinct | SetQuantifier::None,
            ..
        } => Some(left),
        _ => None,
    }
}

fn united(set_quantifier: SetQuantifier, left: SetExpr, right: SetExpr) -> SetExpr {
    let (left, right) = (Box::new(left), Box::new(right));
    SetExpr::SetOperation { left, op: SetOperator::Union, set_quantifier, right }
}

/// The next `length` operands in a tree of the least depth; none if there are none.
fn joined<T>(
    operands: &mut impl Iterator<Item = T>,
    length: usize,
    join: &impl Fn(T, T) -> T,
) -> Option<T> {
    if length < 2 {
        return if length == 1 { operands.next() } else { None };
    }
    let left = joined(operands, length / 2, join)?;
    let right = joined(operands, length - length / 2, join)?;
    Some(join(left, right))
}
