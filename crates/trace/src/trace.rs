//! Traces that are made in a known context.

use differential_dataflow::trace::Trace;

use crate::memory::StateContext;
use crate::spine::Waker;

/// A trace that is made in a context.
///
/// `Trace::new`, which differential-dataflow calls, uses the context that the thread has
/// [entered](crate::memory::context::enter).
pub trait StateTrace: Trace {
    /// An empty trace.
    fn in_context(context: &StateContext) -> Self;

    /// Says how the operator that owns the trace is scheduled, so that it calls [`exert`](Trace::exert) when there is
    /// something to do.
    fn wake_by(&mut self, _waker: Waker) {}
}
