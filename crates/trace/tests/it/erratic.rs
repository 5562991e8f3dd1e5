//! A compaction that does jobs in random order, when a test says so.

use std::fmt;
use std::sync::{Arc, Mutex};

use alluvium_storage::{Compaction, Job, Work};

/// Does jobs on the thread of the test, slice by slice, in an order that a seed decides.
pub struct Erratic {
    state: Mutex<State>,
}

struct State {
    jobs: Vec<Arc<Job<dyn Work>>>,
    random: u64,
}

impl fmt::Debug for Erratic {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Erratic")
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

impl Erratic {
    pub fn new(seed: u64) -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(State { jobs: Vec::new(), random: seed }) })
    }

    /// Does so many slices of any jobs, of any sizes. Whether any job is left.
    pub fn step(&self, slices: usize) -> bool {
        for _ in 0..slices {
            let mut state = self.state.lock().unwrap();
            let jobs = state.jobs.len() as u64;
            if jobs == 0 {
                return false;
            }
            let chosen = state.below(jobs) as usize;
            let bytes = 1 << state.below(20);
            let job = Arc::clone(&state.jobs[chosen]);
            drop(state);
            if job.advance(bytes).is_done {
                self.state.lock().unwrap().jobs.retain(|other| !Arc::ptr_eq(other, &job));
            }
        }
        !self.state.lock().unwrap().jobs.is_empty()
    }

    /// Does all jobs.
    pub fn finish(&self) {
        while self.step(1) {}
    }
}

impl Compaction for Erratic {
    fn submit(&self, job: Arc<Job<dyn Work>>) {
        self.state.lock().unwrap().jobs.push(job);
    }

    fn close(&self) {
        self.state.lock().unwrap().jobs.clear();
    }
}
