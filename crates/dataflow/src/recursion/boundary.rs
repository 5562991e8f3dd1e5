//! The way into a recursion and out of it.

use std::cell::RefCell;
use std::rc::Rc;

use alluvium_trace::memory::StateContext;
use alluvium_trace::{Batch, Epoch, Origin, PageTime};
use arrow::array::BooleanArray;
use differential_dataflow::trace::TraceReader;
use timely::container::NoopBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::OutputBuilderSession;
use timely::dataflow::operators::generic::operator::Operator;
use timely::dataflow::operators::{Enter, Leave};
use timely::dataflow::{Scope, Stream};
use timely::order::Product;
use timely::progress::Antichain;
use timely::progress::frontier::AntichainRef;

use super::{Round, Rounds};
use crate::movement::delta::{Delta, DeltaStream};
use crate::rows::layout::all_columns;
use crate::state::arrangement::{Kept, deltas};
use crate::state::reader::{Reader, read_as_of};
use crate::state::states;

/// Rows that are there in all rounds.
pub fn enter<'inner>(
    rows: DeltaStream<'_, Epoch>,
    rounds: Rounds<'inner>,
) -> DeltaStream<'inner, Round> {
    convert(rows.enter(rounds), "Enter", |delta| {
        Some(delta.at_times(|time| Product::new(*time, 0)))
    })
}

/// The rows of the last round. Those of before the dataflow [starts again](crate::state::states) are known already. While more can
/// come the `inputs` are kept.
pub fn leave<'outer>(
    rows: DeltaStream<'_, Round>,
    inputs: Vec<KeptInput>,
    outer: Scope<'outer, Epoch>,
) -> DeltaStream<'outer, Epoch> {
    let start = states::start().unwrap_or_default();
    convert(rows.leave(outer), "Leave", move |delta: Delta<Round>| {
        let _are_kept = &inputs;
        let delta = delta.at_times(|time| time.outer);
        let is_new = |row| *delta.time(row) >= start;
        if (0..delta.len()).all(is_new) {
            return Some(delta);
        }
        let new: BooleanArray = (0..delta.len()).map(|row| Some(is_new(row))).collect();
        let delta = delta.filter(&new);
        (!delta.is_empty()).then_some(delta)
    })
}

/// Deltas with times of another kind, in the scope where these are the times.
pub(super) fn convert<'scope, T: PageTime, From: PageTime, To: PageTime>(
    rows: Stream<'scope, T, Delta<From>>,
    name: &str,
    convert: impl Fn(Delta<From>) -> Option<Delta<To>> + 'static,
) -> Stream<'scope, T, Delta<To>> {
    rows.unary(Pipeline, name, move |_capability, _info| {
        let origin = Origin::here();
        move |input, output: &mut OutputBuilderSession<'_, T, NoopBuilder<Delta<To>>>| {
            origin.run(|| {
                input.for_each(|capability, delta: &mut Delta<From>| {
                    if let Some(mut converted) = convert(std::mem::take(delta)) {
                        output.session_with_builder(&capability).give_container(&mut converted);
                    }
                });
            })
        }
    })
}

/// The frontier of the epochs right before a frontier, to which inputs are compacted.
///
/// A dataflow that [starts again](crate::state::states) reads its inputs as of the last epoch from before. Rows that were advanced to
/// the first new epoch would be new.
pub(super) fn before(frontier: AntichainRef<'_, Epoch>) -> Antichain<Epoch> {
    frontier.iter().map(|epoch| epoch.saturating_sub(1)).collect()
}

/// An arrangement whose rows enter a recursion. One without readers is not kept: this reads it, also when it does not change
/// any more.
#[derive(Clone)]
pub struct KeptInput {
    _trace: Rc<RefCell<Reader>>,
}

/// The rows of an arrangement of the dataflow's own. If the dataflow [starts again](crate::state::states) the rows that the arrangement
/// has are among them, as of the last epoch from before.
pub fn replay<'scope>(
    rows: Kept<'scope>,
    context: &StateContext,
) -> (DeltaStream<'scope, Epoch>, KeptInput) {
    let layout = rows.layout;
    let columns = all_columns(layout.schema());
    let start = states::start();
    let trace = Rc::new(RefCell::new(rows.arranged.trace));
    let kept = KeptInput { _trace: Rc::clone(&trace) };
    let stream = rows.arranged.stream;
    let batches = stream.unary_frontier(Pipeline, "Replay", move |mut capability, _info| {
        let origin = Origin::here();
        let mut saved = start.map(|start| {
            let as_of = start.saturating_sub(1);
            capability.downgrade(&as_of);
            let mut batches: Vec<Batch<Epoch>> = Vec::new();
            trace.borrow().map_batches(|batch| batches.push(read_as_of(batch, as_of)));
            (capability, batches)
        });
        move |(input, frontier), output| {
            origin.run(|| {
                if let Some((capability, mut batches)) = saved.take() {
                    output.session(&capability).give_container(&mut batches);
                }
                input.for_each(|capability, batches: &mut Vec<Batch<Epoch>>| {
                    output.session(&capability).give_container(batches);
                });
                if !frontier.frontier().is_empty() {
                    let mut trace = trace.borrow_mut();
                    trace.set_logical_compaction(before(frontier.frontier()).borrow());
                    trace.set_physical_compaction(frontier.frontier());
                }
            })
        }
    });
    (deltas(batches, layout, columns, context), kept)
}
