//! `date_trunc` over all of TIMESTAMP.
//!
//! DataFusion truncates nanoseconds, and fails before 1677 and after 2262. There the start of a bin is taken, and for the
//! first day of TIMESTAMP, in which DataFusion wraps around. The part may be a column.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, UInt32Array, new_null_array};
use arrow::compute::{cast, interleave, min, take};
use arrow::datatypes::{DataType, TimestampMicrosecondType};
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl};
use datafusion_functions::datetime;

use super::around::as_others;
use super::date_bin::Bins;

/// The function.
pub(super) fn function() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(DateTrunc { others: datetime::date_trunc() }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct DateTrunc {
    /// DataFusion's.
    others: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for DateTrunc {
    as_others!();

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        self.others.output_ordering(inputs)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if let [ColumnarValue::Array(parts), times] = &arguments.args[..] {
            return self.by_part(parts, times, &arguments);
        }
        let [ColumnarValue::Scalar(part), times] = &arguments.args[..] else {
            return self.others.invoke_with_args(arguments);
        };
        if part.is_null() {
            return ScalarValue::try_from(arguments.return_type()).map(ColumnarValue::Scalar);
        }
        let (part, times) = (part.clone(), times.clone());
        let starts = || {
            let part = part.try_as_str().flatten().unwrap_or_default().to_lowercase();
            let (bins, origin) = bins(&part, &times.data_type())?;
            Some(match &times {
                ColumnarValue::Array(times) => bins.starts(times, origin).map(ColumnarValue::Array),
                ColumnarValue::Scalar(time) => time
                    .to_array()
                    .and_then(|time| bins.starts(&time, origin))
                    .and_then(|start| ScalarValue::try_from_array(&start, 0))
                    .map(ColumnarValue::Scalar),
            })
        };
        // DataFusion cuts milliseconds off towards 1970.
        let is_fraction = part.try_as_str().flatten().is_some_and(|part| {
            ["millisecond", "microsecond"]
                .iter()
                .any(|fraction| part.eq_ignore_ascii_case(fraction))
        });
        if (is_fraction || begins_with_first_day(&times))
            && let Some(starts) = starts()
        {
            return starts;
        }
        self.others.invoke_with_args(arguments).or_else(|error| starts().unwrap_or(Err(error)))
    }
}

impl DateTrunc {
    /// The starts where each row has a part of its own: those of one part at once.
    fn by_part(
        &self,
        parts: &ArrayRef,
        times: &ColumnarValue,
        arguments: &ScalarFunctionArgs,
    ) -> Result<ColumnarValue> {
        let times = times.to_array(arguments.number_rows)?;
        let parts = cast(parts, &DataType::Utf8)?;
        let parts = parts.as_string::<i32>();
        let mut rows: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
        for (row, part) in parts.iter().enumerate() {
            if let Some(part) = part {
                rows.entry(part).or_default().push(row as u32);
            }
        }
        let mut starts = vec![new_null_array(arguments.return_type(), 1)];
        let mut places = vec![(0, 0); parts.len()];
        for (part, rows) in rows {
            let rows = UInt32Array::from(rows);
            let part = ColumnarValue::Scalar(ScalarValue::from(part));
            let times = ColumnarValue::Array(take(&times, &rows, None)?);
            let found = self.invoke_with_args(ScalarFunctionArgs {
                args: vec![part, times],
                number_rows: rows.len(),
                ..arguments.clone()
            })?;
            for (place, row) in rows.values().iter().enumerate() {
                places[*row as usize] = (starts.len(), place);
            }
            starts.push(found.into_array(rows.len())?);
        }
        let starts: Vec<_> = starts.iter().map(AsRef::as_ref).collect();
        Ok(ColumnarValue::Array(interleave(&starts, &places)?))
    }
}

/// Whether one of the times is in the first day that their type has.
fn begins_with_first_day(times: &ColumnarValue) -> bool {
    const DAY: i64 = 86_400_000_000;
    let first = match times {
        ColumnarValue::Array(times) => {
            times.as_primitive_opt::<TimestampMicrosecondType>().and_then(min)
        }
        ColumnarValue::Scalar(ScalarValue::TimestampMicrosecond(time, _)) => *time,
        ColumnarValue::Scalar(_) => None,
    };
    first.is_some_and(|first| first < i64::MIN + DAY)
}

/// The bins that a part of a time in UTC is, and where one of them starts.
fn bins(part: &str, kind: &DataType) -> Option<(Bins, i64)> {
    const SECOND: i128 = 1_000_000_000;
    const DAY: i128 = 86_400 * SECOND;
    /// 1970-01-05, in microseconds.
    const MONDAY: i64 = 4 * 86_400_000_000;
    match kind {
        DataType::Timestamp(_, None) => {}
        DataType::Timestamp(_, Some(zone)) if zone.as_ref() == "+00:00" => {}
        _ => return None,
    }
    let from_epoch = |bins| Some((bins, 0));
    match part {
        "microsecond" => from_epoch(Bins::Nanoseconds(1_000)),
        "millisecond" => from_epoch(Bins::Nanoseconds(1_000_000)),
        "second" => from_epoch(Bins::Nanoseconds(SECOND)),
        "minute" => from_epoch(Bins::Nanoseconds(60 * SECOND)),
        "hour" => from_epoch(Bins::Nanoseconds(3_600 * SECOND)),
        "day" => from_epoch(Bins::Nanoseconds(DAY)),
        "week" => Some((Bins::Nanoseconds(7 * DAY), MONDAY)),
        "month" => from_epoch(Bins::Months(1)),
        "quarter" => from_epoch(Bins::Months(3)),
        "year" => from_epoch(Bins::Months(12)),
        _ => None,
    }
}
