//! The operands that an expression compares with each other.

use datafusion_common::tree_node::Transformed;
use datafusion_expr::expr::{Between, Case, InList};
use datafusion_expr::{BinaryExpr, Expr, Operator};

/// Replaces the operands of comparisons, BETWEEN, IN and CASE with an operand; other expressions stay as they are.
pub(crate) fn map_compared(part: Expr, change: &impl Fn(Expr) -> Expr) -> Transformed<Expr> {
    let boxed = |part: Box<Expr>| Box::new(change(*part));
    Transformed::yes(match part {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_comparison(op) => {
            Expr::BinaryExpr(BinaryExpr { left: boxed(left), op, right: boxed(right) })
        }
        Expr::Between(Between { expr, negated, low, high }) => Expr::Between(Between {
            expr: boxed(expr),
            negated,
            low: boxed(low),
            high: boxed(high),
        }),
        Expr::InList(InList { expr, list, negated }) => {
            let list = list.into_iter().map(change).collect();
            Expr::InList(InList { expr: boxed(expr), list, negated })
        }
        Expr::Case(Case { expr: Some(expr), when_then_expr, else_expr }) => {
            let branches = when_then_expr.into_iter().map(|(when, then)| (boxed(when), then));
            let when_then_expr = branches.collect();
            Expr::Case(Case { expr: Some(boxed(expr)), when_then_expr, else_expr })
        }
        part => return Transformed::no(part),
    })
}

fn is_comparison(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}
