//! Work whose slices other threads can interrupt, and its outcome.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use alluvium_storage_shuttle::{Job, Slice, Work};
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::sync::{Condvar, Mutex};
use shuttle::{Config, MaxSteps, Runner};

/// Runs a test in many orders: random ones, and some with few switches at random places.
pub fn in_many_orders(test: impl Fn() + Copy + Send + Sync + 'static) {
    let mut config = Config::new();
    config.silence_warnings = true;
    config.max_steps = MaxSteps::FailAfter(100_000);
    Runner::new(RandomScheduler::new(2_000), config.clone()).run(test);
    Runner::new(PctScheduler::new(3, 1_000), config).run(test);
}

/// The calls that a job has seen. The tests' own counters are no places where threads are switched.
#[derive(Default)]
pub struct Seen {
    slices: AtomicU64,
    finished: AtomicU64,
    pub released: AtomicBool,
    is_over: AtomicBool,
    /// Wakes the owner.
    done: Mutex<bool>,
    changed: Condvar,
}

impl Seen {
    pub fn finished(&self) -> u64 {
        self.finished.load(Ordering::Relaxed)
    }

    pub fn slices(&self) -> u64 {
        self.slices.load(Ordering::Relaxed)
    }

    /// Sleeps until the job wakes its owner.
    pub fn sleep(&self) {
        let mut done = self.done.lock().unwrap();
        while !*done {
            done = self.changed.wait(done).unwrap();
        }
    }
}

/// Work of some slices with one result.
pub struct Sliced {
    left: u64,
    seen: Arc<Seen>,
    result: Option<u64>,
}

/// The bytes of a slice, whatever is asked for.
const SLICE: u64 = 10;

impl Sliced {
    /// A job of so many slices.
    pub fn job(owner: u64, slices: u64) -> (Arc<Job<Sliced>>, Arc<Seen>) {
        let seen = Arc::<Seen>::default();
        let work = Sliced { left: slices, seen: Arc::clone(&seen), result: None };
        (Job::new(owner, slices * SLICE, work), seen)
    }

    /// The result, if there is one that has not been taken.
    pub fn take(&mut self) -> Option<u64> {
        self.result.take()
    }
}

impl Work for Sliced {
    fn slice(&mut self, _bytes: u64) -> Slice {
        assert!(!self.seen.is_over.load(Ordering::Relaxed), "nothing is asked of it any more");
        self.seen.slices.fetch_add(1, Ordering::Relaxed);
        // Here another thread may cancel it, or want to do a slice.
        shuttle::thread::yield_now();
        self.left -= 1;
        if self.left == 0 {
            self.result = Some(self.seen.slices());
            self.seen.is_over.store(true, Ordering::Relaxed);
        }
        Slice { bytes: SLICE, is_done: self.left == 0 }
    }

    fn finish(&mut self) {
        self.seen.finished.fetch_add(1, Ordering::Relaxed);
        *self.seen.done.lock().unwrap() = true;
        self.seen.changed.notify_all();
    }

    fn release(&mut self) {
        self.result = None;
        self.seen.is_over.store(true, Ordering::Relaxed);
        self.seen.released.store(true, Ordering::Relaxed);
    }
}
