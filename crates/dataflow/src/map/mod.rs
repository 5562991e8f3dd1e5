//! Filters and projections, fused, over whole batches.

mod bounded;
mod chain;
mod errors;
mod evaluate;
mod expression;
mod fallible;
mod filter;

use std::sync::Arc;

use alluvium_trace::PageTime;
use alluvium_trace::memory::StateContext;
use arrow::datatypes::SchemaRef;
use datafusion_physical_expr::PhysicalExpr;

use self::chain::{Chain, Rest};
use crate::fault::{self, Fault};
use crate::movement::delta::{Delta, DeltaStream};
use crate::movement::fuel::fueled;

pub use bounded::{Bounded, LARGEST, Sizes};
pub use chain::MapStep;
pub use errors::{ErrorRows, error_schema, message, print_row, whole_message};
pub use fallible::{can_fail, is_total};

/// The rows of `stream` that `filter` keeps, with the columns `project`, and the errors of rows for
/// which either fails.
///
/// All expressions are over the columns of `stream`. A row is kept if the filter is true for it; the
/// projection is evaluated only for those. `schema` names the columns of the output and is of the
/// types of `project`.
///
/// A row for which an expression fails is not in the first stream. Instead the second stream has one row of
/// [`error_schema`], at the same time and with the same weight, so that retracting the row retracts its error. Whether a
/// row is an error depends on that row alone, not on the batch it is in. A value of more than [`LARGEST`] bytes is an error.
/// Rows that become far larger are evaluated few at a time. If [`can_fail`] is false for every expression, the
/// second stream stays empty.
pub fn map<'scope, T: PageTime>(
    stream: DeltaStream<'scope, T>,
    filter: Option<Arc<dyn PhysicalExpr>>,
    project: Vec<Arc<dyn PhysicalExpr>>,
    schema: SchemaRef,
    context: &StateContext,
) -> (DeltaStream<'scope, T>, DeltaStream<'scope, T>) {
    maps(stream, vec![MapStep { filter, project, schema, reports: true }], context)
}

/// As [`map`], of which each step is one, over the rows of the step before.
pub fn maps<'scope, T: PageTime>(
    stream: DeltaStream<'scope, T>,
    steps: Vec<MapStep>,
    context: &StateContext,
) -> (DeltaStream<'scope, T>, DeltaStream<'scope, T>) {
    let chain = Chain::new(steps);
    fueled(
        stream,
        "Map",
        context,
        |delta: &mut Delta<T>, open| open(Rest::new(std::mem::take(delta))),
        move |rest| {
            if fault::armed(Fault::PanicInMap) {
                panic!("a fault was injected into a map");
            }
            chain.advance(rest)
        },
    )
}
