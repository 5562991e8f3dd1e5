//! The starts of the hopping windows that a time is in.

use std::sync::{Arc, LazyLock};

use alluvium_dataflow::map::Bounded;
use arrow::array::{Array, ArrayRef, AsArray, Int64Array, ListArray};
use arrow::buffer::OffsetBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type, Schema, TimeUnit};
use datafusion_common::{Result, ScalarValue, exec_datafusion_err, exec_err, internal_err};
use datafusion_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use datafusion_physical_expr::expressions::{Column, Literal};
use datafusion_physical_expr::{PhysicalExpr, ScalarFunctionExpr};

use alluvium_sql_functions::microseconds::nanoseconds;
use alluvium_sql_syntax::options::OPTIONS;

/// `hop_starts(time, slide, size, offset)`: see [`HopStarts`].
pub(super) static HOP_STARTS: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let signature = Signature::any(4, Volatility::Immutable);
    Bounded::function(Arc::new(ScalarUDF::from(HopStarts { signature })), sizes)
});

/// The starts, in ascending order, of all windows of length `size` that contain `time` and start a multiple of `slide` away
/// from `offset`; NULL for NULL. Empty if `slide` is above `size` and `time` falls between two windows.
#[derive(Debug, PartialEq, Eq, Hash)]
struct HopStarts {
    signature: Signature,
}

impl ScalarUDFImpl for HopStarts {
    fn name(&self) -> &str {
        "hop_starts"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::List(element(&arguments[0])))
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let time = &arguments.arg_fields[0];
        let list = DataType::List(element(time.data_type()));
        Ok(Arc::new(Field::new(self.name(), list, time.is_nullable())))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let (times, windows) = windows(&arguments)?;
        Ok(ColumnarValue::Array(Arc::new(windows.starts(&times)?)))
    }
}

/// The times, and the windows in their unit.
fn windows(arguments: &ScalarFunctionArgs) -> Result<(ArrayRef, Windows)> {
    let [time, slide, size, offset] = &arguments.args[..] else {
        return internal_err!("hop_starts takes four arguments");
    };
    let times = time.to_array(arguments.number_rows)?;
    let DataType::Timestamp(unit, _) = times.data_type() else {
        return internal_err!("hop_starts takes a timestamp");
    };
    let windows = Windows {
        slide: length(slide, *unit)?,
        size: length(size, *unit)?,
        offset: length(offset, *unit)?,
    };
    Ok((times, windows))
}

/// `hop_last_start(time, slide, size, offset)`: see [`LastStart`].
static LAST_START: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let signature = Signature::any(4, Volatility::Immutable);
    Arc::new(ScalarUDF::from(LastStart { signature }))
});

/// The last start, at or before `time`, of a window a multiple of `slide` away from `offset`; `time` itself where that is out of
/// the range of times.
#[derive(Debug, PartialEq, Eq, Hash)]
struct LastStart {
    signature: Signature,
}

impl ScalarUDFImpl for LastStart {
    fn name(&self) -> &str {
        "hop_last_start"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(arguments[0].clone())
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let time = &arguments.arg_fields[0];
        Ok(Arc::new(Field::new(self.name(), time.data_type().clone(), time.is_nullable())))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let (times, windows) = windows(&arguments)?;
        let numbers = cast(&times, &DataType::Int64)?;
        let last = |time| windows.last(time).unwrap_or(time);
        let starts: Int64Array = numbers.as_primitive::<Int64Type>().unary(last);
        Ok(ColumnarValue::Array(cast(&starts, times.data_type())?))
    }
}

/// The starts of windows in two steps.
pub struct TwoSteps {
    /// The last start at or before the time. Many times have the same.
    pub last: Arc<dyn PhysicalExpr>,
    /// Its type.
    pub time: DataType,
    /// All starts, over rows with the last one in the place of the time.
    pub all: Arc<dyn PhysicalExpr>,
}

/// The expression `starts` over rows of `schema` in two steps, if it calls [`HopStarts`], and these follow from the last one, which
/// becomes the column `last`.
pub fn two_steps(starts: &Arc<dyn PhysicalExpr>, schema: &Schema, last: usize) -> Option<TwoSteps> {
    let call = starts.downcast_ref::<ScalarFunctionExpr>()?;
    let [time, slide, size, _] = call.args() else { return None };
    let length = |constant: &Arc<dyn PhysicalExpr>| {
        let constant = constant.downcast_ref::<Literal>()?.value().clone();
        length(&ColumnarValue::Scalar(constant), TimeUnit::Nanosecond).ok()
    };
    if call.fun() != &**HOP_STARTS || length(size)?.checked_rem(length(slide)?)? != 0 {
        return None;
    }
    let time = time.data_type(schema).ok()?;
    let mut arguments = call.args().to_vec();
    let function = Arc::clone(&LAST_START);
    let options = Arc::clone(&OPTIONS);
    let first = ScalarFunctionExpr::try_new(function, arguments.clone(), schema, options).ok()?;
    arguments[0] = Arc::new(Column::new(first.name(), last));
    let all = Arc::clone(starts).with_new_children(arguments).ok()?;
    Some(TwoSteps { last: Arc::new(first), time, all })
}

/// The bytes of each list.
fn sizes(arguments: &ScalarFunctionArgs) -> Result<Vec<u64>> {
    let [_, slide, size, _] = &arguments.args[..] else {
        return internal_err!("hop_starts takes four arguments");
    };
    let unit = TimeUnit::Nanosecond;
    let each = (length(size, unit)? / length(slide, unit)?.max(1)).unsigned_abs() + 1;
    Ok(vec![each.saturating_mul(size_of::<i64>() as u64); arguments.number_rows])
}

fn element(time: &DataType) -> FieldRef {
    Arc::new(Field::new_list_field(time.clone(), true))
}

/// The length of a constant interval without months, in the unit of the times.
fn length(interval: &ColumnarValue, unit: TimeUnit) -> Result<i64> {
    let ColumnarValue::Scalar(ScalarValue::IntervalMonthDayNano(Some(interval))) = interval else {
        return internal_err!("the windows of hop_starts are constant");
    };
    let unit_length = nanoseconds(unit);
    if interval.nanoseconds % unit_length != 0 {
        return exec_err!(
            "the size and slide of windows must be multiples of the unit of their times"
        );
    }
    Ok(interval.nanoseconds / unit_length)
}

/// Hopping windows, in the unit of the times.
struct Windows {
    slide: i64,
    size: i64,
    offset: i64,
}

impl Windows {
    fn starts(&self, times: &ArrayRef) -> Result<ListArray> {
        let element = element(times.data_type());
        let numbers = cast(times, &DataType::Int64)?;
        let numbers = numbers.as_primitive::<Int64Type>();
        let each = (self.size / self.slide + 1).clamp(1, 64) as usize;
        let mut starts: Vec<i64> = Vec::with_capacity(numbers.len().saturating_mul(each));
        let mut offsets: Vec<i32> = Vec::with_capacity(numbers.len() + 1);
        offsets.push(0);
        for row in 0..numbers.len() {
            if numbers.is_valid(row) {
                self.push(numbers.value(row), &mut starts).ok_or_else(|| {
                    exec_datafusion_err!("overflow: a window is outside the range of timestamps")
                })?;
            }
            let end = i32::try_from(starts.len());
            offsets.push(end.map_err(|_| exec_datafusion_err!("too many windows at a time"))?);
        }
        let starts = cast(&Int64Array::from(starts), times.data_type())?;
        let offsets = OffsetBuffer::new(offsets.into());
        Ok(ListArray::try_new(element, offsets, starts, times.nulls().cloned())?)
    }

    /// The last start at or before a time; `None` if it is out of the range of times.
    fn last(&self, time: i64) -> Option<i64> {
        let since = time.checked_sub(self.offset)?;
        time.checked_sub(since.rem_euclid(self.slide))
    }

    /// `None` if a window is out of the range of times.
    fn push(&self, time: i64, starts: &mut Vec<i64>) -> Option<()> {
        let last = self.last(time)?;
        // The first start above `time - size`.
        let before = time.checked_sub(self.size)?;
        let room = last.checked_sub(before)?;
        if room <= 0 {
            return Some(());
        }
        let slides = (room - 1) / self.slide;
        let mut start = last.checked_sub(slides.checked_mul(self.slide)?)?;
        for _ in 0..=slides {
            starts.push(start);
            start = start.wrapping_add(self.slide);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::TimestampSecondArray;

    use super::*;

    fn starts(slide: i64, size: i64, offset: i64, time: i64) -> Vec<i64> {
        let mut starts = Vec::new();
        Windows { slide, size, offset }.push(time, &mut starts).expect("windows in time");
        starts
    }

    #[test]
    fn a_time_is_in_every_window_that_starts_before_it_and_ends_after_it() {
        for (slide, size, offset) in [(2, 10, 0), (3, 10, 1), (10, 10, 0), (10, 4, 0), (7, 20, -3)]
        {
            for time in -40..40 {
                let expected: Vec<i64> = (-200..200)
                    .map(|number| offset + number * slide)
                    .filter(|start| *start <= time && time < start + size)
                    .collect();
                assert_eq!(starts(slide, size, offset, time), expected, "{slide} {size} {time}");
                if size % slide == 0 {
                    let last = *expected.last().expect("a window");
                    assert_eq!(
                        starts(slide, size, offset, last),
                        expected,
                        "{slide} {size} {last}"
                    );
                }
            }
        }
    }

    #[test]
    fn nulls_have_no_windows_and_the_end_of_all_times_is_an_error() {
        let windows = Windows { slide: 5, size: 10, offset: 0 };
        let times: ArrayRef = Arc::new(TimestampSecondArray::from(vec![Some(7), None, Some(0)]));
        let lists = windows.starts(&times).expect("windows in time");
        assert_eq!(lists.value_offsets(), [0, 2, 2, 4]);
        assert!(lists.is_null(1));
        let extreme: ArrayRef = Arc::new(TimestampSecondArray::from(vec![i64::MIN + 1]));
        assert!(windows.starts(&extreme).is_err());
    }
}
