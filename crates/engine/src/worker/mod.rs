//! The workers: threads that run dataflows.
//!
//! ```text
//!  sequencer ──► Pool ──► commands, in one order for all ──► Thread 0 ─┐
//!                   └───────────────────────────────────────► Thread 1 ─┴─► Progress ──► waiters and readers
//! ```
//!
//! Every [`Command`] goes to all workers in the same order, so that they build the same dataflows in the
//! same order. A worker loops: it runs its commands, steps its dataflows or sleeps, and publishes to [`Progress`] how far it
//! has come, with snapshots of the relations that have changed. Other threads see of a worker only what it publishes.
//!
//! An epoch costs as much as what it changes: only the dataflows advance that its changes reach ([`readers`]), and only
//! their snapshots are published.
//!
//! A view that panics [fails](fail), with what reads it. A worker that panics otherwise poisons the engine; the others then stop at
//! their next step.

mod command;
mod delays;
mod fail;
mod failures;
#[cfg(test)]
mod faults;
mod installed;
mod pool;
mod progress;
mod published;
mod readers;
mod sampling;
#[cfg(test)]
mod stale;
mod start;
mod thread;
mod wanted;

pub(crate) use command::{Advance, Command, Dataflow, DataflowId, Reads, Resumed, Shard};
pub(crate) use delays::{DelayHistograms, Histogram};
pub(crate) use failures::{Failed, Failures, Purpose, Watcher};
pub(crate) use pool::Pool;
pub(crate) use progress::{Condition, Held, Progress, Reader};
pub(crate) use published::Published;
pub(crate) use start::Start;
pub(crate) use wanted::Durable;
