//! Final rows: each row once, when it can no longer change.
//!
//! The bound of a time column says from which epoch on no change has a smaller value in it. A row becomes *final* in the first
//! epoch after which its value is below the bound: in the epoch that raised the waterlines so far, for these hold from the next
//! epoch on. All of its changes are there by then, so the row [comes into view](crate::time::passing) with the sum of their weights,
//! in this epoch, and never again. Rows with NULL in the column can always change and are never emitted.
//!
//! Emitted rows are below the bound, and merges drop them. Thus the rows that wait are all that the operator keeps. When
//! it starts again, rows below the bound were emitted.

use alluvium_trace::Epoch;
use alluvium_trace::memory::StateContext;
use arrow::datatypes::SchemaRef;

use crate::movement::delta::DeltaStream;
use crate::rows::codec::CodecError;
use crate::rows::layout::Layout;
use crate::time::passing::{InView, Rule, passing};

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
    let rule = Rule { in_view: InView::Below, with_equal: false };
    passing("Final", &spec.layout, rule, stream, None::<DeltaStream<'scope, Epoch>>, context)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::BTreeMap;
    use std::rc::Rc;
    use std::sync::Arc;

    use alluvium_trace::{Bound, BoundColumn, Pruning};
    use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
    use arrow::datatypes::{DataType, Field, Int64Type, Schema};
    use timely::dataflow::channels::pact::Pipeline;
    use timely::dataflow::operators::generic::operator::Operator;
    use timely::dataflow::operators::probe::{Handle, Probe};
    use timely::worker::Worker;

    use super::*;
    #[cfg(feature = "faults")]
    use crate::fault::{self, Fault};
    use crate::movement::delta::{Delta, Times};
    use crate::movement::input::{Input, input};
    use crate::state::states::{self, Saved, States};

    /// A bound that has risen to each of these values from an epoch on.
    #[derive(Debug)]
    struct Rising(BTreeMap<Epoch, i64>);

    impl Pruning for Rising {
        fn column(&self) -> BoundColumn {
            BoundColumn::Key { at: 0, width: 8 }
        }

        fn bound(&self, epoch: Epoch) -> Option<Bound> {
            let least = *self.0.range(..=epoch).next_back()?.1;
            Some(Bound::new(self.column(), least))
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

    /// The bound rises after epochs 2, 3, 5 and 6.
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
