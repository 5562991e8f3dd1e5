//! The order of everything: which changes make which epoch, and which dataflows exist from which epoch on.
//!
//! A commit makes one epoch; epochs are numbered from 1 without gaps. Up to [`IN_FLIGHT`] epochs may be on
//! their way through the dataflows at a time, then committing waits.

mod deal;

use std::collections::BTreeSet;
use std::sync::Arc;

use alluvium_sql::catalog::KEEPING;
use alluvium_trace::Epoch;
use parking_lot::Mutex;

use crate::error::{Error, Result};
use crate::poison::Poison;
use crate::transaction::Write;
use crate::worker::{Command, Dataflow, DataflowId, Pool, Progress};

/// How many epochs may be in flight.
const IN_FLIGHT: u64 = 64;

/// Numbers epochs, and tells the workers in which order things happen.
pub(crate) struct Sequencer {
    state: Mutex<State>,
    progress: Arc<Progress>,
    poison: Arc<Poison>,
    pool: Pool,
}

/// Guarded by the lock under which everything is broadcast.
struct State {
    /// The last epoch that was committed.
    last: Epoch,
    next_dataflow: u64,
    /// The tables that have been changed since they were made.
    changed: BTreeSet<DataflowId>,
}

/// A table that keeps nothing.
pub(crate) struct Stream {
    pub(crate) id: DataflowId,
    pub(crate) name: String,
}

impl Sequencer {
    pub(crate) fn new(pool: Pool, progress: Arc<Progress>, poison: Arc<Poison>) -> Self {
        Self {
            state: Mutex::new(State { last: 0, next_dataflow: 0, changed: BTreeSet::new() }),
            progress,
            poison,
            pool,
        }
    }

    /// How many workers there are.
    pub(crate) fn workers(&self) -> usize {
        self.pool.len()
    }

    /// The last epoch that was committed.
    pub(crate) fn last(&self) -> Epoch {
        self.state.lock().last
    }

    /// Makes one epoch of the changes to each table. Waits while too many epochs are in flight or a
    /// subscription is congested. Does not wait until the epoch is complete.
    ///
    /// Only the writer whose turn it is commits, so that nobody takes the place waited for.
    pub(crate) fn commit(&self, changes: Vec<(DataflowId, Vec<Write>)>) -> Result<Epoch> {
        self.progress.wait_capacity(self.last(), IN_FLIGHT)?;
        let changed: Vec<DataflowId> = changes.iter().map(|(table, _)| *table).collect();
        let mut shares = deal::deal(changes, self.workers());
        let mut state = self.state.lock();
        let epoch = state.last + 1;
        self.pool.broadcast(|worker| Command::Commit {
            epoch,
            changes: std::mem::take(&mut shares[worker]),
        });
        state.last = epoch;
        state.changed.extend(changed);
        Ok(epoch)
    }

    /// Builds a dataflow as of the last committed epoch, and waits until it has caught up with it.
    /// `dataflow` makes each worker's part.
    ///
    /// Fails if rows have passed through one of the `streams` that it reads: nobody can tell it which.
    /// Commits wait until the epochs in flight are complete, but not until the dataflow has caught up.
    pub(crate) fn install(
        &self,
        streams: &[Stream],
        mut dataflow: impl FnMut(usize, DataflowId, Epoch) -> Dataflow,
    ) -> Result<DataflowId> {
        let id = {
            let mut state = self.state.lock();
            if let Some(Stream { name, .. }) =
                streams.iter().find(|stream| state.changed.contains(&stream.id))
            {
                return Err(Error::sql(format!(
                    "rows have passed through \"{name}\" already and are not kept, so nothing new can \
                     read it: {KEEPING}"
                )));
            }
            self.progress.wait(state.last)?;
            let id = DataflowId(state.next_dataflow);
            state.next_dataflow += 1;
            let as_of = state.last;
            self.pool.broadcast(|worker| Command::Install {
                id,
                as_of,
                dataflow: dataflow(worker, id, as_of),
            });
            id
        };
        self.progress.wait_ready(id)?;
        Ok(id)
    }

    /// Does something on every worker's thread.
    #[cfg(test)]
    pub(crate) fn run_on_workers(&self, act: fn()) {
        let _order = self.state.lock();
        self.pool.broadcast(|_| Command::Run(act));
    }

    /// Takes a dataflow down. What others pinned of it stays readable to them.
    pub(crate) fn remove(&self, id: DataflowId) {
        if self.poison.is_spread() {
            return;
        }
        let mut state = self.state.lock();
        state.changed.remove(&id);
        self.pool.broadcast(|_| Command::Remove(id));
    }
}
