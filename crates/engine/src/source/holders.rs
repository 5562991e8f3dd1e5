//! The inputs that keep an engine by a transaction.

use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Arc, Weak};

/// What each change adds beside the count, so that of two equal values nothing has changed between them.
const CHANGE: u64 = 1 << 32;

/// How many inputs hold a transaction, which keeps the engine's instance: they alone are no reason to go on.
#[derive(Default)]
pub(crate) struct Holders(AtomicU64);

/// Counts an input among those that hold a transaction. It begins after the transaction has, and ends before it.
pub(crate) struct Holder(Arc<Holders>);

impl Holders {
    /// One more holds a transaction, which has begun.
    pub(crate) fn begin(self: &Arc<Self>) -> Holder {
        self.0.fetch_add(CHANGE + 1, Ordering::Release);
        Holder(self.clone())
    }

    /// Whether nobody but these keeps a value, each of them once.
    pub(crate) fn hold_alone<T>(&self, value: &Weak<T>) -> bool {
        let mut before = self.0.load(Ordering::Acquire);
        loop {
            let kept = value.strong_count();
            // The change of a holder that ended before its transaction is seen if the end of that is.
            fence(Ordering::Acquire);
            let after = self.0.load(Ordering::Acquire);
            if before == after {
                return kept as u64 <= after % CHANGE;
            }
            before = after;
        }
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.0.0.fetch_add(CHANGE - 1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn holders_alone_are_told_from_others() {
        let (value, holders) = (Arc::new(()), Arc::<Holders>::default());
        let weak = Arc::downgrade(&value);
        assert!(!holders.hold_alone(&weak));
        let one = (holders.begin(), value.clone());
        let other = (holders.begin(), value.clone());
        assert!(!holders.hold_alone(&weak));
        drop(value);
        assert!(holders.hold_alone(&weak));
        let (holder, transaction) = one;
        drop(holder);
        assert!(!holders.hold_alone(&weak));
        drop(transaction);
        assert!(holders.hold_alone(&weak));
        drop(other);
        assert!(holders.hold_alone(&weak));
    }

    #[test]
    fn holders_that_come_and_go_do_not_hold_alone_what_another_keeps() {
        let (value, holders) = (Arc::new(()), Arc::<Holders>::default());
        let weak = Arc::downgrade(&value);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..100_000 {
                        let transaction = value.clone();
                        let holder = holders.begin();
                        drop(holder);
                        drop(transaction);
                    }
                });
            }
            for _ in 0..100_000 {
                assert!(!holders.hold_alone(&weak));
            }
        });
    }
}
