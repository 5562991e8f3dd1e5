//! Subqueries, rewritten to joins.

pub(crate) mod correlation;
pub(crate) mod dependent_join;
pub(crate) mod membership;
pub(crate) mod single_row;
pub(crate) mod subquery;
