//! The changes of a table, for the other dataflows of its worker.
//!
//! The batches of a table's arrangement say how it has changed, but they are sorted and encoded, and each reader decodes
//! their rows again. Nearly always these are the rows that were sent to the table. So a table publishes the rows as they
//! arrive on their worker, and *corrections* where it does not do what they say: a row that a write replaces goes, and so does
//! a write that does not last; a deletion that is refused is taken back. At each epoch both add up to the changes of the
//! arrangement, and equal rows meet on one worker as they do there.
//!
//! Rows come from other workers, too, and these may be ahead: a row may arrive before this worker builds a dataflow that should
//! see it. So rows of epochs that have not begun here wait for such dataflows.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};

use alluvium_trace::memory::StateContext;
use alluvium_trace::{Batch, Epoch};
use differential_dataflow::trace::BatchReader;
use timely::dataflow::Stream;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::operator::Operator;
use timely::progress::Antichain;
use timely::scheduling::Activator;

use crate::fault::{self, Fault};
use crate::movement::delta::{Delta, EncodedDelta};
use crate::rows::layout::{Layout, all_columns};

/// Where a table publishes its changes, on one worker. Clones share it.
#[derive(Clone)]
pub struct Publication {
    inner: Rc<Inner>,
}

struct Inner {
    listeners: RefCell<Vec<Weak<Listener>>>,
    corrections: RefCell<EncodedDelta<Epoch>>,
    layout: Layout,
    /// All columns of the table.
    columns: Vec<usize>,
    /// The rows of epochs that have not begun here.
    early: RefCell<Vec<(Epoch, Delta<Epoch>)>>,
    /// The first of these epochs.
    begins: Rc<Cell<Epoch>>,
    /// Nothing will be published before this.
    frontier: Cell<Epoch>,
}

/// The changes that a dataflow has not taken yet.
pub(crate) struct Listener {
    changes: RefCell<VecDeque<Delta<Epoch>>>,
    /// Their bytes.
    bytes: Cell<usize>,
    publication: Publication,
    activator: Activator,
    /// The dataflow waits for rows before this epoch.
    limit: Rc<Cell<Epoch>>,
}

/// A dataflow takes the changes of an epoch together, at its end, unless they are of more bytes than this.
const LARGE: usize = 64 << 10;

impl Publication {
    /// Of a table with this layout, without readers.
    pub(crate) fn new(layout: &Layout, context: &StateContext) -> Self {
        let inner = Inner {
            listeners: RefCell::default(),
            corrections: RefCell::new(EncodedDelta::new(context)),
            layout: layout.clone(),
            columns: all_columns(layout.schema()),
            early: RefCell::default(),
            begins: Rc::default(),
            frontier: Cell::new(0),
        };
        Self { inner: Rc::new(inner) }
    }

    /// The first epoch that has not begun on this worker, as the keeper of the table sets it.
    pub(crate) fn begins(&self) -> Rc<Cell<Epoch>> {
        Rc::clone(&self.inner.begins)
    }

    /// Listens to rows published after `as_of`, for the dataflow of `activator`, which waits for rows before `limit`. The
    /// epoch `as_of` is the last one that has begun here, and the table has all rows of it.
    pub(crate) fn listen(
        &self,
        as_of: Epoch,
        activator: Activator,
        limit: Rc<Cell<Epoch>>,
    ) -> Rc<Listener> {
        self.flush();
        let early = self.inner.early.borrow();
        let early = early.iter().filter(|(time, _)| *time > as_of);
        let changes = RefCell::new(early.map(|(_, rows)| rows.clone()).collect());
        let (publication, bytes) = (self.clone(), Cell::new(0));
        let listener = Rc::new(Listener { changes, bytes, publication, activator, limit });
        self.inner.listeners.borrow_mut().push(Rc::downgrade(&listener));
        listener
    }

    /// Publishes rows that were sent to the table at `time`; columns after those of the table are dropped.
    pub(crate) fn publish(&self, time: Epoch, rows: impl FnOnce() -> Delta<Epoch>) {
        let Inner { listeners, columns, early, begins, .. } = &*self.inner;
        let is_early = time >= begins.get();
        if listeners.borrow().is_empty() && !is_early {
            return;
        }
        let rows = rows().project(columns);
        if rows.is_empty() {
            return;
        }
        if is_early {
            early.borrow_mut().push((time, rows.clone()));
        }
        self.hand_out(&rows);
    }

    /// Corrects the published rows by a row in the bytes of the table's layout.
    pub(crate) fn correct(&self, key: &[u8], value: &[u8], time: Epoch, weight: i64) {
        let Inner { listeners, corrections, .. } = &*self.inner;
        if listeners.borrow().is_empty() || fault::armed(Fault::DropCorrections) {
            return;
        }
        let mut corrections = corrections.borrow_mut();
        corrections.push(key, value, time, weight);
        if corrections.is_full() {
            drop(corrections);
            self.flush();
        }
    }

    /// Promises to publish nothing before the end of `batches`, in which the table's changes come out.
    pub(crate) fn follow(&self, batches: Stream<'_, Epoch, Vec<Batch<Epoch>>>) {
        let publication = self.clone();
        batches.sink(Pipeline, "Publish", move |(input, frontier)| {
            let end = |end: Antichain<Epoch>| end.into_option().unwrap_or(Epoch::MAX);
            let mut frontier = end(frontier.frontier().to_owned());
            // A batch says where it ends before timely does.
            input.for_each(|_, batches: &mut Vec<Batch<Epoch>>| {
                for batch in batches.drain(..) {
                    frontier = frontier.max(end(batch.upper().clone()));
                }
            });
            publication.flush();
            let Inner { early, begins, .. } = &*publication.inner;
            early.borrow_mut().retain(|(time, _)| *time >= begins.get());
            let before = publication.inner.frontier.get();
            if before < frontier {
                publication.inner.frontier.set(frontier);
                // The others have all that they wait for.
                let waits = |listener: &Listener| listener.limit.get() > before;
                let wakes = |listener: &Listener| frontier == Epoch::MAX || waits(listener);
                publication.each(|listener| {
                    if wakes(listener) {
                        listener.activator.activate();
                    }
                });
            }
        });
    }

    /// Hands out the corrections.
    fn flush(&self) {
        let Inner { corrections, layout, columns, .. } = &*self.inner;
        let corrections = corrections.borrow_mut().decode(layout, columns);
        if let Some(corrections) = corrections {
            self.hand_out(&corrections);
        }
    }

    fn hand_out(&self, changes: &Delta<Epoch>) {
        let size = changes.bytes();
        self.each(|listener| {
            listener.changes.borrow_mut().push_back(changes.clone());
            listener.bytes.set(listener.bytes.get() + size);
            if listener.bytes.get() > LARGE {
                listener.activator.activate();
            }
        });
    }

    /// Calls `visit` with each listener, and forgets those that are gone.
    fn each(&self, visit: impl Fn(&Listener)) {
        self.inner.listeners.borrow_mut().retain(|listener| {
            let listener = listener.upgrade();
            listener.iter().for_each(|listener| visit(listener));
            listener.is_some()
        });
    }
}

impl Listener {
    /// The next changes.
    pub(crate) fn next(&self) -> Option<Delta<Epoch>> {
        self.bytes.set(0);
        self.changes.borrow_mut().pop_front()
    }

    /// After the published changes, none will be of an epoch before this one; [`Epoch::MAX`] once none will be at
    /// all.
    pub(crate) fn frontier(&self) -> Epoch {
        self.publication.inner.frontier.get()
    }
}
