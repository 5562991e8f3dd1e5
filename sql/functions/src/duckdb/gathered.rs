//! Aggregates that SQL defines: functions of the list of all values of a group, as `array_agg` makes it.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, ListArray, StringArray, UInt32Array};
use arrow::buffer::OffsetBuffer;
use arrow::compute::{SortOptions, cast, partition, sort, take};
use arrow::datatypes::{DataType, Field, Float64Type, Int64Type};
use datafusion_common::{Result, plan_err};
use datafusion_expr::ScalarUDF;

use super::json_edit::structure_of_all;
use super::list::as_list;
use super::plain::{Plain, wrong_number};

pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    let same = |types: &[DataType]| types[0].clone();
    let text = |_: &[DataType]| DataType::Utf8;
    let double = |_: &[DataType]| DataType::Float64;
    vec![
        Plain::function(&["weighted_mean"], pairs, double, weighted_means),
        Plain::function(&["most_frequent"], list_and_count, same, most_frequent),
        Plain::function(&["json_structure_of_all"], texts, text, structures),
        Plain::function(&["array_cross_product"], triples, same, cross_products),
    ]
}

/// A list of pairs of DOUBLE.
fn pairs(arguments: &[DataType]) -> Result<Vec<DataType>> {
    let [list] = arguments else { return wrong_number(1, 1, arguments.len()) };
    match list {
        DataType::List(pair) if matches!(pair.data_type(), DataType::Struct(of) if of.len() == 2) => {
            Ok(vec![list.clone()])
        }
        other => plan_err!("a list of pairs is expected, not {other}"),
    }
}

fn list_and_count(arguments: &[DataType]) -> Result<Vec<DataType>> {
    let [list, _] = arguments else { return wrong_number(2, 2, arguments.len()) };
    Ok(vec![as_list(list)?, DataType::Int64])
}

fn texts(arguments: &[DataType]) -> Result<Vec<DataType>> {
    let [list] = arguments else { return wrong_number(1, 1, arguments.len()) };
    as_list(list)?;
    Ok(vec![DataType::new_list(DataType::Utf8, true)])
}

fn triples(arguments: &[DataType]) -> Result<Vec<DataType>> {
    let [one, two] = arguments else { return wrong_number(2, 2, arguments.len()) };
    as_list(one)?;
    as_list(two)?;
    Ok(vec![DataType::new_list(DataType::Float64, true); 2])
}

/// The mean of values by their weights, of those that have both; NULL if there are none.
fn weighted_means(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let lists = arguments[0].as_list::<i32>();
    let means = lists.iter().map(|pairs| {
        let Some(pairs) = pairs else { return Ok(None) };
        let pairs = pairs.as_struct();
        let column = |place: usize| cast(pairs.column(place), &DataType::Float64);
        let (values, weights) = (column(0)?, column(1)?);
        let values = values.as_primitive::<Float64Type>().iter();
        let both = values.zip(weights.as_primitive::<Float64Type>());
        let both = both.filter_map(|(value, weight)| Some((value?, weight?)));
        let sums = both.fold(None, |sums, (value, weight)| {
            let (sum, all) = sums.unwrap_or((0.0, 0.0));
            Some((sum + value * weight, all + weight))
        });
        Ok(sums.map(|(sum, weights)| sum / weights))
    });
    Ok(Arc::new(means.collect::<Result<Float64Array>>()?))
}

/// The values that are most frequent, as many as the second argument says, and of equally frequent ones the least.
fn most_frequent(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let (lists, counts) = (arguments[0].as_list::<i32>(), arguments[1].as_primitive::<Int64Type>());
    let (mut found, mut lengths) = (Vec::new(), Vec::new());
    let options = Some(SortOptions { descending: false, nulls_first: false });
    for (row, list) in lists.iter().enumerate() {
        let most = if counts.is_valid(row) { counts.value(row) } else { 0 };
        let list = match list {
            Some(list) => sort(&list, options)?,
            None => lists.values().slice(0, 0),
        };
        let valid = list.slice(0, list.len() - list.null_count());
        let mut runs = match valid.is_empty() {
            true => Vec::new(),
            false => partition(std::slice::from_ref(&valid))?.ranges(),
        };
        runs.sort_by_key(|run| (std::cmp::Reverse(run.len()), run.start));
        runs.truncate(usize::try_from(most).unwrap_or(0));
        let places: UInt32Array = runs.iter().map(|run| Some(run.start as u32)).collect();
        lengths.push(places.len());
        found.push(take(&valid, &places, None)?);
    }
    let parts: Vec<&dyn Array> = found.iter().map(AsRef::as_ref).collect();
    let elements = match parts.is_empty() {
        true => lists.values().slice(0, 0),
        false => arrow::compute::concat(&parts)?,
    };
    let element = Arc::new(Field::new_list_field(lists.value_type(), true));
    let offsets = OffsetBuffer::from_lengths(lengths);
    Ok(Arc::new(ListArray::try_new(element, offsets, elements, lists.nulls().cloned())?))
}

fn structures(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let structures = arguments[0].as_list::<i32>().iter().map(|texts| match texts {
        Some(texts) => structure_of_all(texts.as_string::<i32>().iter().flatten()).map(Some),
        None => Ok(None),
    });
    Ok(Arc::new(structures.collect::<Result<StringArray>>()?))
}

/// The vectors that stand upright on two of three dimensions.
fn cross_products(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let (ones, twos) = (arguments[0].as_list::<i32>(), arguments[1].as_list::<i32>());
    let products = ones.iter().zip(twos.iter()).map(|(one, two)| {
        let (Some(one), Some(two)) = (one, two) else { return Ok(None) };
        let [one, two] = [one, two].map(|of| of.as_primitive::<Float64Type>().clone());
        if [&one, &two].iter().any(|of| of.len() != 3 || of.null_count() > 0) {
            return plan_err!("a vector has three numbers");
        }
        let product = [(1, 2), (2, 0), (0, 1)]
            .map(|(a, b)| Some(one.value(a) * two.value(b) - one.value(b) * two.value(a)));
        Ok(Some(product))
    });
    let products = products.collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(ListArray::from_iter_primitive::<Float64Type, _, _>(products)))
}
