//! Batches of answers, decoded.
//!
//! What folds groups puts out batches of encoded answers; one of these operators makes deltas of them.

use alluvium_trace::{Batch, Epoch};
use timely::container::NoopBuilder;
use timely::dataflow::Stream;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::operator::Operator;
use timely::dataflow::operators::generic::{
    OutputBuilder, OutputBuilderSession, builder_rc::OperatorBuilder,
};

use crate::arrangement::Gathered;
use crate::delta::{Delta, DeltaStream};

/// What `decode` makes of the answers. It takes all that was gathered.
pub(crate) fn rows<'scope>(
    answers: Stream<'scope, Epoch, Vec<Batch<Epoch>>>,
    mut decode: impl FnMut(&mut Gathered<Epoch>) -> Delta<Epoch> + 'static,
) -> DeltaStream<'scope, Epoch> {
    answers.unary(Pipeline, "Answers", move |_, _| {
        let mut gathered = Gathered::default();
        move |input, output: &mut OutputBuilderSession<'_, Epoch, NoopBuilder<Delta<Epoch>>>| {
            input.for_each(|capability, batches: &mut Vec<Batch<Epoch>>| {
                let mut session = output.session_with_builder(&capability);
                each(&mut gathered, batches, |gathered| {
                    session.give_container(&mut decode(gathered));
                });
            });
        }
    })
}

/// What `decode` makes of the answers: rows, and errors if there are any. It takes all that was gathered.
pub(crate) fn rows_and_errors<'scope>(
    answers: Stream<'scope, Epoch, Vec<Batch<Epoch>>>,
    mut decode: impl FnMut(&mut Gathered<Epoch>) -> (Delta<Epoch>, Option<Delta<Epoch>>) + 'static,
) -> (DeltaStream<'scope, Epoch>, DeltaStream<'scope, Epoch>) {
    let mut builder = OperatorBuilder::new("Answers".to_owned(), answers.scope());
    let mut input = builder.new_input(answers, Pipeline);
    let (rows_output, rows) = builder.new_output();
    let mut rows_output = OutputBuilder::<Epoch, NoopBuilder<Delta<Epoch>>>::from(rows_output);
    let (errors_output, errors) = builder.new_output();
    let mut errors_output = OutputBuilder::<Epoch, NoopBuilder<Delta<Epoch>>>::from(errors_output);
    builder.build(move |_capabilities| {
        let mut gathered = Gathered::default();
        move |_frontiers| {
            let mut rows_output = rows_output.activate();
            let mut errors_output = errors_output.activate();
            input.for_each(|capability, batches: &mut Vec<Batch<Epoch>>| {
                let rows_capability = capability.retain(0);
                let errors_capability = capability.retain(1);
                each(&mut gathered, batches, |gathered| {
                    let (mut rows, errors) = decode(gathered);
                    rows_output.session_with_builder(&rows_capability).give_container(&mut rows);
                    if let Some(mut errors) = errors {
                        errors_output
                            .session_with_builder(&errors_capability)
                            .give_container(&mut errors);
                    }
                });
            });
        }
    });
    (rows, errors)
}

/// Gathers answers until they make a delta, again and again.
fn each(
    gathered: &mut Gathered<Epoch>,
    batches: &mut Vec<Batch<Epoch>>,
    mut take: impl FnMut(&mut Gathered<Epoch>),
) {
    for batch in batches.drain(..) {
        let mut cursor = batch.cursor();
        while gathered.fill(&mut cursor, |time| time) {
            take(gathered);
        }
    }
}
