//! How much memory state takes, and how much it may.
//!
//! The budget tracks resident memory. One [`MemoryBudget`] serves all workers of an engine: its account counts, and
//! its [`policy`] has the thresholds. A [`Charge`] counts bytes for as long as their owner lives. Builders, buffers
//! and spines react by themselves when a threshold is passed; the [`context`] that they are made with has the budget,
//! and the storage that batches go to.
//!
//! Most memory is full pages. These have memory of their own, in `slots` of a mapped `region`, so that freed pages return to the system;
//! `block` holds the bytes of one page. `mappings` bounds the resident pages of mapped files by evicting whole files.
//! Other memory is the allocator's, and `pressure` is where it is asked to release early. Writers wait at the
//! [`disk_full`] gate while the storage has no space left.

mod account;
mod block;
pub mod budget;
pub mod context;
pub mod disk_full;
mod mappings;
pub mod policy;
mod pressure;
mod region;
mod slots;

pub(crate) use block::Block;
pub(crate) use mappings::Mapping;
pub(crate) use slots::SLOT;

pub(crate) use budget::{BufferCharge, Debt};
pub use budget::{Charge, MemoryBudget, Queued};
pub use context::StateContext;
pub use disk_full::DiskFullGate;
pub use policy::MemoryPolicy;
