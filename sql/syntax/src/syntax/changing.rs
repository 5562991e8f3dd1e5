//! Functions that return different results for the same arguments.

use std::ops::ControlFlow;

use alluvium_sql_functions::FUNCTIONS;
use datafusion_expr::Volatility;
use sqlparser::ast;

use super::called;
use crate::error::{Error, Position};

/// Refuses a call of one of them in a place where it cannot be.
pub fn changing_function(function: &ast::Function, place: &str) -> ControlFlow<Error> {
    let Some(name) = called(function) else { return ControlFlow::Continue(()) };
    let Some(scalar) = FUNCTIONS.scalar.get(&name) else { return ControlFlow::Continue(()) };
    let position = Position::of(&function.name);
    ControlFlow::Break(match scalar.signature().volatility {
        // Stable functions depend on the time, which is constant within an epoch.
        Volatility::Immutable | Volatility::Stable => return ControlFlow::Continue(()),
        Volatility::Volatile => Error::new(
            format!("{name}() gives another value at each call and cannot be used in {place}"),
            position,
        ),
    })
}
