//! An arrangement of one dataflow, read in another, as of a time.
//!
//! The contents of the trace enter at that time at once, later batches as they come. Differential
//! dataflow's own import replays history from the minimum time, through states that never existed;
//! this one drops its capability for earlier times before it emits anything. The batches are the
//! trace's, shared and unchanged: only their description says to read them as of that time (see [`crate::state::reader`]).
//!
//! If the dataflow [starts again](crate::state::states) only later batches enter it.
//!
//! Changes that are [published](crate::movement::publication) come without their trace: such an import has the rows of the trace once, and
//! later changes as they are published.
//!
//! A dataflow whose sources have not changed does not run. So an import advances in two ways: with the trace, and, while the
//! trace has all rows that were sent to its dataflow, with the dataflow that reads it.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use alluvium_trace::memory::StateContext;
use alluvium_trace::{Batch, Cursor, Epoch, Origin, Spine};
use differential_dataflow::operators::arrange::{
    Arranged, ShutdownButton, TraceAgent, TraceReplayInstruction,
};
use differential_dataflow::trace::{BatchReader, TraceReader};
use timely::container::NoopBuilder;
use timely::dataflow::Scope;
use timely::dataflow::operators::generic::OperatorInfo;
use timely::dataflow::operators::generic::OutputBuilderSession;
use timely::dataflow::operators::generic::operator::source;
use timely::dataflow::operators::{Capability, CapabilitySet};
use timely::progress::Antichain;
use timely::scheduling::Activator;

use crate::fault::{self, Fault};
use crate::movement::delta::{Delta, DeltaStream, EncodedDelta};
use crate::movement::fuel::Fuel;
use crate::movement::publication::Publication;
use crate::rows::layout::Layout;
use crate::state::arrangement::{Arrangement, Kept};
use crate::state::reader::{Reader, read_as_of};
use crate::state::states;

/// The imports of a dataflow. Dropping them ends the dataflow; rows that are still on their way are dropped.
#[derive(Default)]
pub struct Imports {
    all: Vec<Import>,
    scanned: Arc<ScannedRows>,
}

/// How far the imports of a dataflow have come, for any thread. Batches that are shared count as read at once.
#[derive(Debug, Default)]
pub struct ScannedRows {
    read: AtomicU64,
    total: AtomicU64,
}

impl ScannedRows {
    /// How many updates have been read.
    pub fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// How many there are in all.
    pub fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }
}

struct Import {
    end: Box<dyn FnMut()>,
    /// The dataflow's other inputs have no rows before this epoch.
    limit: Rc<Cell<Epoch>>,
    activator: Activator,
}

impl Drop for Imports {
    fn drop(&mut self) {
        for import in &mut self.all {
            (import.end)();
        }
    }
}

/// A table whose changes are published.
pub(crate) struct Published<'a> {
    pub(crate) publication: &'a Publication,
    /// Its rows.
    pub(crate) trace: &'a TraceAgent<Spine<Epoch>>,
    pub(crate) layout: &'a Layout,
    /// The first epoch at which rows can still enter it.
    pub(crate) promised: &'a Rc<Cell<Epoch>>,
}

impl Imports {
    /// Advances the imports to `epoch`: at once where the trace already has all rows that were sent to its dataflow, and
    /// with the trace elsewhere.
    pub fn advance_to(&mut self, epoch: Epoch) {
        for import in &self.all {
            import.limit.set(epoch);
            import.activator.activate();
        }
    }

    /// How far they have come.
    pub fn scanned(&self) -> &Arc<ScannedRows> {
        &self.scanned
    }

    /// Brings the arrangement of `trace` into `scope` as of `as_of`, which no compaction of the
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
        if start.is_none() {
            let mut updates = 0;
            trace.map_batches(|batch| updates += batch.len() as u64);
            self.scanned.total.fetch_add(updates, Ordering::Relaxed);
            self.scanned.read.fetch_add(updates, Ordering::Relaxed);
        }
        let mut listening = trace.clone();
        let stream = source(scope, "Import", |capability, info| {
            let origin = Origin::here();
            let queue = listening.new_listener(scope.activator_for(Rc::clone(&info.address)));
            let mut place = self.place(scope, capability, &info, as_of, promised);
            let mut queue = Some(queue);
            // All earlier rows of the trace have been emitted.
            let mut reached = 0;
            move |output| {
                origin.run(|| {
                    let has_reader = place.advance(|capabilities, complete| {
                        let Some(queue) = &queue else { return Some(reached) };
                        for instruction in queue.1.borrow_mut().drain(..) {
                            match instruction {
                                TraceReplayInstruction::Frontier(frontier) => {
                                    reached = frontier.into_option().unwrap_or(Epoch::MAX);
                                }
                                TraceReplayInstruction::Batch(batch, Some(hint))
                                    if !batch.is_empty() && !is_before(&batch, start) =>
                                {
                                    // Only what was there from the beginning is of earlier epochs, and counts as of `as_of`.
                                    debug_assert!(
                                        complete == as_of
                                            || batch
                                                .upper()
                                                .first()
                                                .is_none_or(|upper| *upper > complete),
                                        "rows come of epochs that are complete: {:?} at {complete}",
                                        batch.description()
                                    );
                                    // The dataflow of the trace may have held on to an earlier epoch.
                                    let capability = capabilities.delayed(&hint.max(complete));
                                    let was_there = batch.lower().first() <= Some(&as_of);
                                    if was_there && fault::armed(Fault::FillLess) {
                                        continue;
                                    }
                                    output.session(&capability).give(read_as_of(&batch, as_of));
                                    if was_there && fault::armed(Fault::FillTwice) {
                                        output.session(&capability).give(read_as_of(&batch, as_of));
                                    }
                                }
                                TraceReplayInstruction::Batch(..) => {}
                            }
                        }
                        Some(reached)
                    });
                    if !has_reader {
                        queue = None;
                    }
                })
            }
        });
        Arrangement { arranged: Arranged { stream, trace: Reader::new(trace, as_of) }, layout }
    }

    /// Brings the columns `columns` of a table into `scope`: its rows as of `as_of`, and later changes as they are published. The
    /// rest as in [`Imports::import`].
    pub(crate) fn listen<'scope>(
        &mut self,
        table: &Published<'_>,
        columns: &[usize],
        scope: Scope<'scope, Epoch>,
        as_of: Epoch,
        context: &StateContext,
    ) -> DeltaStream<'scope, Epoch> {
        let Published { publication, trace, layout, promised } = *table;
        let mut batches = Vec::new();
        if states::start().is_none() {
            trace.map_batches(|batch| batches.push(read_as_of(batch, as_of)));
            batches.retain(|batch| !batch.is_empty());
        }
        let updates: usize = batches.iter().map(Batch::len).sum();
        self.scanned.total.fetch_add(updates as u64, Ordering::Relaxed);
        let scanned = Arc::clone(&self.scanned);
        source(scope, "Listen", |capability, info| {
            let origin = Origin::here();
            let mut place = self.place(scope, capability, &info, as_of, Rc::clone(promised));
            let activator = || scope.activator_for(Rc::clone(&info.address));
            let limit = Rc::clone(&place.limit);
            let mut listener = Some(publication.listen(as_of, activator(), limit));
            let (layout, columns) = (layout.clone(), columns.to_vec());
            let cursors = batches.iter().map(Batch::scan).collect();
            let scan = Scan {
                cursors,
                rows: EncodedDelta::new(context),
                layout,
                columns: columns.clone(),
                fuel: Fuel::new(context),
                activator: activator(),
                scanned,
            };
            let mut contents = (!batches.is_empty()).then_some(scan);
            move |output: &mut OutputBuilderSession<'_, Epoch, NoopBuilder<Delta<Epoch>>>| {
                origin.run(|| {
                    let has_reader = place.advance(|capabilities, _complete| {
                        let Some(listener) = &listener else { return Some(Epoch::MAX) };
                        if let Some(scan) = &mut contents {
                            let capability = capabilities.delayed(&as_of);
                            let is_over = scan.advance(|mut rows| {
                                origin.produce(rows.len(), || rows.bytes());
                                output.session_with_builder(&capability).give_container(&mut rows);
                            });
                            if !is_over {
                                return None;
                            }
                            contents = None;
                        }
                        while let Some(changes) = listener.next() {
                            let capability = capabilities.delayed(&changes.first_time());
                            let mut changes = changes.project(&columns);
                            origin.produce(changes.len(), || changes.bytes());
                            output.session_with_builder(&capability).give_container(&mut changes);
                        }
                        Some(listener.frontier())
                    });
                    if !has_reader {
                        (listener, contents) = (None, None);
                    }
                })
            }
        })
    }

    /// The place of a new import, which holds the capability of its source.
    fn place(
        &mut self,
        scope: Scope<'_, Epoch>,
        mut capability: Capability<Epoch>,
        info: &OperatorInfo,
        as_of: Epoch,
        promised: Rc<Cell<Epoch>>,
    ) -> Place {
        capability.downgrade(&as_of);
        let mut capabilities = CapabilitySet::new();
        capabilities.insert(capability);
        let capabilities = Rc::new(RefCell::new(Some(capabilities)));
        let activator = scope.activator_for(Rc::clone(&info.address));
        let mut button = ShutdownButton::new(Rc::clone(&capabilities), activator);
        let limit = Rc::new(Cell::new(as_of));
        self.all.push(Import {
            end: Box::new(move || button.press()),
            limit: Rc::clone(&limit),
            activator: scope.activator_for(Rc::clone(&info.address)),
        });
        Place { capabilities, complete: as_of, promised, limit }
    }
}

/// The rows of batches, read within the fuel of the operator.
struct Scan {
    cursors: VecDeque<Cursor<Epoch>>,
    rows: EncodedDelta<Epoch>,
    layout: Layout,
    columns: Vec<usize>,
    fuel: Fuel,
    activator: Activator,
    scanned: Arc<ScannedRows>,
}

impl Scan {
    /// Emits the next rows; returns whether these were the last ones.
    fn advance(&mut self, mut emit: impl FnMut(Delta<Epoch>)) -> bool {
        self.fuel.refill();
        while self.fuel.is_left()
            && let Some(cursor) = self.cursors.front_mut()
        {
            self.rows.fill(cursor);
            self.scanned.read.fetch_add(self.rows.len() as u64, Ordering::Relaxed);
            match self.rows.decode(&self.layout, &self.columns) {
                Some(rows) => {
                    self.fuel.consume(rows.bytes());
                    emit(rows);
                }
                None => drop(self.cursors.pop_front()),
            }
        }
        let is_over = self.cursors.is_empty();
        if !is_over {
            self.fuel.reschedule(&self.activator);
        }
        is_over
    }
}

/// How far an import has come.
struct Place {
    /// Those of its source; `None` once it has no readers any more.
    capabilities: Rc<RefCell<Option<CapabilitySet<Epoch>>>>,
    /// No earlier rows will come: the frontier of the import.
    complete: Epoch,
    promised: Rc<Cell<Epoch>>,
    limit: Rc<Cell<Epoch>>,
}

impl Place {
    /// Advances to where `emit` says, which emits all that there is, from the frontier of the import on, and returns the epoch
    /// that everything later is of; [`Epoch::MAX`] if nothing comes, and `None` if there is more of the frontier itself. Returns
    /// whether there is a reader.
    fn advance(
        &mut self,
        emit: impl FnOnce(&CapabilitySet<Epoch>, Epoch) -> Option<Epoch>,
    ) -> bool {
        let mut capabilities = self.capabilities.borrow_mut();
        let Some(capabilities) = capabilities.as_mut() else { return false };
        let Some(reached) = emit(capabilities, self.complete) else { return true };
        if reached == Epoch::MAX {
            capabilities.downgrade::<Epoch, _>([]);
            return true;
        }
        self.complete = self.complete.max(reached);
        if reached >= self.promised.get() {
            self.complete = self.complete.max(self.limit.get());
        }
        capabilities.downgrade([self.complete]);
        true
    }
}

/// Whether a batch ends before the dataflow starts.
fn is_before(batch: &Batch<Epoch>, start: Option<Epoch>) -> bool {
    start.is_some_and(|start| batch.upper().first().is_some_and(|upper| *upper <= start))
}
