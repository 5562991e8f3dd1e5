//! The operator that runs reductions.

use std::rc::Rc;

use alluvium_trace::memory::StateContext;
use alluvium_trace::{Batch, Epoch, NullTrace, RowBuffer};
use differential_dataflow::operators::arrange::Arranged;
use differential_dataflow::trace::TraceReader;
use timely::Container;
use timely::dataflow::Scope;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::Capability;
use timely::dataflow::operators::generic::{OperatorInfo, builder_rc::OperatorBuilder};
use timely::scheduling::Activator;

use super::input::Input;
use super::interval::{Interval, earlier, frontier};
use super::port::Port;
use crate::fault::{self, Fault};
use crate::movement::batcher::{Batcher, Sealed};
use crate::movement::delta::{Delta, DeltaStream};
use crate::movement::fuel::Fuel;
use crate::movement::operator;

/// Processes the changes of intervals.
pub(crate) trait Reducer<Tr>: 'static {
    /// A message of the output.
    type Message: Container + Clone;

    /// Everything before this is processed already; `None` if everything is.
    fn lower(&self) -> Option<Epoch>;

    /// Starts an interval in which there may be changes. Its output is shipped at `time`.
    fn start(&mut self, interval: Interval, inputs: &mut [Input<Tr>], time: Epoch);

    /// Continues the interval until it is done or the fuel is used up; returns whether it is done.
    fn advance(&mut self, fuel: &mut Fuel, emit: &mut dyn FnMut(Self::Message)) -> bool;

    /// Everything before `upper` is done.
    fn finish(&mut self, upper: Option<Epoch>);

    /// Maintains the state of the reducer; called once per activation.
    fn maintain(&mut self);
}

/// Builds the operator. `reducer` is made within it, and `open` adds its outputs.
pub(super) fn drive<'scope, Tr, R, P, S>(
    inputs: Vec<Arranged<'scope, Tr>>,
    name: &str,
    context: &StateContext,
    reducer: impl FnOnce(OperatorInfo) -> R,
    open: impl FnOnce(&mut OperatorBuilder<'scope, Epoch>) -> (P, S),
) -> S
where
    Tr: TraceReader<Time = Epoch, Batch = Batch<Epoch>> + 'static,
    R: Reducer<Tr>,
    P: Port<R::Message>,
{
    let scope = inputs[0].stream.scope();
    let mut builder = OperatorBuilder::new(name.to_owned(), scope);
    let info = builder.operator_info();
    let activator = scope.activator_for(Rc::clone(&info.address));
    let reducer = reducer(info);
    let lower = reducer.lower();
    let is_aligned = inputs.len() == 1;
    let mut handles = Vec::with_capacity(inputs.len());
    let mut sides = Vec::with_capacity(inputs.len());
    for Arranged { stream, trace } in inputs {
        handles.push(builder.new_input(stream, Pipeline));
        sides.push(Input::new(trace, is_aligned, lower));
    }
    let (mut port, streams) = open(&mut builder);
    let mut driver = Driver::new(sides, reducer, activator, context);
    operator::build(builder, move |_capabilities| {
        move |frontiers| {
            for (number, handle) in handles.iter_mut().enumerate() {
                handle.for_each(|capability, batches: &mut Vec<Batch<Epoch>>| {
                    if driver.inputs[number].receive(batches.drain(..), driver.lower) {
                        driver.hold(capability.retain(0));
                        port.hold(&capability);
                    }
                });
                let frontier = frontiers[number].frontier().first().copied();
                driver.inputs[number].reach(frontier);
            }
            driver.activate(&mut port);
            port.release(driver.held_from());
        }
    });
    streams
}

/// The input of a reduction of one input.
pub(crate) trait Changing<'scope>: Sized {
    /// The trace that keeps the rows.
    type Trace: TraceReader<Time = Epoch, Batch = Batch<Epoch>> + 'static;

    /// Where the operator is built.
    fn scope(&self) -> Scope<'scope, Epoch>;

    /// Builds the operator. `reducer` is made within it, and `open` adds its outputs.
    fn drive<R, P, S>(
        self,
        name: &str,
        context: &StateContext,
        reducer: impl FnOnce(OperatorInfo) -> R,
        open: impl FnOnce(&mut OperatorBuilder<'scope, Epoch>) -> (P, S),
    ) -> S
    where
        R: Reducer<Self::Trace, Message = Vec<Batch<Epoch>>>,
        P: Port<Vec<Batch<Epoch>>>;
}

impl<'scope, Tr> Changing<'scope> for Arranged<'scope, Tr>
where
    Tr: TraceReader<Time = Epoch, Batch = Batch<Epoch>> + 'static,
{
    type Trace = Tr;

    fn scope(&self) -> Scope<'scope, Epoch> {
        self.stream.scope()
    }

    fn drive<R, P, S>(
        self,
        name: &str,
        context: &StateContext,
        reducer: impl FnOnce(OperatorInfo) -> R,
        open: impl FnOnce(&mut OperatorBuilder<'scope, Epoch>) -> (P, S),
    ) -> S
    where
        R: Reducer<Tr, Message = Vec<Batch<Epoch>>>,
        P: Port<Vec<Batch<Epoch>>>,
    {
        drive(vec![self], name, context, reducer, open)
    }
}

/// Rows that are sorted by the reduction and kept nowhere, and what turns them into keys and values.
pub(crate) struct Unkept<'scope, E> {
    pub(crate) rows: DeltaStream<'scope, Epoch>,
    pub(crate) encode: E,
}

impl<'scope, E> Changing<'scope> for Unkept<'scope, E>
where
    E: FnMut(&Delta<Epoch>, &mut RowBuffer<Epoch>) + 'static,
{
    type Trace = NullTrace<Epoch>;

    fn scope(&self) -> Scope<'scope, Epoch> {
        self.rows.scope()
    }

    fn drive<R, P, S>(
        self,
        name: &str,
        context: &StateContext,
        reducer: impl FnOnce(OperatorInfo) -> R,
        open: impl FnOnce(&mut OperatorBuilder<'scope, Epoch>) -> (P, S),
    ) -> S
    where
        R: Reducer<NullTrace<Epoch>, Message = Vec<Batch<Epoch>>>,
        P: Port<Vec<Batch<Epoch>>>,
    {
        let Self { rows, mut encode } = self;
        let scope = rows.scope();
        let mut builder = OperatorBuilder::new(name.to_owned(), scope);
        let info = builder.operator_info();
        let activator = scope.activator_for(Rc::clone(&info.address));
        let address = info.address.to_vec();
        let reducer = reducer(info);
        let lower = reducer.lower();
        let mut input = builder.new_input(rows, Pipeline);
        let (mut port, streams) = open(&mut builder);
        // The pruning of the output does not apply to these rows.
        let any_thread = scope.worker().sync_activator_for(address);
        let mut batcher = Batcher::new(&context.without_pruning(), frontier(lower), any_thread);
        let mut driver = Driver::new(vec![Input::of_rows(lower)], reducer, activator, context);
        operator::build(builder, move |_capabilities| {
            move |frontiers| {
                input.for_each(|capability, delta: &mut Delta<Epoch>| {
                    encode(delta, batcher.rows(capability.retain(0)));
                    port.hold(&capability);
                });
                batcher.advance(frontiers[0].frontier(), |sealed| {
                    if let Sealed::Batch(capability, batch) = sealed
                        && driver.inputs[0].receive([batch], driver.lower)
                    {
                        driver.hold(capability.clone());
                    }
                });
                driver.inputs[0].reach(batcher.sealed().first().copied());
                driver.activate(&mut port);
                port.release(driver.held_from().into_iter().chain(batcher.held_from()).min());
            }
        });
        streams
    }
}

/// The progress of a reduction.
struct Driver<Tr, R> {
    inputs: Vec<Input<Tr>>,
    reducer: R,
    /// Everything before this is done; `None` once everything is.
    lower: Option<Epoch>,
    /// The interval that is being processed.
    running: Option<Interval>,
    /// The earliest capability of the waiting batches.
    held: Option<Capability<Epoch>>,
    fuel: Fuel,
    activator: Activator,
}

impl<Tr, R> Driver<Tr, R>
where
    Tr: TraceReader<Time = Epoch, Batch = Batch<Epoch>>,
    R: Reducer<Tr>,
{
    fn new(
        inputs: Vec<Input<Tr>>,
        reducer: R,
        activator: Activator,
        context: &StateContext,
    ) -> Self {
        let lower = reducer.lower();
        let fuel = Fuel::new(context);
        Self { inputs, reducer, lower, running: None, held: None, fuel, activator }
    }

    /// Processes the completed rows of the inputs, as far as the fuel of one activation reaches.
    fn activate(&mut self, port: &mut impl Port<R::Message>) {
        self.fuel.refill();
        let done = self.run(port);
        self.reducer.maintain();
        if !done {
            self.fuel.reschedule(&self.activator);
        }
    }

    /// The time of the earliest capability that is held.
    fn held_from(&self) -> Option<Epoch> {
        self.held.as_ref().map(|capability| *capability.time())
    }

    fn hold(&mut self, capability: Capability<Epoch>) {
        match &self.held {
            Some(earlier) if earlier.time() <= capability.time() => {}
            _ => self.held = Some(capability),
        }
    }

    /// Processes all complete intervals; returns whether it came to the end of them.
    fn run(&mut self, port: &mut impl Port<R::Message>) -> bool {
        if !port.advance(&mut self.fuel) {
            return false;
        }
        while let Some(interval) = self.running.or_else(|| self.next_interval()) {
            if let Some(capability) = &self.held
                && self.inputs.iter().any(Input::is_waiting)
            {
                if fault::armed(Fault::PanicInTactic) {
                    panic!("a fault was injected into a reduction");
                }
                if self.running.is_none() {
                    self.reducer.start(interval, &mut self.inputs, *capability.time());
                    self.running = Some(interval);
                }
                let emit = &mut |message| port.emit(capability, message);
                if !self.reducer.advance(&mut self.fuel, emit) {
                    return false;
                }
            }
            self.finish(interval);
            if !port.advance(&mut self.fuel) {
                return false;
            }
        }
        true
    }

    /// The interval that the inputs have completed since the last one.
    fn next_interval(&self) -> Option<Interval> {
        let lower = self.lower?;
        let uppers = self.inputs.iter().map(Input::upper);
        let upper = uppers.reduce(earlier).flatten();
        (upper != Some(lower)).then_some(Interval { lower, upper })
    }

    fn finish(&mut self, interval: Interval) {
        self.running = None;
        self.lower = interval.upper;
        for input in &mut self.inputs {
            input.advance(interval.upper);
        }
        self.reducer.finish(interval.upper);
        self.held = match (self.held.take(), interval.upper) {
            (Some(mut capability), Some(upper)) if self.inputs.iter().any(Input::is_waiting) => {
                if *capability.time() < upper {
                    capability.downgrade(&upper);
                }
                Some(capability)
            }
            _ => None,
        };
    }
}
