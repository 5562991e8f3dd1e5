//! The queue between the workers and the subscribers of one dataflow.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::task::{Wake, Waker};
use std::time::Duration;

use alluvium_dataflow::movement::sink::Sink;
use alluvium_trace::memory::StateContext;
use alluvium_trace::{Epoch, Failure};
use arrow::array::RecordBatch;
use arrow::buffer::ScalarBuffer;
use parking_lot::{Mutex, MutexGuard};

use super::PinnedRows;
use super::options::{Policy, SubscribeOptions};
use super::queue::{Delivery, Lag, Place, Queue};
use crate::changes::TableChange;
use crate::error::{Error, Result};
use crate::fault::{Fault, armed};
use crate::log;
use crate::poison::{Poison, Waited};
use crate::worker::Start;
use crate::worker::{DataflowId, Failed, Progress};

/// Merges the changes of the workers into deliveries, one per epoch that all of them have passed, and keeps these until all
/// subscribers have taken them.
pub(crate) struct Feed {
    state: Mutex<State>,
    kind: Kind,
    progress: Arc<Progress>,
    poison: Arc<Poison>,
    /// The waker that progress wakes when epochs become durable.
    durable: Waker,
}

/// The purpose of a feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// All subscribers of a relation, who come while it runs. They read the relation as of an epoch that is complete, so later
    /// deliveries stay for them.
    Shared,
    /// One subscriber.
    Alone,
    /// The first rows of one subscriber: all rows. The feed ends with their delivery.
    Rows,
}

/// Names a subscriber of a feed.
pub(crate) type SubscriberId = u64;

struct State {
    /// Per worker, the first epoch that is not complete there; `None` when there will be no more.
    frontiers: Vec<Option<Epoch>>,
    queue: Queue,
    /// Deliveries are of later epochs than this one. It is not known before the dataflow is built.
    begins: Option<Epoch>,
    /// The epoch of the delivery of all rows, if there is one.
    snapshot: Option<Epoch>,
    /// Whether that is still to be made.
    is_snapshot_due: bool,
    subscribers: BTreeMap<SubscriberId, Subscriber>,
    next_subscriber: SubscriberId,
    /// The smallest lag that is too much for a subscriber.
    limits: Lag,
    /// How many subscribers hold up commits.
    congested: usize,
    /// The epoch whose durability this will be told of.
    watched: Option<Epoch>,
    mark: Option<Mark>,
    /// Whether nothing more will be delivered.
    is_closed: bool,
    /// Why there is nothing more, if its dataflow or the relation has failed.
    failed: Option<Error>,
    /// Whether there are no subscribers any more, and nothing is kept.
    is_abandoned: bool,
}

/// One subscriber.
struct Subscriber {
    at: At,
    /// It has all changes up to this epoch.
    has: Option<Epoch>,
    /// The rows that it begins with.
    pinned: Option<PinnedRows>,
    options: SubscribeOptions,
    is_congested: bool,
    /// Whom to wake when something is there.
    waker: Option<Waker>,
}

enum At {
    Place(Place),
    /// It was this far behind; its changes are no longer kept.
    Behind(Lag),
}

/// The changes that wait for a subscriber.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Waiting {
    pub(crate) epochs: u64,
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    /// How long the first of them have waited.
    pub(crate) time: Duration,
    /// Whether commits wait until fewer do.
    pub(crate) holds_commits: bool,
}

/// A request for the place between the deliveries up to an epoch and later ones.
#[derive(Clone, Copy)]
struct Mark {
    epoch: Epoch,
    /// Whether all workers have put their changes up to that epoch.
    is_passed: bool,
}

/// The result of taking a delivery.
pub(super) enum Taken {
    Delivery(Arc<Delivery>),
    /// All rows, which come before the next delivery.
    Pinned(PinnedRows),
    /// All deliveries up to a marked epoch have been taken.
    Mark(Epoch),
    /// It was this far behind, so that its changes were dropped. Those after the complete epoch are kept for it from now on if
    /// it is to get a new snapshot.
    Dropped(Lag),
    /// There is nothing yet.
    Nothing,
    /// There never will be.
    End,
}

impl Feed {
    pub(crate) fn new(
        workers: usize,
        kind: Kind,
        progress: Arc<Progress>,
        poison: Arc<Poison>,
        context: &StateContext,
    ) -> Arc<Self> {
        let state = State {
            frontiers: vec![Some(0); workers],
            queue: Queue::new(context),
            begins: None,
            snapshot: None,
            is_snapshot_due: false,
            subscribers: BTreeMap::new(),
            next_subscriber: 0,
            limits: NO_LIMITS,
            congested: 0,
            watched: None,
            mark: None,
            is_closed: false,
            is_abandoned: false,
            failed: None,
        };
        let feed = Arc::new_cyclic(|me| {
            let (state, durable) = (Mutex::new(state), Arc::new(Durable(me.clone())).into());
            Self { state, kind, progress, poison, durable }
        });
        feed.poison.register(&feed);
        feed
    }

    /// Its dataflow starts so.
    fn start(&self, Start { as_of, later }: Start) {
        let mut state = self.state.lock();
        if state.begins.is_none() {
            state.begins = Some(as_of);
            (state.snapshot, state.is_snapshot_due) = ((!later).then_some(as_of), !later);
        }
    }

    /// Adds a subscriber, who gets all kept deliveries and later ones.
    pub(crate) fn enter(&self, options: SubscribeOptions) -> SubscriberId {
        let mut state = self.state.lock();
        let at = At::Place(state.queue.enter());
        let (has, pinned, is_congested, waker) = (None, None, false, None);
        let subscriber = Subscriber { at, has, pinned, options, is_congested, waker };
        let id = state.next_subscriber;
        state.next_subscriber += 1;
        state.subscribers.insert(id, subscriber);
        state.find_limits();
        id
    }

    /// A subscriber takes no more. Returns whether it was the last one.
    pub(crate) fn leave(&self, id: SubscriberId) -> bool {
        let mut state = self.state.lock();
        let Some(subscriber) = state.subscribers.remove(&id) else { return false };
        if let At::Place(place) = subscriber.at {
            state.queue.leave(place);
        }
        if subscriber.is_congested {
            self.relieve(&mut state);
        }
        state.find_limits();
        if !state.subscribers.is_empty() {
            self.trim(&mut state);
            return false;
        }
        state.is_abandoned = true;
        state.queue.clear();
        true
    }

    /// The epoch of the delivery of all rows, if a subscriber who has just entered gets one.
    pub(crate) fn snapshot(&self, id: SubscriberId) -> Option<Epoch> {
        let state = self.state.lock();
        let At::Place(place) = state.subscribers.get(&id)?.at else { return None };
        let is_there = match state.queue.peek(place) {
            Some(delivery) => delivery.is_snapshot,
            None => state.is_snapshot_due,
        };
        state.snapshot.filter(|_| is_there)
    }

    /// The changes that wait for a subscriber; `None` if they are not kept for it.
    pub(crate) fn waiting(&self, id: SubscriberId) -> Option<Waiting> {
        let state = self.state.lock();
        let Subscriber { at: At::Place(place), is_congested: holds_commits, .. } =
            *state.subscribers.get(&id)?
        else {
            return None;
        };
        let Lag { epochs, bytes } = state.queue.lag(place);
        let (rows, since) = state.queue.rows_from(place);
        let time = since.map_or(Duration::ZERO, |since| since.elapsed());
        Some(Waiting { epochs, rows, bytes, time, holds_commits })
    }

    /// The epoch after which deliveries begin, now or later, for a new subscriber.
    pub(crate) fn begins(&self) -> Epoch {
        self.state.lock().begins.unwrap_or_default()
    }

    /// A subscriber begins with these rows, and gets the changes of later epochs.
    pub(crate) fn begin(&self, id: SubscriberId, rows: PinnedRows) {
        let epoch = rows.0;
        if let Some(subscriber) = self.state.lock().subscribers.get_mut(&id)
            && let At::Place(_) = subscriber.at
        {
            subscriber.pinned = Some(rows);
        }
        if armed(Fault::RepeatChange) {
            return;
        }
        self.skip(id, epoch);
    }

    /// A subscriber has all changes up to an epoch from elsewhere.
    pub(crate) fn skip(&self, id: SubscriberId, epoch: Epoch) {
        let mut state = self.state.lock();
        if let Some(subscriber) = state.subscribers.get_mut(&id) {
            subscriber.has = Some(epoch);
            self.skip_known(&mut state, id);
        }
    }

    /// Marks the place after the deliveries up to an epoch. The caller keeps later ones from being committed.
    pub(crate) fn mark(&self, epoch: Epoch) {
        self.state.lock().mark = Some(Mark { epoch, is_passed: false });
    }

    /// All workers have put their changes up to the marked epoch.
    pub(crate) fn pass_mark(&self) {
        let mut state = self.state.lock();
        if let Some(mark) = &mut state.mark {
            mark.is_passed = true;
        }
        self.wake_all(state);
    }

    /// The next delivery, or the mark before it. If there is nothing yet, `waker`, if given, is woken once there is something.
    pub(super) fn take(&self, id: SubscriberId, waker: Option<&Waker>) -> Result<Taken> {
        let mut state = self.state.lock();
        self.poison.check()?;
        self.skip_known(&mut state, id);
        let State { subscribers, queue, mark, is_closed, failed, .. } = &mut *state;
        let Some(subscriber) = subscribers.get_mut(&id) else { return Ok(Taken::End) };
        subscriber.waker = None;
        let place = match &mut subscriber.at {
            At::Place(place) => place,
            At::Behind(lag) => {
                let lag = *lag;
                if subscriber.options.policy == Policy::Resync {
                    (subscriber.at, subscriber.has) = (At::Place(queue.enter()), None);
                }
                return Ok(Taken::Dropped(lag));
            }
        };
        if let Some(rows) = subscriber.pinned.take() {
            return Ok(Taken::Pinned(rows));
        }
        let ready = queue.peek(*place).map(|delivery| delivery.epoch);
        if let Some(Mark { epoch, is_passed }) = *mark
            && ready.map_or(is_passed || *is_closed, |ready| ready > epoch)
        {
            *mark = None;
            return Ok(Taken::Mark(epoch));
        }
        let Some(epoch) = ready else {
            if let Some(error) = failed {
                return Err(error.clone());
            }
            if *is_closed {
                return Ok(Taken::End);
            }
            subscriber.waker = waker.cloned();
            return Ok(Taken::Nothing);
        };
        if !self.progress.is_durable(epoch) {
            subscriber.waker = waker.cloned();
            if waker.is_none() || !self.watch(&mut state, epoch) {
                return Ok(Taken::Nothing);
            }
        }
        let State { subscribers, queue, .. } = &mut *state;
        let is_shared = subscribers.len() > 1;
        let Some(subscriber) = subscribers.get_mut(&id) else { return Ok(Taken::End) };
        subscriber.waker = None;
        let At::Place(place) = &mut subscriber.at else { return Ok(Taken::Nothing) };
        if armed(Fault::MissChange) && is_shared {
            queue.take(place);
        }
        let Some(delivery) = queue.take(place) else { return Ok(Taken::Nothing) };
        let lag = queue.lag(*place);
        if subscriber.is_congested && !subscriber.is_behind(lag) {
            subscriber.is_congested = false;
            self.relieve(&mut state);
        }
        self.trim(&mut state);
        Ok(Taken::Delivery(delivery))
    }

    /// Reads rows for a subscriber, as [`Poison::guard`] does.
    pub(super) fn guard<R>(&self, read: impl FnOnce() -> Result<R>) -> Result<R> {
        self.poison.guard(read)
    }

    /// No thread waits for a subscriber's next delivery any longer.
    pub(super) fn give_up(&self, id: SubscriberId) {
        let mut state = self.state.lock();
        if let Some(subscriber) = state.subscribers.get_mut(&id) {
            subscriber.waker = None;
        }
    }

    /// Adds changes of an epoch that is not delivered yet.
    pub(super) fn put(&self, epoch: Epoch, change: TableChange) -> Result<()> {
        let mut state = self.state.lock();
        debug_assert!(
            state.frontiers.iter().flatten().min().is_none_or(|all| epoch >= *all),
            "changes of an epoch come that is delivered: {epoch} at {:?}",
            state.frontiers
        );
        match state.is_abandoned || state.is_closed {
            true => Ok(()),
            false => state.queue.put(epoch, change),
        }
    }

    /// `worker` has passed all epochs before `frontier`.
    fn advance(&self, worker: usize, frontier: Option<Epoch>) {
        let mut state = self.state.lock();
        state.frontiers[worker] = frontier;
        if state.is_abandoned || state.is_closed {
            return;
        }
        let all = state.frontiers.iter().flatten().min().copied();
        let passed = |epoch: Epoch| all.is_none_or(|all| epoch < all);
        if state.is_snapshot_due
            && let Some(as_of) = state.snapshot
            && passed(as_of)
        {
            state.is_snapshot_due = false;
            state.queue.deliver(as_of, true);
            if self.kind == Kind::Rows {
                state.queue.cut();
                state.is_closed = true;
            }
        }
        while let Some(epoch) = state.queue.pending()
            && passed(epoch)
        {
            state.queue.deliver(epoch, false);
        }
        state.is_closed |= all.is_none();
        self.trim(&mut state);
        let unread = self.limit(&mut state);
        self.notify(state);
        drop(unread);
    }

    /// All changes have been put: each epoch is delivered.
    pub(super) fn finish(&self) {
        let workers = self.state.lock().frontiers.len();
        (0..workers).for_each(|worker| self.advance(worker, None));
    }

    /// The dataflow is about to be removed: epochs that are not complete are never delivered.
    pub(crate) fn cut(&self) {
        let mut state = self.state.lock();
        state.is_closed = true;
        state.queue.cut();
        self.wake_all(state);
    }

    /// The dataflow has failed: epochs that are not complete are never delivered, and an error follows those that are.
    pub(crate) fn fail(&self, failed: &Failed) {
        let mut state = self.state.lock();
        if !state.is_closed {
            state.failed = Some(failed.error());
        }
        state.is_closed = true;
        state.queue.cut();
        self.wake_all(state);
    }

    /// Whether it has failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.state.lock().failed.is_some()
    }

    /// Drops deliveries that a subscriber has already.
    fn skip_known(&self, state: &mut State, id: SubscriberId) {
        let State { subscribers, queue, .. } = state;
        let Some(Subscriber { at: At::Place(place), has: Some(has), .. }) =
            subscribers.get_mut(&id)
        else {
            return;
        };
        while queue.peek(*place).is_some_and(|delivery| delivery.epoch <= *has) {
            queue.take(place);
        }
        self.trim(state);
    }

    /// Forgets deliveries that no present or new subscriber will take.
    fn trim(&self, state: &mut State) {
        state.queue.trim(match self.kind {
            Kind::Shared => self.progress.complete(),
            Kind::Alone | Kind::Rows => Epoch::MAX,
        });
    }

    /// Holds up commits, or drops what waits, where that is too much. Returns versions without readers: to drop them may
    /// take a while.
    fn limit(&self, state: &mut State) -> Vec<PinnedRows> {
        let State { subscribers, queue, limits, congested, .. } = state;
        let mut unread = Vec::new();
        if !limits.is_exceeded_by(queue.longest_lag()) {
            return unread;
        }
        let before = *congested;
        for subscriber in subscribers.values_mut() {
            let At::Place(place) = subscriber.at else { continue };
            let lag = queue.lag(place);
            if !subscriber.is_behind(lag) || subscriber.is_congested {
                continue;
            }
            match subscriber.options.policy {
                Policy::Block => {
                    subscriber.is_congested = true;
                    *congested += 1;
                }
                Policy::Disconnect | Policy::Resync => {
                    queue.leave(place);
                    subscriber.at = At::Behind(lag);
                    unread.extend(subscriber.pinned.take());
                }
            }
        }
        if before == 0 && *congested > 0 {
            log::congested();
            self.progress.congest();
        }
        self.trim(state);
        unread
    }

    /// A subscriber no longer holds up commits.
    fn relieve(&self, state: &mut State) {
        state.congested -= 1;
        if state.congested == 0 {
            log::decongested();
            self.progress.decongest();
        }
    }

    /// Wakes the subscribers for whom something is there that is durable. When more becomes durable, this is called again.
    fn notify(&self, mut state: MutexGuard<'_, State>) {
        let mut woken = Vec::new();
        loop {
            let durable = self.progress.durable();
            let State { subscribers, queue, is_closed, .. } = &mut *state;
            let mut least: Option<Epoch> = None;
            for Subscriber { at, has, waker, .. } in subscribers.values_mut() {
                if waker.is_none() {
                    continue;
                }
                let next = match at {
                    At::Place(place) => queue.peek_behind(*place, *has).map(|next| next.epoch),
                    At::Behind(_) => Some(0),
                };
                match next {
                    Some(epoch) if epoch <= durable => woken.extend(waker.take()),
                    Some(epoch) => least = Some(least.map_or(epoch, |least| least.min(epoch))),
                    None if *is_closed => woken.extend(waker.take()),
                    None => {}
                }
            }
            match least {
                Some(epoch) if self.watch(&mut state, epoch) => {}
                Some(_) | None => break,
            }
        }
        drop(state);
        woken.into_iter().for_each(Waker::wake);
    }

    /// Has this told when an epoch is durable. Returns whether it has become so meanwhile.
    fn watch(&self, state: &mut State, epoch: Epoch) -> bool {
        let is_watched = |watched: Epoch| watched <= epoch && !self.progress.is_durable(watched);
        if !state.watched.is_some_and(is_watched) {
            state.watched = Some(epoch);
            self.progress.watch(epoch, self.durable.clone());
        }
        self.progress.is_durable(epoch)
    }

    fn wake_all(&self, mut state: MutexGuard<'_, State>) {
        let wakers =
            state.subscribers.values_mut().filter_map(|subscriber| subscriber.waker.take());
        let wakers: Vec<Waker> = wakers.collect();
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }
}

/// No lag is too much.
const NO_LIMITS: Lag = Lag { epochs: u64::MAX, bytes: u64::MAX };

impl State {
    fn find_limits(&mut self) {
        let options = || self.subscribers.values().map(|subscriber| subscriber.options);
        let epochs = options().map(|options| options.epochs).min();
        let bytes = options().map(|options| options.bytes).min();
        self.limits = epochs.zip(bytes).map_or(NO_LIMITS, |(epochs, bytes)| Lag { epochs, bytes });
    }
}

impl Subscriber {
    /// Whether this subscriber is further behind than its options allow.
    fn is_behind(&self, lag: Lag) -> bool {
        let SubscribeOptions { epochs, bytes, .. } = self.options;
        Lag { epochs, bytes }.is_exceeded_by(lag)
    }
}

impl Waited for Feed {
    fn wake(&self) {
        self.wake_all(self.state.lock());
    }
}

/// Tells a feed that epochs have become durable.
struct Durable(Weak<Feed>);

impl Wake for Durable {
    fn wake(self: Arc<Self>) {
        if let Some(feed) = self.0.upgrade() {
            feed.notify(feed.state.lock());
        }
    }
}

/// One worker's end of a feed.
pub(crate) struct FeedSink {
    feed: Arc<Feed>,
    id: DataflowId,
    worker: usize,
    start: Start,
}

impl FeedSink {
    /// For a dataflow that starts so.
    pub(crate) fn new(feed: Arc<Feed>, id: DataflowId, worker: usize, start: Start) -> Self {
        feed.start(start);
        Self { feed, id, worker, start }
    }
}

impl Sink for FeedSink {
    fn changes(&mut self, epoch: Epoch, rows: RecordBatch, weights: ScalarBuffer<i64>) {
        if self.start.later && epoch <= self.start.as_of {
            return;
        }
        let put =
            TableChange::weighted(&rows, weights).and_then(|change| self.feed.put(epoch, change));
        put.unwrap_or_else(|error| Failure::raise(error));
    }

    fn frontier(&mut self, frontier: Option<Epoch>) {
        self.feed.advance(self.worker, frontier);
    }
}

/// A dataflow without inputs ends without a call. One that is removed has its feed cut before. One that fails is dropped on each
/// worker when that hears of it.
impl Drop for FeedSink {
    fn drop(&mut self) {
        match self.feed.progress.failures().get(self.id) {
            Some(failed) => self.feed.fail(&failed),
            None => self.frontier(None),
        }
    }
}
