//! The queue between the workers and a subscriber.

use std::sync::Arc;

use alluvium_dataflow::sink::Sink;
use alluvium_trace::memory::StateContext;
use alluvium_trace::{Epoch, Failure};
use arrow::array::RecordBatch;
use arrow::buffer::ScalarBuffer;
use parking_lot::{Condvar, Mutex};

use super::waiting::{Delivery, Waiting};
use crate::error::Result;
use crate::poison::{Poison, Waited};
use crate::sequencer::Start;
use crate::transaction::change::TableChange;
use crate::worker::Progress;

/// How many deliveries may wait before commits are held up.
const BOUND: usize = 1024;

/// Merges the changes of the workers into deliveries, one per epoch that all of them have passed.
pub(crate) struct Feed {
    state: Mutex<State>,
    arrived: Condvar,
    progress: Arc<Progress>,
    poison: Arc<Poison>,
}

struct State {
    /// Per worker, the first epoch that is not complete there; `None` when there will be no more.
    frontiers: Vec<Option<Epoch>>,
    waiting: Waiting,
    /// Whether the first delivery, of all rows, is still to be made.
    first: bool,
    /// Whether it goes on behind an epoch: then it has no such delivery.
    goes_on: bool,
    congested: bool,
    mark: Option<Mark>,
    /// Whether nothing more will be delivered.
    closed: bool,
}

/// A request for the place between the deliveries up to an epoch and later ones.
#[derive(Clone, Copy)]
struct Mark {
    epoch: Epoch,
    /// Whether all workers have put their changes up to that epoch.
    is_passed: bool,
}

/// What is taken from a feed.
pub(super) enum Taken {
    Delivery(Delivery),
    /// All deliveries up to a marked epoch have been taken.
    Mark(Epoch),
    /// There is nothing yet, or never will be.
    Nothing,
}

impl Feed {
    pub(crate) fn new(
        workers: usize,
        progress: Arc<Progress>,
        poison: Arc<Poison>,
        context: &StateContext,
    ) -> Arc<Self> {
        let state = State {
            frontiers: vec![Some(0); workers],
            waiting: Waiting::new(context),
            first: true,
            goes_on: false,
            congested: false,
            mark: None,
            closed: false,
        };
        let feed =
            Arc::new(Self { state: Mutex::new(state), arrived: Condvar::new(), progress, poison });
        feed.poison.register(&feed);
        let waited: Arc<dyn Waited> = feed.clone();
        feed.progress.watch(Arc::downgrade(&waited));
        feed
    }

    /// There is no delivery of all rows: the subscriber has these.
    pub(super) fn go_on(&self) {
        let mut state = self.state.lock();
        (state.first, state.goes_on) = (false, true);
    }

    pub(super) fn goes_on(&self) -> bool {
        self.state.lock().goes_on
    }

    /// Marks the place behind the deliveries up to an epoch. The caller keeps later ones from being committed.
    pub(crate) fn mark(&self, epoch: Epoch) {
        self.state.lock().mark = Some(Mark { epoch, is_passed: false });
    }

    /// All workers have put their changes up to the marked epoch.
    pub(crate) fn pass_mark(&self) {
        if let Some(mark) = &mut self.state.lock().mark {
            mark.is_passed = true;
        }
        self.arrived.notify_all();
    }

    /// The next delivery, or the mark before it. Nothing if there is none yet (or, if it may `wait`, when there will be none).
    pub(super) fn take(&self, wait: bool) -> Result<Taken> {
        let mut state = self.state.lock();
        loop {
            self.poison.check()?;
            let ready = state.waiting.first();
            if let Some(Mark { epoch, is_passed }) = state.mark
                && ready.map_or(is_passed || state.closed, |ready| ready > epoch)
            {
                state.mark = None;
                return Ok(Taken::Mark(epoch));
            }
            let is_durable = ready.is_some_and(|epoch| self.progress.is_durable(epoch));
            if is_durable && let Some(delivery) = state.waiting.take() {
                self.relieve(&mut state);
                return Ok(Taken::Delivery(delivery));
            }
            if !wait || state.closed && ready.is_none() {
                return Ok(Taken::Nothing);
            }
            self.arrived.wait(&mut state);
        }
    }

    /// The subscriber has been dropped: nothing more is kept.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        state.waiting.clear();
        self.relieve(&mut state);
    }

    fn put(&self, epoch: Epoch, change: TableChange) -> Result<()> {
        let mut state = self.state.lock();
        match state.closed {
            true => Ok(()),
            false => state.waiting.put(epoch, change),
        }
    }

    /// `worker` has passed all epochs before `frontier`; the view was built as of `as_of`.
    fn advance(&self, worker: usize, frontier: Option<Epoch>, as_of: Epoch) {
        let mut state = self.state.lock();
        state.frontiers[worker] = frontier;
        if state.closed {
            return;
        }
        let all = state.frontiers.iter().flatten().min().copied();
        let passed = |epoch: Epoch| all.is_none_or(|all| epoch < all);
        if state.first && passed(as_of) {
            state.first = false;
            state.waiting.deliver(as_of, true);
        }
        while let Some(epoch) = state.waiting.next()
            && passed(epoch)
        {
            state.waiting.deliver(epoch, false);
        }
        state.closed = all.is_none();
        if state.waiting.len() > BOUND && !state.congested {
            state.congested = true;
            self.progress.congest();
        }
        self.arrived.notify_all();
    }

    /// The dataflow is about to be removed: epochs that are not complete are never delivered.
    pub(crate) fn cut(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        state.waiting.cut();
        self.arrived.notify_all();
    }

    fn relieve(&self, state: &mut State) {
        if state.congested && state.waiting.len() <= BOUND {
            state.congested = false;
            self.progress.decongest();
        }
    }
}

impl Waited for Feed {
    fn wake(&self) {
        drop(self.state.lock());
        self.arrived.notify_all();
    }
}

/// One worker's end of a feed.
pub(crate) struct FeedSink {
    feed: Arc<Feed>,
    worker: usize,
    start: Start,
}

impl FeedSink {
    /// For a view that starts so. If it goes on the feed has only later changes.
    pub(crate) fn new(feed: Arc<Feed>, worker: usize, Start { as_of, goes_on }: Start) -> Self {
        if goes_on {
            feed.go_on();
        }
        Self { feed, worker, start: Start { as_of, goes_on } }
    }
}

impl Sink for FeedSink {
    fn changes(&mut self, epoch: Epoch, rows: RecordBatch, weights: ScalarBuffer<i64>) {
        if self.start.goes_on && epoch <= self.start.as_of {
            return;
        }
        let put =
            TableChange::weighted(&rows, weights).and_then(|change| self.feed.put(epoch, change));
        put.unwrap_or_else(|error| Failure::raise(error));
    }

    fn frontier(&mut self, frontier: Option<Epoch>) {
        self.feed.advance(self.worker, frontier, self.start.as_of);
    }
}

/// A dataflow without inputs ends without a call. One that is removed has its feed cut before.
impl Drop for FeedSink {
    fn drop(&mut self) {
        self.frontier(None);
    }
}
