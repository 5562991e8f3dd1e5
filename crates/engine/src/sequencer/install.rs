//! Dataflows that come and go between epochs.

use std::sync::Arc;

use alluvium_sql::physical::Table;
use alluvium_sql::planner::{CLOCK, CLOCK_SCHEMA};
use alluvium_sql::statement::KEEPING;
use alluvium_trace::Epoch;

use super::facts::RunningClock;
use super::state::{Kept, State};
use super::{Sequencer, Stream};
use crate::clock::Moment;
use crate::durable::checkpoint::{DataflowKey, DataflowName};
use crate::durable::record::{Record, Recorded};
use crate::durable::restore::RestoredDataflow;
use crate::error::{Error, Result};
use crate::worker::{Command, Dataflow, DataflowId, Resumed, Start};

/// The purpose of a dataflow.
pub(crate) enum Role {
    /// It keeps state, which is part of checkpoints.
    Kept(DataflowKey),
    /// As `Kept`, of a relation that had failed and resumes, which is recorded.
    Resumed(DataflowKey),
    /// As `Kept`, and it starts with the state of another dataflow, whose place it takes.
    Moved(DataflowKey, Box<RestoredDataflow>),
    /// As `Kept`, and it replaces a relation of the same name once it is full. Until then it is not part of checkpoints.
    Candidate(DataflowKey),
    /// As `Candidate`, with a number that was [reserved](Sequencer::reserve) for it.
    Reserved(DataflowId, DataflowKey),
    /// It is a session's own, and in no checkpoint.
    Temporary,
    /// Its changes are for subscribers: of its inputs only those after the epoch that it is built as of, if it is for
    /// `later` ones.
    Subscription { later: bool },
}

impl Role {
    /// That of a relation, which may take the place of another dataflow.
    pub(crate) fn of(key: DataflowKey, before: Option<RestoredDataflow>) -> Self {
        match before {
            None => Self::Kept(key),
            Some(before) => Self::Moved(key, Box::new(before)),
        }
    }
}

impl Sequencer {
    /// Makes the time of the epoch a relation, [`CLOCK`], unless it is one already. It begins in an epoch of
    /// its own, at the time of the last one or, if there is none, at `now`.
    pub(crate) fn start_clock(&self, now: Moment) -> Result<()> {
        let id = {
            let mut state = self.state.lock();
            if state.clock.running.is_some() {
                return Ok(());
            }
            let table = Arc::new(Table::compile(&CLOCK_SCHEMA, &[], false)?);
            let role = Role::Kept(DataflowKey::relation(CLOCK, table.fingerprint()));
            let restored = state.clock.saved.take();
            let id = self.install_now(&mut state, &[], role, |_, _, _| Dataflow::Table {
                name: CLOCK.to_owned(),
                table: table.clone(),
            })?;
            state.definitions.define_clock(now);
            // Before the first transaction the time may still go back.
            let known = |time| state.time.0.map(|_| (RunningClock::column(), time));
            if let Some(time) = restored {
                self.raise(self.last() + 1, known(time).into_iter().collect());
                state.clock.running = Some(RunningClock { id, time });
                return Ok(());
            }
            let time = state.time.0.unwrap_or(now);
            let mut shares: Vec<Vec<_>> = (0..self.workers()).map(|_| Vec::new()).collect();
            shares[0].push((id, vec![RunningClock::row(&[(time, 1)])?]));
            let before = state.time.0;
            let record = self.durable.append(&Record::Clock { now })?;
            self.raise(self.last() + 2, known(time).into_iter().collect());
            let epoch = self.make_epoch(&mut state, &[id], shares, time);
            // A transaction with a time of its own is not bound by the clock's.
            state.time.0 = before;
            state.clock.running = Some(RunningClock { id, time });
            drop(state);
            self.durable.sync_epoch(epoch, record)?;
            id
        };
        self.progress.wait_filled(id)
    }

    /// The dataflow of the clock, if it is a relation.
    pub(crate) fn clock(&self) -> Option<DataflowId> {
        self.state.lock().clock.running.as_ref().map(|clock| clock.id)
    }

    /// Orders a dataflow to be built as of the last committed epoch. `dataflow` makes each worker's part. `definition` is recorded
    /// in its place among the epochs.
    ///
    /// Nothing waits: epochs in flight continue, and the dataflow is filled while others follow. It can be read
    /// once it [has caught up](crate::worker::Progress::wait_filled).
    ///
    /// Fails if rows have passed through one of the `streams` that it reads: they are not kept anywhere.
    pub(crate) fn install(
        &self,
        streams: &[Stream],
        definition: Option<&Recorded>,
        role: Role,
        dataflow: impl FnMut(usize, DataflowId, Start) -> Dataflow,
    ) -> Result<DataflowId> {
        let mut state = self.state.lock();
        let resumed = match &role {
            Role::Resumed(DataflowKey { name: DataflowName::Relation(name), .. }) => {
                Some(name.clone())
            }
            _ => None,
        };
        let id = self.install_now(&mut state, streams, role, dataflow)?;
        if let Some(relation) = resumed {
            self.record_resumed(&mut state, &relation)?;
        }
        if let Some(recorded) = definition {
            self.durable.append(&recorded.definition)?;
            state.define(recorded);
        }
        Ok(id)
    }

    fn install_now(
        &self,
        state: &mut State,
        streams: &[Stream],
        role: Role,
        mut dataflow: impl FnMut(usize, DataflowId, Start) -> Dataflow,
    ) -> Result<DataflowId> {
        let (saved, role) = match role {
            Role::Kept(key) => (state.saved(&key), Role::Kept(key)),
            Role::Resumed(key) => (None, Role::Kept(key)),
            Role::Moved(key, before) => (Some(*before), Role::Kept(key)),
            Role::Candidate(_)
            | Role::Reserved(..)
            | Role::Temporary
            | Role::Subscription { .. } => (None, role),
        };
        if saved.is_none()
            && let Some(Stream { name, .. }) =
                streams.iter().find(|stream| state.has_passed(stream))
        {
            return Err(Error::sql(format!(
                "rows have passed through \"{name}\" already and are not kept, so nothing new can \
                 read it: {KEEPING}"
            )));
        }
        self.poison.check()?;
        let last = self.last();
        // Who finds it in the catalog reads it as of this epoch or a later one.
        self.report(last);
        let id = match &role {
            Role::Reserved(id, _) => *id,
            _ => state.next_id(),
        };
        let later = matches!(role, Role::Subscription { later: true });
        let start = Start { as_of: last, later };
        let is_subscription = matches!(role, Role::Subscription { .. });
        let mut resumed = match role {
            Role::Kept(key) | Role::Resumed(key) | Role::Moved(key, _) => {
                let since = saved.as_ref().map_or(state.since.max(last + 1), |saved| saved.since);
                let dealt = saved.map(|saved| saved.deal(self.workers(), last + 1));
                let (built_for, resumed) = dealt.unzip();
                let built_for = built_for.flatten();
                state.kept.insert(id, Kept { key, since, built_for });
                resumed
            }
            Role::Candidate(key) | Role::Reserved(_, key) => {
                let since = state.since.max(last + 1);
                state.candidates.insert(id, Kept { key, since, built_for: None });
                None
            }
            Role::Temporary => None,
            Role::Subscription { later: true } => Some(vec![Resumed::behind(last); self.workers()]),
            Role::Subscription { .. } => None,
        };
        let waterlines = &mut state.waterlines;
        self.progress.expect_filled(id);
        self.pool.broadcast(|worker| {
            let dataflow = dataflow(worker, id, start);
            // Subscriptions are not recorded, and have the bounds of the relations they read.
            if worker == 0
                && !is_subscription
                && let Dataflow::View { plan, .. } | Dataflow::Index { plan, .. } = &dataflow
            {
                waterlines.add_leasts(id, plan.leasts());
            }
            let resumed = resumed.as_mut().map(|resumed| std::mem::take(&mut resumed[worker]));
            Command::Install { id, as_of: start.as_of, dataflow, resumed }
        });
        Ok(id)
    }

    /// A number that no other dataflow has.
    pub(crate) fn reserve(&self) -> DataflowId {
        self.state.lock().next_id()
    }

    /// A candidate takes the place of the relation that it was built to replace, whose dataflow is gone; this is recorded.
    pub(crate) fn promote(&self, id: DataflowId, definition: Option<&Recorded>) -> Result<()> {
        let mut state = self.state.lock();
        if let Some(recorded) = definition {
            self.durable.append(&recorded.definition)?;
            state.define(recorded);
        }
        state.promote(id);
        Ok(())
    }

    /// The first epoch after which all changes of a relation are kept as of `epoch`; `None` if it keeps none.
    pub(crate) fn oldest(&self, relation: DataflowId, epoch: Epoch) -> Option<Epoch> {
        let since = self.state.lock().kept.get(&relation)?.since;
        Some(since.max(self.history.first(epoch)))
    }

    /// Removes a dataflow. Snapshots that readers have pinned stay readable.
    pub(crate) fn remove(&self, id: DataflowId) {
        if self.poison.is_spread() {
            return;
        }
        let mut state = self.state.lock();
        self.progress.give_up_filling(id);
        state.candidates.remove(&id);
        state.changed.remove(id);
        state.waterlines.remove(id);
        state.writes.remove(id);
        if let Some(DataflowName::Relation(name)) = state.kept.remove(&id).map(|kept| kept.key.name)
        {
            state.positions.forget(&name);
        }
        self.pool.broadcast(|_| Command::Remove(id));
    }
}
