//! Bounds of window frames.
//!
//! DataFusion panics or miscounts where a frame starts after its end, as `ROWS BETWEEN 3 FOLLOWING AND 1 FOLLOWING`
//! does. Such a frame has no rows, so it becomes one that DataFusion evaluates to none. The exception is a row whose order
//! is NULL in a RANGE: its frame has its peers, as in PostgreSQL and SQLite.
//!
//! DataFusion also refuses each RANGE, that of a call without a frame included, over a type to which it cannot add. Without
//! offsets nothing is added, and GROUPS are the same frame.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::datatypes::{DataType, IntervalMonthDayNano, IntervalUnit, TimeUnit};
use datafusion_common::tree_node::Transformed;
use datafusion_common::{Column, DFSchema, DataFusionError, Result, ScalarValue};
use datafusion_expr::expr::WindowFunction;
use datafusion_expr::logical_plan::{Projection, Window};
use datafusion_expr::{
    Expr, ExprSchemable, LogicalPlan, WindowFrame, WindowFrameBound, WindowFrameUnits, when,
};

use alluvium_sql_syntax::error::Error;

/// The plan with frames that DataFusion evaluates correctly.
///
/// # Errors
/// If the offset of a RANGE does not suit the column that orders the rows.
pub(crate) fn corrected(plan: LogicalPlan) -> Result<LogicalPlan> {
    let corrected = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Window(window) => self::window(window),
        node => Ok(Transformed::no(node)),
    })?;
    Ok(corrected.data)
}

/// The replacement of a call.
enum Change {
    /// It stays.
    None,
    /// Another call with the same result.
    Call(Expr),
    /// The value of one call where the order is NULL, and of another one elsewhere.
    Either { order: Box<Expr>, null: Box<Expr>, otherwise: Box<Expr> },
}

fn window(window: Window) -> Result<Transformed<LogicalPlan>> {
    let below = window.input.schema();
    let changes: Vec<Change> =
        window.window_expr.iter().map(|call| change(call, below)).collect::<Result<_>>()?;
    if changes.iter().all(|change| matches!(change, Change::None)) {
        return Ok(Transformed::no(LogicalPlan::Window(window)));
    }
    let width = below.fields().len();
    // Each call once, under a name of its own; the columns above them have the names of the calls that were written.
    let mut calls: Vec<(Expr, String)> = Vec::with_capacity(changes.len());
    let mut column_of = |call: Expr| {
        let known = calls.iter().find(|(known, _)| *known == call).map(|(_, name)| name.clone());
        let name = known.unwrap_or_else(|| format!("__framed_{}", calls.len()));
        if calls.iter().all(|(_, known)| *known != name) {
            calls.push((call, name.clone()));
        }
        Expr::Column(Column::new_unqualified(name))
    };
    let mut columns: Vec<Expr> = below.columns().into_iter().map(Expr::Column).collect();
    for (number, (call, change)) in window.window_expr.iter().zip(changes).enumerate() {
        let value = match change {
            Change::None => column_of(call.clone()),
            Change::Call(call) => column_of(call),
            Change::Either { order, null, otherwise } => {
                let (null, otherwise) = (column_of(*null), column_of(*otherwise));
                when(order.is_null(), null).otherwise(otherwise)?
            }
        };
        columns.push(value.alias(window.schema.field(width + number).name()));
    }
    let calls = calls.into_iter().map(|(call, name)| call.alias(name)).collect();
    let window = LogicalPlan::Window(Window::try_new(calls, window.input)?);
    Ok(Transformed::yes(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(window))?)))
}

fn change(call: &Expr, below: &DFSchema) -> Result<Change> {
    let Expr::WindowFunction(call) = call else { return Ok(Change::None) };
    let frame = &call.params.window_frame;
    let bounds = [&frame.start_bound, &frame.end_bound];
    let has_offset = has_offset(frame);
    let order = match frame.units {
        WindowFrameUnits::Range => call.params.order_by.first(),
        WindowFrameUnits::Rows | WindowFrameUnits::Groups => None,
    };
    let Some(order) = order else {
        return Ok(if has_offset { counted(call) } else { Change::None });
    };
    let kind = order.expr.get_type(below)?;
    if !has_offset {
        if takes_ranges(&kind) {
            return Ok(Change::None);
        }
        let [start, end] = bounds.map(WindowFrameBound::clone);
        let groups = WindowFrame::new_bounds(WindowFrameUnits::Groups, start, end);
        return Ok(Change::Call(with_frame(call, groups)));
    }
    let mut offsets = Vec::new();
    for bound in bounds {
        if let Some(offset) = offset(bound) {
            offsets.push((offset.clone(), range_offset(offset, &kind)?));
        }
    }
    let parsed = |offset: &ScalarValue| {
        offsets.iter().find(|(text, _)| text == offset).map(|(_, value)| value.clone())
    };
    let [start, end] = bounds.map(|bound| Place::of(bound, &parsed));
    match is_empty(start, end) {
        Some(true) => {
            let otherwise = with_frame(call, no_rows());
            if !order.expr.nullable(below)? {
                return Ok(Change::Call(otherwise));
            }
            let here = WindowFrameBound::CurrentRow;
            let peers = WindowFrame::new_bounds(WindowFrameUnits::Range, here.clone(), here);
            Ok(Change::Either {
                order: Box::new(order.expr.clone()),
                null: Box::new(with_frame(call, peers)),
                otherwise: Box::new(otherwise),
            })
        }
        Some(false) => Ok(match exact_order(&kind, offsets.iter().map(|(_, offset)| offset)) {
            Some(kind) => {
                let mut call = call.as_ref().clone();
                call.params.order_by[0].expr = order.expr.clone().cast_to(&kind, below)?;
                Change::Call(Expr::from(call))
            }
            None => Change::None,
        }),
        None => Err(refused(
            "it depends on the month which of the offsets of this RANGE frame is larger; use the same unit for both",
        )),
    }
}

/// The change of a frame of rows or groups.
fn counted(call: &WindowFunction) -> Change {
    let frame = &call.params.window_frame;
    let [start, end] = [&frame.start_bound, &frame.end_bound]
        .map(|bound| Place::of(bound, &|offset| Some(offset.clone())));
    match is_empty(start, end) {
        Some(true) => Change::Call(with_frame(call, no_rows())),
        _ => Change::None,
    }
}

fn with_frame(call: &WindowFunction, frame: WindowFrame) -> Expr {
    let mut call = call.clone();
    call.params.window_frame = frame;
    Expr::from(call)
}

/// Whether DataFusion evaluates a RANGE over a column of this type.
fn takes_ranges(kind: &DataType) -> bool {
    !matches!(
        kind,
        DataType::Time32(_)
            | DataType::Time64(_)
            | DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
            | DataType::FixedSizeBinary(_)
            | DataType::Interval(_)
            | DataType::Duration(_)
            | DataType::Struct(_)
            | DataType::Map(_, _)
    )
}

/// A frame without rows, for each row: both of its bounds lie before the first row.
fn no_rows() -> WindowFrame {
    let far = WindowFrameBound::Preceding(ScalarValue::UInt64(Some(i64::MAX as u64)));
    WindowFrame::new_bounds(WindowFrameUnits::Rows, far.clone(), far)
}

/// Whether a bound of the frame is so far from the row.
pub fn has_offset(frame: &WindowFrame) -> bool {
    [&frame.start_bound, &frame.end_bound].into_iter().any(|bound| offset(bound).is_some())
}

/// The offset of a bound that has one.
fn offset(bound: &WindowFrameBound) -> Option<&ScalarValue> {
    match bound {
        WindowFrameBound::Preceding(offset) | WindowFrameBound::Following(offset) => {
            (!offset.is_null()).then_some(offset)
        }
        WindowFrameBound::CurrentRow => None,
    }
}

/// Where a bound is.
enum Place {
    /// So far before the current row; `None` is unbounded.
    Before(Option<ScalarValue>),
    Here,
    /// So far after it.
    Behind(Option<ScalarValue>),
}

impl Place {
    fn of(bound: &WindowFrameBound, value: &dyn Fn(&ScalarValue) -> Option<ScalarValue>) -> Self {
        match bound {
            WindowFrameBound::CurrentRow => Place::Here,
            WindowFrameBound::Preceding(_) => Place::Before(offset(bound).and_then(value)),
            WindowFrameBound::Following(_) => Place::Behind(offset(bound).and_then(value)),
        }
    }
}

/// Whether a frame starts after its end; `None` if that depends on the row.
fn is_empty(start: Place, end: Place) -> Option<bool> {
    let is_some = |offset: &ScalarValue| {
        ScalarValue::new_zero(&offset.data_type()).is_ok_and(|zero| *offset != zero)
    };
    match (start, end) {
        (Place::Behind(Some(start)), Place::Behind(Some(end))) => {
            Some(order(&start, &end)?.is_gt())
        }
        (Place::Before(Some(start)), Place::Before(Some(end))) => {
            Some(order(&start, &end)?.is_lt())
        }
        (Place::Behind(Some(start)), Place::Here) => Some(is_some(&start)),
        (Place::Here, Place::Before(Some(end))) => Some(is_some(&end)),
        (Place::Behind(Some(start)), Place::Before(Some(end))) => {
            Some(is_some(&start) || is_some(&end))
        }
        _ => Some(false),
    }
}

/// The order of two offsets of one type; `None` if that depends on what they are added to.
fn order(one: &ScalarValue, other: &ScalarValue) -> Option<Ordering> {
    let (
        ScalarValue::IntervalMonthDayNano(Some(one)),
        ScalarValue::IntervalMonthDayNano(Some(other)),
    ) = (one, other)
    else {
        return one.partial_cmp(other);
    };
    let least = |interval: &IntervalMonthDayNano, month: i128| {
        (i128::from(interval.months) * month + i128::from(interval.days)) * 86_400_000_000_000
            + i128::from(interval.nanoseconds)
    };
    match one.months.cmp(&other.months) {
        Ordering::Equal => Some(least(one, 0).cmp(&least(other, 0))),
        // A month has 28 to 31 days.
        Ordering::Less if least(one, 31) <= least(other, 28) => Some(Ordering::Less),
        Ordering::Greater if least(one, 28) >= least(other, 31) => Some(Ordering::Greater),
        _ => None,
    }
}

/// The offset of a RANGE over a column of type `kind`, of the type that is added to its values.
fn range_offset(offset: &ScalarValue, kind: &DataType) -> Result<ScalarValue> {
    let ScalarValue::Utf8(Some(text)) = offset else { return Ok(offset.clone()) };
    match kind {
        _ if kind.is_numeric() => ScalarValue::try_from_string(text.clone(), kind).map_err(|_| {
            refused(format!(
                "the offset {text} of a RANGE frame is no value of its order's type {kind}"
            ))
        }),
        DataType::Date32 | DataType::Timestamp(_, _) => {
            if text.trim().parse::<f64>().is_ok() {
                return Err(refused(format!(
                    "a RANGE frame over {kind} takes an interval with a unit, such as INTERVAL '{text}' HOURS"
                )));
            }
            let interval = DataType::Interval(IntervalUnit::MonthDayNano);
            let interval = ScalarValue::try_from_string(text.clone(), &interval)?;
            match &interval {
                ScalarValue::IntervalMonthDayNano(Some(value))
                    if value.months < 0 || value.days < 0 || value.nanoseconds < 0 =>
                {
                    Err(refused("the offset of a RANGE frame must not be negative"))
                }
                _ => Ok(interval),
            }
        }
        _ => Err(refused(format!(
            "a RANGE frame with an offset is ordered by a number, a date or a timestamp, not by {kind}; \
             use ROWS or GROUPS"
        ))),
    }
}

/// The type in which offsets are added exactly, if it is not that of the order.
fn exact_order<'a>(
    kind: &DataType,
    mut offsets: impl Iterator<Item = &'a ScalarValue>,
) -> Option<DataType> {
    let has_time = |offset: &ScalarValue| matches!(offset, ScalarValue::IntervalMonthDayNano(Some(value)) if value.nanoseconds != 0);
    match kind {
        // An offset may lead below zero.
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 => Some(DataType::Int64),
        DataType::UInt64 => Some(DataType::Decimal128(21, 0)),
        // A date drops the hours of an interval.
        DataType::Date32 if offsets.any(has_time) => {
            Some(DataType::Timestamp(TimeUnit::Microsecond, None))
        }
        _ => None,
    }
}

fn refused(message: impl Into<String>) -> DataFusionError {
    DataFusionError::External(Box::new(Error::new(message, None)))
}
