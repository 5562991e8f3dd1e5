//! The DEFAULT of a column.

use std::ops::ControlFlow;

use alluvium_sql_functions::sequence::is_of_sequences;
use sqlparser::ast::{self, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Query, Visitor};

use crate::error::{Error, Position};
use crate::syntax::{called, changing_function};
use crate::walk::walk;

/// The value of a column where nothing else is given for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnDefault {
    expression: Expr,
}

impl ColumnDefault {
    /// # Errors
    /// If a DEFAULT cannot have a part of the expression.
    pub(super) fn read(expression: &Expr) -> Result<Self, Error> {
        check(expression)?;
        Ok(Self { expression: expression.clone() })
    }

    /// The expression, as it was written.
    pub fn expression(&self) -> &Expr {
        &self.expression
    }

    /// Whether it has another value in each row because it asks a sequence.
    pub fn calls_sequence(&self) -> bool {
        let mut calls = false;
        self.each_call(|_| calls = true);
        calls
    }

    /// The sequences whose values it takes, as far as it names them.
    pub fn named_sequences(&self) -> Vec<String> {
        let mut names = Vec::new();
        self.each_call(|call| names.extend(named(call)));
        names
    }

    /// Visits the calls of functions of sequences.
    fn each_call(&self, visit: impl FnMut(&ast::Function)) {
        struct Calls<F>(F);
        impl<F: FnMut(&ast::Function)> Visitor for Calls<F> {
            type Break = Error;

            fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<Error> {
                if let Expr::Function(call) = expression
                    && calls_sequence(call)
                {
                    (self.0)(call);
                }
                ControlFlow::Continue(())
            }
        }
        // It was walked when it was read.
        let _ = walk(&self.expression, &mut Calls(visit));
    }
}

/// The text that a call has as its first argument.
fn named(call: &ast::Function) -> Option<String> {
    let FunctionArguments::List(list) = &call.args else { return None };
    let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(name))) = list.args.first() else {
        return None;
    };
    let mut name = name;
    while let Expr::Cast { expr: inner, .. } | Expr::Nested(inner) = name {
        name = inner;
    }
    match name {
        Expr::Value(value) => value.value.clone().into_string(),
        _ => None,
    }
}

/// Refuses unsupported constructs in a column's DEFAULT.
fn check(expression: &Expr) -> Result<(), Error> {
    struct Default;
    impl Visitor for Default {
        type Break = Error;

        fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Error> {
            ControlFlow::Break(Error::not_supported("a query in DEFAULT", Position::of(query)))
        }

        fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<Error> {
            match expression {
                // Each row has a value of its own.
                Expr::Function(function) if calls_sequence(function) => ControlFlow::Continue(()),
                Expr::Function(function) => changing_function(function, "DEFAULT"),
                Expr::Value(value) if matches!(value.value, ast::Value::Placeholder(_)) => {
                    let position = Position::of_span(value.span);
                    ControlFlow::Break(Error::not_supported("a parameter in DEFAULT", position))
                }
                Expr::Identifier(identifier) => ControlFlow::Break(Error::new(
                    format!("DEFAULT cannot refer to a column: \"{identifier}\""),
                    Position::of_span(identifier.span),
                )),
                _ => ControlFlow::Continue(()),
            }
        }
    }
    walk(expression, &mut Default)
}

/// Whether a function is of sequences.
fn calls_sequence(function: &ast::Function) -> bool {
    called(function).is_some_and(|name| is_of_sequences(&name))
}
