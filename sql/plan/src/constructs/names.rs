//! The parts of expressions of a text.

use std::ops::ControlFlow;

use alluvium_sql_functions::FUNCTIONS;
use alluvium_sql_syntax::error::Error;
use alluvium_sql_syntax::statement::fold;
use alluvium_sql_syntax::walk::walk;
use sqlparser::ast::{BinaryOperator, Expr, SelectItem, Spanned, Visitor};
use sqlparser::tokenizer::Span;

use crate::bounds::Parts;

/// How many parts of an expression are compared at most.
const MOST_PARTS: usize = 64;

/// The name of the column that an expression is.
pub(super) fn column_name(expression: &Expr) -> Option<String> {
    match expression {
        Expr::Identifier(name) => Some(fold(name)),
        Expr::CompoundIdentifier(parts) => parts.last().map(fold),
        Expr::Nested(inner) => column_name(inner),
        _ => None,
    }
}

/// The name that a key has in the plan; empty if it is not known.
pub(super) fn key_name(key: &Expr, selected: &[SelectItem]) -> String {
    if let Some(name) = column_name(key) {
        return name;
    }
    let number = match key {
        Expr::Value(value) => value.to_string().parse::<usize>().ok(),
        _ => None,
    };
    let item = number.and_then(|number| selected.get(number.checked_sub(1)?));
    match item {
        Some(SelectItem::UnnamedExpr(expression)) => column_name(expression).unwrap_or_default(),
        Some(SelectItem::ExprWithAlias { alias, expr }) => {
            column_name(expr).unwrap_or_else(|| fold(alias))
        }
        _ => String::new(),
    }
}

/// Where an item calls an aggregate.
pub(super) fn aggregate(item: &SelectItem) -> Option<Span> {
    struct First(Option<Span>);
    impl Visitor for First {
        type Break = Error;

        fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<Error> {
            if let Expr::Function(function) = expression
                && function.over.is_none()
                && FUNCTIONS.aggregate.contains_key(&function.name.to_string().to_lowercase())
            {
                self.0 = self.0.or(Some(function.name.span()));
            }
            ControlFlow::Continue(())
        }
    }
    let mut first = First(None);
    walk(item, &mut first).ok()?;
    first.0
}

/// The parts of an expression, if it computes something of columns.
pub(super) fn parts(expression: &Expr) -> Option<Parts> {
    struct Collected {
        parts: Parts,
        seen: usize,
    }
    impl Visitor for Collected {
        type Break = Error;

        fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<Error> {
            self.seen += 1;
            if self.seen > MOST_PARTS {
                return ControlFlow::Break(Error::new("there are too many parts", None));
            }
            self.parts.columns.extend(match expression {
                Expr::Identifier(_) | Expr::CompoundIdentifier(_) => column_name(expression),
                _ => None,
            });
            if let Expr::BinaryOp { op, .. } = expression
                && is_arithmetic(op)
            {
                self.parts.operators.push(op.to_string());
            }
            ControlFlow::Continue(())
        }
    }
    match expression {
        Expr::Function(function) if function.over.is_some() => return None,
        Expr::BinaryOp { op, .. } if !is_arithmetic(op) => return None,
        Expr::BinaryOp { .. }
        | Expr::UnaryOp { .. }
        | Expr::Function(_)
        | Expr::Cast { .. }
        | Expr::Extract { .. }
        | Expr::Case { .. }
        | Expr::AtTimeZone { .. }
        | Expr::Substring { .. } => {}
        _ => return None,
    }
    let mut collected = Collected { parts: Parts::default(), seen: 0 };
    walk(expression, &mut collected).ok()?;
    let parts = collected.parts.sorted();
    (!parts.columns.is_empty()).then_some(parts)
}

fn is_arithmetic(operator: &BinaryOperator) -> bool {
    matches!(
        operator,
        BinaryOperator::Plus
            | BinaryOperator::Minus
            | BinaryOperator::Multiply
            | BinaryOperator::Divide
            | BinaryOperator::Modulo
    )
}
