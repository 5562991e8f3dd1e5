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

use alluvium_trace::memory::StateContext;
use alluvium_trace::{Origin, PageTime};
use timely::Container;
use timely::container::NoopBuilder;
use timely::dataflow::Stream;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::Capability;
use timely::dataflow::operators::generic::{OutputBuilder, builder_rc::OperatorBuilder};
use timely::progress::operate::FrontierInterest;
use timely::scheduling::Activator;

use crate::movement::delta::{Delta, DeltaStream};
use crate::movement::operator;

/// The fuel of an operator.
pub(crate) struct Fuel {
    context: StateContext,
    tank: usize,
    left: usize,
}

impl Fuel {
    pub(crate) fn new(context: &StateContext) -> Self {
        Self { tank: context.activation(), context: context.clone(), left: 0 }
    }

    /// Fills the tank: the operator was activated.
    pub(crate) fn refill(&mut self) {
        self.tank = self.context.activation();
        self.left = self.tank;
    }

    /// Whether fuel is left and the queues between workers have room.
    pub(crate) fn is_left(&self) -> bool {
        self.left > 0 && !self.context.budget().is_congested()
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

/// Where an operator emits rows and errors: work that waits, advanced within fuel.
pub(crate) struct Emission<T: PageTime, W, F> {
    rows: OutputBuilder<T, NoopBuilder<Delta<T>>>,
    errors: OutputBuilder<T, NoopBuilder<Delta<T>>>,
    waiting: VecDeque<([Capability<T>; 2], W)>,
    advance: F,
    /// Whose rows they are.
    origin: Origin,
}

/// The rows and the errors that an operator emits.
pub(crate) type Emitted<'scope, T> = (DeltaStream<'scope, T>, DeltaStream<'scope, T>);

impl<T: PageTime, W, F: FnMut(&mut W) -> Option<Produced<T>>> Emission<T, W, F> {
    /// The outputs 0 and 1 of an operator that has its inputs and no outputs yet. `advance` returns the next output of a piece of
    /// work, or `None` once it is done.
    pub(crate) fn new<'scope>(
        builder: &mut OperatorBuilder<'scope, T>,
        advance: F,
    ) -> (Self, Emitted<'scope, T>) {
        let (rows, rows_stream) = builder.new_output();
        let (errors, errors_stream) = builder.new_output();
        let (rows, errors) = (OutputBuilder::from(rows), OutputBuilder::from(errors));
        let origin = Origin::here();
        let emission = Self { rows, errors, waiting: VecDeque::new(), advance, origin };
        (emission, (rows_stream, errors_stream))
    }

    /// Adds work, with a capability for each output. It is done after what waits already.
    pub(crate) fn push(&mut self, capabilities: [Capability<T>; 2], work: W) {
        self.waiting.push_back((capabilities, work));
    }

    /// Emits as much as there is fuel for; returns whether nothing waits any more.
    pub(crate) fn advance(&mut self, fuel: &mut Fuel) -> bool {
        if self.waiting.is_empty() {
            return true;
        }
        let mut rows_output = self.rows.activate();
        let mut errors_output = self.errors.activate();
        while fuel.is_left()
            && let Some(([for_rows, for_errors], work)) = self.waiting.front_mut()
        {
            let Some(Produced { mut rows, errors }) = (self.advance)(work) else {
                self.waiting.pop_front();
                continue;
            };
            let bytes = rows.bytes();
            fuel.consume(bytes);
            if !rows.is_empty() {
                self.origin.produce(rows.len(), || bytes);
                rows_output.session_with_builder(&*for_rows).give_container(&mut rows);
            }
            if let Some(mut errors) = errors {
                errors_output.session_with_builder(&*for_errors).give_container(&mut errors);
            }
        }
        self.waiting.is_empty()
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
    advance: impl FnMut(&mut W) -> Option<Produced<T>> + 'static,
) -> Emitted<'scope, T>
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
    let (mut emission, streams) = Emission::new(&mut builder, advance);
    let mut fuel = Fuel::new(context);
    operator::build(builder, move |_capabilities| {
        move |_frontiers| {
            input.for_each(|capability, message: &mut C| {
                let capabilities = [capability.retain(0), capability.retain(1)];
                open(message, &mut |work| emission.push(capabilities.clone(), work));
            });
            fuel.refill();
            if !emission.advance(&mut fuel) {
                fuel.reschedule(&activator);
            }
        }
    });
    streams
}
