//! How much memory state takes, and how much it may.
//!
//! Bytes of state are counted where they are held: a [`Charge`] lives as long as the memory it stands for. The
//! count is one for the process, and so is the limit: a [`MemoryBudget`] is shared by all workers. What a
//! spine or a builder does when the limit is passed it decides by itself, with the [`surroundings`] of its
//! thread: the budget, and the storage that batches go to.

pub mod budget;
pub mod room;
pub mod surroundings;

pub use budget::{Charge, MemoryBudget, Queued};
pub use room::Room;
pub use surroundings::Surroundings;
