//! `EXTRACT` and `date_part` of intervals and of differences of timestamps.
//!
//! DataFusion takes the fields of such a difference from 32 bits of nanoseconds. Here they are those of PostgreSQL and
//! DuckDB: a difference has days and the time that remains, an interval has months, days and a time.

use std::str::FromStr;
use std::sync::Arc;

use arrow::array::types::{
    ArrowPrimitiveType, Float64Type, Int32Type, Int64Type, IntervalMonthDayNanoType,
};
use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use arrow::compute::cast;
use arrow::compute::kernels::cast_utils::IntervalUnit as Part;
use arrow::datatypes::{DataType, IntervalUnit, TimeUnit};
use datafusion_common::{Result, ScalarValue, exec_err};
use datafusion_expr::expr::ScalarFunction;
use datafusion_expr::planner::{ExprPlanner, PlannerResult};
use datafusion_expr::preimage::PreimageResult;
use datafusion_expr::simplify::SimplifyContext;
use datafusion_expr::{ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl};
use datafusion_functions::datetime;

use super::around::as_others;

const SECOND: i64 = 1_000_000_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;

/// The function.
pub(super) fn function() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(DatePart { others: datetime::date_part() }))
}

/// Plans `EXTRACT` as a call of the function.
#[derive(Debug)]
pub struct Extract;

impl ExprPlanner for Extract {
    fn plan_extract(&self, arguments: Vec<Expr>) -> Result<PlannerResult<Vec<Expr>>> {
        let call = ScalarFunction::new_udf(function(), arguments);
        Ok(PlannerResult::Planned(Expr::ScalarFunction(call)))
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct DatePart {
    /// DataFusion's, for dates, times and timestamps.
    others: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for DatePart {
    as_others!();

    fn preimage(
        &self,
        arguments: &[Expr],
        literal: &Expr,
        context: &SimplifyContext,
    ) -> Result<PreimageResult> {
        self.others.preimage(arguments, literal, context)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [ColumnarValue::Scalar(part), value] = &arguments.args[..] else {
            return self.others.invoke_with_args(arguments);
        };
        if !matches!(value.data_type(), DataType::Interval(_) | DataType::Duration(_)) {
            return self.others.invoke_with_args(arguments);
        }
        let part = part.try_as_str().flatten().unwrap_or_default();
        let part = part.trim_matches(['\'', '"']).to_lowercase();
        Ok(match value {
            ColumnarValue::Array(values) => ColumnarValue::Array(extract(&part, values)?),
            ColumnarValue::Scalar(value) => {
                let part = extract(&part, &value.to_array()?)?;
                ColumnarValue::Scalar(ScalarValue::try_from_array(&part, 0)?)
            }
        })
    }
}

/// A length of time; all fields have the same sign in a difference of timestamps.
struct Length {
    months: i64,
    days: i64,
    nanoseconds: i64,
}

impl Length {
    /// A difference in units of which a second has `per_second`.
    fn of(difference: i64, per_second: i64) -> Length {
        let day = 86_400 * per_second;
        let nanoseconds = difference % day * (SECOND / per_second);
        Length { months: 0, days: difference / day, nanoseconds }
    }

    /// Seconds, with years of 365.25 days and months of 30.
    fn epoch(&self) -> f64 {
        let days = self.months / 12 * 1_461 / 4 + self.months % 12 * 30 + self.days;
        // Each fourth of a day that the years have beyond whole days.
        let fourths = self.months / 12 * 1_461 % 4;
        let seconds = days * 86_400 + fourths * 21_600 + self.nanoseconds / SECOND;
        seconds as f64 + (self.nanoseconds % SECOND) as f64 / SECOND as f64
    }
}

/// A part of each of some intervals or differences.
fn extract(part: &str, values: &ArrayRef) -> Result<ArrayRef> {
    let small =
        |field: fn(&Length) -> i64| each::<Int32Type>(values, |length| field(length) as i32);
    match (part, Part::from_str(part)) {
        ("epoch", _) => each::<Float64Type>(values, Length::epoch),
        ("quarter" | "qtr", _) => small(|length| length.months % 12 / 3 + 1),
        (_, Ok(Part::Year)) => small(|length| length.months / 12),
        (_, Ok(Part::Month)) => small(|length| length.months % 12),
        (_, Ok(Part::Week)) => small(|length| length.days / 7),
        (_, Ok(Part::Day)) => small(|length| length.days),
        (_, Ok(Part::Hour)) => small(|length| length.nanoseconds / HOUR),
        (_, Ok(Part::Minute)) => small(|length| length.nanoseconds % HOUR / MINUTE),
        (_, Ok(Part::Second)) => small(|length| length.nanoseconds % MINUTE / SECOND),
        (_, Ok(Part::Millisecond)) => small(|length| length.nanoseconds % MINUTE / 1_000_000),
        (_, Ok(Part::Microsecond)) => small(|length| length.nanoseconds % MINUTE / 1_000),
        (_, Ok(Part::Nanosecond)) => {
            each::<Int64Type>(values, |length| length.nanoseconds % MINUTE)
        }
        // Even of what is no part, NULL is NULL.
        _ if values.null_count() == values.len() => small(|_| 0),
        _ => exec_err!("an interval has no part \"{part}\""),
    }
}

fn each<T: ArrowPrimitiveType>(
    values: &ArrayRef,
    part: impl Fn(&Length) -> T::Native,
) -> Result<ArrayRef> {
    let parts: PrimitiveArray<T> = match values.data_type() {
        DataType::Duration(unit) => {
            let per_second = match unit {
                TimeUnit::Second => 1,
                TimeUnit::Millisecond => 1_000,
                TimeUnit::Microsecond => 1_000_000,
                TimeUnit::Nanosecond => SECOND,
            };
            let units = cast(values, &DataType::Int64)?;
            units.as_primitive::<Int64Type>().unary(|units| part(&Length::of(units, per_second)))
        }
        _ => {
            let intervals = cast(values, &DataType::Interval(IntervalUnit::MonthDayNano))?;
            intervals.as_primitive::<IntervalMonthDayNanoType>().unary(|interval| {
                part(&Length {
                    months: interval.months.into(),
                    days: interval.days.into(),
                    nanoseconds: interval.nanoseconds,
                })
            })
        }
    };
    Ok(Arc::new(parts))
}
