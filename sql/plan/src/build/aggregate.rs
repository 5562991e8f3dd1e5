//! GROUP BY.

use std::sync::Arc;

use alluvium_dataflow::map::can_fail;
use alluvium_dataflow::reductions::aggregate::{Aggregate, Fallback, Function};
use alluvium_dataflow::reductions::window::Argument;
use alluvium_sql_syntax::error::{Error, Result};
use arrow::datatypes::{DataType, Schema};
use datafusion_common::{DFSchema, ScalarValue};
use datafusion_expr::expr::{
    AggregateFunction, AggregateFunctionParams, GroupingSet, NullTreatment, Sort,
};
use datafusion_expr::logical_plan as logical;
use datafusion_expr::utils::{grouping_set_to_exprlist, powerset};
use datafusion_expr::{AggregateUDF, Expr, and, lit, when};
use datafusion_functions::core::expr_fn::r#struct;
use datafusion_physical_expr::expressions::{CastExpr, Literal};

use super::projection::{Projection, options};
use super::{Builder, check_columns};
use crate::IncrementalPlan;
use crate::expression::{self, Expression};
use crate::names::aggregate_name;

/// How one aggregate of a GROUP BY is computed.
enum Made {
    /// Incrementally.
    Own(Aggregate),
    /// By DataFusion, over all rows of a group that changes.
    Fallback(Fallback),
}

/// A GROUP BY over columns of a map.
struct Grouping {
    input: IncrementalPlan,
    /// The columns of the GROUP BY expressions.
    keys: Vec<usize>,
    own: Vec<(Aggregate, String)>,
    fallbacks: Vec<(Fallback, String)>,
    /// The place of each aggregate among all results, incremental ones first.
    places: Vec<usize>,
}

impl Builder<'_> {
    pub(super) fn aggregate(&self, aggregate: &logical::Aggregate) -> Result<IncrementalPlan> {
        let groups = grouping_set_to_exprlist(&aggregate.group_expr)?;
        let [Expr::GroupingSet(sets)] = aggregate.group_expr.as_slice() else {
            let grouping = self.grouping(aggregate, &groups, groups.len())?;
            let all: Vec<usize> = (0..groups.len()).collect();
            let plan = grouping.by(&all)?;
            let columns = grouping.columns(groups.len());
            return Ok(IncrementalPlan::columns(plan, &columns)?);
        };
        let grouping = self.grouping(aggregate, &groups, groups.len() + 1)?;
        let sets = sets_of(sets)?.into_iter().map(|set| {
            let place = |expr: &Expr| groups.iter().position(|group| *group == expr);
            set.into_iter().filter_map(place).collect::<Vec<usize>>()
        });
        let inputs: Result<Vec<_>> =
            sets.map(|set| grouping.set(&set, aggregate.schema.as_arrow())).collect();
        Ok(IncrementalPlan::union(inputs?, aggregate.schema.as_arrow())?)
    }

    /// The map below a GROUP BY, and the aggregates over it; their results follow `keys` columns.
    fn grouping(
        &self,
        aggregate: &logical::Aggregate,
        groups: &[&Expr],
        keys: usize,
    ) -> Result<Grouping> {
        let input = self.build(&aggregate.input)?;
        let below = aggregate.input.schema();
        let results = aggregate.schema.fields().iter().skip(keys);
        let mut projection = Projection::empty();
        let mut keys = Vec::with_capacity(groups.len());
        for group in groups {
            keys.push(projection.add(self.expression(group, below)?, "key", &input.schema));
        }
        let (mut own, mut fallbacks, mut made) = (Vec::new(), Vec::new(), Vec::new());
        for (expr, field) in aggregate.aggr_expr.iter().zip(results) {
            let one = self.one(expr, field.data_type(), below, &input, &mut projection)?;
            match one {
                Made::Own(aggregate) => {
                    made.push((false, own.len()));
                    let name = aggregate_name(&aggregate, |place| projection.name_of(place));
                    own.push((aggregate, name));
                }
                Made::Fallback(function) => {
                    made.push((true, fallbacks.len()));
                    let name = format!("{}(…)", function.function.name());
                    fallbacks.push((function, name));
                }
            }
        }
        let places = made
            .into_iter()
            .map(|(is_evaluated, at)| if is_evaluated { own.len() + at } else { at })
            .collect();
        let input = if projection.is_empty() { input } else { projection.over(input)? };
        check_columns(&input.schema)?;
        for (function, _) in &fallbacks {
            // An aggregate that DataFusion cannot evaluate is refused now, and not when there are rows.
            if let Err(error) = function.over_nothing(&input.schema) {
                let position = self.landmarks.aggregate.or(self.landmarks.start);
                return Err(Error::from_datafusion(&error).at(position));
            }
        }
        Ok(Grouping { input, keys, own, fallbacks, places })
    }

    /// One aggregate, whose inputs are added to `projection`.
    fn one(
        &self,
        expr: &Expr,
        result: &DataType,
        below: &DFSchema,
        input: &IncrementalPlan,
        projection: &mut Projection,
    ) -> Result<Made> {
        let Expr::AggregateFunction(AggregateFunction { func, params }) = expr.clone().unalias()
        else {
            return self.refuse("this aggregate");
        };
        if let Some(aggregate) =
            self.ranked(func.name(), &params, result, below, input, projection)?
        {
            return Ok(Made::Own(aggregate));
        }
        let function = match func.name() {
            "count" => Some(Function::Count),
            "sum" => Some(Function::Sum),
            "avg" => Some(Function::Avg),
            "min" => Some(Function::Min),
            "max" => Some(Function::Max),
            _ => None,
        };
        if let Some(function) = function {
            let filter = params.filter.as_deref();
            let argument = match (function, params.args.as_slice()) {
                (_, [argument]) => Some(self.expression(argument, below)?),
                (Function::Count, arguments) => {
                    Some(self.together(arguments, params.distinct, below)?)
                }
                _ => None,
            };
            if let Some(argument) = argument
                && let Some(argument) = adds_up(function, argument, &input.schema)?
            {
                let extreme = matches!(function, Function::Min | Function::Max);
                let distinct = params.distinct && !extreme;
                let counts_rows = function == Function::Count
                    && !distinct
                    && !expression::is_nullable(&argument, &input.schema)?;
                let mut mark = None;
                let argument = match filter {
                    // One state has the values of all filters. But where it fails, a value must not be computed without need.
                    Some(filter) if distinct && !can_fail(&argument) => {
                        let filter = self.expression(filter, below)?;
                        let filter = expression::is_true(filter, &input.schema)?;
                        mark = Some(projection.add(filter, "filter", &input.schema));
                        Some(argument)
                    }
                    None if counts_rows => None,
                    None => Some(argument),
                    Some(filter) => {
                        let filter = self.expression(filter, below)?;
                        let value = if counts_rows { literal(true) } else { argument };
                        Some(expression::when(filter, value)?)
                    }
                };
                let place =
                    argument.map(|argument| projection.add(argument, "input", &input.schema));
                let result = result.clone();
                return Ok(Made::Own(Aggregate {
                    function,
                    input: place,
                    rank: None,
                    distinct,
                    filter: mark,
                    result,
                }));
            }
        }
        self.fallback(func, params, result, below, input, projection)
    }

    /// An aggregate that DataFusion evaluates; its inputs are added to `projection`.
    fn fallback(
        &self,
        function: Arc<AggregateUDF>,
        params: AggregateFunctionParams,
        result: &DataType,
        below: &DFSchema,
        input: &IncrementalPlan,
        projection: &mut Projection,
    ) -> Result<Made> {
        // Rows with equal arguments could be in several places of the order.
        let is_argument = |sort: &Sort| params.args.contains(&sort.expr);
        if params.distinct && !params.order_by.iter().all(is_argument) {
            return self.refuse("an aggregate of DISTINCT values in the ORDER BY of other ones");
        }
        let mut arguments = Vec::with_capacity(params.args.len());
        for argument in &params.args {
            let argument = self.expression(argument, below)?;
            arguments.push(match argument.downcast_ref::<Literal>() {
                Some(literal) => Argument::Constant(literal.value().clone()),
                None => Argument::Column(projection.add(argument, "input", &input.schema)),
            });
        }
        let mut order = Vec::with_capacity(params.order_by.len());
        for sort in &params.order_by {
            let expression = self.expression(&sort.expr, below)?;
            let column = projection.add(expression, "order", &input.schema);
            order.push((column, options(sort)));
        }
        let filter = match &params.filter {
            None => None,
            Some(filter) => {
                let filter = self.expression(filter, below)?;
                Some(projection.add(filter, "filter", &input.schema))
            }
        };
        Ok(Made::Fallback(Fallback {
            function,
            arguments,
            order,
            filter,
            distinct: params.distinct,
            ignore_nulls: params.null_treatment == Some(NullTreatment::IgnoreNulls),
            result: result.clone(),
        }))
    }

    /// ARG_MIN and ARG_MAX.
    fn ranked(
        &self,
        name: &str,
        params: &AggregateFunctionParams,
        result: &DataType,
        below: &DFSchema,
        input: &IncrementalPlan,
        projection: &mut Projection,
    ) -> Result<Option<Aggregate>> {
        let function = match name {
            "arg_max" => Function::ArgMax,
            "arg_min" => Function::ArgMin,
            _ => return Ok(None),
        };
        let [value, rank] = params.args.as_slice() else { return Ok(None) };
        // A row in which one of the two is NULL, or the filter is not true, does not count.
        let both = value.clone().is_not_null().and(rank.clone().is_not_null());
        let counts = params.filter.as_deref().cloned().into_iter().fold(both, Expr::and);
        let mut add = |value: &Expr, name: &str| -> Result<usize> {
            let value = when(counts.clone(), value.clone()).end()?;
            Ok(projection.add(self.expression(&value, below)?, name, &input.schema))
        };
        let (value, rank) = (add(value, "value")?, add(rank, "rank")?);
        Ok(Some(Aggregate {
            function,
            input: Some(value),
            rank: Some(rank),
            distinct: false,
            filter: None,
            result: result.clone(),
        }))
    }

    /// The argument of COUNT of several columns: a value for each row without a NULL among them.
    fn together(&self, columns: &[Expr], distinct: bool, below: &DFSchema) -> Result<Expression> {
        let present = columns.iter().map(|column| column.clone().is_not_null()).reduce(and);
        let value = if distinct { r#struct(columns.to_vec()) } else { lit(true) };
        let Some(present) = present else { return self.refuse("COUNT of nothing") };
        self.expression(&when(present, value).end()?, below)
    }
}

/// The argument of a function, if the function is incremental over its type.
fn adds_up(
    function: Function,
    argument: Expression,
    schema: &Schema,
) -> Result<Option<Expression>> {
    let argument = match function {
        Function::Sum => without_widening(argument, schema, false)?,
        Function::Avg => without_widening(argument, schema, true)?,
        _ => return Ok(Some(argument)),
    };
    let data_type = argument.data_type(schema)?;
    let numeric = data_type.is_integer()
        || matches!(data_type, DataType::Float32 | DataType::Float64 | DataType::Decimal128(_, _));
    Ok(numeric.then_some(argument))
}

/// The argument of SUM or AVG without a cast that only widens it: sums of integers are exact anyway, and narrow inputs are
/// cheaper to keep. `to_float`: whether a cast from integer to float counts as widening.
fn without_widening(argument: Expression, schema: &Schema, to_float: bool) -> Result<Expression> {
    let Some(cast) = argument.downcast_ref::<CastExpr>() else { return Ok(argument) };
    let from = cast.expr().data_type(schema)?;
    let widens = match cast.cast_type() {
        DataType::Int64 => from.is_signed_integer(),
        DataType::UInt64 => from.is_unsigned_integer(),
        DataType::Float64 => to_float && from.is_integer() || from == DataType::Float32,
        _ => false,
    };
    Ok(if widens { Arc::clone(cast.expr()) } else { argument })
}

fn literal(value: impl Into<ScalarValue>) -> Expression {
    Arc::new(Literal::new(value.into()))
}

impl Grouping {
    /// Groups by some of the keys.
    fn by(&self, keys: &[usize]) -> Result<IncrementalPlan> {
        let keys = keys.iter().map(|&key| self.keys[key]).collect();
        let (own, fallbacks) = (self.own.clone(), self.fallbacks.clone());
        Ok(IncrementalPlan::aggregate(self.input.clone(), keys, own, fallbacks)?)
    }

    /// The columns of a GROUP BY of `keys` keys in the order of the query.
    fn columns(&self, keys: usize) -> Vec<usize> {
        (0..keys).chain(self.places.iter().map(|place| keys + place)).collect()
    }

    /// One of several grouping sets, as rows of `schema`: all keys, NULL if they are not in the set; the grouping id, a bit
    /// for each key that is not; the results.
    fn set(&self, set: &[usize], schema: &Schema) -> Result<IncrementalPlan> {
        let plan = self.by(set)?;
        let count = self.keys.len();
        let names = schema.fields().iter().map(|field| field.name().clone());
        let absent = (0..count).filter(|key| !set.contains(key));
        let absent: u64 = absent.map(|key| 1_u64 << (count - 1 - key)).sum();
        let identity = plan.identity();
        let mut project = Vec::with_capacity(schema.fields().len());
        for key in 0..count {
            project.push(match set.iter().position(|&in_set| in_set == key) {
                Some(place) => Arc::clone(&identity[place].0),
                None => literal(ScalarValue::try_new_null(schema.field(key).data_type())?),
            });
        }
        let bits = ScalarValue::UInt64(Some(absent)).cast_to(schema.field(count).data_type())?;
        project.push(literal(bits));
        for place in &self.places {
            project.push(Arc::clone(&identity[set.len() + place].0));
        }
        Ok(IncrementalPlan::map(plan, None, project.into_iter().zip(names).collect())?)
    }
}

/// The sets of expressions that are grouped by.
fn sets_of(sets: &GroupingSet) -> Result<Vec<Vec<&Expr>>> {
    Ok(match sets {
        GroupingSet::Rollup(exprs) => {
            (0..=exprs.len()).rev().map(|length| exprs[..length].iter().collect()).collect()
        }
        GroupingSet::Cube(exprs) => powerset(exprs)?,
        GroupingSet::GroupingSets(sets) => sets.iter().map(|set| set.iter().collect()).collect(),
    })
}
