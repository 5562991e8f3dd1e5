//! Traversing trees.

use super::{Body, Distinct, Expr, From, Group, Order, Query, Select};

/// Visits every node of a tree.
pub(crate) trait Visitor {
    fn expr(&mut self, _expr: &Expr) {}
    fn select(&mut self, _select: &Select) {}
    fn query(&mut self, _query: &Query) {}
    fn from(&mut self, _from: &From) {}

    /// Whether to visit subqueries.
    fn enters(&self) -> bool {
        true
    }
}

pub(crate) fn query(node: &Query, visitor: &mut impl Visitor) {
    visitor.query(node);
    node.with.iter().for_each(|(_, inner)| query(inner, visitor));
    match &node.body {
        Body::Select(inner) => select(inner, visitor),
        Body::Set(_, _, left, right) => {
            query(left, visitor);
            query(right, visitor);
        }
    }
}

fn select(node: &Select, visitor: &mut impl Visitor) {
    visitor.select(node);
    if let Distinct::On(on, order) = &node.distinct {
        on.iter().for_each(|inner| expr(inner, visitor));
        orders(order, visitor);
    }
    node.items.iter().for_each(|item| expr(&item.expr, visitor));
    node.from.iter().for_each(|inner| from(inner, visitor));
    node.filter.iter().for_each(|inner| expr(inner, visitor));
    if let Group::Keys(keys) | Group::Sets(keys, _) = &node.group {
        keys.iter().for_each(|inner| expr(inner, visitor));
    }
    node.having.iter().for_each(|inner| expr(inner, visitor));
    node.qualify.iter().for_each(|inner| expr(inner, visitor));
}

fn from(node: &From, visitor: &mut impl Visitor) {
    visitor.from(node);
    match node {
        From::Relation(..) | From::Windowed(..) => {}
        From::Derived(inner, _) => query(inner, visitor),
        From::Recursive(recursion, _) => {
            query(&recursion.base, visitor);
            query(&recursion.step, visitor);
        }
        From::Lateral(left, inner, ..) => {
            from(left, visitor);
            query(inner, visitor);
        }
        From::Join(join) => {
            from(&join.left, visitor);
            from(&join.right, visitor);
            join.on.iter().for_each(|inner| expr(inner, visitor));
        }
        From::Unnested(_, _, list, ..) => expr(list, visitor),
    }
}

fn orders(orders: &[Order], visitor: &mut impl Visitor) {
    orders.iter().for_each(|order| expr(&order.expr, visitor));
}

pub(crate) fn expr(node: &Expr, visitor: &mut impl Visitor) {
    visitor.expr(node);
    match node {
        Expr::Column(..) | Expr::Literal(..) | Expr::Now => {}
        Expr::Binary(left, _, right) | Expr::Apart(left, right) => {
            expr(left, visitor);
            expr(right, visitor);
        }
        Expr::Not(inner)
        | Expr::Minus(inner)
        | Expr::IsNull(inner, _)
        | Expr::IsTrue(inner, _)
        | Expr::Like(inner, ..)
        | Expr::Cast(inner, ..)
        | Expr::Shift(inner, _)
        | Expr::Move(inner, _)
        | Expr::Days(inner, _)
        | Expr::AtZone(inner, _)
        | Expr::Element(inner, _)
        | Expr::Field(inner, ..)
        | Expr::Grouping(inner)
        | Expr::Unnest(inner) => expr(inner, visitor),
        Expr::Between(inner, low, high, _) => {
            [inner, low, high].into_iter().for_each(|inner| expr(inner, visitor));
        }
        Expr::In(inner, list, _) => {
            expr(inner, visitor);
            list.iter().for_each(|inner| expr(inner, visitor));
        }
        Expr::Case(operand, branches, otherwise) => {
            operand.iter().for_each(|inner| expr(inner, visitor));
            for (condition, value) in branches {
                expr(condition, visitor);
                expr(value, visitor);
            }
            otherwise.iter().for_each(|inner| expr(inner, visitor));
        }
        Expr::Call(_, list) | Expr::MakeList(list) | Expr::MakeStruct(list) => {
            list.iter().for_each(|inner| expr(inner, visitor));
        }
        Expr::Aggregate(aggregate) => {
            aggregate.arguments.iter().for_each(|inner| expr(inner, visitor));
            orders(&aggregate.order, visitor);
            aggregate.filter.iter().for_each(|inner| expr(inner, visitor));
        }
        Expr::Window(window) => {
            let inner = window.arguments.iter().chain(&window.partition).chain(&window.filter);
            inner.for_each(|inner| expr(inner, visitor));
            orders(&window.order, visitor);
        }
        Expr::Exists(inner, _) | Expr::Scalar(inner, _) => {
            if visitor.enters() {
                query(inner, visitor);
            }
        }
        Expr::Rows(left, _, right) => {
            left.iter().chain(right).for_each(|inner| expr(inner, visitor));
        }
        Expr::RowAmong(row, inner, _) | Expr::RowScalar(row, _, inner) => {
            row.iter().for_each(|inner| expr(inner, visitor));
            if visitor.enters() {
                query(inner, visitor);
            }
        }
        Expr::Among(inner, among, _) => {
            expr(inner, visitor);
            if visitor.enters() {
                query(among, visitor);
            }
        }
    }
}
