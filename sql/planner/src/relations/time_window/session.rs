//! The bounds of a row's session.
//!
//! A session is a run of rows of one key, each less than the gap after the one before. The bounds are window functions over
//! the rows of a key in the order of their times. Views recompute window functions for the keys that change, so sessions
//! split and merge.

use std::sync::Arc;

use alluvium_sql_functions::microseconds::nanoseconds;
use arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type, TimeUnit};
use datafusion_common::{Result, ScalarValue, exec_datafusion_err, exec_err, internal_err};
use datafusion_expr::expr::{WindowFunction, WindowFunctionDefinition};
use datafusion_expr::function::{PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion_expr::{
    Expr, PartitionEvaluator, Signature, Volatility, WindowFrame, WindowUDF, WindowUDFImpl,
};
use datafusion_physical_expr::expressions::Literal;

use super::Duration;

/// Which end of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Bound {
    /// The time of its first row.
    Start,
    /// The gap after the time of its last row.
    End,
}

/// A bound of the sessions, with this gap, of the rows that agree on `keys`.
pub(super) fn bound(bound: Bound, time: Expr, keys: Vec<Expr>, gap: Duration) -> Expr {
    let function = SessionBound { bound, signature: Signature::any(2, Volatility::Immutable) };
    let definition = WindowFunctionDefinition::WindowUDF(Arc::new(WindowUDF::from(function)));
    let mut window = WindowFunction::new(definition, vec![time.clone(), gap.duration()]);
    window.params.partition_by = keys;
    window.params.order_by = vec![time.sort(true, false)];
    window.params.window_frame = WindowFrame::new(Some(false));
    Expr::from(window)
}

/// `session_start(time, gap)` and `session_end(time, gap)`; the gap is a constant duration.
///
/// The gap is an argument because fingerprints identify a function by its name and arguments.
#[derive(Debug, PartialEq, Eq, Hash)]
struct SessionBound {
    bound: Bound,
    signature: Signature,
}

impl WindowUDFImpl for SessionBound {
    fn name(&self) -> &str {
        match self.bound {
            Bound::Start => "session_start",
            Bound::End => "session_end",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn field(&self, arguments: WindowUDFFieldArgs<'_>) -> Result<FieldRef> {
        let Some(time) = arguments.get_input_field(0) else {
            return internal_err!("a session needs times");
        };
        Ok(Arc::new(Field::new(arguments.name(), time.data_type().clone(), true)))
    }

    fn partition_evaluator(
        &self,
        arguments: PartitionEvaluatorArgs<'_>,
    ) -> Result<Box<dyn PartitionEvaluator>> {
        let gap = arguments.input_exprs().get(1).and_then(|gap| gap.downcast_ref::<Literal>());
        let Some(ScalarValue::DurationMicrosecond(Some(gap))) = gap.map(Literal::value) else {
            return internal_err!("the gap of sessions is a constant duration");
        };
        Ok(Box::new(Sessions { bound: self.bound, gap: gap.saturating_mul(1_000) }))
    }
}

#[derive(Debug)]
struct Sessions {
    bound: Bound,
    gap: i64,
}

impl PartitionEvaluator for Sessions {
    fn evaluate_all(&mut self, values: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        let times = &values[0];
        let DataType::Timestamp(unit, _) = times.data_type() else {
            return internal_err!("a session needs times");
        };
        let gap = in_unit(self.gap, *unit)?;
        let numbers = cast(times, &DataType::Int64)?;
        let numbers = numbers.as_primitive::<Int64Type>();
        if numbers.null_count() > 0 {
            return internal_err!("rows without a time are in no session");
        }
        let bounds = bounds(numbers.values(), self.bound, gap).ok_or_else(|| {
            exec_datafusion_err!("overflow: a session ends outside the range of timestamps")
        })?;
        debug_assert_eq!(bounds.len(), rows);
        Ok(cast(&Int64Array::from(bounds), times.data_type())?)
    }
}

fn in_unit(length: i64, unit: TimeUnit) -> Result<i64> {
    let unit = nanoseconds(unit);
    if length % unit != 0 {
        return exec_err!("the gap of sessions must be a multiple of the unit of their times");
    }
    Ok(length / unit)
}

/// A bound of the session of each time, for times in ascending order; `None` if one is out of the range of times.
fn bounds(times: &[i64], bound: Bound, gap: i64) -> Option<Vec<i64>> {
    let mut bounds = Vec::with_capacity(times.len());
    // A difference that overflows is larger than any gap.
    let is_near = |one: &i64, next: &i64| next.checked_sub(*one).is_some_and(|apart| apart < gap);
    for session in times.chunk_by(is_near) {
        let (first, last) = (session.first()?, session.last()?);
        let value = match bound {
            Bound::Start => *first,
            Bound::End => last.checked_add(gap)?,
        };
        bounds.resize(bounds.len() + session.len(), value);
    }
    Some(bounds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_goes_on_while_rows_are_less_than_the_gap_apart() {
        let times = [0, 0, 9, 18, 28, 29, 100];
        let starts = bounds(&times, Bound::Start, 10).expect("in the range of timestamps");
        assert_eq!(starts, [0, 0, 0, 0, 28, 28, 100]);
        let ends = bounds(&times, Bound::End, 10).expect("in the range of timestamps");
        assert_eq!(ends, [28, 28, 28, 28, 39, 39, 110]);
        assert_eq!(bounds(&[], Bound::End, 10), Some(Vec::new()));
        assert_eq!(bounds(&[i64::MIN, i64::MAX], Bound::End, 10), None);
    }
}
