//! Aggregates: one row per group.
//!
//! - COUNT, SUM and AVG keep accumulators and no rows, and so do MIN and MAX of append-only rows (`linear`). An aggregate of
//!   distinct values is fed each value once, from a DISTINCT (`distinct_inputs`).
//! - MIN and MAX of rows that can be deleted keep the group's inputs in order and read the first ([`crate::reductions::ranked`]).
//! - All other aggregates keep the group's rows and are recomputed by DataFusion (`fallback`).
//!
//! A GROUP BY that needs several of these puts their results side by side, as the lanes of a ranking.

pub mod accumulator;
mod decimal_sum;
mod distinct_inputs;
mod fallback;
pub mod float_sum;
mod function;
pub(crate) mod linear;
mod spec;

use alluvium_trace::Epoch;
use alluvium_trace::memory::StateContext;

pub use self::fallback::Fallback;
pub use self::function::{Aggregate, Function};
pub use self::spec::Spec;
use crate::movement::delta::{DeltaStream, concatenated};
use crate::movement::exchange::exchange;
use crate::reductions::ranked::extremes;

/// The groups of a stream, and the errors of groups without a result.
pub struct Aggregated<'scope> {
    /// The keys, then the aggregates, of every group that has rows.
    pub rows: DeltaStream<'scope, Epoch>,
    /// Errors, if there can be any; see [`crate::map::error_schema`].
    pub errors: Option<DeltaStream<'scope, Epoch>>,
}

/// Groups the rows of `stream`. Exchanges rows by group.
pub fn aggregate<'scope>(
    spec: &Spec,
    stream: DeltaStream<'scope, Epoch>,
    context: &StateContext,
) -> Aggregated<'scope> {
    let mut lanes = Vec::new();
    let mut errors = Vec::new();
    // Sums alone exchange what is left of their rows.
    let is_grouped = spec.fallback.is_some() || !spec.ranked.is_empty();
    let rows = if is_grouped { exchange(stream, &spec.key, context) } else { stream };
    if let Some(linear) = &spec.linear {
        let (rows, failed) = linear::linear(linear, &rows, is_grouped, context);
        lanes.push(rows);
        errors.push(failed);
    }
    if let Some(fallback) = &spec.fallback {
        let (rows, failed) = fallback::fallback(fallback, &rows, context);
        lanes.push(rows);
        errors.push(failed);
    }
    lanes.extend(spec.ranked.iter().map(|columns| columns.of(&rows)));
    let errors = concatenated(errors);
    let rows = match &spec.lanes {
        Some(lanes_spec) => extremes(lanes_spec, lanes, context),
        None => concatenated(lanes).expect("an aggregation has aggregates or keys"),
    };
    let rows = match &spec.in_order {
        Some(columns) => columns.of(&rows),
        None => rows,
    };
    Aggregated { rows, errors }
}
