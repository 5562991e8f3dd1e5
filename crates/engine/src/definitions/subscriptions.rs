//! The dataflows of subscriptions.

use std::sync::Arc;

use alluvium_sql::physical::{Output, compile};
use arrow::datatypes::SchemaRef;

use super::Definitions;
use crate::catalog::Uses;
use crate::durable::checkpoint::DataflowKey;
use crate::error::Result;
use crate::sequencer::Role;
use crate::subscription::Subscriber;
use crate::subscription::feed::{Feed, FeedSink};
use crate::worker::{Dataflow, DataflowId};

/// A subscription's dataflow: the relation and the indexes it reads, and where its changes go.
pub(super) struct Subscribed {
    relation: String,
    uses: Uses,
    feed: Arc<Feed>,
}

impl Definitions {
    /// Installs the dataflow of a subscription to a relation. That of an output is part of checkpoints, and starts
    /// with what it had there. Returns its feed, the columns of the changes, and the dataflow.
    pub(crate) fn subscribe(
        &self,
        name: &str,
        subscriber: Subscriber<'_>,
    ) -> Result<(Arc<Feed>, SchemaRef, DataflowId)> {
        let _lock = self.lock();
        let entry = self.catalog.get(name)?;
        let compiled = compile(entry.changes()?.as_ref(), Output::Changes, &|index| {
            self.indexes.is_there(index)
        })?;
        let (progress, poison) = (self.progress.clone(), self.poison.clone());
        let feed = Feed::new(self.sequencer.workers(), progress, poison, &self.context);
        let role = match subscriber {
            Subscriber::New => Role::Subscription { behind: None },
            Subscriber::After(epoch) => {
                let relation = entry.dataflow().filter(|_| entry.keeps_rows());
                Role::Subscription { behind: relation.map(|id| (id, epoch)) }
            }
            Subscriber::Output(path) => {
                Role::Kept(DataflowKey::output(name, path, compiled.plan.fingerprint()))
            }
        };
        let (id, uses) = self.install_plan(&compiled, None, role, |view| Dataflow::View {
            name: format!("subscription {} to {name}", view.id.0),
            plan: view.plan.clone(),
            indexes: view.indexes.clone(),
            sink: Some(Box::new(FeedSink::new(feed.clone(), view.worker, view.start))),
        })?;
        self.subscriptions
            .lock()
            .insert(id, Subscribed { relation: name.to_owned(), uses, feed: feed.clone() });
        Ok((feed, entry.schema.clone(), id))
    }

    /// Removes a subscription's dataflow, unless that has been done.
    pub(crate) fn unsubscribe(&self, id: DataflowId) {
        let ended = self.subscriptions.lock().remove(&id);
        if let Some(ended) = ended {
            self.sequencer.remove(id);
            self.release(&ended.uses);
        }
    }

    /// As [`Definitions::unsubscribe`], but changes of complete epochs are still delivered.
    pub(crate) fn cut(&self, id: DataflowId) {
        let ended = self.subscriptions.lock().remove(&id);
        if let Some(ended) = ended {
            self.end(id, &ended);
        }
    }

    /// Whether there is a subscription to a relation.
    pub(super) fn is_subscribed(&self, relation: &str) -> bool {
        self.subscriptions.lock().values().any(|subscribed| subscribed.relation == relation)
    }

    /// Cuts the subscriptions to a relation.
    pub(super) fn cut_all(&self, relation: &str) {
        let mut subscriptions = self.subscriptions.lock();
        for (id, ended) in
            subscriptions.extract_if(.., |_, subscribed| subscribed.relation == relation)
        {
            self.end(id, &ended);
        }
    }

    fn end(&self, id: DataflowId, subscribed: &Subscribed) {
        subscribed.feed.cut();
        self.sequencer.remove(id);
        self.release(&subscribed.uses);
    }

    /// Ends all feeds; the workers are about to shut down.
    pub(crate) fn close(&mut self) {
        self.subscriptions.get_mut().values().for_each(|subscribed| subscribed.feed.cut());
    }
}
