//! How much memory state takes, and how much it may.
//!
//! Bytes of state are counted where they are held: a [`Charge`] lives as long as the memory it stands for. The
//! count is one for an engine, and so is the limit: a [`MemoryBudget`] is shared by all its workers. What a
//! spine or a builder does when the limit is passed it decides by itself, with the [`context`] of its
//! thread: the budget, and the storage that batches go to.
//!
//! What is counted should be what the system sees, and most of it is full pages. So these have memory of their own,
//! `slots`, of which what is free is given back to the system, and a page is a `block` there. What is touched of mapped files
//! is in memory, too: `mappings` sees to it that it is not too much. What else there is in memory is the allocator's:
//! `pressure` says when it is time to give some of that back.

mod block;
pub mod budget;
pub mod context;
pub mod disk_full;
mod mappings;
mod pressure;
mod slots;

pub(crate) use block::Block;
pub(crate) use mappings::Mapping;
pub(crate) use slots::SLOT;

pub use budget::{Charge, MemoryBudget, Queued};
pub use context::StateContext;
pub use disk_full::DiskFullGate;
