//! The queue of a journal, and which thread writes it.
//!
//! # Design
//!
//! A record that is appended goes to a queue in memory. A thread that wants it durable and finds nobody writing takes the
//! log and the queue, writes and syncs without holding the lock, and then wakes all who wait; their records were queued
//! before it took the queue, or one of them is the next to write. So the more threads commit, the more records share a
//! sync. The log is absent while a thread uses it: this is the only exclusion.

use crate::error::{Failure, Result};
use crate::journal::format::{Group, RECORD_HEADER, digest};
use crate::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Where groups of records are written.
pub trait Log: Send {
    /// Writes a group, and then `tail`, the bytes of its last record if they are not in the group.
    fn write(&mut self, group: &mut Group, tail: &[u8], durable: u64) -> Result<(), Failure>;

    /// Makes all that was written durable.
    fn sync(&mut self) -> Result<(), Failure>;
}

/// A log, and the queue before it.
pub struct Committer<L> {
    state: Mutex<State<L>>,
    changed: Condvar,
    /// How many bytes the queue has before it is written without a sync.
    limit: usize,
    salt: u64,
}

struct State<L> {
    queue: Group,
    /// Absent while a thread writes.
    writer: Option<Writer<L>>,
    /// All records before this position are durable.
    durable: u64,
    /// The first error of the log: it is final.
    failure: Option<Failure>,
}

struct Writer<L> {
    log: L,
    /// The memory of the last queue.
    spare: Group,
}

type Guard<'a, L> = MutexGuard<'a, State<L>>;

impl<L: Log> Committer<L> {
    /// A committer whose first record takes the position `next`; all before are durable.
    pub fn new(log: L, next: u64, limit: usize, salt: u64) -> Committer<L> {
        let writer = Some(Writer { log, spare: Group::new(next) });
        let state = State { queue: Group::new(next), writer, durable: next, failure: None };
        Committer { state: Mutex::new(state), changed: Condvar::new(), limit, salt }
    }

    /// Queues a record and returns its position. Writes first what does not fit into the queue.
    pub fn append(&self, record: &[u8]) -> Result<u64> {
        let digest = digest(record);
        let size = record.len().saturating_add(RECORD_HEADER);
        if size > self.limit {
            return self.append_large(record, digest);
        }
        let mut state = self.locked();
        loop {
            state.check()?;
            if state.queue.bytes().len() + size <= self.limit || state.queue.is_empty() {
                return Ok(state.queue.push(record, digest, self.salt));
            }
            state = match state.writer.take() {
                Some(writer) => self.write(state, writer, &[], false),
                None => self.wait(state),
            };
        }
    }

    /// Writes a record that is larger than the queue, and the queue before it.
    fn append_large(&self, record: &[u8], digest: u64) -> Result<u64> {
        let mut state = self.locked();
        loop {
            state.check()?;
            let Some(writer) = state.writer.take() else {
                state = self.wait(state);
                continue;
            };
            let position = state.queue.push_header(record.len(), digest, self.salt);
            let state = self.write(state, writer, record, false);
            return state.check().map(|()| position);
        }
    }

    /// Returns once all records up to this one are durable. False if there is no such record.
    pub fn sync(&self, upto: u64) -> Result<bool> {
        let mut state = self.locked();
        loop {
            state.check()?;
            if upto < state.durable {
                return Ok(true);
            }
            if upto >= state.queue.end() {
                return Ok(false);
            }
            state = match state.writer.take() {
                Some(writer) => self.write(state, writer, &[], true),
                None => self.wait(state),
            };
        }
    }

    /// The position after the last record that is durable, and after the last that was appended.
    pub fn ends(&self) -> (u64, u64) {
        let state = self.locked();
        (state.durable, state.queue.end())
    }

    /// Fails if the log has failed.
    pub fn check(&self) -> Result<()> {
        self.locked().check()
    }

    /// Writes the queue without holding the lock, and wakes those who wait.
    fn write<'a>(
        &'a self,
        mut state: Guard<'a, L>,
        mut writer: Writer<L>,
        tail: &[u8],
        sync: bool,
    ) -> Guard<'a, L> {
        let end = state.queue.end();
        let durable = state.durable;
        writer.spare.clear(end);
        let mut group = std::mem::replace(&mut state.queue, writer.spare);
        drop(state);
        let mut written = match group.is_empty() {
            true => Ok(()),
            false => writer.log.write(&mut group, tail, durable),
        };
        if sync {
            written = written.and_then(|()| writer.log.sync());
        }
        // A queue that has grown beyond the limit gives its memory back.
        writer.spare = match group.capacity() <= 2 * self.limit {
            true => group,
            false => Group::new(end),
        };
        let mut state = self.locked();
        match written {
            Ok(()) if sync => state.durable = end,
            Ok(()) => {}
            Err(failure) => drop(state.failure.get_or_insert(failure)),
        }
        state.writer = Some(writer);
        self.changed.notify_all();
        state
    }

    fn wait<'a>(&self, state: Guard<'a, L>) -> Guard<'a, L> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// The state, also after a panic: no change is ever half done.
    fn locked(&self) -> Guard<'_, L> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<L> State<L> {
    fn check(&self) -> Result<()> {
        match &self.failure {
            Some(failure) => Err(failure.error()),
            None => Ok(()),
        }
    }
}
