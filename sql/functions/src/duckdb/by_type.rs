//! Functions of which DataFusion has another one for each type.
//!
//! - `length` and `len` of a list are the number of its elements;
//! - `isfinite` is true of dates and timestamps.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type};
use datafusion_common::{Result, plan_err};
use datafusion_expr::ScalarUDF;
use datafusion_functions::math;

use super::plain::{Plain, wrong_number};
use super::whole::{self, Whole};

pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    vec![
        Plain::function(&["length", "len"], text_or_list, |_| DataType::Int64, length),
        Plain::function(&["octet_length"], text_or_list, |_| DataType::Int64, octet_length),
        Plain::function(&["list_count", "array_count"], list, |_| DataType::Int64, list_count),
        Plain::function(&["isfinite"], number_or_time, |_| DataType::Boolean, is_finite),
        whole::function(math::ceil(), Whole::Above),
        whole::function(math::floor(), Whole::Below),
        whole::function(math::round(), Whole::Nearest),
    ]
}

fn text_or_list(arguments: &[DataType]) -> Result<Vec<DataType>> {
    match arguments {
        [list @ DataType::List(_)] => Ok(vec![list.clone()]),
        [DataType::LargeList(element) | DataType::FixedSizeList(element, _)] => {
            Ok(vec![DataType::List(Arc::clone(element))])
        }
        [bytes] if bytes.is_binary() => Ok(vec![DataType::Binary]),
        [_] => Ok(vec![DataType::Utf8]),
        _ => wrong_number(1, 1, arguments.len()),
    }
}

fn list(arguments: &[DataType]) -> Result<Vec<DataType>> {
    match text_or_list(arguments)?.as_slice() {
        [list @ DataType::List(_)] => Ok(vec![list.clone()]),
        _ => plan_err!("a list is expected"),
    }
}

/// The bytes of texts.
fn octet_length(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    match arguments[0].data_type() {
        DataType::List(_) => plan_err!("a text or bytes are expected, not a list"),
        _ => length(&[cast(&arguments[0], &DataType::Binary)?]),
    }
}

/// The elements that are not NULL.
fn list_count(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let lists = arguments[0].as_list::<i32>();
    let counts = lists.iter().map(|list| list.map(|list| (list.len() - list.null_count()) as i64));
    Ok(Arc::new(counts.collect::<Int64Array>()))
}

fn length(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let values = &arguments[0];
    let lengths: Int64Array = match values.data_type() {
        DataType::List(_) => {
            let lists = values.as_list::<i32>();
            let lengths = lists.offsets().lengths().map(|length| length as i64);
            Int64Array::new(lengths.collect(), lists.nulls().cloned())
        }
        DataType::Binary => values
            .as_binary::<i32>()
            .iter()
            .map(|bytes| bytes.map(|bytes| bytes.len() as i64))
            .collect(),
        _ => values
            .as_string::<i32>()
            .iter()
            .map(|text| text.map(|text| text.chars().count() as i64))
            .collect(),
    };
    Ok(Arc::new(lengths))
}

fn number_or_time(arguments: &[DataType]) -> Result<Vec<DataType>> {
    match arguments {
        [time] if time.is_temporal() => Ok(vec![time.clone()]),
        [_] => Ok(vec![DataType::Float64]),
        _ => wrong_number(1, 1, arguments.len()),
    }
}

fn is_finite(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let values = &arguments[0];
    let finite: BooleanArray = match values.as_primitive_opt::<Float64Type>() {
        Some(numbers) => numbers.iter().map(|number| number.map(f64::is_finite)).collect(),
        None => (0..values.len()).map(|row| values.is_valid(row).then_some(true)).collect(),
    };
    Ok(Arc::new(finite))
}
