//! Sums and differences of dates, times and intervals, as in Postgres.
//!
//! DataFusion's date plus an interval is a date, which has no hours, and it computes with the numbers that a TIME is stored
//! as. Here a date meets an interval or a time as the midnight it is, a TIME that is added or subtracted is the interval since
//! midnight, and combinations without a meaning are refused by the names of their types.

use std::sync::{Arc, LazyLock};

use alluvium_dataflow::messages::wording::type_name;
use alluvium_sql_functions::duckdb::{OVER, TIMES};
use arrow::array::{ArrayRef, AsArray, IntervalMonthDayNanoArray};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, DurationMicrosecondType, IntervalMonthDayNano, IntervalUnit, Time64NanosecondType,
    TimeUnit,
};
use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchema, Result, ScalarValue, plan_err};
use datafusion_expr::expr::{Cast, ScalarFunction};
use datafusion_expr::planner::{PlannerResult, RawBinaryExpr};
use datafusion_expr::{
    BinaryExpr, ColumnarValue, Expr, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};
use sqlparser::ast::BinaryOperator;

use crate::expressions::types::type_of;
use crate::fault::{self, Fault};

const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);
const TIMESTAMP: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);

/// The operation in types that DataFusion computes with, if it is one with times.
pub(crate) fn planned(
    raw: RawBinaryExpr,
    schema: &DFSchema,
) -> Result<PlannerResult<RawBinaryExpr>> {
    let (left, right) = (temporal(&raw.left, schema), temporal(&raw.right, schema));
    if left.is_none() && right.is_none() {
        return Ok(PlannerResult::Original(raw));
    }
    let kind = |known: Option<DataType>, operand: &Expr| known.or_else(|| type_of(operand, schema));
    // A parameter may have no type yet.
    let (Some(left), Some(right)) = (kind(left, &raw.left), kind(right, &raw.right)) else {
        return Ok(PlannerResult::Original(raw));
    };
    let (raw, left, right) = with_typed_null(raw, left, right);
    let (raw, left, right) = with_typed_text(raw, left, right);
    match raw.op {
        BinaryOperator::Plus => sum(raw, &left, &right),
        BinaryOperator::Minus => difference(raw, &left, &right),
        BinaryOperator::Multiply => match (is_length(&left), is_length(&right)) {
            (true, false) => multiple(&TIMES, raw.left, &left, raw.right),
            (false, true) => multiple(&TIMES, raw.right, &right, raw.left),
            _ => refused(&left, "*", &right),
        },
        BinaryOperator::Divide if is_length(&left) && !is_length(&right) => {
            multiple(&OVER, raw.left, &left, raw.right)
        }
        BinaryOperator::Divide => refused(&left, "/", &right),
        _ => Ok(PlannerResult::Original(raw)),
    }
}

/// NULL beside a date or time as an interval, and beside an interval of a product as it is.
fn with_typed_null(
    mut raw: RawBinaryExpr,
    mut left: DataType,
    mut right: DataType,
) -> (RawBinaryExpr, DataType, DataType) {
    if matches!(raw.op, BinaryOperator::Plus | BinaryOperator::Minus) {
        for (operand, kind) in [(&mut raw.left, &mut left), (&mut raw.right, &mut right)] {
            if kind.is_null() {
                *operand = cast_to(std::mem::take(operand), INTERVAL);
                *kind = INTERVAL;
            }
        }
    }
    (raw, left, right)
}

/// A literal text as an interval, where nothing else has a meaning: added to a timestamp or a length of time, and subtracted
/// from a length. (What is subtracted from a timestamp may be a timestamp.)
fn with_typed_text(
    mut raw: RawBinaryExpr,
    mut left: DataType,
    mut right: DataType,
) -> (RawBinaryExpr, DataType, DataType) {
    let is_text = |operand: &Expr| matches!(operand, Expr::Literal(value, _) if value.data_type().is_string());
    let takes = |kind: &DataType| match raw.op {
        BinaryOperator::Plus => {
            is_length(kind) || matches!(kind, DataType::Timestamp(..) | DataType::Time64(_))
        }
        BinaryOperator::Minus => is_length(kind) || matches!(kind, DataType::Time64(_)),
        _ => false,
    };
    if is_text(&raw.right) && takes(&left) {
        raw.right = cast_to(raw.right, INTERVAL);
        right = INTERVAL;
    } else if raw.op == BinaryOperator::Plus && is_text(&raw.left) && takes(&right) {
        raw.left = cast_to(raw.left, INTERVAL);
        left = INTERVAL;
    }
    (raw, left, right)
}

/// `-x`, of a difference of times as an interval: it is one only where it meets others.
pub(super) fn negative(operand: Expr, schema: &DFSchema) -> Result<Expr> {
    let negative = |operand| Ok(Expr::Negative(Box::new(operand)));
    let Some(kind) = type_of(&operand, schema) else { return negative(operand) };
    match kind {
        DataType::Duration(_) => negative(since_midnight(operand)),
        DataType::Null | DataType::Interval(_) => negative(operand),
        number if number.is_signed_integer() || number.is_floating() || number.is_decimal() => {
            negative(operand)
        }
        other => plan_err!("- cannot be used with {}", type_name(&other)),
    }
}

/// `-n` of an integer, subtracted from zero: DataFusion's wraps around in queries.
pub(crate) fn negated(part: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let Expr::Negative(operand) = part else { return Transformed::no(part) };
    match type_of(&operand, schema) {
        Some(kind) if kind.is_signed_integer() && !matches!(*operand, Expr::Literal(..)) => {
            match ScalarValue::new_zero(&kind) {
                Ok(zero) => Transformed::yes(Expr::BinaryExpr(BinaryExpr::new(
                    Box::new(Expr::Literal(zero, None)),
                    Operator::Minus,
                    operand,
                ))),
                Err(_) => Transformed::no(Expr::Negative(operand)),
            }
        }
        _ => Transformed::no(Expr::Negative(operand)),
    }
}

fn sum(
    raw: RawBinaryExpr,
    left: &DataType,
    right: &DataType,
) -> Result<PlannerResult<RawBinaryExpr>> {
    use DataType::{Date32, Time64, Timestamp};
    let RawBinaryExpr { left: a, right: b, .. } = raw;
    Ok(match (left, right) {
        (Date32, length) if is_length(length) => add(midnight(a), as_interval(b, right)),
        (length, Date32) if is_length(length) => add(midnight(b), as_interval(a, left)),
        (Date32, Time64(_)) => add(midnight(a), since_midnight(b)),
        (Time64(_), Date32) => add(midnight(b), since_midnight(a)),
        (Timestamp(..), Time64(_)) => add(a, since_midnight(b)),
        (Time64(_), Timestamp(..)) => add(b, since_midnight(a)),
        (Timestamp(..) | Time64(_), length) if is_length(length) => add(a, as_interval(b, right)),
        (length, Timestamp(..) | Time64(_)) if is_length(length) => add(b, as_interval(a, left)),
        (first, second) if is_length(first) && is_length(second) => {
            add(as_interval(a, left), as_interval(b, right))
        }
        (Date32, number) if number.is_integer() => add(a, b),
        (number, Date32) if number.is_integer() => add(b, a),
        _ => return refused(left, "+", right),
    })
}

fn difference(
    raw: RawBinaryExpr,
    left: &DataType,
    right: &DataType,
) -> Result<PlannerResult<RawBinaryExpr>> {
    use DataType::{Date32, Time64, Timestamp};
    let RawBinaryExpr { left: a, right: b, .. } = raw;
    Ok(match (left, right) {
        (Date32, length) if is_length(length) => subtract(midnight(a), as_interval(b, right)),
        (Date32, Time64(_)) => subtract(midnight(a), since_midnight(b)),
        (Timestamp(..), Time64(_)) => subtract(a, since_midnight(b)),
        (Time64(_), Time64(_)) => subtract(since_midnight(a), since_midnight(b)),
        (length, Time64(_)) if is_length(length) => {
            subtract(as_interval(a, left), since_midnight(b))
        }
        (Timestamp(..) | Time64(_), length) if is_length(length) => {
            subtract(a, as_interval(b, right))
        }
        (first, second) if is_length(first) && is_length(second) => {
            subtract(as_interval(a, left), as_interval(b, right))
        }
        (Timestamp(_, one), Timestamp(_, other)) if one != other => {
            subtract(in_zone(a, one, other), in_zone(b, other, one))
        }
        (Timestamp(..), Timestamp(..)) | (Date32, Date32) => subtract(a, b),
        (Date32, Timestamp(..)) => subtract(midnight_as(a, right), b),
        (Timestamp(..), Date32) => subtract(a, midnight_as(b, left)),
        (Date32, number) if number.is_integer() => subtract(a, b),
        _ => return refused(left, "-", right),
    })
}

fn multiple(
    function: &Arc<ScalarUDF>,
    interval: Expr,
    kind: &DataType,
    number: Expr,
) -> Result<PlannerResult<RawBinaryExpr>> {
    let arguments = vec![as_interval(interval, kind), number];
    let call = ScalarFunction::new_udf(Arc::clone(function), arguments);
    Ok(PlannerResult::Planned(Expr::ScalarFunction(call)))
}

/// Why two types have no sum, difference, product or quotient, and what has one.
fn refused<T>(left: &DataType, operator: &str, right: &DataType) -> Result<T> {
    let is_time = |kind: &DataType| matches!(kind, DataType::Time64(_));
    let is_point = |kind: &DataType| matches!(kind, DataType::Date32 | DataType::Timestamp(..));
    let is_text = |kind: &DataType| kind.is_string();
    let way_out = match operator {
        _ if is_text(left) || is_text(right) => {
            "say what the text is, as in DATE '2024-01-31' or INTERVAL '1 day'"
        }
        "+" if is_point(left) && is_point(right) => "their difference is an interval",
        "+" if is_time(left) && is_time(right) => "add an INTERVAL, or subtract them",
        "+" | "-" if left.is_numeric() || right.is_numeric() => {
            "say of what unit the number is, as in n * INTERVAL '1 day'; only DATE plus or minus an integer is in days"
        }
        "-" if is_point(right) || is_time(right) => "subtract the interval from the time",
        _ => "an INTERVAL can be multiplied and divided by a number",
    };
    let (left, right) = (type_name(left), type_name(right));
    plan_err!("{left} {operator} {right} cannot be computed: {way_out}")
}

/// The type of an expression that is a date, a time or an interval; `None` for others.
fn temporal(expression: &Expr, schema: &DFSchema) -> Option<DataType> {
    match expression {
        // Long chains of numbers are to cost no more than to be walked.
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Plus | Operator::Minus, right }) => {
            let operands = [left, right].map(|operand| temporal(operand, schema));
            let is_some = operands.iter().any(Option::is_some);
            if is_some { type_of(expression, schema).filter(DataType::is_temporal) } else { None }
        }
        Expr::BinaryExpr(_) => None,
        Expr::Negative(operand) => temporal(operand, schema),
        other => type_of(other, schema).filter(DataType::is_temporal),
    }
}

/// Whether it is the type of an interval, or of a difference of timestamps.
fn is_length(kind: &DataType) -> bool {
    matches!(kind, DataType::Interval(_) | DataType::Duration(_))
}

fn cast_to(expression: Expr, kind: DataType) -> Expr {
    Expr::Cast(Cast::new(Box::new(expression), kind))
}

fn midnight(date: Expr) -> Expr {
    cast_to(date, TIMESTAMP)
}

/// The midnight that a date is, in the type of a timestamp.
fn midnight_as(date: Expr, timestamp: &DataType) -> Expr {
    cast_to(date, timestamp.clone())
}

/// A timestamp without a time zone as one with it, if the other one has it.
fn in_zone(timestamp: Expr, zone: &Option<Arc<str>>, other: &Option<Arc<str>>) -> Expr {
    match (zone, other) {
        (None, Some(zone)) => {
            let zone = Some(Arc::clone(zone));
            cast_to(timestamp, DataType::Timestamp(TimeUnit::Microsecond, zone))
        }
        _ => timestamp,
    }
}

fn as_interval(length: Expr, kind: &DataType) -> Expr {
    if let Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(whole)), None) = &length
        && fault::armed(Fault::MonthsOfThirtyDays)
    {
        let days = whole.days + 30 * whole.months;
        let days = IntervalMonthDayNano::new(0, days, whole.nanoseconds);
        return Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(days)), None);
    }
    if *kind == INTERVAL { length } else { since_midnight(length) }
}

/// The interval from midnight to a time of day, and the days and time of a difference.
fn since_midnight(time: Expr) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&AS_INTERVAL), vec![time]))
}

fn add(left: Expr, right: Expr) -> PlannerResult<RawBinaryExpr> {
    binary(left, Operator::Plus, right)
}

fn subtract(left: Expr, right: Expr) -> PlannerResult<RawBinaryExpr> {
    binary(left, Operator::Minus, right)
}

fn binary(left: Expr, op: Operator, right: Expr) -> PlannerResult<RawBinaryExpr> {
    PlannerResult::Planned(Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right))))
}

static AS_INTERVAL: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let signature = Signature::any(1, Volatility::Immutable);
    Arc::new(ScalarUDF::from(AsInterval { signature }))
});

/// The interval from midnight to a time of day. Of a difference of timestamps, it has days and a time as in PostgreSQL: one in
/// nanoseconds alone would end after 292 years.
#[derive(Debug, PartialEq, Eq, Hash)]
struct AsInterval {
    signature: Signature,
}

impl ScalarUDFImpl for AsInterval {
    fn name(&self) -> &str {
        "interval"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(INTERVAL)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(match &arguments.args[0] {
            ColumnarValue::Array(lengths) => ColumnarValue::Array(as_intervals(lengths)?),
            ColumnarValue::Scalar(length) => {
                let interval = as_intervals(&length.to_array()?)?;
                ColumnarValue::Scalar(ScalarValue::try_from_array(&interval, 0)?)
            }
        })
    }
}

fn as_intervals(lengths: &ArrayRef) -> Result<ArrayRef> {
    const DAY: i64 = 86_400_000_000;
    let intervals: IntervalMonthDayNanoArray = match lengths.data_type() {
        DataType::Duration(_) => {
            let lengths = cast(lengths, &DataType::Duration(TimeUnit::Microsecond))?;
            // All of 64 bits are fewer days than 32 bits count.
            lengths.as_primitive::<DurationMicrosecondType>().unary(|length| {
                IntervalMonthDayNano::new(0, (length / DAY) as i32, length % DAY * 1_000)
            })
        }
        DataType::Interval(_) => return Ok(cast(lengths, &INTERVAL)?),
        _ => {
            let times = cast(lengths, &DataType::Time64(TimeUnit::Nanosecond))?;
            times
                .as_primitive::<Time64NanosecondType>()
                .unary(|nanoseconds| IntervalMonthDayNano::new(0, 0, nanoseconds))
        }
    };
    Ok(Arc::new(intervals))
}
