//! An operator of a physical plan.

use std::fmt::Debug;

use alluvium_dataflow::movement::delta::DeltaStream;
use alluvium_trace::Epoch;

use super::Rendering;

/// The place of an operator in its physical plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OperatorId(pub(super) usize);

/// An operator of a physical plan.
///
/// It holds the specs of its dataflow operators, so that building them on a worker cannot fail.
pub(crate) trait Operator: Debug + Send + Sync {
    /// Builds the operator and returns its rows. Its inputs have been built.
    fn render<'scope>(&self, rendering: &mut Rendering<'scope, '_>) -> DeltaStream<'scope, Epoch>;
}
