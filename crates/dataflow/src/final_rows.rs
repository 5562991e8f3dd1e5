//! Final rows: each row once, when it can no longer change.
//!
//! # Design
//!
//! The bound of a time column says from which epoch on no change has a smaller value in it. It is the bound below which the
//! arrangement of the waiting rows is pruned. A row becomes *final* in the first epoch after which its value is below the
//! bound: in the epoch that raised the waterlines so far, for these hold from the next epoch on. All of its changes are
//! there by then, so the row is emitted with the sum of their weights, in this epoch, and never again. Rows with NULL in
//! the column can always change and are never emitted.
//!
//! The waiting rows are sorted by the column, so those that become final together lie together: they are read in place, in
//! one pass from the bound before the interval to the bound behind it. What has been emitted is below the bound, and merges
//! drop it. Thus the trace is all that the operator keeps. When it starts again, what is below the bound was emitted.
//!
//! The operator may have something to emit in an epoch without rows. So it holds a capability for the first epoch that it
//! has not gone through, which it reaches whenever its input does.

use std::rc::Rc;
use std::sync::Arc;

use alluvium_trace::memory::StateContext;
use alluvium_trace::{Batch, Bound, Cursors, Epoch, Pruning, Spine};
use arrow::datatypes::SchemaRef;
use differential_dataflow::operators::arrange::{Arranged, TraceAgent};
use differential_dataflow::trace::TraceReader;
use timely::container::NoopBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::Capability;
use timely::dataflow::operators::generic::{OutputBuilder, builder_rc::OperatorBuilder};
use timely::progress::Antichain;

use crate::arrangement::arrange;
use crate::codec::CodecError;
use crate::delta::{Delta, DeltaStream, EncodedDelta};
use crate::exchange::exchange_by_value;
use crate::fault::{self, Fault};
use crate::fuel::Fuel;
use crate::layout::{Layout, all_columns};
use crate::states::{self, Placement};
use crate::weight::weight_of;

/// Which rows wait, and for what.
#[derive(Clone, Debug)]
pub struct Spec {
    layout: Layout,
}

impl Spec {
    /// Rows of `schema` that become final by `column`. Fails if a column has a type that cannot be stored, or this one a type
    /// that cannot be a key.
    pub fn compile(schema: SchemaRef, column: usize) -> Result<Self, CodecError> {
        Ok(Self { layout: Layout::keyed(schema, &[column])? })
    }

    /// The layout of the rows that wait.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }
}

/// The rows of `stream` that are final, each with the weight that it has for good.
///
/// `context` prunes the waiting rows by the column that they are sorted by; its bound makes rows final. Exchanges rows so that
/// equal rows meet.
///
/// # Panics
///
/// If the context does not prune.
pub fn final_rows<'scope>(
    spec: &Spec,
    stream: DeltaStream<'scope, Epoch>,
    context: &StateContext,
) -> DeltaStream<'scope, Epoch> {
    let layout = &spec.layout;
    // Rows of one time are on all workers.
    let stream = exchange_by_value(stream, layout, context);
    let Arranged { stream, trace } = states::placed(Placement::Value, || {
        arrange::<Epoch, Spine<Epoch>>(stream, layout, "ArrangeFinal", context)
    });
    let mut builder = OperatorBuilder::new("Final".to_owned(), stream.scope());
    let activator = stream.scope().activator_for(Rc::clone(&builder.operator_info().address));
    let mut input = builder.new_input(stream, Pipeline);
    let (output, rows) = builder.new_output();
    let mut output = OutputBuilder::<Epoch, NoopBuilder<Delta<Epoch>>>::from(output);
    let mut fuel = Fuel::new(context);
    let mut waiting = Some(Waiting::new(trace, layout, context));
    builder.build(move |mut capabilities| {
        let mut held = capabilities.pop();
        move |frontiers| {
            // The trace has the rows.
            input.for_each(|_, batches: &mut Vec<Batch<Epoch>>| batches.clear());
            let Some(frontier) = frontiers[0].frontier().first().copied() else {
                // There are no epochs any more.
                (held, waiting) = (None, None);
                return;
            };
            let (Some(capability), Some(waiting)) = (&mut held, &mut waiting) else { return };
            fuel.refill();
            let mut output = output.activate();
            let done = waiting.advance(frontier, &mut fuel, |mut delta| {
                output.session_with_builder(&*capability).give_container(&mut delta);
            });
            match done {
                true => downgrade(capability, frontier),
                false => fuel.reschedule(&activator),
            }
        }
    });
    rows
}

fn downgrade(capability: &mut Capability<Epoch>, frontier: Epoch) {
    if *capability.time() < frontier {
        capability.downgrade(&frontier);
    }
}

/// The rows that wait.
struct Waiting {
    trace: TraceAgent<Spine<Epoch>>,
    finality: Arc<dyn Pruning>,
    /// All epochs before this one are done.
    lower: Epoch,
    /// Everything below this has been emitted.
    bound: Option<Bound>,
    running: Option<Running>,
    layout: Layout,
    columns: Vec<usize>,
    rows: EncodedDelta<Epoch>,
}

/// Epochs that are being gone through.
struct Running {
    upper: Epoch,
    /// The epochs in which rows become final, and the bound below which they are then.
    steps: Vec<(Epoch, Bound)>,
    /// How many of them are done.
    done: usize,
    cursors: Cursors<Epoch>,
}

impl Waiting {
    fn new(mut trace: TraceAgent<Spine<Epoch>>, layout: &Layout, context: &StateContext) -> Self {
        let finality = context.pruning().expect("waiting rows are pruned by what makes them final");
        let start = states::start();
        // All batches are read together, so any of them may be merged.
        trace.set_physical_compaction(Antichain::new().borrow());
        Self {
            trace,
            finality: Arc::clone(finality),
            lower: start.unwrap_or(0),
            bound: start.and_then(|start| finality.bound(start)),
            running: None,
            columns: all_columns(layout.schema()),
            layout: layout.clone(),
            rows: EncodedDelta::new(context),
        }
    }

    /// Goes on up to `upper` until the fuel is used up; returns whether it has come there.
    fn advance(
        &mut self,
        upper: Epoch,
        fuel: &mut Fuel,
        mut emit: impl FnMut(Delta<Epoch>),
    ) -> bool {
        while self.lower < upper {
            if self.running.is_none() {
                self.running = Some(self.begin(upper));
            }
            if !self.emit_all(fuel, &mut emit) {
                return false;
            }
            self.finish();
        }
        true
    }

    fn begin(&self, upper: Epoch) -> Running {
        let steps = self.steps(upper);
        let mut batches = Vec::new();
        if !steps.is_empty() {
            self.trace.map_batches(|batch| batches.push(batch.clone()));
        }
        let lowest = || steps.first().map(|(_, bound)| Bound { least: i64::MIN, ..*bound });
        let before = self.bound.or_else(lowest);
        let first = before.and_then(|bound| bound.first_key());
        let first = first.as_ref().map_or(&[][..], |first| first.bytes());
        Running { upper, steps, done: 0, cursors: Cursors::scan_from(batches, first) }
    }

    /// The epochs from the present one up to `upper` in which rows become final, with the bounds that hold behind them.
    fn steps(&self, upper: Epoch) -> Vec<(Epoch, Bound)> {
        let least = |bound: &Option<Bound>| bound.map(|bound| bound.least);
        let behind = |epoch: Epoch| self.finality.bound(epoch + 1);
        let (mut steps, mut epoch, mut bound) = (Vec::new(), self.lower, self.bound);
        let last = behind(upper - 1);
        while least(&bound) < least(&last) {
            // The first epoch behind which it is higher: it never falls.
            let mut end = upper - 1;
            while epoch < end {
                let middle = epoch + (end - epoch) / 2;
                match least(&bound) < least(&behind(middle)) {
                    true => end = middle,
                    false => epoch = middle + 1,
                }
            }
            bound = behind(epoch);
            let early = i64::from(fault::armed(Fault::FinalEarly));
            steps.extend(
                bound.map(|bound| {
                    (epoch, Bound { least: bound.least.saturating_add(early), ..bound })
                }),
            );
            epoch += 1;
        }
        steps
    }

    /// Emits the rows that become final; returns whether these were all.
    fn emit_all(&mut self, fuel: &mut Fuel, emit: &mut impl FnMut(Delta<Epoch>)) -> bool {
        let Self { running, layout, columns, rows, .. } = self;
        let Some(Running { steps, done, cursors, .. }) = running else { return true };
        let mut ship = |rows: &mut EncodedDelta<Epoch>| {
            let delta = rows.decode(layout, columns);
            let bytes = delta.as_ref().map_or(0, Delta::bytes);
            delta.into_iter().for_each(&mut *emit);
            bytes
        };
        while let Some(key) = cursors.key() {
            let Some((epoch, bound)) = steps.get(*done) else { break };
            if !bound.forgets(key, &[]) {
                *done += 1;
                continue;
            }
            let Some(value) = cursors.val() else {
                cursors.step_key();
                continue;
            };
            let mut weight = weight_of(cursors);
            if fault::armed(Fault::FinalTwice) {
                weight *= 2;
            }
            if weight > 0 {
                rows.push(key, value, *epoch, weight);
            }
            cursors.step_val();
            if rows.is_full() {
                fuel.consume(ship(rows));
                if !fuel.is_left() {
                    return false;
                }
            }
        }
        fuel.consume(ship(rows));
        true
    }

    fn finish(&mut self) {
        let Some(Running { upper, steps, .. }) = self.running.take() else { return };
        self.lower = upper;
        self.bound = steps.last().map(|(_, bound)| *bound).or(self.bound);
        self.trace.set_logical_compaction(Antichain::from_elem(upper).borrow());
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::BTreeMap;

    use alluvium_trace::BoundColumn;
    use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
    use arrow::datatypes::{DataType, Field, Int64Type, Schema};
    use timely::dataflow::operators::generic::operator::Operator;
    use timely::dataflow::operators::probe::{Handle, Probe};
    use timely::worker::Worker;

    use super::*;
    use crate::delta::Times;
    use crate::input::{Input, input};
    use crate::states::{Saved, States};

    /// A bound that has risen to each of these values from an epoch on.
    #[derive(Debug)]
    struct Rising(BTreeMap<Epoch, i64>);

    impl Pruning for Rising {
        fn column(&self) -> BoundColumn {
            BoundColumn::Key { at: 0, width: 8 }
        }

        fn bound(&self, epoch: Epoch) -> Option<Bound> {
            let least = *self.0.range(..=epoch).next_back()?.1;
            Some(Bound { column: self.column(), least })
        }

        fn describe(&self, least: i64) -> String {
            least.to_string()
        }
    }

    fn schema() -> SchemaRef {
        let number = |name| Field::new(name, DataType::Int64, true);
        Arc::new(Schema::new(vec![number("time"), number("value")]))
    }

    type Rows = Vec<(Option<i64>, i64)>;

    /// An epoch, a time, a value and a weight.
    type Emitted = Rc<RefCell<Vec<(Epoch, i64, i64, i64)>>>;

    fn build(
        worker: &mut Worker,
        bounds: &[(Epoch, i64)],
        saved: Option<Saved>,
    ) -> ((Input<Epoch>, Handle<Epoch>, Emitted), States) {
        let rising = Rising(bounds.iter().copied().collect());
        let context = StateContext::default().with_pruning(Arc::new(rising));
        let spec = Spec::compile(schema(), 0).unwrap();
        states::build(saved, || {
            worker.dataflow(|scope| {
                let (end, rows) = input(scope, "rows", &context);
                let (probe, emitted) = (Handle::new(), Emitted::default());
                let seen = Rc::clone(&emitted);
                let rows = final_rows(&spec, rows, &context).probe_with(&probe);
                rows.sink(Pipeline, "Seen", move |(input, _)| {
                    input.for_each(|_, delta: &mut Delta<Epoch>| {
                        let column =
                            |number: usize| delta.rows.column(number).as_primitive::<Int64Type>();
                        for row in 0..delta.len() {
                            let (time, value) = (column(0).value(row), column(1).value(row));
                            let change = (*delta.time(row), time, value, delta.weight(row));
                            seen.borrow_mut().push(change);
                        }
                    });
                });
                (end, probe, emitted)
            })
        })
    }

    fn send(end: &mut Input<Epoch>, epoch: Epoch, rows: Rows, weight: i64) {
        let (times, values): (Vec<Option<i64>>, Vec<i64>) = rows.into_iter().unzip();
        let weights = vec![weight; values.len()];
        let columns: Vec<ArrayRef> =
            vec![Arc::new(Int64Array::from(times)), Arc::new(Int64Array::from(values))];
        let rows = RecordBatch::try_new(schema(), columns).unwrap();
        end.send(epoch, move || Delta::new(rows, Times::Same(epoch), Some(weights.into())));
    }

    /// The bound rises behind epochs 2, 3, 5 and 6.
    const BOUNDS: [(Epoch, i64); 4] = [(3, 10), (4, 11), (6, 30), (7, 31)];

    /// Epoch by epoch, or all at once.
    fn emitted(at_once: bool) -> Vec<(Epoch, i64, i64, i64)> {
        timely::execute_directly(move |worker| {
            let ((mut end, probe, emitted), _states) = build(worker, &BOUNDS, None);
            let step = |worker: &mut Worker, end: &mut Input<Epoch>, epoch| {
                end.advance_to(epoch);
                while !at_once && probe.less_than(&epoch) {
                    worker.step();
                }
            };
            send(&mut end, 1, vec![(Some(5), 1), (Some(9), 2), (Some(10), 3), (None, 4)], 1);
            step(worker, &mut end, 2);
            send(&mut end, 2, vec![(Some(9), 2), (Some(10), 3), (Some(10), 5)], 1);
            send(&mut end, 2, vec![(Some(5), 1)], -1);
            step(worker, &mut end, 3);
            send(&mut end, 3, vec![(Some(10), 3), (Some(30), 6)], 1);
            step(worker, &mut end, 5);
            send(&mut end, 5, vec![(Some(29), 7)], 1);
            step(worker, &mut end, 9);
            while probe.less_than(&9) {
                worker.step();
            }
            let mut emitted = emitted.take();
            emitted.sort_unstable();
            emitted
        })
    }

    #[test]
    fn rows_come_in_the_epoch_behind_which_they_are_below_the_bound() {
        // Epoch, time, value and weight.
        let expected = [(2, 9, 2, 2), (3, 10, 3, 3), (3, 10, 5, 1), (5, 29, 7, 1), (6, 30, 6, 1)];
        for at_once in [false, true] {
            assert_eq!(emitted(at_once), expected, "at once: {at_once}");
        }
    }

    #[test]
    fn what_waits_is_saved_and_what_was_emitted_does_not_come_again() {
        timely::execute_directly(|worker| {
            let ((mut end, probe, emitted), states) = build(worker, &BOUNDS, None);
            send(&mut end, 1, vec![(Some(5), 1), (Some(10), 2), (Some(30), 3)], 1);
            end.advance_to(3);
            while probe.less_than(&3) {
                worker.step();
            }
            assert_eq!(emitted.take(), [(2, 5, 1, 1)]);
            let pinned = states.pin().into_iter().map(|(name, batches)| (name, vec![batches]));
            let saved = Saved { upper: 3, batches: pinned.collect(), ..Saved::default() };

            let ((mut end, probe, emitted), _states) = build(worker, &BOUNDS, Some(saved));
            end.advance_to(3);
            send(&mut end, 3, vec![(Some(30), 3)], 1);
            end.advance_to(8);
            while probe.less_than(&8) {
                worker.step();
            }
            assert_eq!(emitted.take(), [(3, 10, 2, 1), (6, 30, 3, 2)]);
        });
    }

    #[cfg(feature = "faults")]
    #[test]
    fn a_final_row_that_comes_twice_or_too_early_is_found() {
        let right = emitted(false);
        for wrong in [Fault::FinalTwice, Fault::FinalEarly] {
            fault::arm(Some(wrong));
            let found = emitted(false);
            fault::arm(None);
            assert_ne!(found, right, "{wrong:?}");
        }
    }
}
