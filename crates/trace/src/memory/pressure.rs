//! A call when memory gets scarce for the first time.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::policy::MemoryPolicy;

/// Calls a function once, when the counted memory first passes [`MemoryPolicy::pressure`].
pub(super) struct Pressure {
    policy: MemoryPolicy,
    was_called: AtomicBool,
    act: Arc<dyn Fn(usize) + Send + Sync>,
}

impl Pressure {
    /// Calls `act` with the limit in bytes.
    pub(super) fn new(policy: &MemoryPolicy, act: Arc<dyn Fn(usize) + Send + Sync>) -> Self {
        Self { policy: *policy, was_called: AtomicBool::new(false), act }
    }

    /// Reports that `bytes` are in use now.
    pub(super) fn rises_to(&self, bytes: usize) {
        if bytes > self.policy.pressure
            && !self.was_called.load(Ordering::Relaxed)
            && !self.was_called.swap(true, Ordering::Relaxed)
        {
            (self.act)(self.policy.limit);
        }
    }
}

impl fmt::Debug for Pressure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = formatter.debug_struct("Pressure");
        debug.field("was_called", &self.was_called).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    use crate::memory::MemoryBudget;

    #[test]
    fn the_call_is_made_once_and_above_the_threshold() {
        let sum = Arc::new(AtomicUsize::new(0));
        let calls = Arc::clone(&sum);
        let act = move |limit| {
            calls.fetch_add(limit, Ordering::Relaxed);
        };
        let budget = MemoryBudget::with_pressure(3000, Arc::new(act));
        let some = budget.charge(1000);
        assert_eq!(sum.load(Ordering::Relaxed), 0);
        let more = budget.charge(1);
        assert_eq!(sum.load(Ordering::Relaxed), 3000);
        drop((some, more));
        let _again = budget.charge(5000);
        assert_eq!(sum.load(Ordering::Relaxed), 3000);
    }
}
