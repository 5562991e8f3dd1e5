//! The work of a job, slice by slice, on whichever thread does it.

use std::any::Any;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};

use alluvium_storage::{Slice, Work};
use differential_dataflow::trace::Merger;
use timely::scheduling::SyncActivator;

use super::job::MergeJob;
use crate::batch::Batch;
use crate::fault::{self, FaultId};
use crate::memory::StateContext;
use crate::merge::BatchMerger;
use crate::spill::Spill;
use crate::time::PageTime;

/// The kind of work.
pub(super) enum Task<T> {
    /// A merge.
    Merge(MergeJob<T>),
    /// Moving a batch to a file.
    Spill(Batch<T>),
}

/// A result, or what the thread that met a failure unwound with.
pub(super) type Outcome<T> = Result<Batch<T>, Box<dyn Any + Send>>;

/// A task, and how far it is.
pub(super) struct StateWork<T> {
    state: State<T>,
    /// The bytes and the updates of the input.
    bytes: u64,
    updates: u64,
    context: StateContext,
    /// Wakes the owner when there is a result.
    waker: Option<SyncActivator>,
    /// The fault that is armed on the owner's thread.
    fault: Option<FaultId>,
}

enum State<T> {
    Waiting(Task<T>),
    Merging(Box<BatchMerger<T>>),
    Spilling(Box<Spill<T>>),
    Over(Outcome<T>),
    Released,
}

impl<T: PageTime> Task<T> {
    /// The bytes of the input.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Task::Merge(job) => job.bytes(),
            Task::Spill(batch) => batch.bytes(),
        }
    }

    /// The updates of the input.
    pub(super) fn updates(&self) -> usize {
        match self {
            Task::Merge(job) => job.updates(),
            Task::Spill(batch) => batch.len(),
        }
    }

    /// Does all of it, on this thread.
    pub(super) fn run(self, context: &StateContext) -> Batch<T> {
        match self {
            Task::Merge(job) => job.settled().unwrap_or_else(|| job.merger(context).finish()),
            Task::Spill(batch) => Spill::new(batch, context).finish(),
        }
    }
}

impl<T: PageTime> StateWork<T> {
    pub(super) fn new(task: Task<T>, context: StateContext, waker: Option<SyncActivator>) -> Self {
        let (bytes, updates) = (task.bytes() as u64, task.updates() as u64);
        let (state, fault) = (State::Waiting(task), fault::current());
        StateWork { state, bytes, updates, context, waker, fault }
    }

    /// Takes the result; `None` if there is none, or not any more.
    pub(super) fn take(&mut self) -> Option<Outcome<T>> {
        match mem::replace(&mut self.state, State::Released) {
            State::Over(outcome) => Some(outcome),
            other => {
                self.state = other;
                None
            }
        }
    }

    /// Continues for about `bytes` bytes of input. Returns how many it was.
    fn go_on(&mut self, bytes: u64) -> u64 {
        self.begin();
        match &mut self.state {
            State::Merging(merger) => {
                let (all, updates) = (self.bytes.max(1), self.updates.max(1));
                let before = merger.progress();
                let fuel = u128::from(bytes) * u128::from(updates) / u128::from(all);
                let mut fuel = isize::try_from(fuel).unwrap_or(isize::MAX).max(1);
                merger.advance(&mut fuel);
                let gone = (merger.progress() - before) as u128;
                u64::try_from(gone * u128::from(all) / u128::from(updates)).unwrap_or(u64::MAX)
            }
            State::Spilling(spill) => spill.advance(bytes),
            State::Waiting(_) | State::Over(_) | State::Released => 0,
        }
    }

    /// Begins, if it waits.
    fn begin(&mut self) {
        let State::Waiting(task) = &mut self.state else { return };
        self.state = match task {
            Task::Merge(job) => match job.settled() {
                Some(batch) => State::Over(Ok(batch)),
                None => State::Merging(Box::new(job.merger(&self.context))),
            },
            Task::Spill(batch) => {
                State::Spilling(Box::new(Spill::new(batch.clone(), &self.context)))
            }
        };
    }

    /// Ends, if nothing is left to do. Whether it is over.
    fn end(&mut self) -> bool {
        let is_over = match &self.state {
            State::Merging(merger) => merger.is_done(),
            State::Spilling(spill) => spill.is_done(),
            State::Over(_) | State::Released => return true,
            State::Waiting(_) => false,
        };
        if is_over {
            let result = match mem::replace(&mut self.state, State::Released) {
                State::Merging(merger) => merger.done(),
                State::Spilling(spill) => spill.finish(),
                other => {
                    self.state = other;
                    return false;
                }
            };
            self.state = State::Over(Ok(result));
        }
        is_over
    }
}

impl<T: PageTime> Work for StateWork<T> {
    fn slice(&mut self, bytes: u64) -> Slice {
        let fault = self.fault;
        let slice = AssertUnwindSafe(|| {
            let bytes = self.go_on(bytes);
            Slice { bytes, is_done: self.end() }
        });
        fault::with(fault, || catch_unwind(slice)).unwrap_or_else(|caught| {
            self.state = State::Over(Err(caught));
            Slice { bytes: 0, is_done: true }
        })
    }

    fn finish(&mut self) {
        if let Some(waker) = &self.waker {
            // It fails if the worker has ended.
            let _ = waker.activate();
        }
    }

    fn release(&mut self) {
        self.state = State::Released;
    }
}
