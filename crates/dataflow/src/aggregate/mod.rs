//! Aggregates: one row per group, from what its rows add up to.
//!
//! COUNT, SUM and AVG keep accumulators and no rows ([`linear`]), and so do MIN and MAX of rows that only
//! ever come. Otherwise MIN and MAX keep the group's inputs in
//! order and read the first ([`crate::ranked`]). Where a GROUP BY asks for both, the results of the first
//! are one more lane of the second, which puts them side by side.

pub mod accumulator;
mod decimal_sum;
pub mod float_sum;
mod linear;

use std::sync::Arc;

use alluvium_trace::{Epoch, Nothing};
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use self::accumulator::Accumulators;
use crate::arrangement::arrange;
use crate::codec::{CodecError, KeyCodec};
use crate::delta::{Delta, DeltaStream};
use crate::exchange::exchange;
use crate::layout::{Layout, types_of};
use crate::ranked::{Lane, extremes};

/// What an aggregate computes over the rows of its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Function {
    /// The number of rows, or of rows whose input is not NULL.
    Count,
    /// The sum of the inputs that are not NULL; NULL when there is none.
    Sum,
    /// The mean of the inputs that are not NULL; NULL when there is none.
    Avg,
    /// The smallest input that is not NULL; NULL when there is none.
    Min,
    /// The largest input that is not NULL; NULL when there is none.
    Max,
}

/// One aggregate of a GROUP BY.
#[derive(Clone, Debug, PartialEq)]
pub struct Aggregate {
    /// What is computed.
    pub function: Function,
    /// The column of the input it is computed over; `None` only for `COUNT(*)`.
    pub input: Option<usize>,
    /// The type of the result.
    pub result: DataType,
}

impl Aggregate {
    /// Whether a group's accumulators are all that is needed to go from one answer to the next; `grows` says
    /// that rows only ever come.
    pub fn is_accumulated(&self, grows: bool) -> bool {
        match self.function {
            Function::Count | Function::Sum | Function::Avg => true,
            // Sorting bytes do not tell all floats apart.
            Function::Min | Function::Max => grows && !self.result.is_floating(),
        }
    }
}

/// The groups of a stream, and the errors of groups that have no answer.
pub struct Aggregated<'scope> {
    /// The keys, then the aggregates, of every group that has rows.
    pub rows: DeltaStream<'scope, Epoch>,
    /// Errors, if there can be any; see [`crate::map::error_schema`].
    pub errors: Option<DeltaStream<'scope, Epoch>>,
}

/// Groups `stream`, whose columns are `input`, by the columns `keys`.
///
/// Exchanges rows by group. `grows` says that rows only ever come. `output` names the keys and the
/// aggregates; `names` say what each aggregate is called in errors.
pub fn aggregate<'scope>(
    stream: DeltaStream<'scope, Epoch>,
    input: &SchemaRef,
    keys: &[usize],
    aggregates: &[Aggregate],
    grows: bool,
    output: &SchemaRef,
    names: &[String],
) -> Result<Aggregated<'scope>, CodecError> {
    let key_codec = KeyCodec::new(&types_of(input, keys))?;
    let stream = exchange(stream, keys, key_codec.clone());

    let sorted = |linear: bool| -> Vec<usize> {
        let chosen = |at: &usize| aggregates[*at].is_accumulated(grows) == linear;
        (0..aggregates.len()).filter(chosen).collect()
    };
    let (added, ranking) = (sorted(true), sorted(false));
    let key_count = keys.len();

    // A GROUP BY without aggregates still needs to know which groups have rows.
    let totals = if !added.is_empty() || ranking.is_empty() {
        let chosen: Vec<Aggregate> = added.iter().map(|&at| aggregates[at].clone()).collect();
        let inputs: Vec<usize> = chosen.iter().filter_map(|aggregate| aggregate.input).collect();
        let columns: Vec<usize> = keys.iter().chain(&inputs).copied().collect();
        let schema = select(input, &columns);
        let layout = Layout::grouped(schema.clone(), &(0..key_count).collect::<Vec<_>>())?;
        let projected = stream.clone().columns(columns, schema);
        let arranged = arrange::<Epoch, Nothing<Epoch>>(projected, layout, "ArrangeGroups");
        let fields = (0..key_count).chain(added.iter().map(|&at| key_count + at));
        let schema = select(output, &fields.collect::<Vec<_>>());
        let names = added.iter().map(|&at| names[at].clone()).collect();
        let accumulators = Accumulators::new(&chosen, &types_of(input, &inputs))?;
        Some((linear::linear(arranged, key_codec, accumulators, schema.clone(), names), schema))
    } else {
        None
    };
    let (totals, errors) = match totals {
        Some(((rows, errors), schema)) => (Some((rows, schema)), Some(errors)),
        None => (None, None),
    };
    if ranking.is_empty() {
        let (rows, _) = totals.expect("a group has totals when nothing in it is ranked");
        return Ok(Aggregated { rows, errors });
    }

    let mut lanes = Vec::new();
    let mut placed = Vec::new();
    if let Some((rows, schema)) = totals {
        lanes.push(Lane {
            rows,
            schema,
            order: Vec::new(),
        });
        placed.extend(&added);
    }
    for &at in &ranking {
        let column = aggregates[at].input.expect("MIN and MAX have an input");
        let descending = aggregates[at].function == Function::Max;
        let columns: Vec<usize> = keys.iter().copied().chain([column]).collect();
        let schema = select(input, &columns);
        lanes.push(Lane {
            rows: stream.clone().columns(columns, schema.clone()),
            schema,
            order: vec![(key_count, SortOptions { descending, nulls_first: false })],
        });
        placed.push(at);
    }
    // Lanes come out in the order they were made; the output wants the aggregates' own.
    let in_lanes: Vec<usize> =
        (0..key_count).chain(placed.iter().map(|&at| key_count + at)).collect();
    let rows = extremes(lanes, key_count, select(output, &in_lanes))?;
    let back: Vec<usize> = (0..in_lanes.len())
        .map(|column| in_lanes.iter().position(|&lane| lane == column).expect("a permutation"))
        .collect();
    Ok(Aggregated { rows: rows.columns(back, output.clone()), errors })
}

/// The fields of the given columns.
fn select(schema: &SchemaRef, columns: &[usize]) -> SchemaRef {
    let fields: Vec<Field> = columns.iter().map(|&column| schema.field(column).clone()).collect();
    Arc::new(Schema::new(fields))
}

/// Selecting columns of a stream, without copying them.
trait Columns {
    fn columns(self, columns: Vec<usize>, schema: SchemaRef) -> Self;
}

impl Columns for DeltaStream<'_, Epoch> {
    fn columns(self, columns: Vec<usize>, schema: SchemaRef) -> Self {
        use timely::container::NoopBuilder;
        use timely::dataflow::channels::pact::Pipeline;
        use timely::dataflow::operators::generic::OutputBuilderSession;
        use timely::dataflow::operators::generic::operator::Operator;

        self.unary(Pipeline, "Columns", move |_, _| {
            move |input, output: &mut OutputBuilderSession<'_, Epoch, NoopBuilder<Delta<Epoch>>>| {
                input.for_each(|capability, delta: &mut Delta<Epoch>| {
                    let picked =
                        columns.iter().map(|&column| delta.rows.column(column).clone()).collect();
                    let rows =
                        crate::layout::assemble(schema.clone(), picked, delta.rows.num_rows());
                    let mut delta = Delta { rows, ..std::mem::take(delta) };
                    output.session_with_builder(&capability).give_container(&mut delta);
                });
            }
        })
    }
}
