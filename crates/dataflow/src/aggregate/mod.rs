//! Aggregates: one row per group, from what its rows add up to.
//!
//! COUNT, SUM and AVG keep accumulators and no rows (`linear`), and so do MIN and MAX of rows that only ever
//! come; of distinct values they are told once each, of which the rows are kept (`distinct_inputs`).
//! Otherwise MIN and MAX keep the group's inputs in order and read the first ([`crate::ranked`]). All else
//! keeps the group's rows and is evaluated anew (`fallback`). Where a GROUP BY asks for several of these,
//! the results of each are a lane of the ranked ones, which puts them side by side.

pub mod accumulator;
mod decimal_sum;
mod distinct_inputs;
mod fallback;
pub mod float_sum;
mod linear;

use std::sync::Arc;

use alluvium_trace::{Epoch, NullTrace};
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use timely::dataflow::operators::Concatenate;

use self::accumulator::Accumulators;
use self::distinct_inputs::DistinctInputs;
pub use self::fallback::Fallback;
use crate::arrangement::arrange;
use crate::codec::{CodecError, KeyCodec};
use crate::delta::{Delta, DeltaStream};
use crate::exchange::exchange;
use crate::layout::{Layout, all_columns, types_of};
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
    /// Whether each value of the input counts once.
    pub distinct: bool,
    /// The type of the result.
    pub result: DataType,
}

impl Aggregate {
    /// Whether a group's accumulators are all that is needed to go from one answer to the next; `append_only` says
    /// that rows only ever come.
    pub fn is_accumulated(&self, append_only: bool) -> bool {
        match self.function {
            Function::Count | Function::Sum | Function::Avg => true,
            // Sorting bytes do not tell all floats apart.
            Function::Min | Function::Max => append_only && !self.result.is_floating(),
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
/// Exchanges rows by group. `append_only` says that rows only ever come. `output` names the keys, the aggregates,
/// and the results of `evaluated`, which are told apart by these names in errors.
pub fn aggregate<'scope>(
    stream: DeltaStream<'scope, Epoch>,
    input: &SchemaRef,
    keys: &[usize],
    aggregates: &[Aggregate],
    fallbacks: &[Fallback],
    append_only: bool,
    output: &SchemaRef,
) -> Result<Aggregated<'scope>, CodecError> {
    let groups = Groups { input, keys, codec: KeyCodec::new(&types_of(input, keys))?, output };
    let chosen = |accumulated: bool| -> Vec<usize> {
        let chosen = |at: &usize| aggregates[*at].is_accumulated(append_only) == accumulated;
        (0..aggregates.len()).filter(chosen).collect()
    };
    let (added, ranking) = (chosen(true), chosen(false));
    let is_distinct = added.iter().any(|&at| aggregates[at].distinct);
    let (distinct, stream) = match is_distinct {
        true => (Some(stream.clone()), exchange(stream, keys, groups.codec.clone())),
        false => (None, exchange(stream, keys, groups.codec.clone())),
    };

    let mut lanes = Vec::new();
    // The output columns of the lanes, behind the keys.
    let mut placed = Vec::new();
    let mut errors = Vec::new();
    // A GROUP BY without aggregates still needs to know which groups have rows.
    if !added.is_empty() || (ranking.is_empty() && fallbacks.is_empty()) {
        let chosen: Vec<Aggregate> = added.iter().map(|&at| aggregates[at].clone()).collect();
        let schema = groups.of_output(&added);
        let (rows, failed) = groups.linear(&stream, distinct, &chosen, schema.clone())?;
        lanes.push(Lane { rows, schema, order: Vec::new() });
        placed.extend(&added);
        errors.push(failed);
    }
    if !fallbacks.is_empty() {
        let places: Vec<usize> = (aggregates.len()..aggregates.len() + fallbacks.len()).collect();
        let schema = groups.of_output(&places);
        let (rows, failed) = groups.fallback(&stream, fallbacks, &schema)?;
        lanes.push(Lane { rows, schema, order: Vec::new() });
        placed.extend(&places);
        errors.push(failed);
    }
    for &at in &ranking {
        let column = aggregates[at].input.expect("MIN and MAX have an input");
        let descending = aggregates[at].function == Function::Max;
        let columns: Vec<usize> = keys.iter().copied().chain([column]).collect();
        let schema = select(input, &columns);
        lanes.push(Lane {
            rows: stream.clone().columns(columns, schema.clone()),
            schema,
            order: vec![(keys.len(), SortOptions { descending, nulls_first: false })],
        });
        placed.push(at);
    }
    let scope = stream.scope();
    let errors = (!errors.is_empty()).then(|| scope.concatenate(errors));
    // Lanes come out in the order they were made; the output wants the aggregates' own.
    let in_lanes: Vec<usize> =
        (0..keys.len()).chain(placed.iter().map(|&at| keys.len() + at)).collect();
    let in_order = in_lanes.is_sorted();
    let rows = match <[Lane<'_>; 1]>::try_from(lanes) {
        Ok([Lane { rows, order, .. }]) if order.is_empty() => rows,
        Ok(lane) => extremes(lane.into(), keys.len(), select(output, &in_lanes))?,
        Err(lanes) => extremes(lanes, keys.len(), select(output, &in_lanes))?,
    };
    if in_order {
        return Ok(Aggregated { rows, errors });
    }
    let back: Vec<usize> = (0..in_lanes.len())
        .map(|column| in_lanes.iter().position(|&lane| lane == column).expect("a permutation"))
        .collect();
    Ok(Aggregated { rows: rows.columns(back, output.clone()), errors })
}

/// What is grouped, and by what.
struct Groups<'a> {
    input: &'a SchemaRef,
    keys: &'a [usize],
    codec: KeyCodec,
    output: &'a SchemaRef,
}

/// Rows and errors of groups.
type Streams<'scope> = (DeltaStream<'scope, Epoch>, DeltaStream<'scope, Epoch>);

impl Groups<'_> {
    /// The keys, then the results numbered `results`.
    fn of_output(&self, results: &[usize]) -> SchemaRef {
        let width = self.keys.len();
        let columns = (0..width).chain(results.iter().map(|&at| width + at));
        select(self.output, &columns.collect::<Vec<_>>())
    }

    /// What the results behind the keys are called.
    fn names(&self, schema: &SchemaRef) -> Vec<String> {
        schema.fields()[self.keys.len()..].iter().map(|field| field.name().clone()).collect()
    }

    /// What adds up. `distinct` are the rows where they came from, if any aggregate wants each value once.
    fn linear<'scope>(
        &self,
        stream: &DeltaStream<'scope, Epoch>,
        distinct: Option<DeltaStream<'scope, Epoch>>,
        aggregates: &[Aggregate],
        schema: SchemaRef,
    ) -> Result<Streams<'scope>, CodecError> {
        let inputs: Vec<usize> =
            aggregates.iter().filter_map(|aggregate| aggregate.input).collect();
        let grouped: Vec<usize> = (0..self.keys.len()).collect();
        let (rows, input, aggregates) = match distinct {
            Some(rows) => {
                let inputs = DistinctInputs::new(self.input, self.keys, aggregates);
                let told = inputs.told(stream, &rows, &self.codec)?;
                (told, inputs.schema().clone(), inputs.aggregates().to_vec())
            }
            None => {
                let columns: Vec<usize> = self.keys.iter().chain(&inputs).copied().collect();
                let schema = select(self.input, &columns);
                (stream.clone().columns(columns, schema.clone()), schema, aggregates.to_vec())
            }
        };
        let layout = Layout::grouped(input.clone(), &grouped)?;
        let types = types_of(&input, &all_columns(&input)[self.keys.len()..]);
        let accumulators = Accumulators::new(&aggregates, &types)?;
        let arranged = arrange::<Epoch, NullTrace<Epoch>>(rows, layout, "ArrangeGroups");
        let names = self.names(&schema);
        Ok(linear::linear(arranged, self.codec.clone(), accumulators, schema, names))
    }

    /// What is evaluated anew.
    fn fallback<'scope>(
        &self,
        stream: &DeltaStream<'scope, Epoch>,
        functions: &[Fallback],
        schema: &SchemaRef,
    ) -> Result<Streams<'scope>, CodecError> {
        let mut columns = self.keys.to_vec();
        let functions: Vec<Fallback> = functions
            .iter()
            .map(|function| {
                for column in function.columns() {
                    if !columns.contains(&column) {
                        columns.push(column);
                    }
                }
                let place = |column| columns.iter().position(|&other| other == column);
                function.renumbered(|column| place(column).expect("it was put there"))
            })
            .collect();
        let input = select(self.input, &columns);
        let rows = stream.clone().columns(columns, input.clone());
        let names = self.names(schema);
        fallback::fallback(rows, &input, self.keys.len(), &functions, schema, names)
    }
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
                    delta.rows = rows;
                    output.session_with_builder(&capability).give_container(delta);
                });
            }
        })
    }
}
