//! Who is told when memory gets scarce.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What is done when there is first more than a third of the limit on the heap.
pub(super) struct Pressure {
    limit: usize,
    told: AtomicBool,
    act: Arc<dyn Fn(usize) + Send + Sync>,
}

impl Pressure {
    /// Does `act`, with the limit in bytes.
    pub(super) fn new(limit: usize, act: Arc<dyn Fn(usize) + Send + Sync>) -> Self {
        Self { limit, told: AtomicBool::new(false), act }
    }

    /// There are so many bytes on the heap now.
    pub(super) fn rises_to(&self, bytes: usize) {
        if bytes > self.limit / 3
            && !self.told.load(Ordering::Relaxed)
            && !self.told.swap(true, Ordering::Relaxed)
        {
            (self.act)(self.limit);
        }
    }
}

impl fmt::Debug for Pressure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Pressure").field("told", &self.told).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    use crate::memory::MemoryBudget;

    #[test]
    fn it_is_told_once_and_only_when_much_is_taken() {
        let told = Arc::new(AtomicUsize::new(0));
        let sum = Arc::clone(&told);
        let act = move |limit| {
            sum.fetch_add(limit, Ordering::Relaxed);
        };
        let budget = MemoryBudget::with_pressure(3000, Arc::new(act));
        let some = budget.charge(1000);
        assert_eq!(told.load(Ordering::Relaxed), 0);
        let more = budget.charge(1);
        assert_eq!(told.load(Ordering::Relaxed), 3000);
        drop((some, more));
        let _again = budget.charge(5000);
        assert_eq!(told.load(Ordering::Relaxed), 3000);
    }
}
