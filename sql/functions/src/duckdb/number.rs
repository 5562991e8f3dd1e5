//! Bits of integers, functions of numbers, and multiples of lengths of time.

use std::sync::{Arc, LazyLock};

use arrow::array::types::{
    ArrowPrimitiveType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow::array::{
    ArrayRef, AsArray, BooleanArray, Decimal128Array, Float64Array, Int8Array,
    IntervalMonthDayNanoArray,
};
use arrow::datatypes::{
    DataType, Decimal128Type, DecimalType, Float64Type, IntervalMonthDayNano,
    IntervalMonthDayNanoType, IntervalUnit,
};
use datafusion_common::{DataFusionError, Result, exec_datafusion_err, exec_err, plan_err};
use datafusion_expr::ScalarUDF;

use super::plain::{Plain, wrong_number};

/// The integers of 38 digits.
const WIDE: DataType = DataType::Decimal128(38, 0);
const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

/// `interval_times(interval, number)`.
pub static TIMES: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Plain::function(&["interval_times"], interval_and_number, |_| INTERVAL, times)
});

/// Divides intervals by numbers.
pub static OVER: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Plain::function(&["interval_over"], interval_and_divisor, |_| INTERVAL, over));

pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    vec![
        Plain::function(&["bit_count"], integer, |_| DataType::Int8, bit_count),
        Plain::function(&["fmod"], two_doubles, |_| DataType::Float64, fmod),
        Plain::function(&["nextafter"], two_doubles, |_| DataType::Float64, next_after),
        Plain::function(&["signbit"], double, |_| DataType::Boolean, sign_bit),
        Plain::function(&["even"], double, |_| DataType::Float64, even),
        Plain::function(&["gamma"], double, |_| DataType::Float64, |of| each(of, libm::tgamma)),
        Plain::function(&["lgamma"], double, |_| DataType::Float64, |of| each(of, libm::lgamma)),
        Plain::function(
            &["round_even", "roundbankers"],
            with_places,
            |_| DataType::Float64,
            round_even,
        ),
        Plain::function(&["normalized_interval"], interval, |_| INTERVAL, normalized),
        Plain::function(&["binom"], two_integers, |_| WIDE, binomial),
    ]
}

fn integer(arguments: &[DataType]) -> Result<Vec<DataType>> {
    match arguments {
        [integer] if integer.is_integer() => Ok(vec![integer.clone()]),
        [DataType::Null] => Ok(vec![DataType::Int64]),
        [other] => plan_err!("an integer is expected, not {other}"),
        _ => wrong_number(1, 1, arguments.len()),
    }
}

fn double(arguments: &[DataType]) -> Result<Vec<DataType>> {
    match arguments {
        [number] if number.is_numeric() || number.is_null() => Ok(vec![DataType::Float64]),
        [other] => plan_err!("a number is expected, not {other}"),
        _ => wrong_number(1, 1, arguments.len()),
    }
}

fn interval(arguments: &[DataType]) -> Result<Vec<DataType>> {
    match arguments {
        [DataType::Interval(_) | DataType::Duration(_) | DataType::Null] => Ok(vec![INTERVAL]),
        [other] => plan_err!("an interval is expected, not {other}"),
        _ => wrong_number(1, 1, arguments.len()),
    }
}

/// Whole days of a time become days, and 30 days a month.
fn normalized(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    const NANOSECONDS: i64 = 86_400_000_000_000;
    let intervals = arguments[0].as_primitive::<IntervalMonthDayNanoType>();
    let normal: IntervalMonthDayNanoArray = intervals.try_unary(|interval| {
        let days = i64::from(interval.days) + interval.nanoseconds.div_euclid(NANOSECONDS);
        let months = i64::from(interval.months) + days.div_euclid(30);
        let months = i32::try_from(months).map_err(|_| too_long())?;
        let rest = interval.nanoseconds.rem_euclid(NANOSECONDS);
        let days = days.rem_euclid(30) as i32;
        Ok::<_, DataFusionError>(IntervalMonthDayNano::new(months, days, rest))
    })?;
    Ok(Arc::new(normal))
}

fn interval_and_number(arguments: &[DataType]) -> Result<Vec<DataType>> {
    let [_, number] = arguments else { return wrong_number(2, 2, arguments.len()) };
    let number = match number {
        DataType::Null => DataType::Int64,
        integer if integer.is_integer() => DataType::Int64,
        number if number.is_numeric() => DataType::Float64,
        other => return plan_err!("an interval cannot be multiplied by {other}"),
    };
    Ok(vec![INTERVAL, number])
}

fn interval_and_divisor(arguments: &[DataType]) -> Result<Vec<DataType>> {
    interval_and_number(arguments).map(|_| vec![INTERVAL, DataType::Float64])
}

fn bit_count(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    fn counts<T: ArrowPrimitiveType>(values: &ArrayRef, count: fn(T::Native) -> u32) -> Int8Array {
        values.as_primitive::<T>().unary(|value| count(value) as i8)
    }
    let values = &arguments[0];
    Ok(Arc::new(match values.data_type() {
        DataType::Int8 => counts::<Int8Type>(values, i8::count_ones),
        DataType::Int16 => counts::<Int16Type>(values, i16::count_ones),
        DataType::Int32 => counts::<Int32Type>(values, i32::count_ones),
        DataType::UInt8 => counts::<UInt8Type>(values, u8::count_ones),
        DataType::UInt16 => counts::<UInt16Type>(values, u16::count_ones),
        DataType::UInt32 => counts::<UInt32Type>(values, u32::count_ones),
        DataType::UInt64 => counts::<UInt64Type>(values, u64::count_ones),
        _ => counts::<Int64Type>(values, i64::count_ones),
    }))
}

fn two_doubles(arguments: &[DataType]) -> Result<Vec<DataType>> {
    let [left, right] = arguments else { return wrong_number(2, 2, arguments.len()) };
    double(std::slice::from_ref(left))?;
    double(std::slice::from_ref(right))?;
    Ok(vec![DataType::Float64; 2])
}

/// The remainder of a division whose quotient is the next smaller whole number.
fn fmod(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let [left, right] = [0, 1].map(|place| arguments[place].as_primitive::<Float64Type>());
    let rest = |left: f64, right: f64| {
        let rest = left % right;
        match rest == 0.0 {
            true => 0.0,
            false if (rest < 0.0) != (right < 0.0) => rest + right,
            false => rest,
        }
    };
    let rests = left.iter().zip(right).map(|(left, right)| Some(rest(left?, right?)));
    Ok(Arc::new(rests.collect::<Float64Array>()))
}

/// The next number in the direction of another one.
fn next_after(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let [from, to] = [0, 1].map(|place| arguments[place].as_primitive::<Float64Type>());
    let next = |from: f64, to: f64| match from.partial_cmp(&to) {
        Some(std::cmp::Ordering::Less) => from.next_up(),
        Some(std::cmp::Ordering::Greater) => from.next_down(),
        Some(std::cmp::Ordering::Equal) => to,
        None => f64::NAN,
    };
    let numbers = from.iter().zip(to).map(|(from, to)| Some(next(from?, to?)));
    Ok(Arc::new(numbers.collect::<Float64Array>()))
}

fn sign_bit(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let values = arguments[0].as_primitive::<Float64Type>().iter();
    let signs = values.map(|value| value.map(f64::is_sign_negative));
    Ok(Arc::new(signs.collect::<BooleanArray>()))
}

/// The next even number away from zero.
fn even(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let away = |value: f64| ((value.abs() / 2.0).ceil() * 2.0).copysign(value);
    let values: Float64Array = arguments[0].as_primitive::<Float64Type>().unary(away);
    Ok(Arc::new(values))
}

fn each(arguments: &[ArrayRef], make: impl Fn(f64) -> f64) -> Result<ArrayRef> {
    let values: Float64Array = arguments[0].as_primitive::<Float64Type>().unary(make);
    Ok(Arc::new(values))
}

/// A number and digits after its point.
fn with_places(arguments: &[DataType]) -> Result<Vec<DataType>> {
    let [number, places] = arguments else { return wrong_number(2, 2, arguments.len()) };
    double(std::slice::from_ref(number))?;
    integer(std::slice::from_ref(places))?;
    Ok(vec![DataType::Float64, DataType::Int64])
}

/// The nearest number of so many digits, and of two the one that is even.
fn round_even(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let numbers = arguments[0].as_primitive::<Float64Type>().iter();
    let places = arguments[1].as_primitive::<Int64Type>();
    let round = |number: f64, places: i64| {
        let unit = 10_f64.powi(i32::try_from(places.unsigned_abs()).unwrap_or(i32::MAX));
        let rounded = match places >= 0 {
            true => (number * unit).round_ties_even() / unit,
            false => (number / unit).round_ties_even() * unit,
        };
        if rounded.is_finite() { rounded } else { number }
    };
    let rounded = numbers.zip(places).map(|(number, places)| Some(round(number?, places?)));
    Ok(Arc::new(rounded.collect::<Float64Array>()))
}

fn two_integers(arguments: &[DataType]) -> Result<Vec<DataType>> {
    let [_, _] = arguments else { return wrong_number(2, 2, arguments.len()) };
    arguments.iter().try_for_each(|kind| integer(std::slice::from_ref(kind)).map(|_| ()))?;
    Ok(vec![DataType::Int64; 2])
}

/// The number of ways to choose so many of so many.
fn binomial(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let numbers = arguments[0].as_primitive::<Int64Type>().iter();
    let chosen = arguments[1].as_primitive::<Int64Type>();
    let ways = |number: i64, chosen: i64| -> Option<i128> {
        if chosen > number {
            return Some(0);
        }
        let mut ways = 1_i128;
        for one in 1..=i128::from(chosen.min(number - chosen)) {
            ways = ways.checked_mul(i128::from(number) - one + 1)? / one;
        }
        Some(ways).filter(|ways| Decimal128Type::is_valid_decimal_precision(*ways, 38))
    };
    let ways = numbers.zip(chosen).map(|pair| match pair {
        (Some(number), Some(chosen)) if number < 0 || chosen < 0 => {
            exec_err!("{chosen} of {number} cannot be chosen")
        }
        (Some(number), Some(chosen)) => ways(number, chosen).map(Some).ok_or_else(|| {
            exec_datafusion_err!("overflow: {number} over {chosen} has more than 38 digits")
        }),
        _ => Ok(None),
    });
    Ok(Arc::new(ways.collect::<Result<Decimal128Array>>()?.with_data_type(WIDE)))
}

const MONTH: f64 = 30.0;
const SECONDS: f64 = 86_400.0;

fn too_long() -> DataFusionError {
    exec_datafusion_err!("overflow: an interval is too long")
}

/// The interval whose parts are these: what is left of a month are days, and what is left of a day is a time. As in
/// PostgreSQL, the fraction of a month is rounded, half to even, to microseconds before its days are cut off.
fn of_parts(months: f64, days: f64, nanoseconds: f64) -> Result<IntervalMonthDayNano> {
    let rounded = |value: f64| (value * 1e6).round_ties_even() / 1e6;
    let of_months = rounded((months - months.trunc()) * MONTH);
    let mut whole_days = days.trunc() + of_months.trunc();
    // The seconds of the rest of days.
    let mut rest = rounded((days.fract() + of_months.fract()) * SECONDS);
    if rest.abs() >= SECONDS {
        whole_days += (rest / SECONDS).trunc();
        rest %= SECONDS;
    }
    let nanoseconds = ((nanoseconds + rest * 1e9) / 1e3).round_ties_even() * 1e3;
    let fits = months.abs() <= f64::from(i32::MAX)
        && whole_days.abs() <= f64::from(i32::MAX)
        && nanoseconds.abs() < i64::MAX as f64;
    match fits {
        true => Ok(IntervalMonthDayNano::new(months as i32, whole_days as i32, nanoseconds as i64)),
        false => Err(too_long()),
    }
}

/// Multiples: of fractions, what is left of a month are days, and what is left of a day is a time.
fn times(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let intervals = arguments[0].as_primitive::<IntervalMonthDayNanoType>();
    let whole = |interval: IntervalMonthDayNano, times: i64| {
        let small = |part: i32| i64::from(part).checked_mul(times)?.try_into().ok();
        let nanoseconds = interval.nanoseconds.checked_mul(times)?;
        Some(IntervalMonthDayNano::new(small(interval.months)?, small(interval.days)?, nanoseconds))
    };
    let product: IntervalMonthDayNanoArray = match arguments[1].data_type() {
        DataType::Int64 => intervals
            .iter()
            .zip(arguments[1].as_primitive::<Int64Type>())
            .map(|(interval, times)| match (interval, times) {
                (Some(interval), Some(times)) => {
                    whole(interval, times).map(Some).ok_or_else(too_long)
                }
                _ => Ok(None),
            })
            .collect::<Result<_>>()?,
        _ => intervals
            .iter()
            .zip(arguments[1].as_primitive::<Float64Type>())
            .map(|(interval, times)| match (interval, times) {
                (Some(interval), Some(times)) => multiplied(interval, times).map(Some),
                _ => Ok(None),
            })
            .collect::<Result<_>>()?,
    };
    Ok(Arc::new(product))
}

fn multiplied(interval: IntervalMonthDayNano, times: f64) -> Result<IntervalMonthDayNano> {
    let IntervalMonthDayNano { months, days, nanoseconds } = interval;
    of_parts(f64::from(months) * times, f64::from(days) * times, nanoseconds as f64 * times)
}

/// Fractions, with remainders as in multiples.
fn over(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let intervals = arguments[0].as_primitive::<IntervalMonthDayNanoType>();
    let divisors = arguments[1].as_primitive::<Float64Type>();
    let quotients = intervals.iter().zip(divisors).map(|(interval, divisor)| {
        let (Some(interval), Some(divisor)) = (interval, divisor) else { return Ok(None) };
        if divisor == 0.0 {
            return exec_err!("division by zero");
        }
        let IntervalMonthDayNano { months, days, nanoseconds } = interval;
        let (months, days) = (f64::from(months) / divisor, f64::from(days) / divisor);
        of_parts(months, days, nanoseconds as f64 / divisor).map(Some)
    });
    Ok(Arc::new(quotients.collect::<Result<IntervalMonthDayNanoArray>>()?))
}
