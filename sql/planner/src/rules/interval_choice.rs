//! `GREATEST`, `LEAST` and `NULLIF` of intervals: they compare lengths, and return an interval as it is.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, IntervalMonthDayNanoArray};
use arrow::datatypes::{DataType, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit};
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::rules::intervals::nanoseconds;

const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

/// The function of intervals for DataFusion's function of this name; `None` if it does not choose one of its arguments.
pub(crate) fn choice(name: &str) -> Option<&'static Arc<ScalarUDF>> {
    match name {
        "greatest" => Some(&GREATEST),
        "least" => Some(&LEAST),
        "nullif" => Some(&NULLIF),
        _ => None,
    }
}

static GREATEST: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Choice::function(Kind::Greatest));
static LEAST: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Choice::function(Kind::Least));
static NULLIF: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Choice::function(Kind::NullIf));

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Greatest,
    Least,
    NullIf,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Choice {
    kind: Kind,
    signature: Signature,
}

impl Choice {
    fn function(kind: Kind) -> Arc<ScalarUDF> {
        let signature = Signature::variadic_any(Volatility::Immutable);
        Arc::new(ScalarUDF::from(Choice { kind, signature }))
    }

    /// Chooses between the choice so far and another interval. NULL counts for nothing.
    fn choose(
        &self,
        one: Option<IntervalMonthDayNano>,
        two: Option<IntervalMonthDayNano>,
    ) -> Option<IntervalMonthDayNano> {
        let (Some(first), Some(second)) = (one, two) else {
            return if self.kind == Kind::NullIf { one } else { one.or(two) };
        };
        let order = nanoseconds(first).cmp(&nanoseconds(second));
        match self.kind {
            Kind::Greatest if order.is_lt() => two,
            Kind::Least if order.is_gt() => two,
            Kind::NullIf if order.is_eq() => None,
            _ => one,
        }
    }
}

impl ScalarUDFImpl for Choice {
    fn name(&self) -> &str {
        match self.kind {
            Kind::Greatest => "greatest",
            Kind::Least => "least",
            Kind::NullIf => "nullif",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(INTERVAL)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_scalar = |argument: &ColumnarValue| matches!(argument, ColumnarValue::Scalar(_));
        let are_scalars = arguments.args.iter().all(is_scalar);
        let intervals = ColumnarValue::values_to_arrays(&arguments.args)?;
        let intervals = intervals
            .iter()
            .map(|interval| arrow::compute::cast(interval, &INTERVAL))
            .collect::<Result<Vec<_>, _>>()?;
        let columns: Vec<&IntervalMonthDayNanoArray> = intervals
            .iter()
            .map(|column| column.as_primitive::<IntervalMonthDayNanoType>())
            .collect();
        let rows = intervals.first().map_or(0, |column| column.len());
        let at = |column: &IntervalMonthDayNanoArray, row: usize| {
            column.is_valid(row).then(|| column.value(row))
        };
        let chosen = (0..rows).map(|row| {
            let (first, others) = columns.split_first()?;
            let first = at(first, row);
            others.iter().fold(first, |chosen, column| self.choose(chosen, at(column, row)))
        });
        let chosen: ArrayRef = Arc::new(chosen.collect::<IntervalMonthDayNanoArray>());
        if are_scalars {
            return ScalarValue::try_from_array(&chosen, 0).map(ColumnarValue::Scalar);
        }
        Ok(ColumnarValue::Array(chosen))
    }
}
