//! Texts in parts: `string_split` and `split_part`. The empty text splits into characters, as in DuckDB.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListBuilder, StringArray, StringBuilder};
use arrow::datatypes::{DataType, Field, Int64Type};
use datafusion_common::{Result, exec_err, plan_err};
use datafusion_expr::ScalarUDF;

use super::plain::{Plain, texts, wrong_number};

pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    let names = ["string_to_array", "string_to_list", "string_split", "str_split", "split"];
    vec![
        Plain::function(&names, texts::<2, 3>, list, split),
        Plain::function(&["split_part"], with_place, |_| DataType::Utf8, split_part),
    ]
}

fn list(_: &[DataType]) -> DataType {
    DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true)))
}

fn with_place(arguments: &[DataType]) -> Result<Vec<DataType>> {
    let [text, delimiter, place] = arguments else { return wrong_number(3, 3, arguments.len()) };
    if !place.is_integer() && !place.is_null() {
        return plan_err!("the place of a part is an integer, not {place}");
    }
    texts::<2, 2>(&[text.clone(), delimiter.clone()])?;
    Ok(vec![DataType::Utf8, DataType::Utf8, DataType::Int64])
}

/// The parts, between the delimiters or of one character each.
fn parts<'a>(text: &'a str, delimiter: Option<&'a str>) -> impl Iterator<Item = &'a str> {
    let delimiter = delimiter.filter(|delimiter| !delimiter.is_empty());
    let between = delimiter.map(|delimiter| text.split(delimiter));
    let characters = match delimiter {
        None => text,
        Some(_) => "",
    };
    let characters = characters.char_indices();
    let characters = characters.map(|(at, character)| &text[at..at + character.len_utf8()]);
    between.into_iter().flatten().chain(characters)
}

/// The third argument is the part that becomes NULL.
fn split(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let texts = arguments[0].as_string::<i32>();
    let delimiters = arguments[1].as_string::<i32>();
    let nulls = arguments.get(2).map(|nulls| nulls.as_string::<i32>());
    let mut lists = ListBuilder::new(StringBuilder::new());
    for (row, (text, delimiter)) in texts.iter().zip(delimiters).enumerate() {
        let null = nulls.and_then(|nulls| nulls.is_valid(row).then(|| nulls.value(row)));
        if let Some(text) = text {
            for part in parts(text, delimiter) {
                lists.values().append_option(Some(part).filter(|part| Some(*part) != null));
            }
        }
        lists.append(text.is_some());
    }
    Ok(Arc::new(lists.finish()))
}

fn split_part(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let texts = arguments[0].as_string::<i32>().iter();
    let delimiters = arguments[1].as_string::<i32>().iter();
    let places = arguments[2].as_primitive::<Int64Type>().iter();
    let found = texts.zip(delimiters).zip(places).map(|((text, delimiter), place)| {
        let (Some(text), Some(delimiter), Some(place)) = (text, delimiter, place) else {
            return Ok(None);
        };
        let nth = |place: u64| usize::try_from(place - 1).unwrap_or(usize::MAX);
        let part = match place {
            0 => return exec_err!("the parts of split_part() are counted from one, or from -1"),
            1.. => parts(text, Some(delimiter)).nth(nth(place.unsigned_abs())),
            _ => {
                let back = nth(place.unsigned_abs());
                let count = parts(text, Some(delimiter)).count();
                count
                    .checked_sub(back.saturating_add(1))
                    .and_then(|at| parts(text, Some(delimiter)).nth(at))
            }
        };
        Ok(Some(part.unwrap_or("")))
    });
    Ok(Arc::new(found.collect::<Result<StringArray>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_between_delimiters_or_characters() {
        let split = |text, delimiter| parts(text, delimiter).collect::<Vec<_>>();
        assert_eq!(split("a, b,", Some(", ")), ["a", "b,"]);
        assert_eq!(split("日本", Some("")), ["日", "本"]);
        assert_eq!(split("", Some(",")), [""]);
        assert!(split("", Some("")).is_empty());
        assert_eq!(split("ab", None), ["a", "b"]);
    }
}
