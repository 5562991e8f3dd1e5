//! Constant rows.

use alluvium_trace::{Epoch, Origin};
use arrow::array::RecordBatch;
use timely::container::NoopBuilder;
use timely::dataflow::Scope;
use timely::dataflow::operators::generic::OutputBuilderSession;
use timely::dataflow::operators::generic::operator::source;

use crate::movement::delta::{Delta, DeltaStream};
use crate::state::states;

/// `rows` from `as_of` on, emitted by one of the workers; by none if the dataflow [starts again](crate::state::states).
pub fn constant<'scope>(
    scope: Scope<'scope, Epoch>,
    rows: RecordBatch,
    as_of: Epoch,
) -> DeltaStream<'scope, Epoch> {
    source(scope, "Constant", move |mut capability, _info| {
        let origin = Origin::here();
        capability.downgrade(&as_of);
        let is_sent = scope.index() == 0 && rows.num_rows() > 0 && states::start().is_none();
        let mut capability = is_sent.then_some(capability);
        move |output: &mut OutputBuilderSession<'_, Epoch, NoopBuilder<Delta<Epoch>>>| {
            origin.run(|| {
                if let Some(capability) = capability.take() {
                    let mut delta = Delta::insertions(rows.clone(), as_of);
                    origin.produce(delta.len(), || delta.bytes());
                    output.session_with_builder(&capability).give_container(&mut delta);
                }
            })
        }
    })
}
