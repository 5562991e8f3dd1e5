//! Any other aggregate: groups whose rows change are evaluated anew, by DataFusion.
//!
//! The inputs of a group are kept (see [`crate::recompute`]). A function is given them in the order that it
//! asks for, and rows equal in that in the order of what it is given; so the result of one whose result
//! depends on the order, as that of `ARRAY_AGG` does, depends on the rows alone.

use std::ops::Range;
use std::sync::Arc;

use alluvium_trace::memory::context;
use alluvium_trace::{Epoch, Spine};
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, UInt32Array, new_null_array};
use arrow::compute::{SortOptions, cast, concat, take};
use arrow::datatypes::{DataType, SchemaRef};
use datafusion_common::Result as DataFusionResult;
use datafusion_expr::{AggregateUDF, EmitTo};
use datafusion_physical_expr::PhysicalSortExpr;
use datafusion_physical_expr::aggregate::{AggregateExprBuilder, AggregateFunctionExpr};

use crate::arrangement::arrange;
use crate::codec::{CodecError, Encoded, KeyCodec};
use crate::delta::DeltaStream;
use crate::layout::{Layout, all_columns, assemble};
use crate::map::message;
use crate::recompute::{Evaluator, Groups, Results, expanded, recompute};
use crate::window::{Argument, column};

/// An aggregate that DataFusion evaluates.
#[derive(Clone, Debug, PartialEq)]
pub struct Fallback {
    /// What is computed.
    pub function: Arc<AggregateUDF>,
    /// Over what.
    pub arguments: Vec<Argument>,
    /// In which order of the rows.
    pub order: Vec<(usize, SortOptions)>,
    /// Over the rows for which this column is true.
    pub filter: Option<usize>,
    /// Whether rows of equal arguments count once.
    pub distinct: bool,
    /// Whether NULLs are passed over.
    pub ignore_nulls: bool,
    /// The type of the result.
    pub result: DataType,
}

impl Fallback {
    /// The columns of the input that it reads.
    pub fn columns(&self) -> impl Iterator<Item = usize> {
        let arguments = self.arguments.iter().filter_map(Argument::column);
        arguments.chain(self.order.iter().map(|&(column, _)| column)).chain(self.filter)
    }

    /// The same over an input whose columns have other numbers.
    #[must_use]
    pub fn renumbered(&self, renumber: impl Fn(usize) -> usize) -> Self {
        Self {
            arguments: Argument::renumbered(&self.arguments, &renumber),
            order: self
                .order
                .iter()
                .map(|&(column, options)| (renumber(column), options))
                .collect(),
            filter: self.filter.map(&renumber),
            ..self.clone()
        }
    }

    /// Its value over no rows.
    pub fn over_nothing(&self, input: &SchemaRef) -> DataFusionResult<ArrayRef> {
        let value = self.expression(input)?.create_accumulator()?.evaluate()?;
        Ok(cast(&value.to_array()?, &self.result)?)
    }

    /// Whether the function itself is told the order, as a percentile within one is.
    fn is_told_order(&self) -> bool {
        self.function.supports_within_group_clause() && !self.order.is_empty()
    }

    /// How DataFusion evaluates it over rows of `input`. What is distinct is told apart before.
    ///
    /// Fails for what cannot be evaluated.
    pub fn expression(&self, input: &SchemaRef) -> DataFusionResult<AggregateFunctionExpr> {
        let arguments = self.arguments.iter().map(|argument| argument.expression(input)).collect();
        let mut builder = AggregateExprBuilder::new(Arc::clone(&self.function), arguments)
            .schema(input.clone())
            .alias(self.function.name())
            .with_ignore_nulls(self.ignore_nulls);
        if self.is_told_order() {
            let order = self.order.iter();
            builder = builder.order_by(
                order
                    .map(|&(at, options)| PhysicalSortExpr::new(column(input, at), options))
                    .collect(),
            );
        }
        builder.build()
    }
}

/// Rows and errors of groups.
type Streams<'scope> = (DeltaStream<'scope, Epoch>, DeltaStream<'scope, Epoch>);

/// What `functions` come to over the groups of `stream`, by its first `keys` columns.
///
/// The rows of a group are on one worker. `output` names the keys and the results, `names` tell the
/// functions apart in errors.
pub(super) fn fallback<'scope>(
    stream: DeltaStream<'scope, Epoch>,
    input: &SchemaRef,
    keys: usize,
    functions: &[Fallback],
    output: &SchemaRef,
    names: Vec<String>,
) -> Result<Streams<'scope>, CodecError> {
    let keys: Vec<usize> = (0..keys).collect();
    let layout = Layout::keyed(input.clone(), &keys)?;
    let output = Layout::grouped(output.clone(), &keys)?;
    let rows = arrange::<Epoch, Spine<Epoch>>(stream, layout.clone(), "ArrangeGroups");
    let functions = functions
        .iter()
        .map(|function| Function::new(function.clone(), input))
        .collect::<Result<Vec<_>, _>>()?;
    let context = context::current();
    let values = Encoded::counted(&context);
    let evaluator = Aggregates { layout, functions, output: output.clone(), values };
    Ok(recompute(rows.arranged, evaluator, output, true, &context, names))
}

/// Evaluates aggregates over groups.
struct Aggregates {
    layout: Layout,
    functions: Vec<Function>,
    output: Layout,
    values: Encoded,
}

impl Evaluator for Aggregates {
    fn evaluate(&mut self, groups: &Groups, results: &mut Results) {
        let schema = self.layout.schema();
        let columns = self
            .layout
            .decode(groups.keys(), groups.values(), &all_columns(schema))
            .expect("a batch holds what its layout encoded");
        let (rows, ranges) = expanded(&assemble(schema.clone(), columns, groups.rows()), groups);
        let mut failures: Vec<Option<(usize, String)>> = vec![None; ranges.len()];
        let columns: Vec<ArrayRef> = self
            .functions
            .iter()
            .enumerate()
            .map(|(number, function)| {
                function.over(&rows, &ranges, |group, message| {
                    // One error is enough to have no answer.
                    failures[group].get_or_insert((number, message));
                })
            })
            .collect();
        self.values.clear();
        self.output
            .encode_values(&columns, ranges.len(), &mut self.values)
            .expect("results have the types of their columns");
        for (group, failure) in failures.into_iter().enumerate() {
            match failure {
                Some((number, message)) => results.error(number, &message),
                None => results.row(self.values.get(group)),
            }
            results.end();
        }
    }
}

/// A function, ready to be evaluated.
struct Function {
    what: Fallback,
    expression: AggregateFunctionExpr,
    /// The columns that are sorted by: those of the order, then the arguments.
    sorted: Vec<usize>,
    order: KeyCodec,
    /// The arguments.
    given: Vec<usize>,
    arguments: KeyCodec,
}

/// Functions to which neither the order of their inputs matters nor, in a floating point result, its
/// rounding.
const UNORDERED: [&str; 5] = ["bool_and", "bool_or", "bit_and", "bit_or", "bit_xor"];

impl Function {
    fn new(what: Fallback, input: &SchemaRef) -> Result<Self, CodecError> {
        let type_of = |column: usize| input.field(column).data_type().clone();
        let expression =
            what.expression(input).map_err(|error| CodecError::Evaluation(message(&error)))?;
        let given: Vec<usize> = what.arguments.iter().filter_map(Argument::column).collect();
        let ascending = SortOptions { descending: false, nulls_first: false };
        let mut order = what.order.clone();
        order.extend(given.iter().map(|&column| (column, ascending)));
        Ok(Self {
            expression,
            sorted: order.iter().map(|&(column, _)| column).collect(),
            order: KeyCodec::with_order(
                order.iter().map(|&(column, options)| (type_of(column), options)).collect(),
            )?,
            arguments: KeyCodec::new(
                &given.iter().map(|&column| type_of(column)).collect::<Vec<_>>(),
            )?,
            given,
            what,
        })
    }

    /// The results of the groups that lie in `rows` at `ranges`; `fail` is told of groups without one.
    fn over(
        &self,
        rows: &RecordBatch,
        ranges: &[Range<usize>],
        mut fail: impl FnMut(usize, String),
    ) -> ArrayRef {
        let (indices, ranges) = self.inputs(rows, ranges);
        let indices = UInt32Array::from(indices);
        let arguments: Vec<ArrayRef> = self
            .expression
            .expressions()
            .into_iter()
            .chain(self.expression.order_bys().iter().map(|sort| Arc::clone(&sort.expr)))
            .map(|argument| {
                let whole = argument
                    .evaluate(rows)
                    .and_then(|value| value.into_array(rows.num_rows()))
                    .expect("an argument is a column or a constant");
                take(&whole, &indices, None).expect("each index is below the length")
            })
            .collect();
        if self.expression.groups_accumulator_supported()
            && let Ok(column) = self.together(&arguments, &ranges)
        {
            return column;
        }
        let values: Vec<ArrayRef> = ranges
            .into_iter()
            .enumerate()
            .map(|(group, range)| {
                self.alone(&arguments, range).unwrap_or_else(|error| {
                    fail(group, message(&error));
                    new_null_array(&self.what.result, 1)
                })
            })
            .collect();
        let values: Vec<&dyn Array> = values.iter().map(AsRef::as_ref).collect();
        concat(&values).expect("all results are of one type")
    }

    /// Which rows each group gives to the function, in order; and where those of each group lie among them.
    fn inputs(&self, rows: &RecordBatch, ranges: &[Range<usize>]) -> (Vec<u32>, Vec<Range<usize>>) {
        let encode = |codec: &KeyCodec, columns: &[usize]| {
            let columns: Vec<ArrayRef> =
                columns.iter().map(|&column| rows.column(column).clone()).collect();
            let mut encoded = Encoded::new();
            codec
                .encode(&columns, rows.num_rows(), &mut encoded)
                .expect("rows have the types their codec was made for");
            encoded
        };
        let kept = self.what.filter.map(|filter| rows.column(filter).as_boolean());
        let is_kept = |row: usize| kept.is_none_or(|kept| kept.is_valid(row) && kept.value(row));
        let is_ordered = self.what.distinct || !UNORDERED.contains(&self.what.function.name());
        let order = is_ordered.then(|| encode(&self.order, &self.sorted));
        let arguments = self.what.distinct.then(|| encode(&self.arguments, &self.given));
        let mut indices: Vec<u32> = Vec::with_capacity(rows.num_rows());
        let mut taken = Vec::with_capacity(ranges.len());
        for range in ranges {
            let start = indices.len();
            indices.extend(range.clone().filter(|&row| is_kept(row)).map(|row| row as u32));
            if let Some(order) = &order {
                // Stable: rows that are equal here may differ in the bits of a float.
                indices[start..]
                    .sort_by(|&one, &other| order.get(one as usize).cmp(order.get(other as usize)));
            }
            if let Some(arguments) = &arguments {
                let mut last = start;
                for next in start + 1..indices.len() {
                    let row = indices[next];
                    if arguments.get(indices[last] as usize) != arguments.get(row as usize) {
                        last += 1;
                        indices[last] = row;
                    }
                }
                indices.truncate(indices.len().min(last + 1));
            }
            taken.push(start..indices.len());
        }
        (indices, taken)
    }

    /// The results of all groups at once; fails if one of them does.
    fn together(
        &self,
        arguments: &[ArrayRef],
        ranges: &[Range<usize>],
    ) -> DataFusionResult<ArrayRef> {
        // It takes it that each group has rows: those without come by themselves.
        let filled = ranges.iter().filter(|range| !range.is_empty());
        let groups: Vec<usize> = filled
            .enumerate()
            .flat_map(|(group, range)| std::iter::repeat_n(group, range.len()))
            .collect();
        let count = groups.last().map_or(0, |last| last + 1);
        let mut accumulator = self.expression.create_groups_accumulator()?;
        accumulator.update_batch(arguments, &groups, None, count)?;
        let results = self.result(&accumulator.evaluate(EmitTo::All)?)?;
        if count == ranges.len() {
            return Ok(results);
        }
        let nothing = self.alone(arguments, 0..0)?;
        let mut next = 0;
        let place = ranges.iter().map(|range| match range.is_empty() {
            true => count as u32,
            false => {
                next += 1;
                next - 1
            }
        });
        let places = UInt32Array::from_iter_values(place);
        Ok(take(&concat(&[&results, &nothing])?, &places, None)?)
    }

    /// The result of one group.
    fn alone(&self, arguments: &[ArrayRef], range: Range<usize>) -> DataFusionResult<ArrayRef> {
        let arguments: Vec<ArrayRef> =
            arguments.iter().map(|column| column.slice(range.start, range.len())).collect();
        let mut accumulator = self.expression.create_accumulator()?;
        accumulator.update_batch(&arguments)?;
        self.result(&accumulator.evaluate()?.to_array()?)
    }

    /// Results as what they are announced to be.
    fn result(&self, column: &ArrayRef) -> DataFusionResult<ArrayRef> {
        match column.data_type() == &self.what.result {
            true => Ok(Arc::clone(column)),
            false => Ok(cast(column, &self.what.result)?),
        }
    }
}
