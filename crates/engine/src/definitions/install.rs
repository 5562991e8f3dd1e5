//! Dataflows of plans, over the indexes they share.

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium_sql::plan::{Fingerprint, IncrementalPlan, Shared, SharedIndex};
use alluvium_trace::Epoch;

use super::Definitions;
use crate::catalog::Uses;
use crate::error::Result;
use crate::sequencer::Stream;
use crate::worker::{Dataflow, DataflowId};

/// A plan as one worker is to run it.
pub(super) struct View<'a> {
    pub(super) plan: &'a Arc<IncrementalPlan>,
    /// The dataflows of the indexes it reads.
    pub(super) indexes: &'a Arc<BTreeMap<Fingerprint, DataflowId>>,
    pub(super) worker: usize,
    pub(super) id: DataflowId,
    pub(super) as_of: Epoch,
}

impl Definitions {
    /// Builds the dataflow of a plan. Indexes it shares with other dataflows are built where they are missing.
    /// The caller holds the definitions' lock.
    pub(super) fn install_plan(
        &self,
        plan: &IncrementalPlan,
        mut dataflow: impl FnMut(View<'_>) -> Dataflow,
    ) -> Result<(DataflowId, Uses)> {
        let Shared { plan, indexes } = plan.clone().share();
        let mut uses = Uses::default();
        let installed =
            indexes.iter().try_for_each(|index| self.use_index(index, &mut uses)).and_then(|()| {
                let (streams, plan) = (self.streams(&plan), Arc::new(plan));
                let indexes = Arc::new(uses.all.clone());
                self.sequencer.install(&streams, |worker, id, as_of| {
                    dataflow(View { plan: &plan, indexes: &indexes, worker, id, as_of })
                })
            });
        match installed {
            Ok(id) => Ok((id, uses)),
            Err(error) => {
                self.release(&uses);
                Err(error)
            }
        }
    }

    /// Adds an index to those that are used, and builds it if it is missing. The indexes it is made of are used
    /// already.
    fn use_index(&self, shared: &SharedIndex, uses: &mut Uses) -> Result<()> {
        let id = match self.indexes.acquire(shared.fingerprint) {
            Some(id) => id,
            None => {
                let (streams, indexes) =
                    (self.streams(&shared.index.rows), Arc::new(uses.all.clone()));
                let id = self.sequencer.install(&streams, |_, _, _| Dataflow::Index {
                    index: shared.index.clone(),
                    indexes: indexes.clone(),
                })?;
                self.indexes.insert(id, shared.fingerprint, shared.index.clone());
                id
            }
        };
        uses.add(shared, id);
        Ok(())
    }

    /// Releases indexes, and removes those without users.
    pub(super) fn release(&self, uses: &Uses) {
        for gone in self.indexes.release(uses) {
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
}
