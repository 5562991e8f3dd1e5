//! The dataflows of subscriptions: one for all subscribers of a relation, and one for each output.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use alluvium_sql::physical::{Output, compile};
use alluvium_trace::Epoch;
use alluvium_trace::memory::Charge;

use super::Definitions;
use super::install::Replaced;
use crate::catalog::{Definition, Entry, Uses};
use crate::durable::checkpoint::DataflowKey;
use crate::error::{Error, Result};
use crate::sequencer::Role;
use crate::subscription::feed::{Feed, FeedSink, Kind, SubscriberId};
use crate::subscription::{
    Beginning, Client, Entered, Owner, PinnedRows, Policy, SubscribeOptions, Subscribed,
    Subscription, resume,
};
use crate::worker::{Dataflow, DataflowId};

/// The dataflows of subscriptions, and those that new subscribers share, by relation.
#[derive(Default)]
pub(super) struct Subscriptions {
    dataflows: BTreeMap<DataflowId, Installed>,
    shared: BTreeMap<String, DataflowId>,
}

/// A dataflow whose changes are for subscribers: the relation and the indexes it reads, and where its changes go.
pub(super) struct Installed {
    relation: String,
    pub(super) uses: Uses,
    pub(super) feed: Arc<Feed>,
}

impl Subscriptions {
    fn insert(&mut self, id: DataflowId, installed: Installed, kind: Kind) {
        if kind == Kind::Shared {
            self.shared.insert(installed.relation.clone(), id);
        }
        self.dataflows.insert(id, installed);
    }

    /// The dataflows of a relation.
    pub(super) fn of(&self, relation: &str) -> Vec<DataflowId> {
        let of = self.dataflows.iter().filter(|(_, of)| of.relation == relation);
        of.map(|(id, _)| *id).collect()
    }

    pub(super) fn remove(&mut self, id: DataflowId) -> Option<Installed> {
        self.shared.retain(|_, shared| *shared != id);
        self.dataflows.remove(&id)
    }

    /// A new subscriber of the dataflow that those of a relation share, if there is one.
    fn enter(&self, relation: &str, options: SubscribeOptions) -> Option<Entered> {
        let id = *self.shared.get(relation)?;
        let feed = self.dataflows.get(&id)?.feed.clone();
        Some(Entered { subscriber: feed.enter(options), feed, id })
    }
}

impl Definitions {
    /// Subscribes to a relation. The dataflow of an output is part of checkpoints, and starts with its state there.
    pub(crate) fn subscribe(
        &self,
        name: &str,
        client: Client<'_>,
        owner: &Weak<dyn Owner>,
    ) -> Result<Subscription> {
        let options = match client {
            Client::Program(options) => options,
            Client::Output(path) => {
                let (lock, entry) = self.lock_filled(name)?;
                let feeding = match path {
                    Some(path) => Feeding::Output(path),
                    None => Feeding::Alone(SubscribeOptions::new()),
                };
                let entered = self.install_feed(&entry, feeding)?;
                drop(lock);
                let id = entered.id;
                let subscription =
                    self.subscription(&entry, entered, SubscribeOptions::new(), owner);
                self.progress.wait_filled(id)?;
                return Ok(subscription);
            }
        };
        loop {
            // A relation that is being replaced does not exist for a moment.
            let entry = self.catalog.get(name).or_else(|_| {
                let _lock = self.lock();
                self.catalog.get(name)
            })?;
            self.wait_if_filling(&entry)?;
            if let Some(subscription) = self.subscribe_to(&entry, options, owner)? {
                return Ok(subscription);
            }
            // It was dropped meanwhile, and there may be another one.
            let _lock = self.lock();
            if self.is_there(&entry) {
                return Err(Error::sql(format!("\"{name}\" cannot be read")));
            }
        }
    }

    fn subscription(
        &self,
        entry: &Entry,
        entered: Entered,
        options: SubscribeOptions,
        owner: &Weak<dyn Owner>,
    ) -> Subscription {
        let relation = entry.dataflow().filter(|_| entry.keeps_rows());
        let of = Subscribed { name: entry.name.clone(), schema: entry.schema.clone(), relation };
        Subscription::new(entered, of, options, self.progress.clone(), owner.clone())
    }

    /// Subscribes to a relation, which sees everything that was committed before; `None` if it has been dropped.
    fn subscribe_to(
        &self,
        entry: &Entry,
        options: SubscribeOptions,
        owner: &Weak<dyn Owner>,
    ) -> Result<Option<Subscription>> {
        entry.check_runs()?;
        entry.changes()?;
        let relation = entry.dataflow().filter(|_| entry.keeps_rows());
        if relation.is_none() && options.policy == Policy::Resync {
            return Err(Error::sql(format!(
                "\"{}\" keeps no rows that a subscription could begin with again; CREATE MATERIALIZED VIEW makes a view that does",
                entry.name
            )));
        }
        let last = self.sequencer.last();
        let entered = match self.is_shared(entry) {
            true => self.enter_shared(entry, options)?,
            false => {
                let _lock = self.lock();
                match self.is_there(entry) {
                    true => Some(self.install_feed(entry, Feeding::Alone(options))?),
                    false => None,
                }
            }
        };
        let Some(entered) = entered else { return Ok(None) };
        let (feed, subscriber, id) = (entered.feed.clone(), entered.subscriber, entered.id);
        // From now on nothing that comes later is lost, and everything goes with the subscription if this fails.
        let mut subscription = self.subscription(entry, entered, options, owner);
        if self.unless_dropped(entry, self.progress.wait_filled(id))?.is_none() {
            return Ok(None);
        }
        match (relation, options.beginning.epoch()) {
            (Some(relation), after) => {
                self.sequencer.sync(last)?;
                let at_least = last.max(feed.begins());
                let Some(rows) = self.progress.pin_one(relation, at_least)? else {
                    return Ok(None);
                };
                match after {
                    None => feed.begin(subscriber, rows),
                    Some(after) => {
                        let oldest = self.sequencer.oldest(relation, rows.0);
                        check_kept(entry, after, oldest, last)?;
                        let has_rows = matches!(options.beginning, Beginning::RowsAsOf(_));
                        subscription.begin_with(self.history(&rows, after, has_rows)?);
                        feed.skip(subscriber, rows.0.max(after));
                    }
                }
            }
            (None, Some(after)) => check_kept(entry, after, None, last)?,
            (None, None) => {
                if feed.snapshot(subscriber).is_none_or(|epoch| epoch < last) {
                    let Some((rows, epoch)) = self.unless_dropped(entry, self.rows_of(entry))?
                    else {
                        return Ok(None);
                    };
                    subscription.begin_with(rows);
                    feed.skip(subscriber, epoch);
                }
            }
        }
        Ok(Some(subscription))
    }

    /// Whether the output of a subscription's dataflow does not depend on when it was built. A plain view drops changes that
    /// come later than it says, which are others than those that one with other waterlines drops.
    fn is_shared(&self, entry: &Entry) -> bool {
        let is_determined = |view: &Entry| match &view.definition {
            Definition::View(of) => view.keeps_rows() || of.lateness.is_empty(),
            Definition::Table(_) | Definition::Declared(_) => true,
        };
        let entries = self.catalog.entries();
        let (mut seen, mut next) = (Vec::new(), vec![entry]);
        while let Some(view) = next.pop() {
            if !is_determined(view) {
                return false;
            }
            if !view.keeps_rows() && !seen.contains(&&*view.name) {
                seen.push(&*view.name);
                next.extend(
                    view.depends.iter().filter_map(|name| entries.get(name)).map(|of| &**of),
                );
            }
        }
        true
    }

    /// A new subscriber of the dataflow that those of a relation share, which is installed if it is missing; `None` if the
    /// relation has been dropped.
    fn enter_shared(&self, entry: &Entry, options: SubscribeOptions) -> Result<Option<Entered>> {
        if let Some(entered) = self.subscriptions.lock().enter(&entry.name, options) {
            return Ok(Some(entered));
        }
        let _lock = self.lock();
        if !self.is_there(entry) {
            return Ok(None);
        }
        if let Some(entered) = self.subscriptions.lock().enter(&entry.name, options) {
            return Ok(Some(entered));
        }
        self.install_feed(entry, Feeding::Shared(options)).map(Some)
    }

    /// The result that a subscriber waits for; `None` instead of an error if the relation has been dropped or replaced meanwhile,
    /// and the dataflow that it waits for with it.
    fn unless_dropped<T>(&self, entry: &Entry, result: Result<T>) -> Result<Option<T>> {
        let error = match result {
            Ok(found) => return Ok(Some(found)),
            Err(error) => error,
        };
        let _lock = self.lock();
        if self.is_there(entry) { Err(error) } else { Ok(None) }
    }

    /// Whether a relation has not been dropped since. The caller holds the definitions' lock.
    fn is_there(&self, entry: &Entry) -> bool {
        self.catalog.get(&entry.name).is_ok_and(|now| now.dataflow() == entry.dataflow())
    }

    /// The changes after an epoch that a version of a relation has; before them, if asked for, its rows as of that epoch.
    fn history(
        &self,
        rows: &PinnedRows,
        after: Epoch,
        has_rows: bool,
    ) -> Result<(Arc<Feed>, SubscriberId)> {
        let feed = self.feed(1, Kind::Alone);
        let subscriber = feed.enter(SubscribeOptions::unlimited());
        resume(&feed, rows, after)?;
        if has_rows {
            feed.begin(subscriber, (after, rows.1.clone()));
        }
        Ok((feed, subscriber))
    }

    /// All rows of a plain view, and the epoch as of which they are. The dataflow that makes them is gone when this returns.
    fn rows_of(&self, entry: &Entry) -> Result<((Arc<Feed>, SubscriberId), Epoch)> {
        let Entered { feed, subscriber, id } = {
            let _lock = self.lock();
            self.install_feed(entry, Feeding::Rows)?
        };
        let filled = self.progress.wait_filled(id);
        let epoch = feed.snapshot(subscriber).unwrap_or_default();
        self.cut(id);
        filled.map(|()| ((feed, subscriber), epoch))
    }

    /// Counts memory of changes that wait for a subscriber.
    pub(crate) fn charge(&self) -> Charge {
        self.context.budget().charge(0)
    }

    fn feed(&self, workers: usize, kind: Kind) -> Arc<Feed> {
        Feed::new(workers, kind, self.progress.clone(), self.poison.clone(), &self.context)
    }

    /// Installs a dataflow whose changes go to a feed, which has one subscriber. The caller holds the definitions' lock.
    fn install_feed(&self, entry: &Entry, feeding: Feeding<'_>) -> Result<Entered> {
        let name = &entry.name;
        entry.check_runs()?;
        let compiled = compile(entry.changes()?.as_ref(), Output::Changes, &|index| {
            self.indexes.is_there(index)
        })?;
        let (later, is_output) = (entry.keeps_rows(), matches!(feeding, Feeding::Output(_)));
        let (kind, options, role) = match feeding {
            Feeding::Shared(options) => (Kind::Shared, options, Role::Subscription { later }),
            Feeding::Alone(options) => (Kind::Alone, options, Role::Subscription { later: false }),
            Feeding::Rows => {
                let options = SubscribeOptions::unlimited();
                (Kind::Rows, options, Role::Subscription { later: false })
            }
            Feeding::Output(path) => {
                let key = DataflowKey::output(name, path, compiled.plan.fingerprint());
                (Kind::Alone, SubscribeOptions::new(), Role::Kept(key))
            }
        };
        let feed = self.feed(self.sequencer.workers(), kind);
        let subscriber = feed.enter(options);
        let (id, uses) = self.install_plan(
            &compiled,
            &self.catalog.entries(),
            None,
            (role, &Replaced::new()),
            |view| {
                Dataflow::View {
                    name: format!("subscription {} to {name}", view.id.0),
                    plan: view.plan.clone(),
                    reads: view.reads.clone(),
                    // A checkpoint says how much an output has written.
                    counts: is_output,
                    sink: Some(Box::new(FeedSink::new(
                        feed.clone(),
                        view.id,
                        view.worker,
                        view.start,
                    ))),
                }
            },
        )?;
        let installed = Installed { relation: name.clone(), uses, feed: feed.clone() };
        self.subscriptions.lock().insert(id, installed, kind);
        Ok(Entered { feed, subscriber, id })
    }

    /// A subscriber leaves a feed. Its dataflow goes with the last one, unless it is gone already.
    pub(crate) fn unsubscribe(&self, id: DataflowId, feed: &Feed, subscriber: SubscriberId) {
        let ended = {
            let mut subscriptions = self.subscriptions.lock();
            match feed.leave(subscriber) {
                true => subscriptions.remove(id),
                false => None,
            }
        };
        if let Some(ended) = ended {
            self.sequencer.remove(id);
            self.release(&ended.uses);
        }
    }

    /// Removes the dataflow of a feed, unless that has been done. Changes of complete epochs are still delivered.
    pub(crate) fn cut(&self, id: DataflowId) {
        let ended = self.subscriptions.lock().remove(id);
        if let Some(ended) = ended {
            self.end(id, &ended);
        }
    }

    /// Whether there is a subscription to a relation.
    pub(super) fn is_subscribed(&self, relation: &str) -> bool {
        let subscriptions = self.subscriptions.lock();
        subscriptions.dataflows.values().any(|installed| installed.relation == relation)
    }

    /// Cuts the subscriptions to a relation.
    pub(super) fn cut_all(&self, relation: &str) {
        let mut subscriptions = self.subscriptions.lock();
        subscriptions.shared.remove(relation);
        let ended = subscriptions.dataflows.extract_if(.., |_, of| of.relation == relation);
        ended.for_each(|(id, ended)| self.end(id, &ended));
    }

    fn end(&self, id: DataflowId, installed: &Installed) {
        installed.feed.cut();
        self.sequencer.remove(id);
        self.release(&installed.uses);
    }

    /// Ends all feeds; the workers are about to shut down.
    pub(crate) fn close(&mut self) {
        let subscriptions = self.subscriptions.lock();
        subscriptions.dataflows.values().for_each(|installed| installed.feed.cut());
    }
}

/// The purpose of a dataflow of changes.
enum Feeding<'a> {
    /// All subscribers of the relation; these are the options of the first.
    Shared(SubscribeOptions),
    /// One subscriber.
    Alone(SubscribeOptions),
    /// The rows as of when it is built.
    Rows,
    /// An output to a path.
    Output(&'a str),
}

/// Fails if the changes of a relation after an epoch are not kept: all after `oldest` are, up to the last epoch.
fn check_kept(entry: &Entry, after: Epoch, oldest: Option<Epoch>, last: Epoch) -> Result<()> {
    let name = &entry.name;
    let message = match oldest {
        Some(oldest) if (oldest..=last).contains(&after) => return Ok(()),
        Some(oldest) if after < oldest => format!(
            "the changes of \"{name}\" behind epoch {after} are gone, those behind epoch {oldest} are kept; subscribe without \
             an epoch to begin with a snapshot, and let the engine keep a longer history"
        ),
        Some(_) => format!(
            "there is no epoch {after} yet, the last one is {last}; subscribe without an epoch to begin with a snapshot"
        ),
        None => format!(
            "the changes of \"{name}\" are not kept, because it is neither a materialized view nor a table with its rows; \
             subscribe without an epoch to begin with a snapshot"
        ),
    };
    Err(Error::Gone { message, oldest })
}
