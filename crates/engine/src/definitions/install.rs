//! Dataflows of plans, over the indexes they share.

use std::sync::Arc;

use alluvium_sql::plan::IncrementalPlan;
use alluvium_trace::Epoch;

use super::Definitions;
use crate::catalog::Uses;
use crate::error::Result;
use crate::sequencer::Stream;
use crate::worker::{Dataflow, DataflowId, Reads};

impl Definitions {
    /// Builds the dataflow of a plan. Indexes it shares with other dataflows are built where they are missing.
    /// The caller holds the definitions' lock.
    pub(super) fn install_plan(
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
                    let parts = index.parts().into_iter().map(DataflowId).collect();
                    let reads = reads(&index.rows, parts);
                    let built = self
                        .sequencer
                        .install(&streams, &reads, |_, _, _| Dataflow::Index(index.clone()))?;
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
            let reads = reads(&plan, uses.all.clone());
            let build = |worker, id, as_of| dataflow(&plan, worker, id, as_of);
            self.sequencer.install(&streams, &reads, build)
        });
        match installed {
            Ok(id) => Ok((id, uses)),
            Err(error) => {
                self.release(&uses);
                Err(error)
            }
        }
    }

    /// Releases indexes, and removes those without users.
    pub(super) fn release(&self, uses: &Uses) {
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
}

/// What the dataflow of a plan over indexes reads.
fn reads(plan: &IncrementalPlan, indexes: Vec<DataflowId>) -> Reads {
    let mut relations = Vec::new();
    plan.visit_relations(&mut |relation| relations.push(relation.to_owned()));
    Reads { relations, indexes }
}
