//! A compaction of any speed and order, for tests.

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

use crate::compaction::{Compaction, Job, Work};

/// How many threads it has.
const THREADS: u64 = 2;

/// Does jobs on threads of its own, in an order, in slices and with pauses that are random.
pub struct Haphazard {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    jobs: Vec<Arc<Job<dyn Work>>>,
    random: u64,
    is_closed: bool,
}

impl fmt::Debug for Haphazard {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Haphazard").finish_non_exhaustive()
    }
}

impl Haphazard {
    /// A compaction whose choices depend on a seed, and on the system.
    pub fn new(seed: u64) -> Self {
        let state = State { jobs: Vec::new(), random: seed, is_closed: false };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let start = |_| {
            let shared = Arc::clone(&shared);
            spawn(move || shared.run())
        };
        let threads = Mutex::new((0..THREADS).map(start).collect());
        Self { shared, threads }
    }
}

impl Shared {
    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let mut state = self.locked();
        while !state.is_closed {
            if state.jobs.is_empty() {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let jobs = state.jobs.len() as u64;
            let chosen = state.below(jobs) as usize;
            let job = state.jobs.swap_remove(chosen);
            let (bytes, pause) = (1 << state.below(18), state.below(8));
            drop(state);
            if pause == 0 {
                std::thread::sleep(Duration::from_micros(bytes / 64));
            }
            let job = (!job.advance(bytes).is_done).then_some(job);
            state = self.locked();
            state.jobs.extend(job);
        }
    }
}

impl State {
    /// A number below `end`: splitmix64.
    fn below(&mut self, end: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.random;
        bits = (bits ^ bits >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        (bits ^ bits >> 31) % end
    }
}

impl Compaction for Haphazard {
    fn submit(&self, job: Arc<Job<dyn Work>>) {
        let mut state = self.shared.locked();
        if !state.is_closed {
            state.jobs.push(job);
            drop(state);
            self.shared.changed.notify_one();
        }
    }

    fn close(&self) {
        let mut state = self.shared.locked();
        state.is_closed = true;
        let jobs = std::mem::take(&mut state.jobs);
        drop(state);
        self.shared.changed.notify_all();
        drop(jobs);
        for thread in self.threads.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            // Slices do not panic: there is nothing to learn from joining.
            let _ = thread.join();
        }
    }
}

impl Drop for Haphazard {
    fn drop(&mut self) {
        self.close();
    }
}
