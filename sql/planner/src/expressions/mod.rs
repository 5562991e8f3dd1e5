//! Expressions that mean something else than DataFusion plans.

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
