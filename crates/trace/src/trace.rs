//! Traces that are made in a known context.

use differential_dataflow::trace::{Trace, TraceReader};

use crate::batch::Batch;
use crate::memory::StateContext;

/// A trace of [`Batch`]es that is made in a context.
///
/// `Trace::new`, which differential-dataflow calls, uses the context that the thread has
/// [entered](crate::memory::context::enter).
pub trait StateTrace: Trace<Batch = Batch<<Self as TraceReader>::Time>> {
    /// An empty trace.
    fn in_context(context: &StateContext) -> Self;
}
