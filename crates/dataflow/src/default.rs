//! A row that stands in where there would be none: the one group of an aggregate without GROUP BY.

use alluvium_trace::Epoch;
use arrow::array::RecordBatch;
use timely::container::NoopBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::Concat;
use timely::dataflow::operators::generic::OutputBuilderSession;
use timely::dataflow::operators::generic::operator::Operator;

use crate::arrangement::Stamps;
use crate::delta::{Delta, DeltaStream};
use crate::fault::{self, Fault};
use crate::fold::add;

/// At most one row of weight one at a time, or `row` in its place.
///
/// Stateless: whatever appears in `answered`, which holds a row for each row of `stream` and for
/// each that would have been there but for an error, takes as much of `row` away. So `default`, on the
/// worker of the group, adds it once.
pub fn or_default<'scope>(
    stream: DeltaStream<'scope, Epoch>,
    answered: DeltaStream<'scope, Epoch>,
    default: DeltaStream<'scope, Epoch>,
    row: RecordBatch,
) -> DeltaStream<'scope, Epoch> {
    let against = answered.unary(Pipeline, "InPlaceOf", move |_, _| {
        move |input, output: &mut OutputBuilderSession<'_, Epoch, NoopBuilder<Delta<Epoch>>>| {
            input.for_each(|capability, delta: &mut Delta<Epoch>| {
                let mut changes: Vec<(Epoch, i64)> =
                    (0..delta.len()).map(|row| (*delta.time(row), -delta.weight(row))).collect();
                changes.sort_unstable();
                changes.dedup_by(|next, kept| {
                    let same = next.0 == kept.0;
                    if same {
                        kept.1 = add(kept.1, next.1);
                    }
                    same
                });
                changes.retain(|&(_, weight)| weight != 0);
                if changes.is_empty() || fault::armed(Fault::KeepDefault) {
                    return;
                }
                let mut stamps = Stamps::default();
                for &(time, weight) in &changes {
                    stamps.push(time, weight);
                }
                let rows = arrow::compute::take_record_batch(
                    &row,
                    &arrow::array::UInt32Array::from(vec![0; changes.len()]),
                )
                .expect("there is a row to repeat");
                let mut delta = stamps.take(rows);
                output.session_with_builder(&capability).give_container(&mut delta);
            });
        }
    });
    stream.concat(against).concat(default)
}
