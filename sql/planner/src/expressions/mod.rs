//! Expressions that mean something else than DataFusion plans.
//!
//! - `operators` plans `^`, numbers and arithmetic, `time_arithmetic` sums of times, `now` leaves the time open;
//! - `frame_bounds` corrects window frames, `grouping_sets` their sets, `corrections` other expressions;
//! - `defaults` plans DEFAULTs, `evaluation` evaluates with errors for overflow, and `constant` refuses constants that overflow;
//! - `types` has the type of an expression, `array_text` reads the arrays of Postgres.

pub(crate) mod array_text;
pub(crate) mod constant;
pub(crate) mod corrections;
pub(crate) mod defaults;
pub(crate) mod evaluation;
pub mod frame_bounds;
pub(crate) mod grouping_sets;
pub(crate) mod now;
pub mod operators;
pub(crate) mod time_arithmetic;
pub(crate) mod types;
