//! Calls when memory gets scarce, and while it is.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::policy::MemoryPolicy;

/// Calls a function when the counted memory first passes [`MemoryPolicy::pressure`], and from then on whenever files of
/// [twice the limit](WRITTEN) were written.
pub(super) struct Pressure {
    policy: MemoryPolicy,
    /// The written bytes from which on the next call is due; [`NEVER`] before the first call.
    due: AtomicU64,
    act: Arc<dyn Fn(usize) + Send + Sync>,
}

const NEVER: u64 = u64::MAX;

/// After how many times the limit in written bytes the next call follows: what is in files was in memory, and may have left
/// holes there.
const WRITTEN: u64 = 2;

impl Pressure {
    /// Calls `act` with the limit in bytes.
    pub(super) fn new(policy: &MemoryPolicy, act: Arc<dyn Fn(usize) + Send + Sync>) -> Self {
        Self { policy: *policy, due: AtomicU64::new(NEVER), act }
    }

    /// Reports that `bytes` are in use now, more than ever before, when `written` bytes were written to files.
    pub(super) fn rises_to(&self, bytes: usize, written: u64) {
        if bytes > self.policy.pressure {
            self.call(NEVER, written);
        }
    }

    /// Reports that `written` bytes were written to files.
    pub(super) fn writes_to(&self, written: u64) {
        let due = self.due.load(Ordering::Relaxed);
        if written >= due {
            self.call(due, written);
        }
    }

    /// Calls the function, unless another thread does or did.
    fn call(&self, due: u64, written: u64) {
        let interval = WRITTEN.saturating_mul(self.policy.limit as u64);
        let next = written.saturating_add(interval).min(NEVER - 1);
        if self.due.load(Ordering::Relaxed) == due
            && self.due.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            (self.act)(self.policy.limit);
        }
    }
}

impl fmt::Debug for Pressure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = formatter.debug_struct("Pressure");
        debug.field("due", &self.due).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    use crate::memory::MemoryBudget;

    #[test]
    fn calls_are_made_above_the_threshold_and_then_after_many_writes() {
        let sum = Arc::new(AtomicUsize::new(0));
        let calls = Arc::clone(&sum);
        let act = move |limit| {
            calls.fetch_add(limit, Ordering::Relaxed);
        };
        let budget = MemoryBudget::with_pressure(3000, Arc::new(act));
        budget.add_file(10_000);
        let some = budget.charge(1000);
        assert_eq!(sum.load(Ordering::Relaxed), 0);
        let more = budget.charge(1);
        assert_eq!(sum.load(Ordering::Relaxed), 3000);
        drop((some, more));
        let _again = budget.charge(5000);
        budget.add_file(5999);
        assert_eq!(sum.load(Ordering::Relaxed), 3000);
        budget.add_file(1);
        assert_eq!(sum.load(Ordering::Relaxed), 6000);
        budget.remove_file(16_000);
        budget.add_file(5999);
        assert_eq!(sum.load(Ordering::Relaxed), 6000);
    }
}
