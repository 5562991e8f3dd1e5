//! A spine that is written and read in turn: how much processor time its insertions, with all merges, and its look-ups
//! take, in memory and in files.
//!
//! Each phase has `ALLUVIUM_BENCH_ROUNDS` rounds, or 300: rows are inserted and deleted, and keys that exist are looked up.

use alluvium_state_benches::{Folder, value};
use alluvium_trace::memory::StateContext;
use alluvium_trace::{Batch, Cursors, RowBuffer, Spine, StateTrace};
use differential_dataflow::trace::{Description, Trace, TraceReader};
use rustix::time::{ClockId, clock_gettime};
use timely::progress::Antichain;

/// The memory that state may take where it is meant to go to files.
const LITTLE: usize = 16 << 20;

/// The phases: a name, and the rows of a round that are inserted, deleted and looked up.
const PHASES: [(&str, u64, u64, u64); 5] = [
    ("load", 2000, 0, 0),
    ("look-ups", 50, 0, 4000),
    ("mixed", 1000, 0, 1000),
    ("churn", 500, 500, 1000),
    ("load again", 2000, 0, 0),
];

/// A spine of the rows of some consecutive numbers.
struct Flow {
    spine: Spine<u64>,
    context: StateContext,
    epoch: u64,
    first: u64,
    next: u64,
    random: fastrand::Rng,
}

/// Keys in no order.
fn key(number: u64) -> [u8; 8] {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()
}

fn until(epoch: u64) -> Antichain<u64> {
    Antichain::from_elem(epoch)
}

/// Seconds of processor time of this thread.
fn now() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

impl Flow {
    fn seal(&self, mut buffer: RowBuffer<u64>) -> Batch<u64> {
        buffer.seal(Description::new(until(self.epoch), until(self.epoch + 1), until(0)))
    }

    /// A round. The seconds that insertions and look-ups have taken.
    fn round(&mut self, insertions: u64, deletions: u64, look_ups: u64) -> [f64; 2] {
        let mut buffer = RowBuffer::new(&self.context);
        for number in self.next..self.next + insertions {
            buffer.push(&key(number), &value(number), &self.epoch, 1);
        }
        for number in self.first..self.first + deletions {
            buffer.push(&key(number), &value(number), &self.epoch, -1);
        }
        (self.next, self.first) = (self.next + insertions, self.first + deletions);
        let batch = self.seal(buffer);
        let mut keys = RowBuffer::new(&StateContext::default());
        for _ in 0..look_ups {
            let number = self.random.u64(self.first..self.next);
            keys.push(&key(number), &[], &self.epoch, 1);
        }
        let keys = self.seal(keys);
        self.epoch += 1;

        let start = now();
        self.spine.insert(batch);
        self.spine.set_logical_compaction(until(self.epoch).borrow());
        self.spine.set_physical_compaction(until(self.epoch).borrow());
        let inserted = now();
        assert_eq!(self.look_up(&keys), keys.len());
        [inserted - start, now() - inserted]
    }

    /// How many of these keys there are.
    fn look_up(&self, keys: &Batch<u64>) -> usize {
        let mut cursors = Cursors::new(self.spine.version().batches().cloned());
        cursors.prefetch_hint(Cursors::new([keys.clone()]));
        let (mut keys, mut found) = (keys.cursor(), 0);
        while let Some(key) = keys.key() {
            cursors.seek_key(key);
            found += usize::from(cursors.key() == Some(key) && cursors.val().is_some());
            keys.step_key();
        }
        found
    }
}

fn main() {
    let rounds = std::env::var("ALLUVIUM_BENCH_ROUNDS").ok();
    let rounds: u64 = rounds.map_or(300, |rounds| rounds.parse().expect("a number of rounds"));
    let folder = Folder::new(env!("CARGO_TARGET_TMPDIR"));
    for (place, context) in [("memory", StateContext::default()), ("files", folder.context(LITTLE))]
    {
        let spine = Spine::in_context(&context);
        let random = fastrand::Rng::with_seed(1);
        let mut flow = Flow { spine, context, epoch: 0, first: 0, next: 0, random };
        for (name, insertions, deletions, look_ups) in PHASES {
            let (mut sums, mut batches) = ([0.0; 2], 0);
            for _ in 0..rounds {
                let [inserting, looking] = flow.round(insertions, deletions, look_ups);
                sums = [sums[0] + inserting, sums[1] + looking];
                batches += flow.spine.version().batches().filter(|batch| !batch.is_empty()).count();
            }
            let batches = batches as f64 / rounds as f64;
            println!(
                "{place:>6} {name:>10}: insertions {:.2} s, look-ups {:.2} s, {batches:.1} batches",
                sums[0], sums[1],
            );
        }
    }
}
