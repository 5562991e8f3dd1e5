//! Clauses that nothing reads.

use std::fmt::Display;

use sqlparser::ast::{OrderByExpr, Spanned};
use sqlparser::tokenizer::Span;

use crate::error::{Error, Position, Result};

/// Whether a clause is written.
pub(super) trait Clause {
    fn is_there(&self) -> bool;
}

impl<T> Clause for Option<T> {
    fn is_there(&self) -> bool {
        self.is_some()
    }
}

impl<T> Clause for Vec<T> {
    fn is_there(&self) -> bool {
        !self.is_empty()
    }
}

impl Clause for bool {
    fn is_there(&self) -> bool {
        *self
    }
}

/// Refuses the first of some clauses that is written.
pub(super) fn none_of(clauses: &[(&dyn Clause, &str)], at: impl FnOnce() -> Span) -> Result<()> {
    match clauses.iter().find(|(clause, _)| clause.is_there()) {
        None => Ok(()),
        Some((_, name)) => refuse(name, at),
    }
}

/// The error of a clause that is not used, at the nearest node that has a position.
///
/// The position is computed for the error only: the span of a node is the union of those of all nodes below it.
pub(super) fn refuse(name: impl Display, at: impl FnOnce() -> Span) -> Result<()> {
    Err(Error::not_supported(name, Position::of_span(at())))
}

/// Refuses the parts of an ORDER BY that have no effect.
pub(super) fn check_order(order: &[OrderByExpr]) -> Result<()> {
    for OrderByExpr { expr, options: _, with_fill } in order {
        none_of(&[(with_fill, "WITH FILL")], || expr.span())?;
    }
    Ok(())
}
