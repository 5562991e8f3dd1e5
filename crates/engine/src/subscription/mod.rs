//! Subscriptions: the changes of a view, epoch by epoch.
//!
//! All subscribers of a relation share one dataflow, which has the changes after the epoch it was built as of. Each worker puts
//! its changes into one [`Feed`]; an epoch is delivered when all workers have passed it. A delivery is kept once, in the
//! feed's [queue](queue), until all subscribers have taken it; each has its place in the queue. The first to take it
//! [consolidates](consolidate) it.
//!
//! A subscriber begins with the rows of the relation as of an epoch, read from a pinned version, and takes the deliveries of
//! later epochs. Since the feed keeps those that are later than the complete epoch, it does not matter when it comes. The rows of
//! a plain view, which nothing keeps, come from a dataflow: from the shared one for who subscribes first, else from one that ends
//! once it has given them.
//!
//! One that waits leaves a waker in the feed, which is woken when a delivery is there and durable; calls that block [wait](crate::wait) for that
//! on the same wakers. Clients that read tables take changes as [rows].

mod beginning;
mod consolidate;
pub(crate) mod feed;
mod options;
mod permission;
mod queue;
mod rows;

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use alluvium_dataflow::state::snapshot::Snapshot;
use alluvium_trace::Epoch;
use arrow::array::RecordBatch;
use arrow::buffer::ScalarBuffer;
use arrow::datatypes::SchemaRef;
use futures::Stream;

pub(crate) use self::beginning::resume;
use self::feed::{Feed, SubscriberId, Taken};
pub(crate) use self::options::Beginning;
pub use self::options::{Policy, SubscribeOptions};
pub(crate) use self::permission::Permission;
pub use self::rows::{ChangedRows, columns_of_changes};
use crate::error::{Error, Result};
use crate::interrupt;
use crate::wait::{self, Look};
use crate::worker::{DataflowId, Progress};

/// The changes of one epoch.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Change {
    /// The epoch.
    pub epoch: u64,
    /// The rows that change, each once.
    pub rows: RecordBatch,
    /// By how much each row changes: a positive weight adds copies of the row, a negative one takes copies
    /// away; never zero.
    pub weights: ScalarBuffer<i64>,
    /// Whether this is a snapshot: these are all rows as of the end of the epoch, and replace what the subscriber has.
    pub is_snapshot: bool,
}

impl Change {
    /// The changes of an epoch, which are no snapshot.
    pub fn new(epoch: u64, rows: RecordBatch, weights: impl Into<ScalarBuffer<i64>>) -> Self {
        Self { epoch, rows, weights: weights.into(), is_snapshot: false }
    }
}

/// The changes of a view, or of a table: first a [snapshot](Change::is_snapshot), all that it holds as of the last complete
/// epoch, which may be nothing, then one [`Change`] for every epoch that changes it, in order. One that
/// [resumes after an epoch](crate::Engine::subscribe_from) has no such first change.
///
/// As an iterator it waits for the next change, and as a [`Stream`] it wakes the task that waits; no thread waits for it. Both
/// end when the view is dropped or the engine is closed. An error is the last item, except that of an
/// [interrupt](crate::Interrupt). A program that uses both traits says which `next` it calls: `StreamExt::next(&mut changes)`.
///
/// Changes that have not been taken are kept, once for all subscribers, in files where they take much memory. A subscription that
/// is more than 1,024 changes behind holds up commits, unless it has another [`Policy`]: a thread that both commits and subscribes
/// has to take changes in between. A thread that panics while it owns a subscription poisons the engine, because changes would
/// be lost.
pub struct Subscription {
    feed: Arc<Feed>,
    subscriber: SubscriberId,
    /// The feed of its first rows, which come before that.
    beginning: Option<(Arc<Feed>, SubscriberId)>,
    name: String,
    schema: SchemaRef,
    /// The dataflow of the feed.
    id: DataflowId,
    /// The dataflow of the relation, if it keeps rows.
    relation: Option<DataflowId>,
    policy: Policy,
    progress: Arc<Progress>,
    owner: Weak<dyn Owner>,
    /// Whose rights count; `None` if nobody asks.
    permission: Option<Permission>,
    /// Whether a snapshot comes next, which has not been pinned.
    is_resyncing: bool,
    is_over: bool,
    /// Where it begins; after an epoch, once rows that come first were left out.
    begins: Beginning,
    has_progress: bool,
}

/// The engine that a subscription is one of.
pub(crate) trait Owner: Send + Sync {
    /// A subscriber leaves the feed that this dataflow fills. If the thread panics, it may have missed changes.
    fn unsubscribe(&self, id: DataflowId, feed: &Feed, subscriber: SubscriberId);
}

/// A subscriber of a feed.
pub(crate) struct Entered {
    pub(crate) feed: Arc<Feed>,
    pub(crate) subscriber: SubscriberId,
    /// The dataflow of the feed.
    pub(crate) id: DataflowId,
}

/// A relation as a subscriber sees it.
pub(crate) struct Subscribed {
    pub(crate) name: String,
    pub(crate) schema: SchemaRef,
    /// Its dataflow, if that keeps its rows.
    pub(crate) relation: Option<DataflowId>,
}

/// A version of a relation: an epoch, and a snapshot for each worker.
pub(crate) type PinnedRows = (Epoch, Vec<Snapshot>);

impl Subscription {
    pub(crate) fn new(
        Entered { feed, subscriber, id }: Entered,
        Subscribed { name, schema, relation }: Subscribed,
        SubscribeOptions { policy, beginning: begins, .. }: SubscribeOptions,
        progress: Arc<Progress>,
        owner: Weak<dyn Owner>,
    ) -> Self {
        Self {
            feed,
            subscriber,
            beginning: None,
            name,
            schema,
            id,
            relation,
            policy,
            progress,
            owner,
            permission: None,
            is_resyncing: false,
            is_over: false,
            begins,
            has_progress: false,
        }
    }

    /// Deliveries that this feed still has for a subscriber come first.
    pub(crate) fn begin_with(&mut self, beginning: (Arc<Feed>, SubscriberId)) {
        self.beginning = Some(beginning);
    }

    /// Before each change it is asked whether its subscriber may still have it.
    pub(crate) fn set_permission(&mut self, permission: Permission) {
        self.permission = Some(permission);
    }

    /// Its reader wants to know how far it has come.
    pub(crate) fn set_has_progress(&mut self) {
        self.has_progress = true;
    }

    /// Whether its reader wants to know how far it has come.
    fn has_progress(&self) -> bool {
        self.has_progress
    }

    /// The epoch after which it begins, if it begins without rows and that is known.
    fn begins_after(&self) -> Option<Epoch> {
        match self.begins {
            Beginning::After(epoch) => Some(epoch),
            _ => None,
        }
    }

    /// The last complete epoch: all changes up to it are there.
    fn complete(&self) -> Epoch {
        self.progress.complete()
    }

    /// Fails if its subscriber may not have changes any more.
    fn check_permission(&mut self) -> Result<()> {
        match &mut self.permission {
            Some(permission) => permission.check(&self.name),
            None => Ok(()),
        }
    }

    /// The next change; `None` once nothing will come any more. If there is nothing yet `waker` is woken once there is.
    fn poll_change(&mut self, waker: Option<&Waker>) -> Poll<Result<Option<Change>>> {
        match self.change(waker) {
            Ok(Step::Change(change)) => Poll::Ready(Ok(Some(change))),
            Ok(Step::Nothing) => Poll::Pending,
            Ok(Step::Mark(_) | Step::End) => Poll::Ready(Ok(None)),
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    /// Its dataflow.
    pub(crate) fn id(&self) -> DataflowId {
        self.id
    }

    /// Where its changes come from.
    pub(crate) fn subscriber(&self) -> SubscriberId {
        self.subscriber
    }

    pub(crate) fn feed(&self) -> &Arc<Feed> {
        &self.feed
    }

    /// The columns of the rows.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Whether it has ended: nothing will come any more. It is not known to have ended before that was returned.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// The next change if there is one already; does not wait.
    ///
    /// After [`crate::Engine::wait`] for an epoch has returned, all changes up to that epoch are there.
    pub fn try_next(&mut self) -> Result<Option<Change>> {
        self.change(None).map(|step| match step {
            Step::Change(change) => Some(change),
            Step::Mark(_) | Step::Nothing | Step::End => None,
        })
    }

    /// The next change; waits for it, but not longer than `timeout`. `None` if there was none in that time, or at once if it has
    /// [ended](Self::is_over).
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let db = alluvium::Engine::builder().workers(1).open_in_memory()?;
    /// db.execute("CREATE TABLE t (a BIGINT)")?;
    /// let mut changes = db.subscribe("t")?;
    /// assert!(changes.next_timeout(Duration::from_secs(60))?.is_some_and(|change| change.is_snapshot));
    /// assert!(changes.next_timeout(Duration::from_millis(1))?.is_none());
    /// db.execute("INSERT INTO t VALUES (1)")?;
    /// assert!(changes.next_timeout(Duration::from_secs(60))?.is_some_and(|change| change.epoch == 1));
    /// # Ok::<(), alluvium::Error>(())
    /// ```
    pub fn next_timeout(&mut self, timeout: Duration) -> Result<Option<Change>> {
        let step = self.wait(Instant::now().checked_add(timeout), Self::change)?;
        Ok(match step {
            Some(Step::Change(change)) => Some(change),
            Some(Step::Mark(_) | Step::Nothing | Step::End) | None => None,
        })
    }

    /// Waits for the next item.
    pub(crate) fn next_step(&mut self) -> Result<Step> {
        Ok(self.wait(None, Self::step)?.unwrap_or(Step::End))
    }

    /// The next item if there is one already.
    pub(crate) fn next_step_at_once(&mut self) -> Result<Step> {
        self.step(None)
    }

    /// Waits until there is something; `None` at the deadline.
    fn wait(
        &mut self,
        deadline: Option<Instant>,
        look: impl Fn(&mut Self, Option<&Waker>) -> Result<Step>,
    ) -> Result<Option<Step>> {
        let mut until = || {
            wait::until(|waker| {
                Ok(match look(self, Some(waker))? {
                    Step::Nothing => Look::Waits(()),
                    step => Look::Found(Some(step)),
                })
            })
        };
        let found = match deadline {
            None => until(),
            Some(_) => interrupt::limited(deadline, until).or_else(|error| match error {
                // It is the deadline of this, and not of the call around it.
                Error::TimedOut if interrupt::reached().is_none() => Ok(None),
                error => Err(error),
            }),
        };
        if !matches!(found, Ok(Some(_))) {
            self.feed.give_up(self.subscriber);
        }
        found
    }

    /// The next change, past marks.
    fn change(&mut self, waker: Option<&Waker>) -> Result<Step> {
        loop {
            match self.step(waker)? {
                Step::Mark(_) => {}
                step => return Ok(step),
            }
        }
    }

    /// The next step. If there is nothing yet `waker` is woken once there is.
    fn step(&mut self, waker: Option<&Waker>) -> Result<Step> {
        if self.is_over {
            return Ok(Step::End);
        }
        let step = match self.look(waker) {
            Ok(Step::Change(change)) => self.check_permission().map(|()| Step::Change(change)),
            step => step,
        };
        self.is_over = match &step {
            Ok(step) => matches!(step, Step::End),
            // A caller that gives up may come back.
            Err(error) => !matches!(error, Error::Interrupted | Error::TimedOut),
        };
        step
    }

    fn look(&mut self, waker: Option<&Waker>) -> Result<Step> {
        loop {
            if self.is_resyncing && !self.resync()? {
                return Ok(Step::End);
            }
            let (feed, subscriber) = match &self.beginning {
                Some((feed, subscriber)) => (feed, *subscriber),
                None => (&self.feed, self.subscriber),
            };
            match feed.take(subscriber, waker)? {
                Taken::Delivery(delivery)
                    if delivery.is_snapshot && self.begins == Beginning::WithoutRows =>
                {
                    self.begins = Beginning::After(delivery.epoch);
                }
                Taken::Pinned((epoch, _)) if self.begins == Beginning::WithoutRows => {
                    self.begins = Beginning::After(epoch);
                }
                Taken::Delivery(delivery) => {
                    if let Some(change) = delivery.change(&self.schema)? {
                        return Ok(Step::Change(change));
                    }
                }
                Taken::Pinned(rows) => {
                    let read = || beginning::snapshot(&rows, &self.schema);
                    return self.feed.guard(read).map(Step::Change);
                }
                Taken::Mark(epoch) => return Ok(Step::Mark(epoch)),
                Taken::Dropped(_) if self.policy == Policy::Resync => self.is_resyncing = true,
                Taken::Dropped(lag) => {
                    let (relation, epochs, bytes) = (self.name.clone(), lag.epochs, lag.bytes);
                    return Err(Error::Behind { relation, epochs, bytes });
                }
                Taken::Nothing => return Ok(Step::Nothing),
                Taken::End if self.beginning.take().is_some() => {}
                Taken::End => return Ok(Step::End),
            }
        }
    }

    /// Begins with a snapshot again, as of the last complete epoch: there is nothing to wait for. Returns false if the relation
    /// has been dropped.
    fn resync(&mut self) -> Result<bool> {
        let complete = self.progress.complete();
        let pinned = self.relation.map(|relation| self.progress.pin_one(relation, complete));
        let rows = pinned.transpose()?.flatten();
        self.is_resyncing = false;
        if let Some(rows) = rows {
            self.feed.begin(self.subscriber, rows);
            return Ok(true);
        }
        Ok(false)
    }
}

/// Who subscribes.
#[derive(Clone, Copy)]
pub(crate) enum Client<'a> {
    /// A program.
    Program(SubscribeOptions),
    /// An output, and its path if it resumes after a restart. It has a dataflow of its own, which ends with it.
    Output(Option<&'a str>),
}

/// The next step of a subscription.
pub(crate) enum Step {
    Change(Change),
    /// All changes up to an epoch that was marked have come.
    Mark(Epoch),
    /// There is no change yet.
    Nothing,
    /// There never will be.
    End,
}

impl Iterator for Subscription {
    type Item = Result<Change>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.wait(None, Self::change) {
            Ok(Some(Step::Change(change))) => Some(Ok(change)),
            Ok(_) => None,
            Err(error) => Some(Err(error)),
        }
    }
}

impl Stream for Subscription {
    type Item = Result<Change>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll_change(Some(context.waker())).map(Result::transpose)
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Subscription").field("id", &self.id.0).finish_non_exhaustive()
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        match self.owner.upgrade() {
            Some(owner) => owner.unsubscribe(self.id, &self.feed, self.subscriber),
            None => drop(self.feed.leave(self.subscriber)),
        }
    }
}
