//! The metrics of a worker's spines, read from another thread.

use std::sync::Arc;
use std::thread;

use alluvium_trace::StateTrace;
use alluvium_trace::memory::StateContext;
use alluvium_trace::metrics::SpineMetrics;
use alluvium_trace::{Batch, Metrics, RowBuffer, Spine};
use differential_dataflow::trace::{Description, Trace, TraceReader};
use timely::progress::Antichain;

fn batch(epoch: u64, rows: &[(&str, i64)]) -> Batch<u64> {
    let mut buffer = RowBuffer::new(&StateContext::default());
    for (key, weight) in rows {
        buffer.push(key.as_bytes(), b"value", &epoch, *weight);
    }
    let until = |epoch: u64| Antichain::from_elem(epoch);
    buffer.seal(Description::new(until(epoch), until(epoch + 1), until(0)))
}

fn spine(operator: &str, context: &StateContext) -> Spine<u64> {
    Spine::in_context(&context.for_operator(operator, "key".to_owned()))
}

#[test]
fn metrics_count_what_each_spine_of_a_worker_holds() {
    let metrics = Arc::new(Metrics::default());
    let rows = || metrics.spines().iter().map(|counters| counters.rows).collect::<Vec<_>>();
    let attached = Arc::clone(&metrics);
    let of_others = thread::spawn(|| {
        let mut spine = spine("other", &StateContext::default());
        spine.insert(batch(0, &[("elsewhere", 1)]));
        spine.map_batches(|batch| assert_eq!(batch.len(), 1));
    });
    of_others.join().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            let context = StateContext::default().for_worker(attached).for_relation("view");
            let (mut one, mut other) = (spine("one", &context), spine("other", &context));
            let (first, second) = (batch(0, &[("a", 1), ("b", 1)]), batch(1, &[("a", -1)]));
            let bytes = first.bytes() as u64;
            one.insert(first);
            let SpineMetrics { label, rows: held, memory, disk, batches, merges, inserted, .. } =
                metrics.spines().swap_remove(0);
            assert_eq!((label.relation.as_str(), label.operator.as_str()), ("view", "one"));
            assert_eq!((label.key.as_str(), held, memory), ("key", 2, bytes));
            assert_eq!((disk, batches, merges, inserted), (0, 1, 0, bytes));
            other.insert(batch(0, &[("c", 1)]));
            assert_eq!(rows(), [2, 1]);

            // Merged batches are not held any more.
            one.insert(second);
            assert_eq!(rows(), [3, 1]);
            let until = Antichain::from_elem(2);
            one.set_logical_compaction(until.borrow());
            one.set_physical_compaction(until.borrow());
            assert_eq!(rows(), [1, 1]);
            let spine = &metrics.spines()[0];
            assert!(spine.merges > 0 && spine.written > 0 && spine.inserted > bytes);
            assert!(spine.write_amplification().unwrap() > 1.0);
            drop(one);
            assert_eq!(rows(), [1]);
        });
    });
    assert!(metrics.spines().is_empty());
}
