//! Relations whose dataflows are replaced: by the same one under another name, or by one with other columns.
//!
//! A dataflow is given another name as it is given another process: a new one starts with the batches that the old one keeps,
//! and no row is touched. The caller holds the write lock and the definitions' lock, so nothing changes meanwhile.

use crossbeam_channel::unbounded;

use super::Sequencer;
use super::partition::partition;
use crate::changes::TableChange;
use crate::clock::Moment;
use crate::durable::restore::RestoredDataflow;
use crate::error::{Error, Result};
use crate::worker::{Command, DataflowId};

impl Sequencer {
    /// The state of a dataflow at the last epoch.
    pub(crate) fn kept(&self, id: DataflowId) -> Result<RestoredDataflow> {
        self.poison.check()?;
        let (reply, replies) = unbounded();
        let kept = {
            let state = self.state.lock();
            self.pool.broadcast(|_| Command::Pin(reply.clone()));
            state.kept.get(&id).cloned()
        };
        drop(reply);
        let kept = kept.ok_or_else(|| Error::sql("the relation keeps nothing"))?;
        let mut shards = vec![Default::default(); self.workers()];
        for _ in 0..shards.len() {
            let Ok((worker, mut pinned)) = replies.recv() else {
                self.poison.check()?;
                return Err(Error::sql("a worker has ended"));
            };
            shards[worker] = pinned.remove(&id).unwrap_or_default();
        }
        let first = self.history.first(self.last());
        Ok(RestoredDataflow::of(&kept, first, shards))
    }

    /// A table takes the place of another one: rows that have passed the other have passed this one, and it continues the
    /// other's waterlines once it is declared, under this name.
    pub(crate) fn hand_on(&self, from: DataflowId, to: DataflowId, name: &str) {
        let state = &mut *self.state.lock();
        if state.changed.has(from) {
            state.changed.insert(to);
        }
        state.waterlines.hand_on(from, name);
    }

    /// Puts rows into a new table, in an epoch of their own at the time of the last one. They are not recorded: they are what
    /// its definition makes of rows that are there already.
    pub(crate) fn fill(
        &self,
        table: DataflowId,
        changes: Vec<TableChange>,
        now: Moment,
    ) -> Result<()> {
        let bytes: usize = changes.iter().map(|change| change.rows().bytes()).sum();
        let shares = partition(vec![(table, changes)], self.workers());
        let epoch = {
            let mut state = self.state.lock();
            self.durable.count(bytes as u64);
            state.changed.insert(table);
            let (before, time) = (state.time.0, state.time.0.unwrap_or(now));
            let epoch = self.make_epoch(&mut state, &[table], shares, time);
            // A transaction with a time of its own is not bound by the clock's.
            state.time.0 = before;
            epoch
        };
        self.wait(epoch)
    }
}
