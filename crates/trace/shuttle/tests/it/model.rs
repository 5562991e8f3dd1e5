//! Spines of a few large rows, whose jobs have several slices.

use std::ops::Range;
use std::sync::Arc;

use alluvium_storage::{Compaction, Job, MergePool, Slice, Storage, Work};
use alluvium_trace_shuttle::memory::{MemoryBudget, StateContext};
use alluvium_trace_shuttle::{Batch, Cursors, Epoch, RowBuffer, Schedule, Spine};
use differential_dataflow::trace::{Description, Trace, TraceReader};
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, MaxSteps, Runner};
use timely::progress::Antichain;

/// The bytes of a row's value: a slice of a pool is 256 KiB.
const VALUE: usize = 4 << 10;

/// The rows of an epoch: a merge of four epochs has some slices.
pub const ROWS: u64 = 50;

/// Runs a test in many orders: random ones, and some with few switches at random places.
pub fn in_many_orders(test: impl Fn() + Copy + Send + Sync + 'static) {
    let mut config = Config::new();
    config.silence_warnings = true;
    config.stack_size = 1 << 20;
    config.max_steps = MaxSteps::FailAfter(20_000);
    Runner::new(RandomScheduler::new(100), config.clone()).run(test);
    Runner::new(PctScheduler::new(3, 100), config).run(test);
}

/// A context whose jobs are done by the threads of a pool, and the pool.
pub fn with_pool(
    memory: usize,
    storage: Option<Arc<dyn Storage>>,
    threads: usize,
) -> (StateContext, Arc<MergePool>) {
    let pool = Arc::new(MergePool::start(threads).unwrap());
    let schedule = Schedule { smallest_job: 0, ..Schedule::default() };
    let context = StateContext::new(MemoryBudget::new(memory), storage).with_schedule(schedule);
    (context.with_compaction(pool.clone() as Arc<dyn Compaction>), pool)
}

pub fn until(epoch: Epoch) -> Antichain<Epoch> {
    Antichain::from_elem(epoch)
}

/// A batch of one epoch that gives a weight to each of these numbers.
pub fn numbers(
    context: &StateContext,
    epoch: Epoch,
    numbers: Range<u64>,
    weight: i64,
) -> Batch<Epoch> {
    let mut buffer = RowBuffer::new(context);
    for number in numbers {
        // In no order, so that merges copy all rows.
        let key = number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes();
        buffer.push(&key, &[7; VALUE], &epoch, weight);
    }
    buffer.seal(Description::new(until(epoch), until(epoch + 1), until(0)))
}

/// Inserts the rows of an epoch, which readers never ask for apart.
pub fn insert(spine: &mut Spine<Epoch>, context: &StateContext, epoch: Epoch) {
    spine.insert(numbers(context, epoch, epoch * ROWS..(epoch + 1) * ROWS, 1));
    pass(spine, epoch + 1);
}

/// All readers have passed this epoch.
pub fn pass(spine: &mut Spine<Epoch>, epoch: Epoch) {
    spine.set_logical_compaction(until(epoch).borrow());
    spine.set_physical_compaction(until(epoch).borrow());
}

/// The sum of the weights of all rows, and how many rows there are.
pub fn rows(spine: &Spine<Epoch>) -> (i64, usize) {
    let mut cursors = Cursors::new(spine.version().batches().cloned());
    let (mut sum, mut rows) = (0, 0);
    while cursors.key().is_some() {
        while cursors.val().is_some() {
            cursors.updates(|_, weight| sum += weight);
            rows += 1;
            cursors.step_val();
        }
        cursors.step_key();
    }
    (sum, rows)
}

/// Lets all jobs end.
pub fn settle(spine: &mut Spine<Epoch>) {
    while !spine.is_settled() {
        shuttle::thread::yield_now();
        spine.exert();
    }
}

/// Work that is done at once.
struct Probe;

impl Work for Probe {
    fn slice(&mut self, bytes: u64) -> Slice {
        Slice { bytes, is_done: true }
    }

    fn release(&mut self) {}
}

/// Waits until the pool has done another job, which comes before all others.
pub fn do_another(pool: &dyn Compaction) {
    let probe = Job::new(u64::MAX, 0, Probe);
    pool.submit(probe.clone());
    while !probe.is_done() {
        shuttle::thread::yield_now();
    }
}
