//! Output in pieces: no more at a time than others can take.
//!
//! What one message means can be far more than it takes itself: a batch is a few pages of a file, the pairs of
//! two batches are nothing until somebody looks. An operator that put out all of it at once would fill memory
//! with rows that wait. So what is to be put out is kept as *work*, which gives a delta whenever it is asked,
//! and an operator asks for [`MemoryPolicy::activation`] bytes each time it runs; those that read it run before it runs again.
//! Rows on their way to other workers can still pile up. While too many do
//! ([`MemoryBudget::is_congested`]), it asks for none: that always
//! ends, because nothing but running keeps a worker from taking what is sent to it.
//!
//! [`MemoryPolicy::activation`]: alluvium_trace::memory::MemoryPolicy::activation

use std::collections::VecDeque;
use std::rc::Rc;
use std::thread;

use alluvium_trace::PageTime;
use alluvium_trace::memory::{MemoryBudget, StateContext};
use timely::Container;
use timely::container::NoopBuilder;
use timely::dataflow::Stream;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::Capability;
use timely::dataflow::operators::generic::{OutputBuilder, builder_rc::OperatorBuilder};
use timely::scheduling::Activator;

use crate::delta::{Delta, DeltaStream};

/// How much an operator puts out each time it runs.
pub(crate) struct Pace {
    budget: MemoryBudget,
    piece: usize,
    left: usize,
}

impl Pace {
    pub(crate) fn new(context: &StateContext) -> Self {
        let budget = context.budget().clone();
        let piece = budget.policy().activation;
        Self { budget, piece, left: 0 }
    }

    /// The operator runs.
    pub(crate) fn start(&mut self) {
        self.left = self.piece;
    }

    /// Whether it is to put out more.
    pub(crate) fn goes_on(&self) -> bool {
        self.left > 0 && !self.budget.is_congested()
    }

    /// So many bytes were put out.
    pub(crate) fn count(&mut self, bytes: usize) {
        self.left = self.left.saturating_sub(bytes);
    }

    /// The operator has more to put out when it runs again, which is soon.
    pub(crate) fn pause(&self, activator: &Activator) {
        if self.left == self.piece {
            // Others have to run first, on cores that may be this one.
            thread::yield_now();
        }
        activator.activate();
    }
}

/// Something that is put out.
pub(crate) struct Piece<T> {
    /// Rows.
    pub(crate) rows: Delta<T>,
    /// Errors, if there are any.
    pub(crate) errors: Option<Delta<T>>,
}

impl<T> From<Delta<T>> for Piece<T> {
    fn from(rows: Delta<T>) -> Self {
        Self { rows, errors: None }
    }
}

/// Puts out the rows and the errors that `next` makes of the work that each message means, one piece after the
/// other until there is none. The work of a message is done before that of later ones.
pub(crate) fn in_pieces<'scope, T, C, W>(
    stream: Stream<'scope, T, C>,
    context: &StateContext,
    name: &str,
    mut work: impl FnMut(&mut C, &mut dyn FnMut(W)) + 'static,
    mut next: impl FnMut(&mut W) -> Option<Piece<T>> + 'static,
) -> (DeltaStream<'scope, T>, DeltaStream<'scope, T>)
where
    T: PageTime,
    C: Container + Clone,
    W: 'static,
{
    let scope = stream.scope();
    let mut builder = OperatorBuilder::new(name.to_owned(), scope);
    let activator = scope.activator_for(Rc::clone(&builder.operator_info().address));
    let mut input = builder.new_input(stream, Pipeline);
    let (rows_output, rows) = builder.new_output();
    let mut rows_output = OutputBuilder::<T, NoopBuilder<Delta<T>>>::from(rows_output);
    let (errors_output, errors) = builder.new_output();
    let mut errors_output = OutputBuilder::<T, NoopBuilder<Delta<T>>>::from(errors_output);
    let mut pace = Pace::new(context);
    builder.build(move |_capabilities| {
        let mut waiting: VecDeque<([Capability<T>; 2], W)> = VecDeque::new();
        move |_frontiers| {
            input.for_each(|capability, message: &mut C| {
                let capabilities = [capability.retain(0), capability.retain(1)];
                work(message, &mut |work| waiting.push_back((capabilities.clone(), work)));
            });
            let mut rows_output = rows_output.activate();
            let mut errors_output = errors_output.activate();
            pace.start();
            while pace.goes_on()
                && let Some(([for_rows, for_errors], work)) = waiting.front_mut()
            {
                let Some(Piece { mut rows, errors }) = next(work) else {
                    waiting.pop_front();
                    continue;
                };
                pace.count(rows.bytes());
                rows_output.session_with_builder(&*for_rows).give_container(&mut rows);
                if let Some(mut errors) = errors {
                    errors_output.session_with_builder(&*for_errors).give_container(&mut errors);
                }
            }
            if !waiting.is_empty() {
                pace.pause(&activator);
            }
        }
    });
    (rows, errors)
}
