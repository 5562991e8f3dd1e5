//! The workers: threads that run dataflows.
//!
//! ```text
//!  sequencer ──► Pool ──► commands, in one order for all ──► Thread 0 ─┐
//!                   └───────────────────────────────────────► Thread 1 ─┴─► Progress ──► who waits, who reads
//! ```
//!
//! Every [`Command`] goes to all workers in the same order, so that they build the same dataflows in the
//! same order. A worker loops: take what commands there are, step its dataflows or sleep, and publish to
//! [`Progress`] how far it has come together with snapshots of what its relations hold. All that other
//! threads know of a worker they know from there.
//!
//! A worker that panics poisons the engine; the others then stop at their next step.

mod command;
#[cfg(test)]
mod faults;
mod installed;
mod pool;
mod progress;
mod thread;

pub(crate) use command::{Command, Dataflow, DataflowId};
pub(crate) use pool::Pool;
pub(crate) use progress::{Progress, Published};
