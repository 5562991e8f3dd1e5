//! Fuel: how much an operator emits before it yields.
//!
//! One message can stand for far more bytes than it has itself: a batch is a few pages of a file, and the pairs of two
//! batches exist only once they are made. An operator that emitted all of it at once would fill memory with rows that
//! wait for others. So operators keep their input as *work* that is resumed, emit at most [`MemoryPolicy::activation`] bytes
//! per activation, give or take one delta, and yield; the operators downstream run before they continue.
//!
//! Rows on their way to other workers can still pile up. While they exceed a share of the budget
//! ([`MemoryBudget::is_congested`]), operators emit nothing. This cannot deadlock: a worker takes what was sent to it
//! whenever it runs.
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
use timely::progress::operate::FrontierInterest;
use timely::scheduling::Activator;

use crate::delta::{Delta, DeltaStream};

/// The fuel of an operator.
pub(crate) struct Fuel {
    budget: MemoryBudget,
    tank: usize,
    left: usize,
}

impl Fuel {
    pub(crate) fn new(context: &StateContext) -> Self {
        let budget = context.budget().clone();
        Self { tank: budget.policy().activation, budget, left: 0 }
    }

    /// Fills the tank: the operator was activated.
    pub(crate) fn refill(&mut self) {
        self.left = self.tank;
    }

    /// Whether fuel is left and the queues between workers have room.
    pub(crate) fn is_left(&self) -> bool {
        self.left > 0 && !self.budget.is_congested()
    }

    /// Consumes fuel for `bytes`.
    pub(crate) fn consume(&mut self, bytes: usize) {
        self.left = self.left.saturating_sub(bytes);
    }

    /// Schedules the operator again, for the work that is left.
    pub(crate) fn reschedule(&self, activator: &Activator) {
        if self.left == self.tank {
            // It did nothing because of others, who may share its core.
            thread::yield_now();
        }
        activator.activate();
    }
}

/// A bounded part of an operator's output.
pub(crate) struct Produced<T> {
    /// Rows.
    pub(crate) rows: Delta<T>,
    /// Errors, if there are any.
    pub(crate) errors: Option<Delta<T>>,
}

impl<T> From<Delta<T>> for Produced<T> {
    fn from(rows: Delta<T>) -> Self {
        Self { rows, errors: None }
    }
}

/// An operator that turns each message into work and advances the work within its fuel.
///
/// `open` pushes the work of a message. `advance` returns the next output of a piece of work, or `None` once it is done.
/// The work of a message is finished before that of later ones. Returns the rows and the errors.
pub(crate) fn fueled<'scope, T, C, W>(
    stream: Stream<'scope, T, C>,
    name: &str,
    context: &StateContext,
    mut open: impl FnMut(&mut C, &mut dyn FnMut(W)) + 'static,
    mut advance: impl FnMut(&mut W) -> Option<Produced<T>> + 'static,
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
    builder.set_notify_for(0, FrontierInterest::Never);
    let (rows_output, rows) = builder.new_output();
    let mut rows_output = OutputBuilder::<T, NoopBuilder<Delta<T>>>::from(rows_output);
    let (errors_output, errors) = builder.new_output();
    let mut errors_output = OutputBuilder::<T, NoopBuilder<Delta<T>>>::from(errors_output);
    let mut fuel = Fuel::new(context);
    builder.build(move |_capabilities| {
        let mut waiting: VecDeque<([Capability<T>; 2], W)> = VecDeque::new();
        move |_frontiers| {
            input.for_each(|capability, message: &mut C| {
                let capabilities = [capability.retain(0), capability.retain(1)];
                open(message, &mut |work| waiting.push_back((capabilities.clone(), work)));
            });
            let mut rows_output = rows_output.activate();
            let mut errors_output = errors_output.activate();
            fuel.refill();
            while fuel.is_left()
                && let Some(([for_rows, for_errors], work)) = waiting.front_mut()
            {
                let Some(Produced { mut rows, errors }) = advance(work) else {
                    waiting.pop_front();
                    continue;
                };
                fuel.consume(rows.bytes());
                if !rows.is_empty() {
                    rows_output.session_with_builder(&*for_rows).give_container(&mut rows);
                }
                if let Some(mut errors) = errors {
                    errors_output.session_with_builder(&*for_errors).give_container(&mut errors);
                }
            }
            if !waiting.is_empty() {
                fuel.reschedule(&activator);
            }
        }
    });
    (rows, errors)
}
