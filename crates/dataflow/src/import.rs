//! An arrangement of one dataflow, read in another, as of a time.
//!
//! The contents of the trace enter at that time at once, later batches as they come. Differential
//! dataflow's own import replays history from the minimum time, through states that never existed;
//! this one drops its capability for earlier times before it emits anything. The batches are the
//! trace's, shared and unchanged: only their description says to read them as of that time (see [`crate::reader`]).

use std::cell::RefCell;
use std::rc::Rc;

use alluvium_trace::{Epoch, Spine};
use differential_dataflow::operators::arrange::{
    Arranged, ShutdownButton, TraceAgent, TraceReplayInstruction,
};
use differential_dataflow::trace::TraceReader;
use timely::dataflow::Scope;
use timely::dataflow::operators::CapabilitySet;
use timely::dataflow::operators::generic::operator::source;
use timely::progress::Antichain;

use crate::arrangement::{Arrangement, Kept};
use crate::layout::Layout;
use crate::reader::{Reader, read_as_of};

/// Ends the imports of a dataflow, and so the dataflow, when it is dropped.
///
/// Rows that are still on their way are dropped.
#[derive(Default)]
pub struct Imports(Vec<Box<dyn FnMut()>>);

impl Drop for Imports {
    fn drop(&mut self) {
        for end in &mut self.0 {
            end();
        }
    }
}

impl Imports {
    /// Brings the arrangement behind `trace` into `scope` as of `as_of`, which no compaction of the
    /// trace has passed and whose rows are complete.
    pub fn import<'scope>(
        &mut self,
        mut trace: TraceAgent<Spine<Epoch>>,
        layout: Layout,
        scope: Scope<'scope, Epoch>,
        as_of: Epoch,
    ) -> Kept<'scope> {
        trace.set_logical_compaction(Antichain::from_elem(as_of).borrow());
        let mut upper = Antichain::new();
        trace.read_upper(&mut upper);
        trace.set_physical_compaction(upper.borrow());
        let mut listening = trace.clone();
        let stream = source(scope, "Import", |mut capability, info| {
            capability.downgrade(&as_of);
            let mut capabilities = CapabilitySet::new();
            capabilities.insert(capability);
            let capabilities = Rc::new(RefCell::new(Some(capabilities)));
            let activator = scope.activator_for(Rc::clone(&info.address));
            let queue = listening.new_listener(activator);
            let activator = scope.activator_for(info.address);
            let mut button = ShutdownButton::new(Rc::clone(&capabilities), activator);
            self.0.push(Box::new(move || button.press()));
            let mut queue = Some(queue);
            move |output| {
                let mut capabilities = capabilities.borrow_mut();
                let Some(capabilities) = capabilities.as_mut() else {
                    // No reader any more: stop listening.
                    queue = None;
                    return;
                };
                let Some(queue) = &queue else { return };
                for instruction in queue.1.borrow_mut().drain(..) {
                    match instruction {
                        TraceReplayInstruction::Frontier(frontier) => {
                            let reached: Antichain<Epoch> =
                                frontier.iter().map(|time| (*time).max(as_of)).collect();
                            capabilities.downgrade(&reached.borrow()[..]);
                        }
                        TraceReplayInstruction::Batch(batch, Some(hint)) if !batch.is_empty() => {
                            let capability = capabilities.delayed(&hint.max(as_of));
                            output.session(&capability).give(read_as_of(&batch, as_of));
                        }
                        TraceReplayInstruction::Batch(..) => {}
                    }
                }
            }
        });
        Arrangement { arranged: Arranged { stream, trace: Reader::new(trace, as_of) }, layout }
    }
}
