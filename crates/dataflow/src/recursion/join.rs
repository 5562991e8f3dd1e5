//! Inner joins inside of a recursion.

use alluvium_trace::Spine;
use alluvium_trace::memory::StateContext;
use differential_dataflow::operators::arrange::TraceAgent;

use super::entered::{self, RoundRows};
use super::{Round, Rounds};
use crate::joins::join::{Spec, pairs};
use crate::movement::delta::DeltaStream;
use crate::rows::layout::Layout;
use crate::state::arrangement::{Arrangement, Kept, arrange};

/// A side of a join inside of a recursion.
pub enum Side<'outer, 'inner> {
    /// Rows that differ by round, arranged inside.
    Own(Arrangement<'inner, TraceAgent<Spine<Round>>>),
    /// An arrangement of the dataflow around.
    Entered(Kept<'outer>),
}

impl<'inner> Side<'_, 'inner> {
    /// Sorts rows by the key of `layout`. They stay on the worker they are on.
    pub fn arrange(
        rows: DeltaStream<'inner, Round>,
        layout: &Layout,
        context: &StateContext,
    ) -> Self {
        let arranged = arrange::<Round, Spine<Round>>(rows, layout, "ArrangeRounds", context);
        Side::Own(Arrangement { arranged, layout: layout.clone() })
    }
}

/// The pairs of rows of `left` and `right` with equal keys, in each round.
///
/// Both sides are keyed by columns of the same types, and equal keys are on the same worker.
pub fn join<'inner>(
    spec: &Spec,
    left: Side<'_, 'inner>,
    right: Side<'_, 'inner>,
    rounds: Rounds<'inner>,
    context: &StateContext,
) -> DeltaStream<'inner, Round> {
    let enter = |kept| entered::enter(kept, rounds);
    match (left, right) {
        (Side::Own(left), Side::Own(right)) => {
            pairs::<RoundRows, _, _>(spec, left, right, false, context)
        }
        (Side::Own(left), Side::Entered(right)) => {
            pairs::<RoundRows, _, _>(spec, left, enter(right), false, context)
        }
        (Side::Entered(left), Side::Own(right)) => {
            pairs::<RoundRows, _, _>(spec, enter(left), right, false, context)
        }
        (Side::Entered(left), Side::Entered(right)) => {
            pairs::<RoundRows, _, _>(spec, enter(left), enter(right), false, context)
        }
    }
}
