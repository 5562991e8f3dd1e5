//! How many queries compute at once.
//!
//! A query computes on the thread that pulls its rows, in a slot that it has only meanwhile: a reader that does not pull has none,
//! so slow readers do not hold up others. Slots are given in the order in which queries ask for them. One that computes for longer than
//! [`TURN`] while others wait gives its slot away and queues after them, so that short queries do not wait for long ones.
//!
//! Point reads by key need none, nor do queries of files, which may have to wait for who writes these.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Waker;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::error::Result;
use crate::poison::{Poison, Waited};
use crate::wait::{self, Look};

/// For how long a query computes while others wait.
const TURN: Duration = Duration::from_millis(10);

/// The slots of all queries.
pub(super) struct Slots {
    state: Mutex<State>,
    /// The length of the queue.
    waiting: AtomicUsize,
    poison: Arc<Poison>,
}

struct State {
    free: usize,
    queue: VecDeque<Arc<Waiting>>,
}

/// A query that waits for a slot.
#[derive(Default)]
struct Waiting {
    /// Changed under the lock of the queue.
    has_slot: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Waiting {
    fn wake(&self) {
        if let Some(waker) = self.waker.lock().take() {
            waker.wake();
        }
    }
}

impl Slots {
    pub(super) fn new(count: usize, poison: Arc<Poison>) -> Arc<Self> {
        let state = Mutex::new(State { free: count.max(1), queue: VecDeque::new() });
        let slots = Arc::new(Self { state, waiting: AtomicUsize::new(0), poison });
        slots.poison.register(&slots);
        slots
    }

    /// The turns of a query.
    pub(super) fn turns(self: &Arc<Self>) -> Arc<Turns> {
        Arc::new(Turns { slots: self.clone(), begun: Mutex::new(None) })
    }

    /// Takes a slot, once those who have waited for longer have theirs. Fails if it is interrupted before.
    fn take(&self) -> Result<()> {
        let mut state = self.state.lock();
        if state.free > 0 {
            state.free -= 1;
            return Ok(());
        }
        let waiting = Arc::new(Waiting::default());
        state.queue.push_back(waiting.clone());
        self.waiting.fetch_add(1, Ordering::Relaxed);
        drop(state);
        let taken = wait::until(|waker| {
            let _state = self.state.lock();
            self.poison.check()?;
            if waiting.has_slot.load(Ordering::Relaxed) {
                return Ok(Look::Found(()));
            }
            *waiting.waker.lock() = Some(waker.clone());
            Ok(Look::Waits(()))
        });
        taken.inspect_err(|_| self.leave(&waiting))
    }

    /// One that waits has given up, though it may have been given a slot meanwhile.
    fn leave(&self, waiting: &Arc<Waiting>) {
        let mut state = self.state.lock();
        if waiting.has_slot.load(Ordering::Relaxed) {
            drop(state);
            return self.give();
        }
        state.queue.retain(|other| !Arc::ptr_eq(other, waiting));
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    /// Gives a slot to the first that waits.
    fn give(&self) {
        let mut state = self.state.lock();
        match state.queue.pop_front() {
            None => state.free += 1,
            Some(first) => {
                self.waiting.fetch_sub(1, Ordering::Relaxed);
                first.has_slot.store(true, Ordering::Relaxed);
                first.wake();
            }
        }
    }
}

impl Waited for Slots {
    fn wake(&self) {
        let state = self.state.lock();
        state.queue.iter().for_each(|waiting| waiting.wake());
    }
}

/// When a query computes.
pub(super) struct Turns {
    slots: Arc<Slots>,
    /// Since when it has a slot.
    begun: Mutex<Option<Instant>>,
}

impl Turns {
    /// Computes in a slot.
    pub(super) fn compute<R>(&self, compute: impl FnOnce() -> Result<R>) -> Result<R> {
        self.begin()?;
        let _ended = Ended(self);
        compute()
    }

    /// Lets others compute who have waited for long enough. Called while it computes.
    pub(super) fn pause(&self) -> Result<()> {
        if self.slots.waiting.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        let is_over = self.begun.lock().is_some_and(|begun| begun.elapsed() >= TURN);
        if is_over {
            self.end();
            self.begin()?;
        }
        Ok(())
    }

    fn begin(&self) -> Result<()> {
        self.slots.take()?;
        *self.begun.lock() = Some(Instant::now());
        Ok(())
    }

    fn end(&self) {
        if self.begun.lock().take().is_some() {
            self.slots.give();
        }
    }
}

/// Ends the turn when it is dropped, also if what was computed panics.
struct Ended<'a>(&'a Turns);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl std::fmt::Debug for Turns {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Turns").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::error::Error;
    use crate::interrupt::Interrupt;

    fn await_waiting(slots: &Slots, count: usize) {
        while slots.waiting.load(Ordering::Relaxed) != count {
            thread::yield_now();
        }
    }

    #[test]
    fn queries_compute_in_the_order_in_which_they_ask() {
        let slots = Slots::new(1, Arc::default());
        let order = Mutex::new(Vec::new());
        thread::scope(|scope| {
            slots.turns().compute(|| {
                for number in 0..4 {
                    let (turns, order) = (slots.turns(), &order);
                    scope.spawn(move || {
                        turns.compute(|| {
                            order.lock().push(number);
                            Ok(())
                        })
                    });
                    await_waiting(&slots, number + 1);
                }
                Ok(())
            })
        })
        .unwrap();
        assert_eq!(*order.lock(), [0, 1, 2, 3]);
        assert_eq!(slots.state.lock().free, 1);
    }

    #[test]
    fn a_long_query_lets_short_ones_pass() {
        let slots = Slots::new(1, Arc::default());
        let long = slots.turns();
        thread::scope(|scope| {
            long.compute(|| {
                let short = slots.turns();
                let short = scope.spawn(move || short.compute(|| Ok(())));
                await_waiting(&slots, 1);
                while !short.is_finished() {
                    long.pause()?;
                }
                Ok(())
            })
        })
        .unwrap();
        assert_eq!(slots.state.lock().free, 1);
    }

    #[test]
    fn who_is_interrupted_stops_waiting() {
        let slots = Slots::new(1, Arc::default());
        let interrupt = Interrupt::default();
        thread::scope(|scope| {
            slots.turns().compute(|| {
                let (turns, watched) = (slots.turns(), interrupt.clone());
                let waiting = scope.spawn(move || watched.watch(|| turns.compute(|| Ok(()))));
                await_waiting(&slots, 1);
                interrupt.request();
                assert_eq!(waiting.join().unwrap(), Err(Error::Interrupted));
                await_waiting(&slots, 0);
                Ok(())
            })
        })
        .unwrap();
        assert_eq!(slots.state.lock().free, 1);
    }
}
