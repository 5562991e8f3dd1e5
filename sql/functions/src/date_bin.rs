//! `date_bin(stride, time [, origin])` over all of TIMESTAMP.
//!
//! DataFusion bins nanoseconds: a time before 1677 or after 2262 is in no bin, and NULL. It still bins what is no
//! timestamp.

use std::str::FromStr;
use std::sync::Arc;

use arrow::array::timezone::Tz;
use arrow::array::types::{Int32Type, TimestampMicrosecondType};
use arrow::array::{ArrayRef, AsArray, PrimitiveArray};
use arrow::compute::{DatePart, cast, date_part};
use arrow::datatypes::{DataType, IntervalUnit, TimeUnit};
use datafusion_common::{Result, ScalarValue, exec_datafusion_err, exec_err, plan_err};
use datafusion_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion_functions::datetime;

const MICROSECONDS: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);

/// The function.
pub(super) fn function() -> Arc<ScalarUDF> {
    let signature = Signature::user_defined(Volatility::Immutable);
    Arc::new(ScalarUDF::from(DateBin { others: datetime::date_bin(), signature }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct DateBin {
    /// DataFusion's, for times of day.
    others: Arc<ScalarUDF>,
    signature: Signature,
}

impl ScalarUDFImpl for DateBin {
    fn name(&self) -> &str {
        self.others.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    // DataFusion's wants an origin in nanoseconds, and takes the result for one.
    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        let (2 | 3, Some(time)) = (arguments.len(), arguments.get(1)) else {
            return plan_err!("DATE_BIN takes a stride, a time and perhaps an origin");
        };
        let time = match time {
            DataType::Timestamp(_, zone) => {
                DataType::Timestamp(TimeUnit::Microsecond, zone.clone())
            }
            DataType::Time32(_) | DataType::Time64(_) => time.clone(),
            DataType::Null | DataType::Utf8 | DataType::Date32 | DataType::Date64 => MICROSECONDS,
            other => return plan_err!("DATE_BIN takes times, not {other}"),
        };
        let stride = DataType::Interval(IntervalUnit::MonthDayNano);
        let types = [stride, time.clone(), time];
        Ok(types[..arguments.len()].to_vec())
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.others.return_type(arguments)
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        self.others.output_ordering(inputs)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let kind = arguments.args[1].data_type();
        if !matches!(kind, DataType::Timestamp(_, _)) {
            return self.others.invoke_with_args(arguments);
        }
        let constant = |place: usize, kind: DataType| match arguments.args.get(place) {
            Some(ColumnarValue::Scalar(value)) => Ok(Some(value.cast_to(&kind)?)),
            Some(ColumnarValue::Array(_)) => {
                exec_err!("the stride and the origin of DATE_BIN must be constants")
            }
            None => Ok(None),
        };
        let stride = constant(0, DataType::Interval(IntervalUnit::MonthDayNano))?;
        let origin = match constant(2, MICROSECONDS)? {
            Some(ScalarValue::TimestampMicrosecond(origin, _)) => origin,
            _ => Some(0),
        };
        let (Some(ScalarValue::IntervalMonthDayNano(Some(stride))), Some(origin)) =
            (stride, origin)
        else {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from(kind)?));
        };
        let day = i128::from(stride.days) * 86_400_000_000_000;
        let bins = match (stride.months, day + i128::from(stride.nanoseconds)) {
            (0, length) if length > 0 => Bins::Nanoseconds(length),
            (months, 0) if months > 0 => Bins::Months(months),
            (0, _) | (_, 0) => return exec_err!("the stride of DATE_BIN must be positive"),
            _ => return exec_err!("the stride of DATE_BIN has either months, or days and a time"),
        };
        match &arguments.args[1] {
            ColumnarValue::Array(times) => Ok(ColumnarValue::Array(bins.starts(times, origin)?)),
            ColumnarValue::Scalar(time) => {
                let start = bins.starts(&time.to_array()?, origin)?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&start, 0)?))
            }
        }
    }
}

/// The length of bins.
pub(super) enum Bins {
    Nanoseconds(i128),
    Months(i32),
}

impl Bins {
    /// The start of the bin of each time, if one starts at `origin`, in microseconds since 1970.
    pub(super) fn starts(&self, times: &ArrayRef, origin: i64) -> Result<ArrayRef> {
        let outside = || exec_datafusion_err!("the start of a time lies outside of TIMESTAMP");
        let micros = cast(times, &MICROSECONDS)?;
        let micros = micros.as_primitive::<TimestampMicrosecondType>();
        let starts: PrimitiveArray<TimestampMicrosecondType> = match self {
            Bins::Nanoseconds(length) => micros.try_unary(|time| {
                let past = (i128::from(time) - i128::from(origin)) * 1_000;
                let start = i128::from(origin) * 1_000 + past.div_euclid(*length) * length;
                i64::try_from(start.div_euclid(1_000)).map_err(|_| outside())
            })?,
            Bins::Months(length) => {
                let utc = Tz::from_str("+00:00")?;
                let origins = PrimitiveArray::<TimestampMicrosecondType>::from(vec![origin]);
                let month = |year: i32, month: i32| year * 12 + month;
                let (year, first) =
                    (date_part(&origins, DatePart::Year)?, date_part(&origins, DatePart::Month)?);
                let [year, first] =
                    [year, first].map(|part| part.as_primitive::<Int32Type>().value(0));
                let origin_month = month(year, first);
                let years = date_part(micros, DatePart::Year)?;
                let months = date_part(micros, DatePart::Month)?;
                let dates = years
                    .as_primitive::<Int32Type>()
                    .iter()
                    .zip(months.as_primitive::<Int32Type>());
                let start = |(time, (year, of_year)): (Option<i64>, (Option<i32>, Option<i32>))| {
                    let (Some(time), Some(year), Some(of_year)) = (time, year, of_year) else {
                        return Ok(None);
                    };
                    let past = month(year, of_year) - origin_month;
                    let start = |past| {
                        TimestampMicrosecondType::add_year_months(origin, past, utc)
                            .ok_or_else(outside)
                    };
                    let past = past.div_euclid(*length) * length;
                    let near = start(past)?;
                    // The bin starts later in its month than the time is.
                    Ok(Some(if near > time { start(past - length)? } else { near }))
                };
                micros.iter().zip(dates).map(start).collect::<Result<_>>()?
            }
        };
        Ok(cast(&starts, times.data_type())?)
    }
}
