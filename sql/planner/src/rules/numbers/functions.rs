//! Functions that only the planner calls.

use std::sync::{Arc, LazyLock};

use alluvium_dataflow::messages::wording::type_name;
use arrow::array::temporal_conversions::{as_date, as_datetime};
use arrow::array::{
    ArrayRef, ArrowPrimitiveType, AsArray, Decimal128Array, Float64Array, PrimitiveArray,
};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, DecimalType, Field, FieldRef, Float32Type, Float64Type,
    Time64NanosecondType, TimeUnit, TimestampMicrosecondType, i256,
};
use arrow::error::ArrowError;
use datafusion_common::{Result, ScalarValue, exec_datafusion_err, exec_err};
use datafusion_expr::type_coercion::binary::BinaryTypeCoercer;
use datafusion_expr::{
    ColumnarValue, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};

use alluvium_sql_functions::{leaves, texts};

/// The nanoseconds of a day.
const DAY: i64 = 86_400_000_000_000;

/// `round(x, target)`: whole numbers, still of a type with fractions, in place of those that a cast to the type of `target`
/// makes integers. A DECIMAL is rounded half away from zero, and floating point numbers half to the even one.
pub(super) static ROUND: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Number::function("round_to_whole", Act::Round));

/// `in_precision(x)`: a DECIMAL if it has no more digits than its type, and an error otherwise.
pub(super) static IN_PRECISION: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Number::function("in_precision", Act::CheckPrecision));

/// `quotient(a, b)`: `a / b` of DECIMAL, of the same type. Arrow's division overflows where the dividend with the digits of
/// the quotient has more than 38, however few the quotient has.
pub(super) static QUOTIENT: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Number::function("quotient", Act::Divide));

/// `whole_quotient(a, b)`: `a / b` of DECIMAL without digits after the point, cut off towards zero.
pub(super) static WHOLE_QUOTIENT: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Number::function("whole_quotient", Act::DivideWhole));

/// `read_text(x, target)`: the values that [`texts::read`] finds in the texts that are cast to the type of `target`.
pub(super) static OF_TEXT: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Number::function("read_text", Act::Parse { or_null: false }));

/// As [`OF_TEXT`], with NULL for texts that are no such values.
pub(super) static OF_TEXT_OR_NULL: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Number::function("try_read_text", Act::Parse { or_null: true }));

/// `in_calendar(t)`: a date or time that a number was cast to, if there is such a day or time, and an error otherwise.
pub(super) static IN_CALENDAR: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Number::function("in_calendar", Act::CheckCalendar { or_null: false }));

/// As [`IN_CALENDAR`], with NULL for a text that is no such day or time.
pub(super) static IN_CALENDAR_OR_NULL: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Number::function("try_in_calendar", Act::CheckCalendar { or_null: true }));

/// `in_real(x)`: a DOUBLE that is cast to REAL, if it is no infinity there, and an error otherwise.
pub(super) static IN_REAL: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Number::function("in_real", Act::CheckReal { or_null: false }));

/// As [`IN_REAL`], with NULL for a number that is too large.
pub(super) static IN_REAL_OR_NULL: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Number::function("try_in_real", Act::CheckReal { or_null: true }));

/// Whether `called` is one of the functions of this module.
pub(super) fn is_called(called: &Arc<ScalarUDF>, function: &LazyLock<Arc<ScalarUDF>>) -> bool {
    Arc::ptr_eq(called, function)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Act {
    Round,
    CheckPrecision,
    Divide,
    DivideWhole,
    Parse { or_null: bool },
    CheckCalendar { or_null: bool },
    CheckReal { or_null: bool },
}

impl Act {
    /// Whether it has NULL where others fail.
    fn makes_null(self) -> bool {
        matches!(
            self,
            Act::Parse { or_null: true }
                | Act::CheckCalendar { or_null: true }
                | Act::CheckReal { or_null: true }
        )
    }
}

/// A function that makes a number.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Number {
    name: &'static str,
    act: Act,
    signature: Signature,
}

impl Number {
    fn function(name: &'static str, act: Act) -> Arc<ScalarUDF> {
        let arguments = match act {
            Act::Round | Act::Divide | Act::DivideWhole | Act::Parse { .. } => 2,
            Act::CheckPrecision | Act::CheckCalendar { .. } | Act::CheckReal { .. } => 1,
        };
        let signature = Signature::any(arguments, Volatility::Immutable);
        Arc::new(ScalarUDF::from(Number { name, act, signature }))
    }
}

impl ScalarUDFImpl for Number {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(match (self.act, arguments) {
            (Act::Round, [number, target]) => rounded_type(number, target),
            (Act::Parse { .. }, [text, target]) => texts::read_type(text, target),
            (Act::Divide, [dividend, divisor]) => {
                BinaryTypeCoercer::new(dividend, &Operator::Divide, divisor).get_result_type()?
            }
            (_, arguments) => arguments[0].clone(),
        })
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let types: Vec<DataType> =
            arguments.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let nullable =
            arguments.arg_fields.iter().any(|field| field.is_nullable()) || self.act.makes_null();
        Ok(Arc::new(Field::new(self.name, self.return_type(&types)?, nullable)))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if matches!(self.act, Act::Divide | Act::DivideWhole) {
            return divided(&arguments);
        }
        let argument = &arguments.args[0];
        let is_scalar = matches!(argument, ColumnarValue::Scalar(_));
        let values = argument.to_array(if is_scalar { 1 } else { arguments.number_rows })?;
        let values = match (self.act, arguments.arg_fields.get(1)) {
            (Act::Round, Some(target)) => rounded(&values, target.data_type())?,
            (Act::Parse { or_null }, Some(target)) => {
                texts::read(&values, target.data_type(), or_null)?
            }
            (Act::CheckCalendar { or_null }, _) => in_calendar(&values, or_null)?,
            (Act::CheckReal { or_null }, _) => in_real(&values, or_null)?,
            _ => {
                check_precision(&values)?;
                values
            }
        };
        match is_scalar {
            true => ScalarValue::try_from_array(&values, 0).map(ColumnarValue::Scalar),
            false => Ok(ColumnarValue::Array(values)),
        }
    }
}

/// The quotients of DECIMAL, cut off after the digits of their type.
fn divided(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let [dividend, divisor] = &arguments.args[..] else {
        return exec_err!("a quotient has two operands");
    };
    let is_scalar = |value: &ColumnarValue| matches!(value, ColumnarValue::Scalar(_));
    let is_constant = is_scalar(dividend) && is_scalar(divisor);
    let rows = if is_constant { 1 } else { arguments.number_rows };
    let (dividends, divisors) = (dividend.to_array(rows)?, divisor.to_array(rows)?);
    let kind = arguments.return_field.data_type();
    let (
        DataType::Decimal128(_, dividend_scale),
        DataType::Decimal128(_, divisor_scale),
        DataType::Decimal128(precision, scale),
    ) = (dividends.data_type(), divisors.data_type(), kind)
    else {
        return exec_err!("a quotient of DECIMAL has operands of this type");
    };
    // A scale is at most 38, and that of the quotient at least the dividend's.
    let digits = (*scale - *dividend_scale + *divisor_scale).unsigned_abs().into();
    let (narrow, wide) = (10_i128.checked_pow(digits), i256::from_i128(10).wrapping_pow(digits));
    let quotient = |dividend: i128, divisor: i128| -> Result<i128> {
        if divisor == 0 {
            return Err(ArrowError::DivideByZero.into());
        }
        let short = narrow.and_then(|factor| dividend.checked_mul(factor)?.checked_div(divisor));
        let quotient = short.or_else(|| {
            // Where 256 bits are too few, so are the digits of the quotient.
            let dividend = i256::from_i128(dividend).checked_mul(wide)?;
            dividend.checked_div(i256::from_i128(divisor))?.to_i128()
        });
        quotient
            .filter(|quotient| Decimal128Type::is_valid_decimal_precision(*quotient, *precision))
            .ok_or_else(|| {
                exec_datafusion_err!(
                    "overflow: the result has more digits than DECIMAL({precision}, {scale})"
                )
            })
    };
    let (dividends, divisors) =
        (dividends.as_primitive::<Decimal128Type>(), divisors.as_primitive::<Decimal128Type>());
    let pairs = dividends.iter().zip(divisors);
    let quotients = pairs.map(|(dividend, divisor)| match (dividend, divisor) {
        (Some(dividend), Some(divisor)) => quotient(dividend, divisor).map(Some),
        _ => Ok(None),
    });
    let quotients = quotients.collect::<Result<Decimal128Array>>()?.with_data_type(kind.clone());
    match is_constant {
        true => ScalarValue::try_from_array(&quotients, 0).map(ColumnarValue::Scalar),
        false => Ok(ColumnarValue::Array(Arc::new(quotients))),
    }
}

/// Whether a cast drops the fractions of numbers.
pub fn loses_fraction(source: &DataType, target: &DataType) -> bool {
    leaves::any(source, target, &is_cut)
}

/// Whether a cast of a plain value drops its fraction.
fn is_cut(source: &DataType, target: &DataType) -> bool {
    let may_have_fraction = match source {
        DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale) => *scale > 0,
        source => source.is_floating(),
    };
    may_have_fraction && target.is_integer()
}

/// The type that holds rounded numbers.
fn rounded_type(source: &DataType, target: &DataType) -> DataType {
    let whole_digits = |precision: u8, scale: i8| precision - scale.unsigned_abs() + 1;
    leaves::map_type(source, target, &|source, target| match source {
        DataType::Decimal128(precision, scale) if is_cut(source, target) => {
            DataType::Decimal128(whole_digits(*precision, *scale), 0)
        }
        DataType::Decimal256(precision, scale) if is_cut(source, target) => {
            DataType::Decimal256(whole_digits(*precision, *scale), 0)
        }
        source => source.clone(),
    })
}

fn rounded(values: &ArrayRef, target: &DataType) -> Result<ArrayRef> {
    leaves::map(values, target, &|values, target| {
        let source = values.data_type();
        Ok(match source {
            source if !is_cut(source, target) => Arc::clone(values),
            DataType::Float32 => Arc::new(
                values.as_primitive::<Float32Type>().unary::<_, Float32Type>(f32::round_ties_even),
            ),
            DataType::Float64 => Arc::new(
                values.as_primitive::<Float64Type>().unary::<_, Float64Type>(f64::round_ties_even),
            ),
            source => cast(values, &rounded_type(source, target))?,
        })
    })
}

fn check_precision(values: &ArrayRef) -> Result<()> {
    let DataType::Decimal128(precision, scale) = values.data_type() else { return Ok(()) };
    values.as_primitive::<Decimal128Type>().validate_decimal_precision(*precision).map_err(|_| {
        exec_datafusion_err!(
            "overflow: the result has more digits than DECIMAL({precision}, {scale})"
        )
    })
}

/// Whether a cast makes dates or times of numbers.
pub(super) fn counts_time(source: &DataType, target: &DataType) -> bool {
    leaves::any(source, target, &|source, target| source.is_numeric() && target.is_temporal())
}

/// Whether a cast makes REAL of DOUBLE.
pub(super) fn narrows(source: &DataType, target: &DataType) -> bool {
    leaves::any(source, target, &|source, target| {
        (source, target) == (&DataType::Float64, &DataType::Float32)
    })
}

/// The values, all of which are days and times of the calendar.
fn in_calendar(values: &ArrayRef, or_null: bool) -> Result<ArrayRef> {
    fn kept<T: ArrowPrimitiveType>(
        values: &ArrayRef,
        or_null: bool,
        is_time: impl Fn(T::Native) -> bool,
    ) -> Result<ArrayRef> {
        let times = values.as_primitive::<T>();
        if times.iter().flatten().all(&is_time) {
            return Ok(Arc::clone(values));
        }
        if !or_null {
            let kind = type_name(values.data_type());
            return exec_err!("overflow: the number is too far away for a {kind}");
        }
        let times: PrimitiveArray<T> =
            times.iter().map(|time| time.filter(|time| is_time(*time))).collect();
        Ok(Arc::new(times.with_data_type(values.data_type().clone())))
    }
    leaves::map(values, &values.data_type().clone(), &|values, _| match values.data_type() {
        DataType::Date32 => {
            kept::<Date32Type>(values, or_null, |day| as_date::<Date32Type>(day.into()).is_some())
        }
        DataType::Time64(TimeUnit::Nanosecond) => {
            kept::<Time64NanosecondType>(values, or_null, |time| (0..DAY).contains(&time))
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            kept::<TimestampMicrosecondType>(values, or_null, |time| {
                as_datetime::<TimestampMicrosecondType>(time).is_some()
            })
        }
        _ => Ok(Arc::clone(values)),
    })
}

/// The values, none of which is an infinity as REAL but those that are one as DOUBLE.
fn in_real(values: &ArrayRef, or_null: bool) -> Result<ArrayRef> {
    let fits = |number: f64| !number.is_finite() || (number as f32).is_finite();
    leaves::map(values, &values.data_type().clone(), &|values, _| {
        let Some(numbers) = values.as_primitive_opt::<Float64Type>() else {
            return Ok(Arc::clone(values));
        };
        match numbers.iter().flatten().find(|number| !fits(*number)) {
            None => Ok(Arc::clone(values)),
            Some(number) if !or_null => exec_err!("overflow: {number:e} is too large for a REAL"),
            Some(_) => {
                let numbers = numbers.iter().map(|number| number.filter(|number| fits(*number)));
                Ok(Arc::new(numbers.collect::<Float64Array>()))
            }
        }
    })
}
