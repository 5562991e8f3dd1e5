//! Building operators that run in the name of their dataflow.

use alluvium_trace::Origin;
use timely::dataflow::operators::Capability;
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;
use timely::progress::Timestamp;
use timely::progress::frontier::MutableAntichain;

/// Builds an operator. A panic in it comes from the dataflow that is being built.
pub(crate) fn build<T, L>(
    builder: OperatorBuilder<'_, T>,
    constructor: impl FnOnce(Vec<Capability<T>>) -> L,
) where
    T: Timestamp,
    L: FnMut(&[MutableAntichain<T>]) + 'static,
{
    let origin = Origin::here();
    builder.build(move |capabilities| {
        let mut logic = constructor(capabilities);
        move |frontiers| origin.run(|| logic(frontiers))
    });
}
