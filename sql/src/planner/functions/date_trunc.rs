//! `date_trunc` over all of TIMESTAMP.
//!
//! DataFusion truncates nanoseconds, and fails before 1677 and after 2262. There the start of a bin is taken.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, FieldRef};
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};
use datafusion_functions::datetime;

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
    fn name(&self) -> &str {
        self.others.name()
    }

    fn aliases(&self) -> &[String] {
        self.others.aliases()
    }

    fn signature(&self) -> &Signature {
        self.others.signature()
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.others.return_type(arguments)
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.others.return_field_from_args(arguments)
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        self.others.output_ordering(inputs)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [ColumnarValue::Scalar(part), times] = &arguments.args[..] else {
            return self.others.invoke_with_args(arguments);
        };
        let (part, times) = (part.clone(), times.clone());
        self.others.invoke_with_args(arguments).or_else(|error| {
            let part = part.try_as_str().flatten().unwrap_or_default().to_lowercase();
            let Some((bins, origin)) = bins(&part, &times.data_type()) else { return Err(error) };
            let starts = |times: &ArrayRef| bins.starts(times, origin);
            Ok(match &times {
                ColumnarValue::Array(times) => ColumnarValue::Array(starts(times)?),
                ColumnarValue::Scalar(time) => {
                    let start = starts(&time.to_array()?)?;
                    ColumnarValue::Scalar(ScalarValue::try_from_array(&start, 0)?)
                }
            })
        })
    }
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
