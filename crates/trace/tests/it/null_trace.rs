use alluvium_trace::{Batch, NullTrace};
use differential_dataflow::trace::{Batch as _, Trace, TraceReader};
use timely::dataflow::operators::generic::OperatorInfo;
use timely::progress::Antichain;

fn nothing() -> NullTrace<u64> {
    NullTrace::new(OperatorInfo::new(0, 0, [].into()), None, None)
}

fn until(epoch: u64) -> Antichain<u64> {
    Antichain::from_elem(epoch)
}

#[test]
fn a_trace_that_keeps_nothing_knows_its_frontiers() {
    let mut trace = nothing();
    trace.insert(Batch::empty(until(0), until(5)));
    trace.set_logical_compaction(until(3).borrow());
    trace.set_physical_compaction(until(4).borrow());
    assert_eq!(trace.get_logical_compaction(), until(3).borrow());
    assert_eq!(trace.get_physical_compaction(), until(4).borrow());
    assert!(trace.batches_through(until(5).borrow()).unwrap().is_empty());
    trace.map_batches(|_| panic!("there are no batches"));
    let mut upper = Antichain::new();
    trace.read_upper(&mut upper);
    assert_eq!(upper, until(5));
    trace.close();
    trace.read_upper(&mut upper);
    assert_eq!(upper, Antichain::new());
}

#[test]
#[should_panic(expected = "a batch starts where the last one ended")]
fn a_gap_is_refused() {
    nothing().insert(Batch::empty(until(1), until(5)));
}
