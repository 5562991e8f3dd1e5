//! What spines hold is seen from another thread.

use std::sync::Arc;
use std::thread;

use alluvium_trace::{Batch, Gauge, RowBuffer, Spine};
use differential_dataflow::trace::{Description, Trace, TraceReader};
use timely::progress::Antichain;

fn batch(epoch: u64, rows: &[(&str, i64)]) -> Batch<u64> {
    let mut buffer = RowBuffer::new();
    for (key, weight) in rows {
        buffer.push(key.as_bytes(), b"value", &epoch, *weight);
    }
    let until = |epoch: u64| Antichain::from_elem(epoch);
    buffer.seal(Description::new(until(epoch), until(epoch + 1), until(0)))
}

#[test]
fn a_gauge_tells_what_the_spines_of_its_thread_hold() {
    let gauge = Arc::new(Gauge::default());
    let told = || (gauge.rows(), gauge.bytes());
    let attached = Arc::clone(&gauge);
    let of_others = thread::spawn(|| {
        let mut spine = Spine::<u64>::default();
        spine.insert(batch(0, &[("elsewhere", 1)]));
        spine.map_batches(|batch| assert_eq!(batch.len(), 1));
    });
    of_others.join().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            attached.attach();
            let (mut one, mut other) = (Spine::<u64>::default(), Spine::<u64>::default());
            let (first, second) = (batch(0, &[("a", 1), ("b", 1)]), batch(1, &[("a", -1)]));
            let bytes = first.bytes();
            one.insert(first);
            assert_eq!(told(), (2, bytes));
            other.insert(batch(0, &[("c", 1)]));
            assert_eq!(gauge.rows(), 3);

            // What is merged away is not held any more.
            one.insert(second);
            assert_eq!(gauge.rows(), 4);
            let until = Antichain::from_elem(2);
            one.set_logical_compaction(until.borrow());
            one.set_physical_compaction(until.borrow());
            assert_eq!(gauge.rows(), 2);
            drop(one);
            let mut bytes = 0;
            other.map_batches(|batch| bytes += batch.bytes());
            assert_eq!(told(), (1, bytes));
        });
    });
    assert_eq!(told(), (0, 0));
}
