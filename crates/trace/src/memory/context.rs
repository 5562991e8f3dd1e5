//! What the state of a thread is surrounded by.
//!
//! Traces are made by operators that know nothing of budgets and files, so each thread is told once, before
//! its first dataflow is built.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use alluvium_storage::Storage;

use super::{DiskFullGate, MemoryBudget};

/// The budget of a thread's state, and where it puts what goes beyond.
#[derive(Clone, Debug)]
pub struct StateContext {
    /// What all state is counted in.
    pub budget: MemoryBudget,
    /// Where batches are kept that are not kept in memory. Without it all are, whatever the limit.
    pub storage: Option<Arc<dyn Storage>>,
    /// Where it waits while the storage is full.
    pub disk_full: DiskFullGate,
}

impl Default for StateContext {
    fn default() -> Self {
        Self {
            budget: MemoryBudget::unlimited(),
            storage: None,
            disk_full: DiskFullGate::default(),
        }
    }
}

thread_local! {
    static CURRENT: RefCell<StateContext> = RefCell::default();
    static IS_LEFT: Cell<bool> = const { Cell::new(false) };
}

/// Makes these the context of all state that this thread makes from now on.
pub fn enter(context: StateContext) {
    CURRENT.with(|current| *current.borrow_mut() = context);
}

/// The context of this thread's state: unlimited and without storage until it [`enter`]s others.
pub fn current() -> StateContext {
    CURRENT.with(|current| current.borrow().clone())
}

/// From now on this thread only drops its state: nothing of it is merged or moved to files any more. That would be in vain,
/// and where a file cannot be written the thread would panic once more, while it ends because of a panic.
pub fn leave() {
    IS_LEFT.set(true);
}

/// Whether the thread only drops its state, or is unwinding.
pub(crate) fn is_left() -> bool {
    IS_LEFT.get() || std::thread::panicking()
}
