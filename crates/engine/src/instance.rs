//! What all handles of one engine share.

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium_sql::plan::IncrementalPlan;
use alluvium_sql::planner::Planner;
use alluvium_trace::Epoch;
use alluvium_trace::memory::StateContext;
use parking_lot::Mutex;

use crate::catalog::{Catalog, Indexes, RelationInfo, Uses};
use crate::clock::Clock;
use crate::error::Result;
use crate::poison::Poison;
use crate::query::QueryEngine;
use crate::sequencer::{Sequencer, Stream};
use crate::settings::Settings;
use crate::sink::{Outputs, Sink};
use crate::source::{Inputs, Refusals, Registry, Source};
use crate::subscription::{Feed, FeedSink, Subscription};
use crate::transaction::Turns;
use crate::worker::{Dataflow, DataflowId, Pool, Progress};

/// A running engine. Dropping it shuts its workers down and joins their threads.
///
/// Locks are taken in this order: the turn to write, `definitions`, and then those inside the parts, of
/// which none is held while calling another part.
pub(crate) struct Instance {
    pub(crate) catalog: Catalog,
    pub(crate) indexes: Indexes,
    pub(crate) planner: Planner,
    pub(crate) query: QueryEngine,
    pub(crate) settings: Settings,
    pub(crate) clock: Clock,
    pub(crate) formats: Arc<Registry>,
    pub(crate) inputs: Arc<Inputs>,
    pub(crate) outputs: Outputs,
    pub(crate) refusals: Refusals,
    pub(crate) turns: Arc<Turns>,
    /// Held while relations come and go.
    pub(crate) definitions: Mutex<()>,
    /// The dataflows of subscriptions.
    subscriptions: Mutex<BTreeMap<DataflowId, Subscribed>>,
    pub(crate) progress: Arc<Progress>,
    pub(crate) poison: Arc<Poison>,
    pub(crate) sequencer: Sequencer,
    /// What state is counted in, and where it goes beyond.
    pub(crate) context: StateContext,
}

/// What a subscription's dataflow reads, and where its changes go.
struct Subscribed {
    relation: String,
    uses: Uses,
    feed: Arc<Feed>,
}

impl Instance {
    pub(crate) fn start(
        settings: Settings,
        sources: Vec<Arc<dyn Source>>,
        sinks: Vec<Arc<dyn Sink>>,
        clock: Clock,
        context: StateContext,
    ) -> Result<Arc<Self>> {
        let poison = Arc::new(Poison::default());
        let progress = Progress::new(settings.workers, clock.now()?, poison.clone());
        let pool = Pool::start(settings.workers, &context, &progress, &poison)?;
        Ok(Arc::new(Self {
            catalog: Catalog::default(),
            indexes: Indexes::default(),
            planner: Planner::new(),
            query: QueryEngine::default(),
            settings,
            clock,
            formats: Arc::new(Registry::new(sources, sinks, poison.clone())),
            inputs: Inputs::new(poison.clone()),
            outputs: Outputs::default(),
            refusals: Refusals::default(),
            turns: Turns::new(poison.clone()),
            definitions: Mutex::new(()),
            subscriptions: Mutex::default(),
            sequencer: Sequencer::new(
                pool,
                progress.clone(),
                poison.clone(),
                context.budget().clone(),
            ),
            progress,
            poison,
            context,
        }))
    }

    pub(crate) fn subscribe(self: &Arc<Self>, name: &str) -> Result<Subscription> {
        let _definitions = self.definitions.lock();
        let entry = self.catalog.get(name)?;
        let plan = entry.changes()?;
        let feed = Feed::new(self.sequencer.workers(), self.progress.clone(), self.poison.clone());
        let (id, uses) = self.install_plan(&plan, |plan, worker, id, as_of| Dataflow::View {
            name: format!("subscription {} to {name}", id.0),
            plan: plan.clone(),
            keep: false,
            sink: Some(Box::new(FeedSink::new(feed.clone(), worker, as_of))),
        })?;
        self.subscriptions
            .lock()
            .insert(id, Subscribed { relation: name.to_owned(), uses, feed: feed.clone() });
        Ok(Subscription::new(feed, entry.schema.clone(), id, Arc::downgrade(self)))
    }

    /// Ends a subscription's dataflow, unless that has been done.
    pub(crate) fn unsubscribe(&self, id: DataflowId) {
        let ended = self.subscriptions.lock().remove(&id);
        if let Some(ended) = ended {
            self.sequencer.remove(id);
            self.release(&ended.uses);
        }
    }

    /// Ends a subscription's dataflow, unless that has been done; what is complete is still delivered.
    pub(crate) fn cut(&self, id: DataflowId) {
        let ended = self.subscriptions.lock().remove(&id);
        if let Some(ended) = ended {
            ended.feed.cut();
            self.sequencer.remove(id);
            self.release(&ended.uses);
        }
    }

    /// Ends the subscriptions to a relation.
    pub(crate) fn unsubscribe_all(&self, name: &str) {
        let mut subscriptions = self.subscriptions.lock();
        for (id, ended) in subscriptions.extract_if(.., |_, subscribed| subscribed.relation == name)
        {
            ended.feed.cut();
            self.sequencer.remove(id);
            self.release(&ended.uses);
        }
    }

    /// Builds the dataflow of a plan over the indexes it shares with others, which are built where there are
    /// none yet. Called while definitions are locked.
    pub(crate) fn install_plan(
        &self,
        plan: &IncrementalPlan,
        mut dataflow: impl FnMut(&Arc<IncrementalPlan>, usize, DataflowId, Epoch) -> Dataflow,
    ) -> Result<(DataflowId, Uses)> {
        let mut uses = Uses::default();
        let shared = plan.clone().share(&mut |index, reported| {
            let id = match self.indexes.acquire(&index) {
                Some(id) => id,
                None => {
                    let index = Arc::new(index);
                    let streams = self.streams(&index.rows);
                    let built = self
                        .sequencer
                        .install(&streams, |_, _, _| Dataflow::Index(index.clone()))?;
                    self.indexes.insert(built, index);
                    built
                }
            };
            uses.all.push(id);
            if reported {
                uses.reported.insert(id);
            }
            Ok(id.0)
        });
        let installed = shared.and_then(|plan| {
            let (streams, plan) = (self.streams(&plan), Arc::new(plan));
            self.sequencer.install(&streams, |worker, id, as_of| dataflow(&plan, worker, id, as_of))
        });
        match installed {
            Ok(id) => Ok((id, uses)),
            Err(error) => {
                self.release(&uses);
                Err(error)
            }
        }
    }

    /// Lets go of indexes; those that nobody uses any more are taken down.
    pub(crate) fn release(&self, uses: &Uses) {
        for gone in self.indexes.release(&uses.all) {
            self.sequencer.remove(gone);
        }
    }

    /// The tables that a plan reads and that keep nothing.
    fn streams(&self, plan: &IncrementalPlan) -> Vec<Stream> {
        let entries = self.catalog.entries();
        let mut streams = Vec::new();
        plan.visit_relations(&mut |relation| {
            let entry = entries.get(relation).filter(|entry| entry.is_stream());
            if let Some(id) = entry.and_then(|entry| entry.dataflow()) {
                streams.push(Stream { id, name: relation.to_owned() });
            }
        });
        streams
    }

    pub(crate) fn progress(&self) -> crate::source::Progress {
        crate::source::Progress {
            sources: self.inputs.progress(),
            committed: self.sequencer.last(),
            complete: self.progress.complete(),
        }
    }

    pub(crate) fn relations(&self) -> Result<Vec<RelationInfo>> {
        let entries = self.catalog.entries();
        entries.values().map(|entry| self.relation_info(entry)).collect()
    }

    fn relation_info(&self, entry: &crate::catalog::Entry) -> Result<RelationInfo> {
        let mut refused = 0;
        let mut primary_key = Vec::new();
        if let Ok(table) = entry.as_table() {
            primary_key.clone_from(&table.primary_key);
            let pinned = self.progress.pin(&[table.id])?;
            let parts = pinned.into_iter().flat_map(|pinned| pinned.dataflows).flatten();
            let counts = parts.filter_map(|part| part.refused);
            refused = counts.map(|count| count.load(std::sync::atomic::Ordering::Relaxed)).sum();
        }
        let (name, kind, schema) = (entry.name.clone(), entry.kind(), entry.schema.clone());
        Ok(RelationInfo { name, kind, schema, primary_key, refused })
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.subscriptions.get_mut().values().for_each(|subscribed| subscribed.feed.cut());
        self.outputs.close();
    }
}
