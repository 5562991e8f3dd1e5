//! Where changes enter a dataflow.
//!
//! A source operator instead of timely's input handle: deltas enter as soon as the worker steps, whatever is sent or promised
//! afterwards. They enter within the operator's fuel ([`crate::movement::fuel`]).

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use alluvium_trace::memory::StateContext;
use alluvium_trace::{Origin, PageTime};
use timely::container::NoopBuilder;
use timely::dataflow::Scope;
use timely::dataflow::operators::generic::OutputBuilderSession;
use timely::dataflow::operators::generic::operator::source;
use timely::progress::Timestamp;
use timely::scheduling::Activator;

use crate::movement::delta::{Delta, DeltaStream};
use crate::movement::fuel::Fuel;

/// The worker's end of a stream of deltas.
///
/// Dropping it ends the stream: sent rows still arrive.
pub struct Input<T: Timestamp> {
    queue: Rc<RefCell<Queue<T>>>,
    activator: Activator,
}

/// Makes a delta once the dataflow takes it.
type Lazy<T> = Box<dyn FnOnce() -> Delta<T>>;

struct Queue<T> {
    deltas: VecDeque<(T, Lazy<T>)>,
    /// No delta will be sent before this; `None` once none will be sent at all.
    frontier: Option<T>,
}

/// A stream and its input.
pub fn input<'scope, T: PageTime>(
    scope: Scope<'scope, T>,
    name: &str,
    context: &StateContext,
) -> (Input<T>, DeltaStream<'scope, T>) {
    let queue =
        Rc::new(RefCell::new(Queue { deltas: VecDeque::new(), frontier: Some(T::minimum()) }));
    let mut activator = None;
    let activator_of = &mut activator;
    let shared = Rc::clone(&queue);
    let stream = source(scope, name, move |capability, info| {
        let origin = Origin::here();
        *activator_of = Some(scope.activator_for(Rc::clone(&info.address)));
        let again = scope.activator_for(info.address);
        let mut capability = Some(capability);
        let mut fuel = Fuel::new(context);
        move |output: &mut OutputBuilderSession<'_, T, NoopBuilder<Delta<T>>>| {
            origin.run(|| {
                let mut queue = shared.borrow_mut();
                let Some(held) = &mut capability else { return };
                fuel.refill();
                while fuel.is_left() {
                    let Some((time, delta)) = queue.deltas.pop_front() else { break };
                    held.downgrade(&time);
                    let mut delta = delta();
                    fuel.consume(delta.bytes());
                    if !delta.is_empty() {
                        origin.produce(delta.len(), || delta.bytes());
                        output.session_with_builder(&*held).give_container(&mut delta);
                    }
                }
                if let Some((time, _)) = queue.deltas.front() {
                    held.downgrade(time);
                    fuel.reschedule(&again);
                    return;
                }
                match &queue.frontier {
                    Some(time) => held.downgrade(time),
                    None => capability = None,
                }
            })
        }
    });
    let activator = activator.expect("an operator is built when it is added");
    (Input { queue, activator }, stream)
}

impl<T: PageTime> Input<T> {
    /// Sends a delta whose rows change at `time` or later, and promises to send nothing before `time`. `delta` is called when
    /// the dataflow takes it.
    pub fn send(&mut self, time: T, delta: impl FnOnce() -> Delta<T> + 'static) {
        let mut queue = self.queue.borrow_mut();
        queue.frontier = Some(time);
        queue.deltas.push_back((time, Box::new(delta)));
        self.activator.activate();
    }

    /// Promises to send nothing before `time`.
    pub fn advance_to(&mut self, time: T) {
        self.queue.borrow_mut().frontier = Some(time);
        self.activator.activate();
    }
}

impl<T: Timestamp> Drop for Input<T> {
    fn drop(&mut self) {
        self.queue.borrow_mut().frontier = None;
        self.activator.activate();
    }
}
