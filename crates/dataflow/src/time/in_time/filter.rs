//! Dropping what comes too late.

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use alluvium_trace::memory::StateContext;
use alluvium_trace::{Batch, Bound, Cursor, Epoch, Origin, Spine};
use differential_dataflow::operators::arrange::{Arranged, TraceAgent};
use differential_dataflow::trace::{BatchReader, TraceReader};
use timely::container::NoopBuilder;
use timely::dataflow::Stream;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::{OutputBuilder, builder_rc::OperatorBuilder};
use timely::progress::frontier::MutableAntichain;

use super::greatest::Places;
use super::{LateColumn, Spec};
use crate::movement::delta::{Delta, DeltaStream, EncodedDelta};
use crate::movement::fuel::Fuel;
use crate::movement::operator;
use crate::rows::layout::{Layout, all_columns};
use crate::state::states;
use crate::time::waterlines::Waterlines;

/// The `changes` that are not below the waterlines, which follow from the `greatest` values.
pub(super) fn filter<'scope>(
    changes: Stream<'scope, Epoch, Vec<Batch<Epoch>>>,
    greatest: Arranged<'scope, TraceAgent<Spine<Epoch>>>,
    spec: &Spec,
    waterlines: &Waterlines,
    late: Arc<AtomicU64>,
    context: &StateContext,
) -> DeltaStream<'scope, Epoch> {
    let raising = Raising {
        places: Places::new(&spec.greatest),
        columns: spec.columns.clone(),
        waterlines: waterlines.clone(),
    };
    if let Some(start) = states::start() {
        greatest.trace.map_batches(|batch| raising.raise(batch, |_| start));
    }
    let mut builder = OperatorBuilder::new("InTime".to_owned(), changes.scope());
    let activator = changes.scope().activator_for(Rc::clone(&builder.operator_info().address));
    let mut changes = builder.new_input(changes, Pipeline);
    let mut greatest = builder.new_input(greatest.stream, Pipeline);
    let (output, rows) = builder.new_output();
    let mut output = OutputBuilder::<Epoch, NoopBuilder<Delta<Epoch>>>::from(output);
    let mut fuel = Fuel::new(context);
    let mut filter = Filter::new(spec, waterlines, late, context);
    let origin = Origin::here();
    operator::build(builder, move |mut capabilities| {
        let mut held = capabilities.pop();
        move |frontiers| {
            changes.for_each(|_, batches: &mut Vec<Batch<Epoch>>| {
                filter.waiting.extend(batches.drain(..).filter(|batch| !batch.is_empty()));
            });
            greatest.for_each(|_, batches: &mut Vec<Batch<Epoch>>| {
                // The greatest values of an epoch count from the next one on.
                batches.drain(..).for_each(|batch| raising.raise(&batch, |epoch| epoch + 1));
            });
            let Some(capability) = &mut held else { return };
            // The greatest values of all epochs before this one are known, and so all of their changes are here.
            let known = first(&frontiers[1]).min(first(&frontiers[0]));
            fuel.refill();
            let mut output = output.activate();
            let done = filter.advance(known, &mut fuel, |mut delta| {
                origin.produce(delta.len(), || delta.bytes());
                output.session_with_builder(&*capability).give_container(&mut delta);
            });
            match filter.begins().unwrap_or(known).min(known) {
                Epoch::MAX => held = None,
                reached if reached > *capability.time() => capability.downgrade(&reached),
                _ => {}
            }
            if !done {
                fuel.reschedule(&activator);
            }
        }
    });
    rows
}

fn first(frontier: &MutableAntichain<Epoch>) -> Epoch {
    frontier.frontier().first().copied().unwrap_or(Epoch::MAX)
}

/// Raises waterlines to what greatest values say.
struct Raising {
    places: Places,
    columns: Vec<LateColumn>,
    waterlines: Waterlines,
}

impl Raising {
    /// By the values that a batch adds, each from the epoch on that `from` says.
    fn raise(&self, batch: &Batch<Epoch>, from: impl Fn(Epoch) -> Epoch) {
        let mut raised = Vec::new();
        let mut cursor = batch.cursor();
        while let Some(key) = cursor.key() {
            let Some(value) = cursor.val() else {
                cursor.step_key();
                continue;
            };
            let (column, greatest) = self.places.read(key, value);
            let added = cursor.updates().filter(|(_, weight)| *weight > 0);
            raised.extend(added.map(|(epoch, _)| (from(epoch), column, greatest)));
            cursor.step_val();
        }
        // Values do not sort as numbers do.
        raised.sort_unstable();
        for (from, column, greatest) in raised {
            let Some(column) = self.columns.get(column) else { continue };
            self.waterlines.raise(column.waterline.clone(), from, column.below(greatest));
        }
    }
}

/// The filter that passes changes in time.
struct Filter {
    /// The batches that have not been gone through, in the order of their times.
    waiting: VecDeque<Batch<Epoch>>,
    /// The first of them, if it has been begun, and where it begins.
    running: Option<(Epoch, Cursor<Epoch>)>,
    columns: Vec<LateColumn>,
    waterlines: Waterlines,
    /// The epoch that was looked at last, and below what its changes are late.
    bounds: (Epoch, Vec<Bound>),
    late: Arc<AtomicU64>,
    layout: Layout,
    all: Vec<usize>,
    rows: EncodedDelta<Epoch>,
}

impl Filter {
    fn new(
        spec: &Spec,
        waterlines: &Waterlines,
        late: Arc<AtomicU64>,
        context: &StateContext,
    ) -> Self {
        Self {
            waiting: VecDeque::new(),
            running: None,
            columns: spec.columns.clone(),
            waterlines: waterlines.clone(),
            bounds: (0, Vec::new()),
            late,
            layout: spec.layout.clone(),
            all: all_columns(spec.layout.schema()),
            rows: EncodedDelta::new(context),
        }
    }

    /// The first epoch whose changes wait.
    fn begins(&self) -> Option<Epoch> {
        let running = self.running.as_ref().map(|(epoch, _)| *epoch);
        running.or_else(|| self.waiting.front().map(lower))
    }

    /// Goes through all batches whose waterlines are known: the greatest values of epochs before `known` are. Stops when
    /// the fuel is used up; returns whether it did not.
    fn advance(
        &mut self,
        known: Epoch,
        fuel: &mut Fuel,
        mut emit: impl FnMut(Delta<Epoch>),
    ) -> bool {
        loop {
            if self.running.is_none() {
                // The last epoch of a batch needs those before it.
                let is_known = |batch: &Batch<Epoch>| {
                    let upper = batch.upper().first().copied().unwrap_or(Epoch::MAX);
                    upper.saturating_sub(1) <= known
                };
                if !self.waiting.front().is_some_and(is_known) {
                    return true;
                }
                let batch = self.waiting.pop_front();
                self.running = batch.map(|batch| (lower(&batch), batch.scan()));
            }
            if !self.run(fuel, &mut emit) {
                return false;
            }
            self.running = None;
        }
    }

    /// Goes through the batch that was begun; returns whether it has come to its end.
    fn run(&mut self, fuel: &mut Fuel, emit: &mut impl FnMut(Delta<Epoch>)) -> bool {
        let Self { running, columns, waterlines, bounds, late, layout, all, rows, .. } = self;
        let Some((_, cursor)) = running else { return true };
        let mut ship = |rows: &mut EncodedDelta<Epoch>| {
            let delta = rows.decode(layout, all);
            let bytes = delta.as_ref().map_or(0, Delta::bytes);
            delta.into_iter().for_each(&mut *emit);
            bytes
        };
        while let Some(key) = cursor.key() {
            if !fuel.is_left() {
                return false;
            }
            let Some(value) = cursor.val() else {
                cursor.step_key();
                continue;
            };
            for (epoch, weight) in cursor.updates() {
                if bounds.0 != epoch {
                    *bounds = (epoch, bounds_at(epoch, columns, waterlines));
                }
                if bounds.1.iter().any(|bound| bound.forgets(key, value)) {
                    late.fetch_add(weight.unsigned_abs(), Ordering::Relaxed);
                } else {
                    rows.push(key, value, epoch, weight);
                }
            }
            cursor.step_val();
            if rows.is_full() {
                fuel.consume(ship(rows));
            }
        }
        fuel.consume(ship(rows));
        true
    }
}

fn lower(batch: &Batch<Epoch>) -> Epoch {
    batch.description().lower().first().copied().unwrap_or(Epoch::MAX)
}

/// Below what changes of an epoch are late.
fn bounds_at(epoch: Epoch, columns: &[LateColumn], waterlines: &Waterlines) -> Vec<Bound> {
    let bound = |column: &LateColumn| {
        let least = waterlines.at(&column.waterline, epoch)?;
        Some(Bound::new(column.place, least))
    };
    columns.iter().filter_map(bound).collect()
}
