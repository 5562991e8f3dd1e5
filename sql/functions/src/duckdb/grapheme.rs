//! Parts of texts by graphemes: the characters as a reader sees them.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, StringBuilder};
use arrow::datatypes::{DataType, Int64Type};
use datafusion_common::{Result, plan_err};
use datafusion_expr::ScalarUDF;
use unicode_segmentation::UnicodeSegmentation;

use super::plain::{Plain, texts, wrong_number};

pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    let text = |_: &[DataType]| DataType::Utf8;
    vec![
        Plain::function(&["length_grapheme"], texts::<1, 1>, |_| DataType::Int64, length),
        Plain::function(&["left_grapheme"], with_numbers::<1, 1>, text, |of| {
            parts(of, |length, number, _| (0, counted(length, number)))
        }),
        Plain::function(&["right_grapheme"], with_numbers::<1, 1>, text, |of| {
            parts(of, |length, number, _| (length - counted(length, number), length))
        }),
        Plain::function(&["substring_grapheme"], with_numbers::<1, 2>, text, |of| {
            parts(of, between)
        }),
    ]
}

/// A text and some integers.
fn with_numbers<const LEAST: usize, const MOST: usize>(
    arguments: &[DataType],
) -> Result<Vec<DataType>> {
    let Some((text, numbers)) = arguments.split_first() else {
        return wrong_number(1 + LEAST, 1 + MOST, 0);
    };
    if !(LEAST..=MOST).contains(&numbers.len()) {
        return wrong_number(1 + LEAST, 1 + MOST, arguments.len());
    }
    if let Some(other) = numbers.iter().find(|number| !number.is_integer() && !number.is_null()) {
        return plan_err!("a number of characters is an integer, not {other}");
    }
    let numbers = numbers.iter().map(|_| DataType::Int64);
    Ok(texts::<1, 1>(std::slice::from_ref(text))?.into_iter().chain(numbers).collect())
}

fn length(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let count = |text: &str| text.graphemes(true).count() as i64;
    let texts = arguments[0].as_string::<i32>().iter();
    Ok(Arc::new(texts.map(|text| text.map(count)).collect::<Int64Array>()))
}

/// So many of `length`, or all but so many if the number is negative.
fn counted(length: i64, number: i64) -> i64 {
    if number < 0 { length.saturating_add(number).max(0) } else { number.min(length) }
}

/// From a place, which a negative one counts from the end, so many.
fn between(length: i64, place: i64, count: Option<i64>) -> (i64, i64) {
    let first = if place < 0 { length.saturating_add(place) } else { place.saturating_sub(1) };
    let last = count.map_or(length, |count| first.saturating_add(count));
    (first.clamp(0, length), last.clamp(0, length))
}

/// The part of each text from a grapheme up to another one.
fn parts(
    arguments: &[ArrayRef],
    bounds: fn(i64, i64, Option<i64>) -> (i64, i64),
) -> Result<ArrayRef> {
    let texts = arguments[0].as_string::<i32>();
    let first = arguments[1].as_primitive::<Int64Type>();
    let second = arguments.get(2).map(|second| second.as_primitive::<Int64Type>());
    let (mut parts, mut starts) = (StringBuilder::new(), Vec::new());
    for (row, text) in texts.iter().enumerate() {
        let has_numbers = first.is_valid(row) && second.is_none_or(|second| second.is_valid(row));
        let Some(text) = text.filter(|_| has_numbers) else {
            parts.append_null();
            continue;
        };
        starts.clear();
        starts.extend(text.grapheme_indices(true).map(|(start, _)| start));
        let second = second.map(|second| second.value(row));
        let (from, to) = bounds(starts.len() as i64, first.value(row), second);
        let at = |place: i64| {
            let place = usize::try_from(place).ok();
            place.and_then(|place| starts.get(place).copied()).unwrap_or(text.len())
        };
        parts.append_value(text.get(at(from)..at(to)).unwrap_or(""));
    }
    Ok(Arc::new(parts.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_within_the_text() {
        assert_eq!(between(3, -2, Some(1)), (1, 2));
        assert_eq!(between(3, 2, None), (1, 3));
        assert_eq!(between(3, i64::MAX, Some(i64::MAX)), (3, 3));
        assert_eq!(between(3, i64::MIN + 1, Some(1)), (0, 0));
        assert_eq!((counted(3, -1), counted(3, 9), counted(3, -9)), (2, 3, 0));
    }
}
