//! Dataflows of plans, over the indexes they share.

use std::collections::HashMap;
use std::sync::Arc;

use alluvium_sql::physical::{Compiled, CompiledIndex, PhysicalPlan};
use alluvium_sql::plan::Fingerprint;
use alluvium_sql::planner::CLOCK;

use super::Definitions;
use crate::catalog::{Entries, Uses};
use crate::durable::checkpoint::DataflowKey;
use crate::durable::record::Recorded;
use crate::durable::restore::RestoredDataflow;
use crate::error::Result;
use crate::sequencer::{Role, Stream};
use crate::worker::{Dataflow, DataflowId, Reads, Start};

/// The dataflows of indexes whose places others take, by the fingerprints of these.
pub(super) type Replaced = HashMap<Fingerprint, DataflowId>;

/// A plan as one worker runs it.
pub(super) struct View<'a> {
    pub(super) plan: &'a Arc<PhysicalPlan>,
    /// The dataflows it reads.
    pub(super) reads: &'a Arc<Reads>,
    pub(super) worker: usize,
    pub(super) id: DataflowId,
    pub(super) start: Start,
}

impl Definitions {
    /// Installs the dataflow of a plan over these relations, which `definition` is the record of. Indexes that it shares with other dataflows are
    /// installed where they are missing, in the place of those `before`. The caller holds the definitions' lock.
    pub(super) fn install_plan(
        &self,
        compiled: &Compiled,
        entries: &Entries,
        definition: Option<&Recorded>,
        (role, before): (Role, &Replaced),
        mut dataflow: impl FnMut(View<'_>) -> Dataflow,
    ) -> Result<(DataflowId, Uses)> {
        let mut uses = Uses::default();
        let mut indexes = compiled.indexes.iter();
        let used = indexes.try_for_each(|index| {
            self.use_index(index, before.get(&index.fingerprint).copied(), entries, &mut uses)
        });
        let installed = used.and_then(|()| {
            let (plan, reads) = (&compiled.plan, self.reads(&compiled.plan, entries, &uses));
            self.sequencer.install(
                &streams(plan, entries),
                definition,
                role,
                |worker, id, start| dataflow(View { plan, reads: &reads, worker, id, start }),
            )
        });
        match installed {
            Ok(id) => Ok((id, uses)),
            Err(error) => {
                self.release(&uses);
                Err(error)
            }
        }
    }

    /// Adds an index to those that are used, and installs it if it is missing: with the rows of the one `before`, if it takes the place
    /// of that. The indexes it is made of are used already.
    pub(super) fn use_index(
        &self,
        index: &CompiledIndex,
        before: Option<DataflowId>,
        entries: &Entries,
        uses: &mut Uses,
    ) -> Result<()> {
        let id = match self.indexes.acquire(index.fingerprint) {
            Some(id) => id,
            None => {
                let reads = self.reads(&index.plan, entries, uses);
                let streams = streams(&index.plan, entries);
                let before = before.map(|id| self.kept(id)).transpose()?;
                let before = before.and_then(|kept| kept.of_names(&index.plan));
                let role = Role::of(DataflowKey::index(index.fingerprint), before);
                let id = self.sequencer.install(&streams, None, role, |_, _, _| {
                    Dataflow::Index { plan: index.plan.clone(), reads: reads.clone() }
                })?;
                self.indexes.insert(id, index);
                id
            }
        };
        uses.add(index, id);
        Ok(())
    }

    /// What a dataflow keeps, once it is full.
    pub(super) fn kept(&self, id: DataflowId) -> Result<RestoredDataflow> {
        self.progress.wait_filled(id)?;
        self.sequencer.kept(id)
    }

    /// Releases indexes, and removes those without users.
    pub(super) fn release(&self, uses: &Uses) {
        self.failing.release(uses);
    }

    /// The dataflows that a plan over these indexes reads.
    fn reads(&self, plan: &PhysicalPlan, entries: &Entries, uses: &Uses) -> Arc<Reads> {
        let names = plan.relations().iter().chain(plan.streams());
        let relations = names.filter_map(|name| {
            let id = match &**name == CLOCK {
                true => self.sequencer.clock(),
                false => entries.get(name)?.dataflow(),
            };
            Some((name.clone(), id?))
        });
        let waterlines = entries.values().filter_map(|entry| {
            let id = entry.as_view().ok()?.id?;
            Some((entry.name.clone(), id))
        });
        Arc::new(Reads {
            relations: relations.collect(),
            indexes: uses.all.clone(),
            waterlines: waterlines.collect(),
        })
    }

    /// A dataflow that is filled and belongs to one of these relations.
    pub(super) fn filling_of(&self, entries: &Entries, names: &[String]) -> Option<DataflowId> {
        let ids = names.iter().filter_map(|name| entries.get(name)?.dataflow());
        ids.into_iter().find(|id| self.progress.is_filling(*id))
    }
}

/// The tables that a plan reads and that do not keep their rows.
fn streams(plan: &PhysicalPlan, entries: &Entries) -> Vec<Stream> {
    let streams = plan.streams().iter().filter_map(|name| {
        let id = entries.get(name)?.dataflow()?;
        Some(Stream { id, name: name.clone() })
    });
    streams.collect()
}
