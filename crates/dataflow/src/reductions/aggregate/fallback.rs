//! All other aggregates: groups whose rows change are recomputed by DataFusion.
//!
//! The inputs of a group are kept (see [`crate::reductions::recompute`]). A function gets them in the order of its ORDER BY, and rows
//! that are equal in that in the order of its arguments. So the result of a function that depends on the order, such as
//! `ARRAY_AGG`, depends on the rows alone.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use alluvium_trace::memory::StateContext;
use alluvium_trace::{Epoch, Spine};
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, UInt32Array, new_null_array};
use arrow::compute::{SortOptions, cast, concat, take};
use arrow::datatypes::{DataType, SchemaRef};
use datafusion_common::Result as DataFusionResult;
use datafusion_expr::{AggregateUDF, EmitTo};
use datafusion_physical_expr::PhysicalSortExpr;
use datafusion_physical_expr::aggregate::{AggregateExprBuilder, AggregateFunctionExpr};

use crate::map::message;
use crate::movement::delta::DeltaStream;
use crate::reductions::recompute::{Evaluator, Groups, Results, expanded, recompute};
use crate::reductions::window::{Argument, column};
use crate::rows::codec::{CodecError, Encoded};
use crate::rows::columns::Columns;
use crate::rows::key_columns::KeyColumns;
use crate::rows::layout::{Layout, all_columns, assemble};
use crate::state::arrangement::arrange;

/// An aggregate that DataFusion evaluates.
#[derive(Clone, Debug, PartialEq)]
pub struct Fallback {
    /// The function.
    pub function: Arc<AggregateUDF>,
    /// Its arguments.
    pub arguments: Vec<Argument>,
    /// The order of the rows.
    pub order: Vec<(usize, SortOptions)>,
    /// Only rows for which this column is true count.
    pub filter: Option<usize>,
    /// Whether rows of equal arguments count once.
    pub distinct: bool,
    /// Whether NULLs are ignored.
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

    /// Whether the order is an argument of the function, as it is of percentiles.
    fn takes_order(&self) -> bool {
        self.function.supports_within_group_clause() && !self.order.is_empty()
    }

    /// DataFusion's expression over rows of `input`, which are distinct already if they must be.
    ///
    /// Fails for a function that cannot be evaluated.
    pub fn expression(&self, input: &SchemaRef) -> DataFusionResult<AggregateFunctionExpr> {
        let arguments = self.arguments.iter().map(|argument| argument.expression(input)).collect();
        let mut builder = AggregateExprBuilder::new(Arc::clone(&self.function), arguments)
            .schema(input.clone())
            .alias(self.function.name())
            .with_ignore_nulls(self.ignore_nulls);
        if self.takes_order() {
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

/// Recomputed aggregates and their inputs.
#[derive(Clone, Debug)]
pub(super) struct Spec {
    columns: Columns,
    /// The keys, then the inputs.
    layout: Layout,
    functions: Vec<Function>,
    /// The keys, then the results.
    output: Layout,
}

impl Spec {
    /// `functions` over rows of the schema `input`, grouped by the columns `keys`; `schema` names the keys and the results.
    pub(super) fn compile(
        input: &SchemaRef,
        keys: &[usize],
        functions: &[Fallback],
        schema: SchemaRef,
    ) -> Result<Self, CodecError> {
        let mut columns = keys.to_vec();
        let mut place_of = |column: usize| {
            columns.iter().position(|&other| other == column).unwrap_or_else(|| {
                columns.push(column);
                columns.len() - 1
            })
        };
        let mut renumbered = Vec::with_capacity(functions.len());
        for function in functions {
            let places: HashMap<usize, usize> =
                function.columns().map(|column| (column, place_of(column))).collect();
            renumbered.push(function.renumbered(|column| places[&column]));
        }
        let columns = Columns::new(input, columns);
        let grouped: Vec<usize> = (0..keys.len()).collect();
        let functions = renumbered
            .into_iter()
            .map(|function| Function::compile(function, columns.schema()))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            layout: Layout::keyed(columns.schema().clone(), &grouped)?,
            output: Layout::grouped(schema, &grouped)?,
            columns,
            functions,
        })
    }
}

/// The results of the functions over the groups of `grouped`, whose rows are on one worker each.
pub(super) fn fallback<'scope>(
    spec: &Spec,
    grouped: &DeltaStream<'scope, Epoch>,
    context: &StateContext,
) -> Streams<'scope> {
    let rows = spec.columns.of(grouped);
    let rows = arrange::<Epoch, Spine<Epoch>>(rows, &spec.layout, "ArrangeGroups", context);
    let names = spec.output.schema().fields()[spec.output.key_width()..]
        .iter()
        .map(|field| field.name().clone())
        .collect();
    let evaluator = Aggregates { spec: spec.clone(), values: Encoded::counted(context) };
    recompute(rows, evaluator, spec.output.clone(), true, names, context)
}

/// Evaluates aggregates over groups.
struct Aggregates {
    spec: Spec,
    values: Encoded,
}

impl Evaluator for Aggregates {
    fn evaluate(&mut self, groups: &Groups, results: &mut Results) {
        let layout = &self.spec.layout;
        let schema = layout.schema();
        let columns = layout.decode(groups.keys(), groups.values(), &all_columns(schema));
        let (rows, ranges) = expanded(&assemble(schema.clone(), columns, groups.rows()), groups);
        let mut failures: Vec<Option<(usize, String)>> = vec![None; ranges.len()];
        let columns: Vec<ArrayRef> = self
            .spec
            .functions
            .iter()
            .enumerate()
            .map(|(number, function)| {
                function.over(&rows, &ranges, |group, message| {
                    // A group has one error, however many of its functions fail.
                    failures[group].get_or_insert((number, message));
                })
            })
            .collect();
        self.values.clear();
        self.spec.output.encode_values(&columns, ranges.len(), &mut self.values);
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
#[derive(Clone, Debug)]
struct Function {
    what: Fallback,
    expression: AggregateFunctionExpr,
    /// The columns of the order, then the arguments.
    order: KeyColumns,
    arguments: KeyColumns,
}

/// Functions whose result does not depend on the order of their inputs, not even by rounding.
const UNORDERED: [&str; 5] = ["bool_and", "bool_or", "bit_and", "bit_or", "bit_xor"];

impl Function {
    fn compile(what: Fallback, input: &SchemaRef) -> Result<Self, CodecError> {
        let expression =
            what.expression(input).map_err(|error| CodecError::Evaluation(message(&error)))?;
        let arguments: Vec<usize> = what.arguments.iter().filter_map(Argument::column).collect();
        let ascending = SortOptions { descending: false, nulls_first: false };
        let mut order = what.order.clone();
        order.extend(arguments.iter().map(|&column| (column, ascending)));
        Ok(Self {
            expression,
            order: KeyColumns::ordered(input, &order)?,
            arguments: KeyColumns::new(input, &arguments)?,
            what,
        })
    }

    /// The results of the groups, which are `ranges` of `rows`; calls `fail` for groups without a result.
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

    /// The rows that are inputs of the function, in order, and the range of each group among them.
    fn inputs(&self, rows: &RecordBatch, ranges: &[Range<usize>]) -> (Vec<u32>, Vec<Range<usize>>) {
        let encode = |columns: &KeyColumns| {
            let mut encoded = Encoded::new();
            columns.encode(rows, &mut encoded);
            encoded
        };
        let kept = self.what.filter.map(|filter| rows.column(filter).as_boolean());
        let is_kept = |row: usize| kept.is_none_or(|kept| kept.is_valid(row) && kept.value(row));
        let is_ordered = self.what.distinct || !UNORDERED.contains(&self.what.function.name());
        let order = is_ordered.then(|| encode(&self.order));
        let arguments = self.what.distinct.then(|| encode(&self.arguments));
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
        // The accumulator requires that each group has rows; the result of empty groups is computed once.
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

    /// Results in the type of the output column.
    fn result(&self, column: &ArrayRef) -> DataFusionResult<ArrayRef> {
        match column.data_type() == &self.what.result {
            true => Ok(Arc::clone(column)),
            false => Ok(cast(column, &self.what.result)?),
        }
    }
}
