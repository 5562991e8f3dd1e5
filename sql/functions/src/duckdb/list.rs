//! Elements of lists by other lists: `list_select`, `list_where` and `list_grade_up`.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, UInt32Array};
use arrow::buffer::OffsetBuffer;
use arrow::compute::{SortOptions, sort_to_indices, take};
use arrow::datatypes::{DataType, Field, Int64Type};
use datafusion_common::{Result, exec_err, plan_err};
use datafusion_expr::ScalarUDF;

use super::plain::{Plain, wrong_number};

pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    let same = |types: &[DataType]| types[0].clone();
    let places = |_: &[DataType]| DataType::new_list(DataType::Int64, true);
    vec![
        Plain::function(&["list_select", "array_select"], with_list::<false>, same, select),
        Plain::function(&["list_where", "array_where"], with_list::<true>, same, select_true),
        Plain::function(
            &["list_grade_up", "array_grade_up", "grade_up"],
            with_order,
            places,
            grade_up,
        ),
    ]
}

/// The list type of an argument.
pub(super) fn as_list(argument: &DataType) -> Result<DataType> {
    match argument {
        DataType::List(element)
        | DataType::LargeList(element)
        | DataType::FixedSizeList(element, _) => Ok(DataType::List(Arc::clone(element))),
        DataType::Null => Ok(DataType::new_list(DataType::Null, true)),
        other => plan_err!("a list is expected, not {other}"),
    }
}

/// A list, and one of places or of truth values.
fn with_list<const TRUTHS: bool>(arguments: &[DataType]) -> Result<Vec<DataType>> {
    let [list, other] = arguments else { return wrong_number(2, 2, arguments.len()) };
    as_list(other)?;
    let element = if TRUTHS { DataType::Boolean } else { DataType::Int64 };
    Ok(vec![as_list(list)?, DataType::new_list(element, true)])
}

/// A list, and perhaps `'DESC'`, and perhaps `'NULLS LAST'`.
fn with_order(arguments: &[DataType]) -> Result<Vec<DataType>> {
    let Some((list, words)) = arguments.split_first().filter(|(_, words)| words.len() <= 2) else {
        return wrong_number(1, 3, arguments.len());
    };
    let words = words.iter().map(|_| DataType::Utf8);
    Ok(std::iter::once(as_list(list)?).chain(words).collect())
}

/// The lists of the elements at these places of all elements; `None` is a NULL.
fn taken(
    lists: &ListArray,
    others: &ListArray,
    mut places: impl FnMut(usize, &mut Vec<Option<u32>>) -> Result<()>,
) -> Result<ArrayRef> {
    let (mut all, mut lengths) = (Vec::new(), Vec::with_capacity(lists.len()));
    let nulls = arrow::buffer::NullBuffer::union(lists.nulls(), others.nulls());
    for row in 0..lists.len() {
        let before = all.len();
        if nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row)) {
            places(row, &mut all)?;
        }
        lengths.push(all.len() - before);
    }
    let elements = take(lists.values(), &UInt32Array::from(all), None)?;
    let element = Arc::new(Field::new_list_field(lists.value_type(), true));
    let offsets = OffsetBuffer::from_lengths(lengths);
    Ok(Arc::new(ListArray::try_new(element, offsets, elements, nulls)?))
}

/// Where an element of a list is among those of all lists.
fn place(lists: &ListArray, row: usize, element: usize) -> Option<u32> {
    let length = usize::try_from(lists.value_length(row)).ok()?;
    let at = usize::try_from(lists.value_offsets()[row]).ok()? + element;
    (element < length).then(|| u32::try_from(at).ok())?
}

/// The elements at these places, counted from one; NULL where there is none.
fn select(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let (lists, places) = (arguments[0].as_list::<i32>(), arguments[1].as_list::<i32>());
    let numbers = places.values().as_primitive::<Int64Type>();
    taken(lists, places, |row, all| {
        for at in places.value_offsets()[row]..places.value_offsets()[row + 1] {
            let at = at as usize;
            if numbers.is_null(at) {
                return exec_err!("the list of places has a NULL");
            }
            let element = usize::try_from(numbers.value(at)).ok();
            let element = element.and_then(|number| number.checked_sub(1));
            all.push(element.and_then(|element| place(lists, row, element)));
        }
        Ok(())
    })
}

/// The elements beside which the other list is true.
fn select_true(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let (lists, truths) = (arguments[0].as_list::<i32>(), arguments[1].as_list::<i32>());
    let values = truths.values().as_boolean();
    taken(lists, truths, |row, all| {
        let offsets = truths.value_offsets();
        for (element, at) in (offsets[row]..offsets[row + 1]).enumerate() {
            let at = at as usize;
            if values.is_null(at) {
                return exec_err!("the list that selects has a NULL");
            }
            if values.value(at) {
                all.push(place(lists, row, element));
            }
        }
        Ok(())
    })
}

/// The places of the elements in their order.
fn grade_up(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let lists = arguments[0].as_list::<i32>();
    let word = |place: usize, row: usize| {
        let words = arguments.get(place)?.as_string::<i32>();
        words.is_valid(row).then(|| words.value(row).trim().to_ascii_uppercase())
    };
    let graded = (0..lists.len()).map(|row| {
        if lists.is_null(row) {
            return Ok(None);
        }
        let descending = word(1, row).is_some_and(|word| word == "DESC");
        let nulls_first = word(2, row).is_some_and(|word| word == "NULLS FIRST");
        let options = Some(SortOptions { descending, nulls_first });
        let order = sort_to_indices(&lists.value(row), options, None)?;
        let places: Vec<_> = order.values().iter().map(|at| Some(i64::from(*at) + 1)).collect();
        Ok(Some(places))
    });
    let graded = graded.collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(graded)))
}
