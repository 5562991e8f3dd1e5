//! Rules of the analyzer and the optimizer.

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
