//! Intervals are compared by their lengths.
//!
//! Arrow compares months, then days, then the rest: 48 hours are less than one day. Here a month has 30 days and a day 24
//! hours wherever intervals are compared, as in PostgreSQL and DuckDB: each of them becomes the one of its length that has
//! fewer days than a month and less than a day of hours.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, IntervalMonthDayNanoArray};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, DurationMicrosecondType, Field, FieldRef, IntervalMonthDayNano,
    IntervalMonthDayNanoType, IntervalUnit, TimeUnit,
};
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion_common::{DFSchema, Result, ScalarValue, exec_err, plan_err};
use datafusion_expr::expr::{AggregateFunction, Cast, ScalarFunction, Sort, WindowFunction};
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::utils::merge_schema;
use datafusion_expr::{
    ColumnarValue, Expr, LogicalPlan, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};
use datafusion_optimizer::AnalyzerRule;

use crate::expressions::types::type_of;
use crate::rules::interval_choice::choice;
use crate::rules::operands::map_compared;

const DAY: i128 = 86_400_000_000_000;

const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

/// Compares intervals by their lengths. Runs after the types are coerced.
#[derive(Debug)]
pub struct IntervalsByLength;

impl AnalyzerRule for IntervalsByLength {
    fn name(&self) -> &str {
        "intervals_by_length"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|node| {
            let schema = merge_schema(&node.inputs());
            let names = NamePreserver::new(&node);
            let has_keys = matches!(node, LogicalPlan::Sort(_) | LogicalPlan::Aggregate(_));
            node.map_expressions(|expression| {
                let name = names.save(&expression);
                let compared = expression.transform_up(|part| Ok(compared(part, &schema)))?;
                Ok(compared.update_data(|expression| match has_keys && is_key(&expression) {
                    true => name.restore(by_length(expression, &schema)),
                    false => name.restore(expression),
                }))
            })
        })
        .data()
    }
}

/// Whether rows are sorted or grouped by an expression.
fn is_key(expression: &Expr) -> bool {
    match expression {
        Expr::Alias(alias) => is_key(&alias.expr),
        Expr::AggregateFunction(_) | Expr::GroupingSet(_) => false,
        _ => true,
    }
}

/// The expression with the intervals that it compares by their lengths.
fn compared(part: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let all = |parts: Vec<Expr>| parts.into_iter().map(|part| by_length(part, schema)).collect();
    let sorted = |order: Vec<Sort>| {
        let by_length = |sort: Sort| Sort { expr: by_length(sort.expr, schema), ..sort };
        order.into_iter().map(by_length).collect()
    };
    Transformed::yes(match part {
        Expr::ScalarFunction(ScalarFunction { func, args })
            if args.iter().any(|argument| type_of(argument, schema) == Some(INTERVAL)) =>
        {
            let func = choice(func.name()).map_or(func, Arc::clone);
            Expr::ScalarFunction(ScalarFunction { func, args })
        }
        Expr::AggregateFunction(AggregateFunction { func, mut params }) => {
            if matches!(func.name(), "min" | "max") || params.distinct {
                params.args = all(params.args);
            }
            params.order_by = sorted(params.order_by);
            Expr::AggregateFunction(AggregateFunction { func, params })
        }
        Expr::WindowFunction(mut call) => {
            let WindowFunction { fun, params } = call.as_mut();
            if matches!(fun.name(), "min" | "max") || params.distinct {
                params.args = all(std::mem::take(&mut params.args));
            }
            params.partition_by = all(std::mem::take(&mut params.partition_by));
            params.order_by = sorted(std::mem::take(&mut params.order_by));
            Expr::WindowFunction(call)
        }
        part => return map_compared(part, &|part| by_length(part, schema)),
    })
}

/// The expression, by its length if it is an interval.
fn by_length(expression: Expr, schema: &DFSchema) -> Expr {
    let is_interval = match &expression {
        Expr::Literal(value, _) => value.data_type() == INTERVAL,
        Expr::ScalarFunction(call) if Arc::ptr_eq(&call.func, &BY_LENGTH) => false,
        expression => type_of(expression, schema) == Some(INTERVAL),
    };
    if !is_interval {
        return expression;
    }
    // A difference of timestamps may have more nanoseconds than an interval.
    let argument = match expression {
        Expr::Cast(Cast { expr, .. })
            if matches!(type_of(&expr, schema), Some(DataType::Duration(_))) =>
        {
            *expr
        }
        expression => expression,
    };
    Expr::ScalarFunction(ScalarFunction::new_udf(BY_LENGTH.clone(), vec![argument]))
}

static BY_LENGTH: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let signature = Signature::any(1, Volatility::Immutable);
    Arc::new(ScalarUDF::from(ByLength { signature }))
});

/// The interval in the shortest form of its length.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ByLength {
    signature: Signature,
}

impl ScalarUDFImpl for ByLength {
    fn name(&self) -> &str {
        "by_length"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(INTERVAL)
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let nullable = arguments.arg_fields.iter().any(|argument| argument.is_nullable());
        Ok(Arc::new(Field::new(self.name(), INTERVAL, nullable)))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match &arguments.args[0] {
            ColumnarValue::Array(lengths) => shortest(lengths).map(ColumnarValue::Array),
            ColumnarValue::Scalar(length) => {
                let shortest = shortest(&length.to_array()?)?;
                ScalarValue::try_from_array(&shortest, 0).map(ColumnarValue::Scalar)
            }
        }
    }
}

fn shortest(lengths: &ArrayRef) -> Result<ArrayRef> {
    let shortest: IntervalMonthDayNanoArray = match lengths.data_type() {
        DataType::Interval(IntervalUnit::MonthDayNano) => lengths
            .as_primitive::<IntervalMonthDayNanoType>()
            .try_unary(|interval| of_nanoseconds(nanoseconds(interval)))?,
        DataType::Duration(_) => {
            let lengths = cast(lengths, &DataType::Duration(TimeUnit::Microsecond))?;
            lengths
                .as_primitive::<DurationMicrosecondType>()
                .try_unary(|length| of_nanoseconds(i128::from(length) * 1_000))?
        }
        other => return plan_err!("{other} is no interval"),
    };
    Ok(Arc::new(shortest))
}

/// The length of an interval, whose months have 30 days.
pub fn nanoseconds(interval: IntervalMonthDayNano) -> i128 {
    let days = i128::from(interval.months) * 30 + i128::from(interval.days);
    days * DAY + i128::from(interval.nanoseconds)
}

/// The interval of this length. The order of such intervals, month by month and day by day, is that of their lengths.
fn of_nanoseconds(length: i128) -> Result<IntervalMonthDayNano> {
    let (days, rest) = (length.div_euclid(DAY), length.rem_euclid(DAY));
    let (months, days) = (days.div_euclid(30), days.rem_euclid(30));
    match (i32::try_from(months), i32::try_from(days), i64::try_from(rest)) {
        (Ok(months), Ok(days), Ok(rest)) => Ok(IntervalMonthDayNano::new(months, days, rest)),
        _ => exec_err!("an interval of {months} months is too long to be compared"),
    }
}
