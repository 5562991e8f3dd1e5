//! The greatest values so far, the same on all workers.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use alluvium_trace::memory::StateContext;
use alluvium_trace::{Batch, BoundColumn, Epoch, Origin, Spine};
use arrow::array::{ArrayRef, Int64Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use differential_dataflow::operators::arrange::{Arranged, TraceAgent};
use timely::container::NoopBuilder;
use timely::dataflow::Stream;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::OutputBuilderSession;
use timely::dataflow::operators::generic::operator::Operator;

use super::Spec;
use crate::fault::{self, Fault};
use crate::movement::delta::{Delta, DeltaStream, Times};
use crate::movement::exchange::broadcast;
use crate::reductions::reduce::{Changes, Logic, Output, Prior, Unkept, reduce};
use crate::rows::codec::CodecError;
use crate::rows::layout::{Layout, assemble};
use crate::state::arrangement::encode;
use crate::state::states::{self, Placement};

/// The number of a column with a waterline, among these, and a value of it.
static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
    let number = |name| Field::new(name, DataType::Int64, false);
    Arc::new(Schema::new(vec![number("column"), number("value")]))
});

/// Values under the numbers of their columns.
pub(super) fn greatest_layout() -> Result<Layout, CodecError> {
    Layout::keyed(SCHEMA.clone(), &[0])
}

/// Where the parts of such a row are.
#[derive(Clone, Copy)]
pub(super) struct Places {
    column: BoundColumn,
    value: BoundColumn,
}

impl Places {
    pub(super) fn new(layout: &Layout) -> Self {
        let place = |column| layout.bound_column(column).expect("a number of fixed width");
        Self { column: place(0), value: place(1) }
    }

    /// The number of the column, and the value.
    pub(super) fn read(&self, key: &[u8], value: &[u8]) -> (usize, i64) {
        let column = self.column.number(key, value).and_then(|column| usize::try_from(column).ok());
        (column.unwrap_or_default(), self.value.number(key, value).unwrap_or(i64::MIN))
    }
}

/// The greatest value of each column that any worker has inserted so far, kept by every worker.
pub(super) fn greatest<'scope>(
    changes: Stream<'scope, Epoch, Vec<Batch<Epoch>>>,
    spec: &Spec,
    context: &StateContext,
) -> Arranged<'scope, TraceAgent<Spine<Epoch>>> {
    let found = find(changes, spec.columns.iter().map(|column| column.place).collect());
    let found = match fault::armed(Fault::OwnWaterline) {
        true => found,
        false => broadcast(found, context),
    };
    let layout = &spec.greatest;
    states::placed(Placement::All, || {
        let (encode, key) = (encode(layout, context), layout.key_names());
        let logic = Greatest { places: Places::new(layout), row: Vec::new() };
        let changes = Unkept { rows: found, encode };
        reduce::<Spine<Epoch>, _>(changes, "Greatest", key, context, logic)
    })
}

/// The greatest values that are inserted in each epoch, by the columns at these places.
fn find<'scope>(
    changes: Stream<'scope, Epoch, Vec<Batch<Epoch>>>,
    places: Vec<BoundColumn>,
) -> DeltaStream<'scope, Epoch> {
    changes.unary(Pipeline, "FindGreatest", move |_capability, _info| {
        let origin = Origin::here();
        move |input, output: &mut OutputBuilderSession<'_, Epoch, NoopBuilder<Delta<Epoch>>>| {
            origin.run(|| {
                input.for_each(|capability, batches: &mut Vec<Batch<Epoch>>| {
                    let mut found = BTreeMap::new();
                    batches.drain(..).for_each(|batch| add_inserted(&batch, &places, &mut found));
                    for (epoch, values) in found {
                        let at = capability.delayed(&epoch, 0);
                        let mut delta = row_of_each(&values, epoch);
                        output.session_with_builder(&at).give_container(&mut delta);
                    }
                });
            })
        }
    })
}

/// By epoch and column, the greatest value so far.
type Found = BTreeMap<Epoch, Vec<Option<i64>>>;

fn add_inserted(batch: &Batch<Epoch>, places: &[BoundColumn], found: &mut Found) {
    let mut cursor = batch.scan();
    while let Some(key) = cursor.key() {
        let Some(value) = cursor.val() else {
            cursor.step_key();
            continue;
        };
        for (epoch, weight) in cursor.updates() {
            if weight <= 0 {
                continue;
            }
            let greatest = found.entry(epoch).or_insert_with(|| vec![None; places.len()]);
            for (place, greatest) in places.iter().zip(greatest) {
                *greatest = (*greatest).max(place.number(key, value));
            }
        }
        cursor.step_val();
    }
}

/// A row of each column with a value.
fn row_of_each(values: &[Option<i64>], epoch: Epoch) -> Delta<Epoch> {
    let rows = (0_i64..).zip(values).filter_map(|(column, value)| Some((column, (*value)?)));
    let (columns, values): (Vec<i64>, Vec<i64>) = rows.unzip();
    let count = values.len();
    let columns: Vec<ArrayRef> =
        vec![Arc::new(Int64Array::from(columns)), Arc::new(Int64Array::from(values))];
    Delta::new(assemble(SCHEMA.clone(), columns, count), Times::Same(epoch), None)
}

/// Keeps the greatest value under each key.
struct Greatest {
    places: Places,
    row: Vec<u8>,
}

impl Logic for Greatest {
    fn reduce(
        &mut self,
        changes: &Changes,
        key: usize,
        prior: &mut Prior<'_>,
        output: &mut Output,
    ) {
        let places = self.places;
        let bytes = changes.key(key);
        let number = |value: &[u8]| places.read(bytes, value).1;
        let mut there = prior.only_output(bytes, &mut self.row);
        for slice in changes.time_slices(key) {
            let time = changes.change(slice.start).time;
            let Some(row) = slice.max_by_key(|row| number(changes.value(*row))) else { continue };
            let greatest = changes.value(row);
            if there && number(greatest) <= number(&self.row) {
                continue;
            }
            if there {
                output.push(&self.row, time, -1);
            }
            output.push(greatest, time, 1);
            there = true;
            self.row.clear();
            self.row.extend_from_slice(greatest);
        }
    }
}
