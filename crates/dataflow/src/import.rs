//! An arrangement of one dataflow, read in another, as of a time.
//!
//! The contents of the trace enter at that time at once, later batches as they come. Differential
//! dataflow's own import replays history from the minimum time, through states that never existed;
//! this one drops its capability for earlier times before it emits anything. The batches are the
//! trace's, shared and unchanged: only their description says to read them as of that time (see [`crate::reader`]).
//!
//! If the dataflow [starts again](crate::states) only later batches enter it.
//!
//! A dataflow whose sources have not changed does not run. So an import advances in two ways: with the trace, and, while the
//! trace has all rows that were sent to its dataflow, with the dataflow that reads it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use alluvium_trace::{Batch, Epoch, Spine};
use differential_dataflow::operators::arrange::{
    Arranged, ShutdownButton, TraceAgent, TraceReplayInstruction,
};
use differential_dataflow::trace::{BatchReader, TraceReader};
use timely::dataflow::Scope;
use timely::dataflow::operators::CapabilitySet;
use timely::dataflow::operators::generic::operator::source;
use timely::progress::Antichain;
use timely::scheduling::Activator;

use crate::arrangement::{Arrangement, Kept};
use crate::layout::Layout;
use crate::reader::{Reader, read_as_of};
use crate::states;

/// The imports of a dataflow. Dropping them ends the dataflow; rows that are still on their way are dropped.
#[derive(Default)]
pub struct Imports(Vec<Import>);

struct Import {
    end: Box<dyn FnMut()>,
    /// The dataflow's other inputs have no rows before this epoch.
    limit: Rc<Cell<Epoch>>,
    activator: Activator,
}

impl Drop for Imports {
    fn drop(&mut self) {
        for import in &mut self.0 {
            (import.end)();
        }
    }
}

impl Imports {
    /// Advances the imports to `epoch`: at once where the trace already has all rows that were sent to its dataflow, and
    /// with the trace elsewhere.
    pub fn advance_to(&mut self, epoch: Epoch) {
        for import in &self.0 {
            import.limit.set(epoch);
            import.activator.activate();
        }
    }

    /// Brings the arrangement behind `trace` into `scope` as of `as_of`, which no compaction of the
    /// trace has passed and whose rows are complete. No rows before `promised` will enter the dataflow of the trace.
    pub fn import<'scope>(
        &mut self,
        mut trace: TraceAgent<Spine<Epoch>>,
        layout: Layout,
        promised: Rc<Cell<Epoch>>,
        scope: Scope<'scope, Epoch>,
        as_of: Epoch,
    ) -> Kept<'scope> {
        trace.set_logical_compaction(Antichain::from_elem(as_of).borrow());
        let mut upper = Antichain::new();
        trace.read_upper(&mut upper);
        trace.set_physical_compaction(upper.borrow());
        let start = states::start();
        let mut listening = trace.clone();
        let stream = source(scope, "Import", |mut capability, info| {
            capability.downgrade(&as_of);
            let mut capabilities = CapabilitySet::new();
            capabilities.insert(capability);
            let capabilities = Rc::new(RefCell::new(Some(capabilities)));
            let activator = scope.activator_for(Rc::clone(&info.address));
            let queue = listening.new_listener(activator);
            let activator = scope.activator_for(Rc::clone(&info.address));
            let mut button = ShutdownButton::new(Rc::clone(&capabilities), activator);
            let limit = Rc::new(Cell::new(as_of));
            self.0.push(Import {
                end: Box::new(move || button.press()),
                limit: Rc::clone(&limit),
                activator: scope.activator_for(info.address),
            });
            let mut queue = Some(queue);
            // All earlier rows of the trace have been emitted.
            let mut reached = 0;
            // No earlier rows will be: the frontier of the import.
            let mut complete = as_of;
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
                            reached = frontier.into_option().unwrap_or(Epoch::MAX);
                        }
                        TraceReplayInstruction::Batch(batch, Some(hint))
                            if !batch.is_empty() && !is_before(&batch, start) =>
                        {
                            let capability = capabilities.delayed(&hint.max(as_of));
                            output.session(&capability).give(read_as_of(&batch, as_of));
                        }
                        TraceReplayInstruction::Batch(..) => {}
                    }
                }
                if reached == Epoch::MAX {
                    return capabilities.downgrade::<Epoch, _>([]);
                }
                complete = complete.max(reached);
                if reached >= promised.get() {
                    complete = complete.max(limit.get());
                }
                capabilities.downgrade([complete]);
            }
        });
        Arrangement { arranged: Arranged { stream, trace: Reader::new(trace, as_of) }, layout }
    }
}

/// Whether a batch ends before the dataflow starts.
fn is_before(batch: &Batch<Epoch>, start: Option<Epoch>) -> bool {
    start.is_some_and(|start| batch.upper().first().is_some_and(|upper| *upper <= start))
}
