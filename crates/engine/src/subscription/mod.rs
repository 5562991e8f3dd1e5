//! Subscriptions: the changes of a view, epoch by epoch.
//!
//! A subscription is a dataflow of its own, built over the view as of the last complete epoch. Each worker
//! puts its changes into one [`Feed`]; an epoch is delivered when all workers have passed it.

mod consolidate;
pub(crate) mod feed;
mod waiting;

use std::fmt;
use std::sync::{Arc, Weak};

use arrow::array::RecordBatch;
use arrow::buffer::ScalarBuffer;
use arrow::datatypes::SchemaRef;

use alluvium_trace::Epoch;

use self::feed::{Feed, Taken};
use crate::error::Result;
use crate::instance::Instance;
use crate::worker::DataflowId;

/// The changes of one epoch.
#[derive(Clone, Debug)]
pub struct Change {
    /// The epoch.
    pub epoch: u64,
    /// The rows that change, each once.
    pub rows: RecordBatch,
    /// By how much each row changes: a positive weight adds copies of the row, a negative one takes copies
    /// away; never zero.
    pub weights: ScalarBuffer<i64>,
}

/// The changes of a view, or of a table: first all that it holds as of the last complete epoch, which may
/// be nothing, then one [`Change`] for every epoch that changes it, in order. One that [goes on](Self::goes_on) has no
/// such first change.
///
/// As an iterator it waits for the next change, and ends when the view is dropped or the engine is closed.
/// An error is its last item.
///
/// Changes that have not been taken are kept, in files where they take much memory, and a subscription that is more than 1,024 changes behind holds up
/// commits: a thread that both commits and subscribes has to take changes in between. A thread that panics while it owns
/// a subscription poisons the engine, because changes would be lost.
pub struct Subscription {
    feed: Arc<Feed>,
    schema: SchemaRef,
    id: DataflowId,
    instance: Weak<Instance>,
    failed: bool,
}

impl Subscription {
    pub(crate) fn new(
        feed: Arc<Feed>,
        schema: SchemaRef,
        id: DataflowId,
        instance: Weak<Instance>,
    ) -> Self {
        Self { feed, schema, id, instance, failed: false }
    }

    /// Its dataflow.
    pub(crate) fn id(&self) -> DataflowId {
        self.id
    }

    /// Where its changes come from.
    pub(crate) fn feed(&self) -> &Arc<Feed> {
        &self.feed
    }

    /// The columns of the rows.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Whether it goes on behind the epoch that [`Engine::subscribe_from`](crate::Engine::subscribe_from) was given. Else its
    /// first change has all rows.
    pub fn goes_on(&self) -> bool {
        self.feed.goes_on()
    }

    /// The next change if there is one already; does not wait.
    ///
    /// After [`crate::Engine::wait`] for an epoch has returned, all changes up to that epoch are there.
    pub fn try_next(&mut self) -> Result<Option<Change>> {
        self.take(false)
    }

    fn take(&mut self, wait: bool) -> Result<Option<Change>> {
        loop {
            match self.step(wait)? {
                Step::Change(change) => return Ok(Some(change)),
                Step::Mark(_) => {}
                Step::End => return Ok(None),
            }
        }
    }

    /// Waits for what comes next.
    pub(crate) fn next_step(&mut self) -> Result<Step> {
        self.step(true)
    }

    fn step(&mut self, wait: bool) -> Result<Step> {
        loop {
            match self.feed.take(wait)? {
                Taken::Delivery(delivery) => {
                    if let Some(change) = delivery.consolidate(&self.schema)? {
                        return Ok(Step::Change(change));
                    }
                }
                Taken::Mark(epoch) => return Ok(Step::Mark(epoch)),
                Taken::Nothing => return Ok(Step::End),
            }
        }
    }
}

/// Who subscribes.
#[derive(Clone, Copy)]
pub(crate) enum Subscriber<'a> {
    /// Somebody who knows nothing yet.
    New,
    /// Somebody who has had all changes up to an epoch.
    After(Epoch),
    /// An output to a path, which goes on after a restart.
    Output(&'a str),
}

/// What comes next in a subscription.
pub(crate) enum Step {
    Change(Change),
    /// All changes up to an epoch that was marked have come.
    Mark(Epoch),
    /// There is no change yet, or never will be.
    End,
}

impl Iterator for Subscription {
    type Item = Result<Change>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let change = self.take(true);
        self.failed = change.is_err();
        change.transpose()
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Subscription").field("id", &self.id.0).finish_non_exhaustive()
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.feed.close();
        if let Some(instance) = self.instance.upgrade() {
            if std::thread::panicking() {
                instance.poison.spread("a subscriber panicked".to_owned());
            }
            instance.definitions.unsubscribe(self.id);
        }
    }
}
