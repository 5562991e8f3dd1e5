//! Where changes leave a dataflow.

use std::collections::BTreeMap;

use alluvium_trace::{Epoch, Origin};
use arrow::array::RecordBatch;
use arrow::buffer::ScalarBuffer;
use timely::container::NoopBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::Capability;
use timely::dataflow::operators::generic::OutputBuilderSession;
use timely::dataflow::operators::generic::operator::Operator;

use crate::fault::{self, Fault};
use crate::movement::consolidate::consolidate;
use crate::movement::delta::{Delta, DeltaStream, Times};

/// Receives the changes of a view, on one worker.
pub trait Sink: 'static {
    /// The changes of one complete epoch on this worker, consolidated, never empty; epochs ascend.
    /// The first epoch's changes are the view's contents as of the epoch it was built at.
    fn changes(&mut self, epoch: Epoch, rows: RecordBatch, weights: ScalarBuffer<i64>);
    /// All epochs before `frontier` are complete on this worker; `None` means all epochs.
    fn frontier(&mut self, frontier: Option<Epoch>);
}

/// Hands the changes of each epoch to `sink` once the epoch is complete. The output has no rows and shows progress.
pub fn sink<'scope>(
    stream: DeltaStream<'scope, Epoch>,
    mut sink: Box<dyn Sink>,
) -> DeltaStream<'scope, Epoch> {
    stream.unary_frontier(Pipeline, "Sink", move |_capability, _info| {
        let origin = Origin::here();
        // A capability for each waiting epoch keeps the dataflow from ending before it.
        let mut waiting: BTreeMap<Epoch, (Capability<Epoch>, Vec<Delta<Epoch>>)> = BTreeMap::new();
        let mut reported = Some(0);
        move |(input, frontier),
              _output: &mut OutputBuilderSession<'_, Epoch, NoopBuilder<Delta<Epoch>>>| {
            origin.run(|| {
                if fault::armed(Fault::PanicInSink) {
                    panic!("a fault was injected into a sink");
                }
                input.for_each(|capability, delta: &mut Delta<Epoch>| {
                    let delta = std::mem::take(delta);
                    for (epoch, part) in by_epoch(delta) {
                        let wait = || (capability.delayed(&epoch, 0), Vec::new());
                        waiting.entry(epoch).or_insert_with(wait).1.push(part);
                    }
                });
                let frontier = frontier.frontier().first().copied();
                while let Some(entry) = waiting.first_entry() {
                    if frontier.is_some_and(|frontier| frontier <= *entry.key()) {
                        break;
                    }
                    let (_capability, parts) = entry.remove();
                    for (epoch, rows, weights) in consolidate(&parts) {
                        sink.changes(epoch, rows, weights);
                    }
                }
                if frontier != reported {
                    sink.frontier(frontier);
                    reported = frontier;
                }
            })
        }
    })
}

/// A delta split by epoch.
pub fn by_epoch(delta: Delta<Epoch>) -> Vec<(Epoch, Delta<Epoch>)> {
    match &delta.times {
        Times::Same(epoch) => vec![(*epoch, delta)],
        Times::Each(epochs) => {
            let mut rows: BTreeMap<Epoch, Vec<u32>> = BTreeMap::new();
            for (row, epoch) in epochs.iter().enumerate() {
                rows.entry(*epoch).or_default().push(row as u32);
            }
            rows.into_iter().map(|(epoch, rows)| (epoch, delta.take(&rows.into()))).collect()
        }
    }
}
