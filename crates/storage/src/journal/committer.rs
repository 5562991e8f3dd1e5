//! The queue of a journal, and which thread writes it.
//!
//! # Design
//!
//! A record that is appended goes to a queue in memory. A thread that wants it durable and finds no other writing takes the
//! log and the queue, writes and syncs without holding the lock, and then wakes all whose records these were, and one
//! of those whose records were queued meanwhile: it writes next. So the more threads commit, the more records share a
//! sync. The log is absent while a thread uses it: this is the only exclusion.
//!
//! Threads that were woken together come back with their next records together, and the first must not write alone. So
//! a thread about to write fewer records than the last group had gives way to other threads while more arrive.
//!
//! Waking a thread costs more than everything else that a commit does. So threads wait by group, on one of two
//! [`Turn`]s, and a thread that is woken because its record is durable does not need the lock of the queue.

use crate::error::{Failure, Result};
use crate::journal::format::{Group, RECORD_HEADER, digest};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Condvar, Mutex, MutexGuard, PoisonError, thread};

/// How often a thread gives way without another record arriving.
const PATIENCE: usize = 2;

/// Where groups of records are written.
pub trait Log: Send {
    /// Writes a group, and then `tail`, the bytes of its last record if they are not in the group.
    fn write(&mut self, group: &mut Group, tail: &[u8], durable: u64) -> Result<(), Failure>;

    /// Waits until all that was written survives the end of this process. [`Log::sync`] does, too.
    fn settle(&mut self) -> Result<(), Failure>;

    /// Makes all that was written durable.
    fn sync(&mut self) -> Result<(), Failure>;
}

/// A log, and the queue before it.
pub struct Committer<L> {
    state: Mutex<State<L>>,
    /// All records before this position are durable.
    durable: AtomicU64,
    /// Where threads wait for groups with even and odd numbers.
    turns: [Turn; 2],
    /// How many bytes the queue has before it is written without a sync.
    limit: usize,
    salt: u64,
}

struct State<L> {
    queue: Group,
    /// The number of the group that the queue will be.
    group: u64,
    /// Whether the group before it is being written.
    is_writing: bool,
    /// How many records were synced together last.
    together: u64,
    /// Absent while a thread writes, or is about to.
    writer: Option<Writer<L>>,
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
        let state = State {
            queue: Group::new(next),
            group: 1,
            is_writing: false,
            together: 0,
            writer,
            failure: None,
        };
        let (state, durable) = (Mutex::new(state), AtomicU64::new(next));
        Committer { state, durable, turns: [Turn::new(), Turn::new()], limit, salt }
    }

    /// Queues a record and returns its position. Writes first what does not fit into the queue.
    pub fn append(&self, record: &[u8]) -> Result<u64> {
        let digest = digest(record);
        let size = record.len().saturating_add(RECORD_HEADER);
        loop {
            let mut state = self.locked();
            state.check()?;
            let has_room = state.queue.bytes().len().saturating_add(size) <= self.limit;
            let is_large = size > self.limit;
            if has_room || (state.queue.is_empty() && !is_large) {
                return Ok(state.queue.push(record, digest, self.salt));
            }
            match state.writer.take() {
                // A record that does not fit into an empty queue is written from where it is.
                Some(writer) if is_large => {
                    let position = state.queue.push_header(record.len(), digest, self.salt);
                    return self.write(state, writer, record, false).map(|()| position);
                }
                Some(writer) => self.write(state, writer, &[], false)?,
                None => {
                    let group = state.group;
                    drop(state);
                    self.turn(group).wait(group);
                }
            }
        }
    }

    /// Returns once all records up to this one are durable. False if there is no such record.
    pub fn sync(&self, upto: u64) -> Result<bool> {
        loop {
            let mut state = self.locked();
            state.check()?;
            if upto < self.durable() {
                return Ok(true);
            }
            if upto >= state.queue.end() {
                return Ok(false);
            }
            if let Some(writer) = state.writer.take() {
                let state = self.give_way(state);
                return self.write(state, writer, &[], true).map(|()| true);
            }
            let is_written = state.is_writing && upto < state.queue.first();
            let group = state.group - u64::from(is_written);
            drop(state);
            self.turn(group).wait(group);
            if upto < self.durable() {
                return Ok(true);
            }
        }
    }

    /// Returns once all records up to this one are written, whether they are durable or not. False if there is no such
    /// record.
    pub fn write_queue(&self, upto: u64) -> Result<bool> {
        loop {
            let mut state = self.locked();
            state.check()?;
            let is_queued = upto >= state.queue.first();
            if !is_queued && !state.is_writing {
                return Ok(true);
            }
            if upto >= state.queue.end() {
                return Ok(false);
            }
            if let Some(writer) = state.writer.take() {
                return self.write(state, writer, &[], false).map(|()| true);
            }
            let group = state.group - u64::from(!is_queued);
            drop(state);
            self.turn(group).wait(group);
        }
    }

    /// The position after the last record that is durable, and after the last that was appended.
    pub fn ends(&self) -> (u64, u64) {
        let state = self.locked();
        (self.durable(), state.queue.end())
    }

    /// Fails if the log has failed.
    pub fn check(&self) -> Result<()> {
        self.locked().check()
    }

    fn durable(&self) -> u64 {
        self.durable.load(Ordering::Acquire)
    }

    /// Lets other threads queue their records, if the last group had more than there are.
    fn give_way<'a>(&'a self, mut state: Guard<'a, L>) -> Guard<'a, L> {
        let mut in_vain = 0;
        while in_vain < PATIENCE && state.queue.end() - self.durable() < state.together {
            let end = state.queue.end();
            drop(state);
            thread::yield_now();
            state = self.locked();
            in_vain = if state.queue.end() > end { 0 } else { in_vain + 1 };
        }
        state
    }

    /// Writes the queue without holding the lock, and wakes those who wait.
    fn write(
        &self,
        mut state: Guard<'_, L>,
        mut writer: Writer<L>,
        tail: &[u8],
        sync: bool,
    ) -> Result<()> {
        let (number, end, durable) = (state.group, state.queue.end(), self.durable());
        (state.group, state.is_writing) = (number + 1, true);
        writer.spare.clear(end);
        let mut group = std::mem::replace(&mut state.queue, writer.spare);
        drop(state);
        let mut written = match group.is_empty() {
            true => Ok(()),
            false => writer.log.write(&mut group, tail, durable),
        };
        written = written.and_then(|()| if sync { writer.log.sync() } else { writer.log.settle() });
        // A queue that has grown beyond the limit gives its memory back.
        writer.spare = match group.capacity() <= 2 * self.limit {
            true => group,
            false => Group::new(end),
        };
        let mut state = self.locked();
        state.is_writing = false;
        state.writer = Some(writer);
        if sync && written.is_ok() {
            state.together = end - durable;
            self.durable.store(end, Ordering::Release);
        }
        if let Err(failure) = written {
            let error = failure.error();
            state.failure = Some(failure);
            drop(state);
            self.turns.iter().for_each(|turn| turn.end(u64::MAX));
            return Err(error);
        }
        drop(state);
        self.turn(number + 1).lead();
        self.turn(number).end(number);
        Ok(())
    }

    fn turn(&self, group: u64) -> &Turn {
        &self.turns[usize::from(group % 2 == 1)]
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

/// Where threads wait for a group.
struct Turn {
    state: Mutex<TurnState>,
    changed: Condvar,
}

struct TurnState {
    /// The last group that was written.
    ended: u64,
    /// One of those who wait for the next group is to write it.
    lead: bool,
}

impl Turn {
    fn new() -> Turn {
        let state = TurnState { ended: 0, lead: false };
        Turn { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Returns when this group was written, or when this thread may write it.
    fn wait(&self, group: u64) {
        let mut state = self.locked();
        while state.ended < group {
            if std::mem::take(&mut state.lead) {
                return;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Wakes one of those who wait for the next group, or the first who will.
    fn lead(&self) {
        self.locked().lead = true;
        self.changed.notify_one();
    }

    /// Wakes all who wait for this group.
    fn end(&self, group: u64) {
        let mut state = self.locked();
        // Threads may get here in another order than that of the groups.
        state.ended = state.ended.max(group);
        drop(state);
        self.changed.notify_all();
    }

    fn locked(&self) -> MutexGuard<'_, TurnState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
