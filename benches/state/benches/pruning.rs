//! Pruning: the cost of dropping nine tenths of the rows of a spine in files, once a bound has passed them.
//!
//! Prints figures instead of sampling: each case can happen once only.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

use alluvium_state_benches::{Folder, VALUE, value};
use alluvium_trace::memory::StateContext;
use alluvium_trace::{
    Batch, BatchBuilder, Bound, BoundColumn, Epoch, Merging, Pruning, RowBuffer, Schedule, Spine,
    StateTrace,
};
use differential_dataflow::trace::{Description, Trace, TraceReader};
use timely::progress::Antichain;

/// The memory that state may take.
const LITTLE: usize = 16 << 20;

/// Prunes below a value that is moved.
#[derive(Debug)]
struct Least(BoundColumn, AtomicI64);

impl Pruning for Least {
    fn column(&self) -> BoundColumn {
        self.0
    }

    fn bound(&self, _: Epoch) -> Option<Bound> {
        Some(Bound::new(self.0, self.1.load(Ordering::Relaxed)))
    }

    fn describe(&self, least: i64) -> String {
        least.to_string()
    }
}

/// Where rows have the number by which they are pruned.
#[derive(Clone, Copy)]
enum Place {
    Key,
    Value,
}

impl Place {
    fn column(self) -> BoundColumn {
        match self {
            Place::Key => BoundColumn::Key { at: 0, width: 8 },
            Place::Value => BoundColumn::Value { at: 1, width: 8, null: 0 },
        }
    }

    /// The key and the value of a row: sorted by the number, or in no order.
    fn row(self, number: u64) -> ([u8; 9], [u8; VALUE]) {
        let (mut key, mut rest) = ([1; 9], value(number));
        match self {
            Place::Key => key[1..].copy_from_slice(&(number | 1 << 63).to_be_bytes()),
            Place::Value => {
                key[1..].copy_from_slice(&fastrand::Rng::with_seed(number).u64(..).to_be_bytes());
                rest[0] = 0;
                rest[1..9].copy_from_slice(&number.to_le_bytes());
            }
        }
        (key, rest)
    }
}

/// Sixteen million rows, about 1 GB, or `ALLUVIUM_BENCH_ROWS`.
fn rows() -> u64 {
    let given = std::env::var("ALLUVIUM_BENCH_ROWS").ok();
    given.map_or(16_000_000, |rows| rows.parse().expect("ALLUVIUM_BENCH_ROWS is a number"))
}

/// The bytes that this process has read and written with system calls.
fn traffic() -> [u64; 2] {
    let counts = fs::read_to_string("/proc/self/io").expect("Linux counts what is read");
    let of = |name: &str| {
        let line = counts.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|count| count.trim().parse().ok()).expect("it is a number")
    };
    [of("rchar:"), of("wchar:")]
}

fn sealed(
    numbers: impl Iterator<Item = u64>,
    place: Place,
    context: &StateContext,
    epoch: Epoch,
) -> Batch<Epoch> {
    let [lower, upper, since] = [epoch, epoch + 1, 0].map(Antichain::from_elem);
    let description = Description::new(lower, upper, since);
    if let Place::Key = place {
        let mut builder = BatchBuilder::new(context);
        for number in numbers {
            let (key, value) = place.row(number);
            builder.push(&key, &value, &epoch, 1);
        }
        return builder.finish(description);
    }
    let mut buffer = RowBuffer::new(context);
    for number in numbers {
        let (key, value) = place.row(number);
        buffer.push(&key, &value, &epoch, 1);
    }
    buffer.seal(description)
}

/// Inserts all rows in so many batches, by number or in turn, and moves the bound past nine tenths of them.
fn measure(name: &str, place: Place, batches: u64, in_order: bool) {
    let folder = Folder::new(env!("CARGO_TARGET_TMPDIR"));
    let least = Arc::new(Least(place.column(), AtomicI64::new(i64::MIN)));
    let schedule = Schedule { merging: Merging::Never, ..Schedule::default() };
    let context = folder.context(LITTLE).with_schedule(schedule);
    let context = context.with_pruning(Arc::clone(&least) as Arc<dyn Pruning>);
    let mut spine = Spine::<Epoch>::in_context(&context);
    let (all, each) = (rows(), rows() / batches);
    for epoch in 0..batches {
        let number = |row: u64| if in_order { epoch * each + row } else { row * batches + epoch };
        spine.insert(sealed((0..each).map(number), place, &context, epoch));
        spine.set_physical_compaction(Antichain::from_elem(epoch + 1).borrow());
    }
    let size = |spine: &Spine<Epoch>| {
        let all = spine.version().batches();
        all.fold([0, 0], |sum, batch| [sum[0] + batch.bytes() as u64, sum[1] + batch.len() as u64])
    };
    let [bytes, _] = size(&spine);
    let before = traffic();
    let start = Instant::now();
    least.1.store((all / 10 * 9) as i64, Ordering::Relaxed);
    spine.set_logical_compaction(Antichain::from_elem(batches).borrow());
    spine.set_physical_compaction(Antichain::from_elem(batches).borrow());
    let (time, after) = (start.elapsed(), traffic());
    let [left, rows] = size(&spine);
    let share = |number: u64| 100.0 * number as f64 / bytes as f64;
    println!(
        "{name}: {:.0} MB, then {:.0} MB with {rows} rows; read {:.2} %, wrote {:.2} % in {:.3} s",
        bytes as f64 / 1e6,
        left as f64 / 1e6,
        share(after[0] - before[0]),
        share(after[1] - before[1]),
        time.as_secs_f64(),
    );
}

fn main() {
    measure("key, 64 batches by number", Place::Key, 64, true);
    measure("key, one batch", Place::Key, 1, true);
    measure("key, 64 batches that overlap", Place::Key, 64, false);
    measure("value, 64 batches by number", Place::Value, 64, true);
    measure("value, one batch", Place::Value, 1, true);
}
