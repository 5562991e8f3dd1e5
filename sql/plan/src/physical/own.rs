//! Rows that an operator keeps in its own order.

use alluvium_dataflow::joins::row_pairs::Contexts;
use alluvium_trace::BoundColumn;
use alluvium_trace::memory::StateContext;

use super::pruning::PrunedBy;
use super::{Compiler, Place, Rendering, State};
use crate::{IncrementalPlan, Retention};

/// One of the states of an operator that has several, each pruned in its own way.
#[derive(Debug)]
pub(crate) struct OwnRows {
    state: State,
    pruning: Option<PrunedBy>,
}

impl OwnRows {
    /// The state `id` of the operator of `plan`: rows in the layout of `kind`, of which those of `retention` are needed.
    /// `find` says where a column lies in the bytes of every row.
    pub(crate) fn new(
        id: String,
        kind: &str,
        plan: &IncrementalPlan,
        retention: &Retention,
        find: impl Fn(usize) -> Option<BoundColumn>,
        compiler: &mut Compiler,
    ) -> Self {
        let pruning = compiler.pruning(&id, retention, retention.column().and_then(find));
        let state = State::of(id, kind, plan.fingerprint(), &[], retention);
        Self { state, pruning }
    }

    /// The context of the rows.
    fn context(&self, rendering: &Rendering<'_, '_>) -> StateContext {
        rendering.pruned(rendering.context_of(&self.state), self.pruning.as_ref())
    }

    /// The contexts of the left and the right rows of a join.
    pub(crate) fn contexts(
        [left, right]: &[OwnRows; 2],
        rendering: &Rendering<'_, '_>,
    ) -> Contexts {
        Contexts { left: left.context(rendering), right: right.context(rendering) }
    }

    /// Where the rows are kept.
    pub(crate) fn place(&self) -> Place {
        Place::Own(self.state.clone())
    }
}
