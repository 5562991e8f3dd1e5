//! Pairs of rows of two relations.

pub mod asof_join;
#[cfg(test)]
pub(crate) mod costs;
pub mod join;
pub mod outer_join;
pub mod range_join;
pub mod row_pairs;
pub(crate) mod semijoin;
