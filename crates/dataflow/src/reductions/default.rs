//! A default row: an aggregate without GROUP BY has one row even over no input.

use alluvium_trace::memory::StateContext;
use alluvium_trace::{Epoch, Origin};
use arrow::array::{RecordBatch, UInt32Array};
use arrow::compute::take_record_batch;
use timely::container::NoopBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::Concat;
use timely::dataflow::operators::generic::OutputBuilderSession;
use timely::dataflow::operators::generic::operator::Operator;

use crate::fault::{self, Fault};
use crate::movement::constant::constant;
use crate::movement::delta::{Delta, DeltaBuilder, DeltaStream};
use crate::movement::exchange::exchange;
use crate::rows::codec::CodecError;
use crate::rows::key_columns::KeyColumns;
use crate::rows::weight;

/// The row that replaces a missing one.
#[derive(Clone, Debug)]
pub struct Spec {
    row: RecordBatch,
    /// No columns: the row belongs to the worker of the only group.
    key: KeyColumns,
}

impl Spec {
    /// `row`, a batch of one row, as the default.
    pub fn compile(row: RecordBatch) -> Result<Self, CodecError> {
        let key = KeyColumns::new(row.schema_ref(), &[])?;
        Ok(Self { row, key })
    }
}

/// `stream`, which has at most one row at a time, or the default row while `stream` has none, from `as_of` on.
///
/// `present` has a row for each row of `stream` and for each error in place of one. Stateless: the default is inserted
/// once, and each change in `present` changes it by the opposite weight.
pub fn or_default<'scope>(
    spec: &Spec,
    stream: DeltaStream<'scope, Epoch>,
    present: DeltaStream<'scope, Epoch>,
    as_of: Epoch,
    context: &StateContext,
) -> DeltaStream<'scope, Epoch> {
    let default = exchange(constant(stream.scope(), spec.row.clone(), as_of), &spec.key, context);
    let row = spec.row.clone();
    let against = present.unary(Pipeline, "Default", move |_, _| {
        let origin = Origin::here();
        move |input, output: &mut OutputBuilderSession<'_, Epoch, NoopBuilder<Delta<Epoch>>>| {
            origin.run(|| {
                input.for_each(|capability, delta: &mut Delta<Epoch>| {
                    let mut changes: Vec<(Epoch, i64)> = (0..delta.len())
                        .map(|row| (*delta.time(row), -delta.weight(row)))
                        .collect();
                    weight::consolidate(&mut changes);
                    if changes.is_empty() || fault::armed(Fault::KeepDefault) {
                        return;
                    }
                    let copies = UInt32Array::from(vec![0; changes.len()]);
                    let rows = take_record_batch(&row, &copies).expect("the default is a row");
                    let mut updates = DeltaBuilder::default();
                    for &(time, weight) in &changes {
                        updates.push(time, weight);
                    }
                    let mut delta = updates.finish(rows);
                    origin.produce(delta.len(), || delta.bytes());
                    output.session_with_builder(&capability).give_container(&mut delta);
                });
            })
        }
    });
    stream.concat(against).concat(default)
}
