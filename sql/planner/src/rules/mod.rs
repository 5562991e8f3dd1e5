//! Rules of the analyzer and the optimizer.
//!
//! - `optimizer` lists those that stay correct while data changes; `simplify` stays in bounds;
//! - `distinct_on`, `filter_push_down`, `join_keys` and `in_lists` take the place of DataFusion's, or correct them;
//! - `numbers` has DECIMAL and DOUBLE meet, and keeps results exact; `microseconds` is the unit of times;
//! - `intervals` and `interval_choice` compare intervals by length, `whole_days` dates with instants;
//! - `one_nan` and `one_zero` make equal floats the same, by `canonical_floats`; `equality` and `operands` find which are compared.

pub mod canonical_floats;
pub(crate) mod distinct_on;
pub mod equality;
pub(crate) mod filter_push_down;
pub(crate) mod in_lists;
pub(crate) mod interval_choice;
pub mod intervals;
pub(crate) mod join_keys;
pub mod microseconds;
pub(crate) mod numbers;
pub(crate) mod one_nan;
pub(crate) mod one_zero;
pub(crate) mod operands;
pub(crate) mod optimizer;
pub(crate) mod simplify;
pub(crate) mod whole_days;
