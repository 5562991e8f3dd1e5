//! Rows that a rising bound passes: those of one side of it are in view.
//!
//! # Design
//!
//! The bound of a column rises with the epochs, and never falls. In view are either the rows *below* it, which come into view
//! when it passes them, or the rows *from* it on, which leave view then. It is the bound below which the trace of the rows is
//! pruned: passed rows are never needed again.
//!
//! The rows are sorted by the column, so those that the bound passes together lie together. They are read in place, in one
//! pass from the bound before the interval to the bound after it. An epoch reads its own rows and those that it passes, and no
//! others, however many there are. All is linear in weights, so rows that come and go need not meet in an epoch.
//!
//! Before there is a bound nothing is in view.
//!
//! The bound of an epoch is that which holds after it, for changes of the next one: the epoch that raises it changes what is
//! in view. So there is something to emit in epochs without rows, and the operator holds a capability for the first epoch that
//! it has not gone through. It reaches it whenever its inputs do. Rows that never change have no epochs of their own; `ticks`
//! says how far time has come.
//!
//! - [`rises`]: the epochs in which the bound rises.
//! - [`rows`]: the rows, in view and out of it.
mod rises;
mod rows;

use std::rc::Rc;

use alluvium_trace::memory::StateContext;
use alluvium_trace::{Batch, Epoch, Origin, Spine};
use differential_dataflow::operators::arrange::Arranged;
use timely::Container;
use timely::container::NoopBuilder;
use timely::dataflow::Stream;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::Capability;
use timely::dataflow::operators::generic::{OutputBuilder, builder_rc::OperatorBuilder};

use self::rows::PassingRows;
use crate::movement::delta::{Delta, DeltaStream};
use crate::movement::exchange::exchange_by_value;
use crate::movement::fuel::Fuel;
use crate::movement::operator;
use crate::rows::layout::Layout;
use crate::state::arrangement::arrange;
use crate::state::states::{self, Placement};

#[cfg(test)]
pub(crate) use self::rows::VISITED;

/// Which rows are in view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InView {
    /// Those below the bound.
    Below,
    /// Those that are not.
    From,
}

/// How the bound divides the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) in_view: InView,
    /// Whether a row at the bound counts as below it.
    pub(crate) with_equal: bool,
}

/// The changes of the rows of `stream` in view, sorted by the column of the bound in `layout`.
///
/// `context` prunes them by this column; its bound decides. Exchanges rows so that equal rows meet. No row has NULL in the
/// column. Time advances with `ticks`, if there are any, after the end of the rows.
///
/// # Panics
///
/// If the context does not prune.
pub(crate) fn passing<'scope, C: Container>(
    name: &str,
    layout: &Layout,
    rule: Rule,
    stream: DeltaStream<'scope, Epoch>,
    ticks: Option<Stream<'scope, Epoch, C>>,
    context: &StateContext,
) -> DeltaStream<'scope, Epoch> {
    // Rows of one time are on all workers.
    let stream = exchange_by_value(stream, layout, context);
    let Arranged { stream, trace } = states::placed(Placement::Value, || {
        arrange::<Epoch, Spine<Epoch>>(stream, layout, &format!("Arrange{name}"), context)
    });
    let mut builder = OperatorBuilder::new(name.to_owned(), stream.scope());
    let activator = stream.scope().activator_for(Rc::clone(&builder.operator_info().address));
    let mut input = builder.new_input(stream, Pipeline);
    let mut ticks = ticks.map(|ticks| builder.new_input(ticks, Pipeline));
    let (output, changes) = builder.new_output();
    let mut output = OutputBuilder::<Epoch, NoopBuilder<Delta<Epoch>>>::from(output);
    let mut fuel = Fuel::new(context);
    let mut rows = Some(PassingRows::new(trace, layout, rule, context));
    let origin = Origin::here();
    operator::build(builder, move |mut capabilities| {
        let mut held = capabilities.pop();
        move |frontiers| {
            if let Some(ticks) = &mut ticks {
                ticks.for_each(|_, _| {});
            }
            input.for_each(|_, batches: &mut Vec<Batch<Epoch>>| match &mut rows {
                Some(rows) => rows.receive(batches),
                None => batches.clear(),
            });
            let ends = frontiers.iter().map(|frontier| frontier.frontier().first().copied());
            let is_over = ends.clone().next_back().flatten().is_none();
            let Some(frontier) = ends.flatten().min().filter(|_| !is_over) else {
                // There are no epochs any more.
                (held, rows) = (None, None);
                return;
            };
            let (Some(capability), Some(rows)) = (&mut held, &mut rows) else { return };
            fuel.refill();
            let mut output = output.activate();
            let done = rows.advance(frontier, &mut fuel, |mut delta| {
                origin.produce(delta.len(), || delta.bytes());
                output.session_with_builder(&*capability).give_container(&mut delta);
            });
            match done {
                true => downgrade(capability, frontier),
                false => fuel.reschedule(&activator),
            }
        }
    });
    changes
}

fn downgrade(capability: &mut Capability<Epoch>, frontier: Epoch) {
    if *capability.time() < frontier {
        capability.downgrade(&frontier);
    }
}
