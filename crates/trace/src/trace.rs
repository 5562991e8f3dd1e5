//! Traces that are made in a known context.

use differential_dataflow::trace::Trace;

use crate::memory::StateContext;

/// A trace that is made in a context.
///
/// `Trace::new`, which differential-dataflow calls, uses the context that the thread has
/// [entered](crate::memory::context::enter).
pub trait StateTrace: Trace {
    /// An empty trace.
    fn in_context(context: &StateContext) -> Self;
}
