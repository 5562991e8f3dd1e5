//! Window functions of which a change is evaluated with the rows that frames reach.
//!
//! The rows of a partition are kept in order. A change is evaluated twice, with the rows around it before and after it, and
//! the results that differ are emitted. Functions that depend on all rows before a row also need what is known of those before
//! the first row that is read: it is found in the output's trace, which is kept for these functions only.

use std::ops::Range;

use alluvium_trace::memory::StateContext;
use alluvium_trace::{BoundColumn, Epoch, NullTrace, Spine};
use arrow::datatypes::{DataType, SchemaRef};

use super::evaluate::Evaluator;
use super::function::Function;
use super::gather::{Gatherer, Held, Order, Partition};
use super::reach::Reach;
use super::results::{Beside, Decoder};
use super::running::carried_types;
use super::versions::Versions;
use super::{Definition, Windowed};
use crate::movement::delta::DeltaStream;
use crate::movement::exchange::exchange;
use crate::movement::fuel::Fuel;
use crate::reductions::ranked::entry::{EntryEncoder, push_entries};
use crate::reductions::reduce::{Changes, Output, Prior, Reduction, reduce_decoded};
use crate::rows::codec::{CodecError, ValueCodec};
use crate::rows::key_columns::KeyColumns;
use crate::state::arrangement::arrange_encoded;

/// Window functions over one partitioning.
#[derive(Clone, Debug)]
pub struct Sliding {
    /// The partition of a row.
    key: KeyColumns,
    pub(super) entries: EntryEncoder,
    pub(super) order: Order,
    pub(super) functions: Vec<Function>,
    /// The names of the results.
    names: Vec<String>,
    pub(super) results: ValueCodec,
    /// The codec of the state that results carry from row to row, and the columns of each function in it.
    pub(super) carried: ValueCodec,
    pub(super) carried_columns: Vec<Range<usize>>,
    pub(super) beside: Beside,
    pub(super) reach: Reach,
    /// The columns of the input, then the results.
    output: SchemaRef,
}

impl Sliding {
    /// As [`super::Spec::compile`].
    pub(super) fn compile(definition: &Definition<'_>) -> Result<Self, CodecError> {
        let &Definition { input, keys, order, functions, output, .. } = definition;
        let compiled = functions.iter().map(|function| {
            Function::compile(function, input, order).ok_or_else(|| {
                CodecError::Evaluation(format!("{} does not slide", function.function.name()))
            })
        });
        let compiled = compiled.collect::<Result<Vec<_>, _>>()?;
        let types: Vec<DataType> =
            functions.iter().map(|function| function.result.data_type().clone()).collect();
        let mut carried = Vec::new();
        let mut carried_columns = Vec::with_capacity(types.len());
        for (function, result) in compiled.iter().zip(&types) {
            let first = carried.len();
            if function.is_running() {
                carried.extend(carried_types(function, result));
            }
            carried_columns.push(first..carried.len());
        }
        let reach = Reach::of(&compiled);
        Ok(Self {
            key: KeyColumns::new(input, keys)?,
            entries: definition.entries()?,
            order: Order {
                key: KeyColumns::ordered(input, order)?,
                options: order.iter().map(|&(_, options)| options).collect(),
            },
            functions: compiled,
            names: functions.iter().map(|function| function.result.name().clone()).collect(),
            results: ValueCodec::new(&types)?,
            carried: ValueCodec::new(&carried)?,
            carried_columns,
            beside: Beside { counts: reach.counts, carries: reach.runs },
            reach,
            output: output.clone(),
        })
    }

    /// Where the first column of the order lies in the bytes of every row and its results.
    pub(super) fn bound_of_order(&self) -> Option<BoundColumn> {
        let options = self.order.options.first()?;
        self.entries.bound_of_order(options.descending)
    }
}

/// The rows of `stream` with the results of window functions. Exchanges rows by partition.
pub(super) fn window<'scope>(
    spec: &Sliding,
    stream: DeltaStream<'scope, Epoch>,
    context: &StateContext,
) -> Windowed<'scope> {
    let layout = spec.entries.layout().clone();
    let key = layout.key_names();
    let entries = arrange_encoded::<Epoch, Spine<Epoch>>(
        spec.entries.clone().encode(exchange(stream, &spec.key, context), context),
        "ArrangePartitions",
        key.clone(),
        context,
        push_entries,
    );
    let keeps_results = spec.reach.keeps_results();
    let logic = Slide {
        versions: Versions::default(),
        gatherer: Gatherer::new(spec, context),
        evaluator: Evaluator::new(spec, context),
    };
    let decoder = Decoder {
        layout,
        results: spec.results.clone(),
        output: spec.output.clone(),
        names: spec.names.clone(),
        beside: spec.beside,
    };
    let decode = move |encoded: &mut _| decoder.decode(encoded);
    let (rows, errors) = match keeps_results {
        true => reduce_decoded::<Spine<Epoch>, _>(entries, "Slide", key, context, logic, decode),
        false => {
            reduce_decoded::<NullTrace<Epoch>, _>(entries, "Slide", key, context, logic, decode)
        }
    };
    Windowed { rows, errors }
}

/// Keeps the results of partitions up to date.
struct Slide {
    versions: Versions,
    gatherer: Gatherer,
    evaluator: Evaluator,
}

impl Reduction for Slide {
    fn reduce_all(
        &mut self,
        changes: &Changes,
        first: usize,
        prior: &mut Prior<'_>,
        output: &mut Output,
        fuel: &mut Fuel,
    ) -> usize {
        let Self { versions, gatherer, evaluator } = self;
        let mut next = first;
        while next < changes.len() && fuel.is_left() {
            let key = changes.key(next);
            versions.clear();
            let (mut rows, mut results) = prior.both(key);
            gatherer.forget();
            let mut slices = changes.time_slices(next).peekable();
            while let Some(slice) = slices.next() {
                let time = changes.change(slice.start).time;
                versions.advance(changes, slice);
                let remembers = slices.peek().is_some();
                let partition = Partition { number: next, key, time, changes, remembers };
                let held = Held { rows: rows.as_deref_mut(), results: results.as_deref_mut() };
                gatherer.gather(&partition, versions, held, &mut |slices| {
                    evaluator.evaluate(slices, changes, output);
                });
            }
            next += 1;
            if gatherer.is_full() {
                evaluator.evaluate(&mut gatherer.slices, changes, output);
            }
            fuel.consume(std::mem::take(&mut evaluator.bytes));
        }
        evaluator.evaluate(&mut gatherer.slices, changes, output);
        evaluator.finish_key(changes, output);
        fuel.consume(std::mem::take(&mut evaluator.bytes) + output.take_bytes());
        next
    }
}
