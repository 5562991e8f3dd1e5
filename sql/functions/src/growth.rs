//! Functions whose results may be far larger than their arguments, with the sizes of their results.

use std::collections::HashMap;
use std::sync::Arc;

use alluvium_dataflow::map::{Bounded, LARGEST, Sizes};
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::compute::kernels::length::length;
use arrow::datatypes::{
    DataType, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit, TimeUnit,
};
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF};

/// The functions by name, and the sizes of their results.
const FUNCTIONS: [(&str, Sizes); 10] = [
    ("repeat", repeat),
    ("lpad", pad),
    ("rpad", pad),
    ("replace", replace),
    ("concat", joined),
    ("concat_ws", joined),
    ("range", series),
    ("generate_series", series),
    ("array_repeat", array_repeat),
    ("array_resize", array_repeat),
];

/// Bounds the functions that need it.
pub(super) fn bound(functions: &mut HashMap<String, Arc<ScalarUDF>>) {
    for function in functions.values_mut() {
        if let Some((_, sizes)) = FUNCTIONS.iter().find(|(name, _)| *name == function.name()) {
            *function = Bounded::function(Arc::clone(function), *sizes);
        }
    }
}

/// A number of each value of an argument: one for each row, one for all, or none if there is no such argument.
type Numbers = Vec<Option<i128>>;

/// How many results there are: constants have one.
fn results(arguments: &ScalarFunctionArgs) -> usize {
    let is_array = |argument: &ColumnarValue| matches!(argument, ColumnarValue::Array(_));
    if arguments.args.iter().any(is_array) { arguments.number_rows } else { 1 }
}

/// The size of each result, from the numbers of its arguments; zero if one of them is NULL.
fn each<const N: usize>(
    arguments: &ScalarFunctionArgs,
    numbers: [Numbers; N],
    size: impl Fn([i128; N]) -> i128,
) -> Vec<u64> {
    let at = |numbers: &Numbers, row: usize| match numbers.get(row).or(numbers.first()) {
        Some(number) => *number,
        None => Some(0),
    };
    let size = |row: usize| {
        let mut values = [0; N];
        for (value, numbers) in values.iter_mut().zip(&numbers) {
            *value = at(numbers, row)?;
        }
        Some(u64::try_from(size(values).max(0)).unwrap_or(u64::MAX))
    };
    (0..results(arguments)).map(|row| size(row).unwrap_or(0)).collect()
}

fn measured(
    argument: Option<&ColumnarValue>,
    measure: impl Fn(&ArrayRef) -> Result<ArrayRef>,
) -> Result<Numbers> {
    let array = match argument {
        None => return Ok(Vec::new()),
        Some(ColumnarValue::Array(array)) => Arc::clone(array),
        Some(ColumnarValue::Scalar(value)) => value.to_array()?,
    };
    if array.data_type().is_null() {
        return Ok(vec![None; array.len()]);
    }
    let numbers = cast(&measure(&array)?, &DataType::Int64)?;
    let numbers = numbers.as_primitive::<Int64Type>();
    Ok(numbers.iter().map(|number| number.map(i128::from)).collect())
}

/// Results of fewer bytes together need no closer look.
const SMALL: u64 = 1 << 20;

/// The bytes of an argument for all results, or more.
fn bytes(argument: &ColumnarValue, arguments: &ScalarFunctionArgs) -> u64 {
    match argument {
        ColumnarValue::Array(array) => array.get_buffer_memory_size() as u64,
        ColumnarValue::Scalar(value) => (value.size() * results(arguments)) as u64,
    }
}

/// The bytes of texts, or the elements of lists.
fn lengths(argument: Option<&ColumnarValue>) -> Result<Numbers> {
    measured(argument, |array| Ok(length(array)?))
}

fn integers(argument: Option<&ColumnarValue>) -> Result<Numbers> {
    measured(argument, |array| Ok(Arc::clone(array)))
}

fn repeat(arguments: &ScalarFunctionArgs) -> Result<Vec<u64>> {
    let args = &arguments.args;
    let numbers = [lengths(args.first())?, integers(args.get(1))?];
    Ok(each(arguments, numbers, |[length, times]| length * times))
}

/// A character has a byte at least.
fn pad(arguments: &ScalarFunctionArgs) -> Result<Vec<u64>> {
    let args = &arguments.args;
    Ok(each(arguments, [integers(args.get(1))?], |[length]| length))
}

/// Texts one after the other; separators between them count once for each.
fn joined(arguments: &ScalarFunctionArgs) -> Result<Vec<u64>> {
    let all: u64 = arguments.args.iter().map(|argument| bytes(argument, arguments)).sum();
    if all <= SMALL {
        return Ok(vec![all]);
    }
    let mut sizes = vec![0_u64; results(arguments)];
    for argument in &arguments.args {
        let is_text = matches!(
            argument.data_type(),
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
        );
        if is_text {
            let lengths = each(arguments, [lengths(Some(argument))?], |[length]| length);
            sizes.iter_mut().zip(lengths).for_each(|(size, length)| *size += length);
        }
    }
    Ok(sizes)
}

fn replace(arguments: &ScalarFunctionArgs) -> Result<Vec<u64>> {
    let args = &arguments.args;
    if let [text, _, ColumnarValue::Scalar(ScalarValue::Utf8(Some(to)))] = &args[..] {
        let text = bytes(text, arguments);
        let most = (text + results(arguments) as u64).saturating_mul(1 + to.len() as u64);
        if most <= SMALL {
            return Ok(vec![most]);
        }
    }
    let [text, from, to] = [0, 1, 2].map(|place| args.get(place));
    let numbers = [lengths(text)?, lengths(from)?, lengths(to)?];
    let most = each(arguments, numbers, |[text, from, to]| text + (text / from.max(1) + 1) * to);
    if most.iter().all(|most| *most <= LARGEST) {
        return Ok(most);
    }
    // It may be less: the occurrences have to be counted.
    let arrays = ColumnarValue::values_to_arrays(args)?;
    let texts = arrays.iter().map(|array| Ok(cast(array, &DataType::LargeUtf8)?));
    let texts = texts.collect::<Result<Vec<_>>>()?;
    let [text, from, to] = [0, 1, 2].map(|place| texts[place].as_string::<i64>());
    let size = |row: usize| {
        let (text, from, to) = (text.value(row), from.value(row), to.value(row));
        let count = text.matches(from).count();
        (text.len() + count * to.len()).saturating_sub(count * from.len()) as u64
    };
    Ok((0..text.len()).map(size).collect())
}

/// Numbers, dates or times from a start to an end.
fn series(arguments: &ScalarFunctionArgs) -> Result<Vec<u64>> {
    let args = &arguments.args;
    let (start, stop) = match args.len() {
        1 => (None, args.first()),
        _ => (args.first(), args.get(1)),
    };
    let (step, unit) = match (args.get(2), start.map(ColumnarValue::data_type)) {
        (None, _) => (vec![Some(1)], 1),
        (Some(step), Some(kind)) if kind.is_temporal() => (intervals(step)?, nanoseconds(&kind)),
        (step, _) => (integers(step)?, 1),
    };
    let numbers = [integers(start)?, integers(stop)?, step];
    Ok(each(arguments, numbers, |[start, stop, step]| match step {
        0 => 0,
        step => ((stop - start) * unit / step + 1) * size_of::<i64>() as i128,
    }))
}

const DAY: i128 = 24 * 60 * 60 * 1_000_000_000;

/// The nanoseconds of a unit of dates or times.
fn nanoseconds(kind: &DataType) -> i128 {
    match kind {
        DataType::Date32 => DAY,
        DataType::Timestamp(TimeUnit::Second, _) => 1_000_000_000,
        DataType::Date64 | DataType::Timestamp(TimeUnit::Millisecond, _) => 1_000_000,
        DataType::Timestamp(TimeUnit::Microsecond, _) => 1_000,
        _ => 1,
    }
}

/// The nanoseconds of intervals; a month has 31 days, since a series should not be found larger than it is.
fn intervals(argument: &ColumnarValue) -> Result<Numbers> {
    let array = match argument {
        ColumnarValue::Array(array) => Arc::clone(array),
        ColumnarValue::Scalar(value) => value.to_array()?,
    };
    let array = cast(&array, &DataType::Interval(IntervalUnit::MonthDayNano))?;
    let intervals = array.as_primitive::<IntervalMonthDayNanoType>().iter();
    let nanoseconds = |interval: IntervalMonthDayNano| {
        let days = i128::from(interval.months) * 31 + i128::from(interval.days);
        days * DAY + i128::from(interval.nanoseconds)
    };
    Ok(intervals.map(|interval| interval.map(nanoseconds)).collect())
}

/// `array_repeat(element, count)`, and `array_resize(list, count, element)`.
fn array_repeat(arguments: &ScalarFunctionArgs) -> Result<Vec<u64>> {
    let args = &arguments.args;
    let element = if args.len() == 2 { args.first() } else { args.get(2) };
    let bytes = match element {
        Some(element) if has_length(&element.data_type()) => lengths(Some(element))?,
        _ => Numbers::new(),
    };
    let numbers = [bytes, integers(args.get(1))?];
    let least = size_of::<i64>() as i128;
    Ok(each(arguments, numbers, |[bytes, count]| bytes.max(least) * count))
}

fn has_length(kind: &DataType) -> bool {
    use DataType::{Binary, LargeUtf8, List, Utf8, Utf8View};
    matches!(kind, Binary | LargeUtf8 | List(_) | Utf8 | Utf8View)
}
