//! Changing the deltas of a stream one by one.

use alluvium_trace::{Origin, PageTime};
use timely::container::NoopBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::OutputBuilderSession;
use timely::dataflow::operators::generic::operator::Operator;

use super::{Delta, DeltaStream};

/// The stream with `change` applied to each delta. Times of rows must not become earlier.
pub(crate) fn each_delta<'scope, T: PageTime>(
    rows: DeltaStream<'scope, T>,
    name: &str,
    mut change: impl FnMut(&mut Delta<T>) + 'static,
) -> DeltaStream<'scope, T> {
    rows.unary(Pipeline, name, move |_, _| {
        let origin = Origin::here();
        move |input, output: &mut OutputBuilderSession<'_, T, NoopBuilder<Delta<T>>>| {
            origin.run(|| {
                input.for_each(|capability, delta: &mut Delta<T>| {
                    change(delta);
                    output.session_with_builder(&capability).give_container(delta);
                });
            })
        }
    })
}
