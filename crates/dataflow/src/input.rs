//! Where changes enter a dataflow.
//!
//! An operator of our own rather than timely's input handle: what was sent is on its way as soon as
//! the worker steps, whatever is sent or promised afterwards.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use alluvium_trace::PageTime;
use timely::container::NoopBuilder;
use timely::dataflow::Scope;
use timely::dataflow::operators::generic::OutputBuilderSession;
use timely::dataflow::operators::generic::operator::source;
use timely::progress::Timestamp;
use timely::scheduling::Activator;

use crate::delta::{Delta, DeltaStream};

/// The worker's end of a stream of deltas.
///
/// Dropping it ends the stream: what was sent still arrives.
pub struct Input<T: Timestamp> {
    queue: Rc<RefCell<Queue<T>>>,
    activator: Activator,
}

struct Queue<T> {
    deltas: VecDeque<(T, Delta<T>)>,
    /// No delta will be sent before this; `None` once none will be sent at all.
    frontier: Option<T>,
}

/// A stream and the end where its deltas are put in.
pub fn input<'scope, T: PageTime>(
    scope: Scope<'scope, T>,
    name: &str,
) -> (Input<T>, DeltaStream<'scope, T>) {
    let queue =
        Rc::new(RefCell::new(Queue { deltas: VecDeque::new(), frontier: Some(T::minimum()) }));
    let mut activator = None;
    let activator_of = &mut activator;
    let shared = Rc::clone(&queue);
    let stream = source(scope, name, move |capability, info| {
        *activator_of = Some(scope.activator_for(info.address));
        let mut capability = Some(capability);
        move |output: &mut OutputBuilderSession<'_, T, NoopBuilder<Delta<T>>>| {
            let mut queue = shared.borrow_mut();
            let Some(held) = &mut capability else { return };
            for (time, mut delta) in queue.deltas.drain(..) {
                held.downgrade(&time);
                output.session_with_builder(&*held).give_container(&mut delta);
            }
            match &queue.frontier {
                Some(time) => held.downgrade(time),
                None => capability = None,
            }
        }
    });
    let activator = activator.expect("an operator is built when it is added");
    (Input { queue, activator }, stream)
}

impl<T: PageTime> Input<T> {
    /// Sends a delta whose rows change at `time` or later; a promise, too, to send nothing before.
    pub fn send(&mut self, time: T, delta: Delta<T>) {
        let mut queue = self.queue.borrow_mut();
        queue.frontier = Some(time);
        if !delta.is_empty() {
            queue.deltas.push_back((time, delta));
        }
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
