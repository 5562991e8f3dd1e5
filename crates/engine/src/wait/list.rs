//! The list of those who wait.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Waker;

use parking_lot::Mutex;

/// The wakers of those who wait, by a key that says what for.
pub(crate) struct WaitList<K> {
    waits: Mutex<Waits<K>>,
    /// How many there are.
    len: AtomicUsize,
}

struct Waits<K> {
    wakers: BTreeMap<K, Vec<(u64, Waker)>>,
    /// Numbers the entries.
    next: u64,
}

/// An entry of a list, which leaves it when it is dropped.
pub(crate) struct Entered<'a, K: Ord> {
    list: &'a WaitList<K>,
    key: K,
    number: u64,
}

impl<K> Default for WaitList<K> {
    fn default() -> Self {
        let waits = Mutex::new(Waits { wakers: BTreeMap::new(), next: 0 });
        Self { waits, len: AtomicUsize::new(0) }
    }
}

impl<K: Ord + Clone> WaitList<K> {
    /// Enters one who waits for `key`.
    pub(crate) fn enter(&self, key: K, waker: &Waker) -> Entered<'_, K> {
        let number = self.add(key.clone(), waker.clone());
        Entered { list: self, key, number }
    }

    /// Enters one who does not give up.
    pub(crate) fn keep(&self, key: K, waker: Waker) {
        self.add(key, waker);
    }

    /// Adds an entry. Returns its number.
    fn add(&self, key: K, waker: Waker) -> u64 {
        let mut waits = self.waits.lock();
        let number = waits.next;
        waits.next += 1;
        waits.wakers.entry(key).or_default().push((number, waker));
        self.len.fetch_add(1, Ordering::SeqCst);
        number
    }

    /// Whether no thread waits. Does not block.
    pub(crate) fn is_empty(&self) -> bool {
        self.len.load(Ordering::SeqCst) == 0
    }

    /// Takes out those who wait for a key that `is_over` holds for, who are to be woken.
    pub(crate) fn take(&self, mut is_over: impl FnMut(&K) -> bool) -> Vec<Waker> {
        if self.is_empty() {
            return Vec::new();
        }
        let mut waits = self.waits.lock();
        let over = waits.wakers.extract_if(.., |key, _| is_over(key));
        let woken: Vec<Waker> =
            over.flat_map(|(_, wakers)| wakers).map(|(_, waker)| waker).collect();
        self.len.fetch_sub(woken.len(), Ordering::SeqCst);
        woken
    }

    /// Wakes the one who has waited longest for the least key. If that one gives up instead of taking what is there, it has to
    /// wake the next.
    pub(crate) fn wake_first(&self) {
        if self.is_empty() {
            return;
        }
        let mut waits = self.waits.lock();
        let Some(mut first) = waits.wakers.first_entry() else { return };
        let (_, waker) = first.get_mut().remove(0);
        if first.get().is_empty() {
            first.remove();
        }
        self.len.fetch_sub(1, Ordering::SeqCst);
        drop(waits);
        waker.wake();
    }

    /// Wakes all who wait.
    pub(crate) fn wake_all(&self) {
        self.take(|_| true).into_iter().for_each(Waker::wake);
    }
}

impl<K: Ord> Drop for Entered<'_, K> {
    fn drop(&mut self) {
        let mut waits = self.list.waits.lock();
        // It is gone already if it was woken.
        let Some(wakers) = waits.wakers.get_mut(&self.key) else { return };
        let before = wakers.len();
        wakers.retain(|(number, _)| *number != self.number);
        let left = before - wakers.len();
        if wakers.is_empty() {
            waits.wakers.remove(&self.key);
        }
        self.list.len.fetch_sub(left, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicU32;
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicU32);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn those_whose_wait_is_over_are_woken_once_and_the_others_stay() {
        let list = WaitList::<u64>::default();
        let count = Arc::new(Count::default());
        let waker = Waker::from(count.clone());
        let woken = || count.0.load(Ordering::Relaxed);
        let (one, two) = (list.enter(1, &waker), list.enter(2, &waker));
        let other = list.enter(2, &waker);
        list.take(|key| *key <= 1).into_iter().for_each(Waker::wake);
        assert_eq!(woken(), 1);
        // One that is given up is not woken.
        drop(other);
        list.wake_all();
        assert_eq!((woken(), list.is_empty()), (2, true));
        list.wake_all();
        list.wake_first();
        drop((one, two));
        assert_eq!((woken(), list.is_empty()), (2, true));
        let (_first, _second) = (list.enter(3, &waker), list.enter(3, &waker));
        list.wake_first();
        assert_eq!((woken(), list.is_empty()), (3, false));
    }
}
