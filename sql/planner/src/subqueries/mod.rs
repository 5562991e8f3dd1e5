//! Subqueries, rewritten to joins.
//!
//! `subquery` rewrites those in expressions and LATERAL, with `membership` for IN and `single_row` for scalars; `correlation` finds those that
//! become the condition of a join as they are, `dependent_join` takes any other.

pub(crate) mod correlation;
pub(crate) mod dependent_join;
pub(crate) mod membership;
pub(crate) mod single_row;
pub(crate) mod subquery;
