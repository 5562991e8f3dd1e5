//! JSON that is made of other JSON: merged, changed at a path, or written otherwise.

use std::fmt::Write as _;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, StringArray};
use arrow::datatypes::DataType;
use datafusion_common::{Result, exec_datafusion_err};
use datafusion_expr::ScalarUDF;

use super::json_value::{Json, Step, path, write_text};
use super::plain::{Plain, texts};

pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    let json = |_: &[DataType]| DataType::Utf8;
    let truth = |_: &[DataType]| DataType::Boolean;
    let (one, two, three) = (texts::<1, 1>, texts::<2, 2>, texts::<3, 3>);
    vec![
        Plain::function(&["json_contains"], two, truth, contains),
        Plain::function(&["json_merge_patch"], two, json, |of| of_two(of, patched)),
        Plain::function(&["json_merge_patch_diff"], two, json, |of| of_two(of, patch)),
        Plain::function(&["json_deep_merge"], two, json, |of| of_two(of, merged)),
        Plain::function(&["json_insert"], three, json, |of| changed(of, |is_there| !is_there)),
        Plain::function(&["json_replace"], three, json, |of| changed(of, |is_there| is_there)),
        Plain::function(&["json_set"], three, json, |of| changed(of, |_| true)),
        Plain::function(&["json_remove"], two, json, removed),
        Plain::function(&["json_normalize"], one, json, |of| of_one(of, normal)),
        Plain::function(&["json_strip_nulls"], one, json, |of| of_one(of, without_nulls)),
        Plain::function(&["json_structure"], one, json, |of| of_one(of, |json| structure(&json))),
        Plain::function(&["json_pretty"], one, json, pretty),
        Plain::function(&["json_value"], two, json, plain_value),
    ]
}

fn of_one(arguments: &[ArrayRef], make: impl Fn(Json) -> Json) -> Result<ArrayRef> {
    let texts = arguments[0].as_string::<i32>().iter();
    let made = texts.map(|text| match text {
        Some(text) => Ok(Some(make(Json::read(text)?).to_string())),
        None => Ok(None),
    });
    Ok(Arc::new(made.collect::<Result<StringArray>>()?))
}

fn of_two(arguments: &[ArrayRef], make: impl Fn(Json, Json) -> Json) -> Result<ArrayRef> {
    let (ones, twos) = (arguments[0].as_string::<i32>(), arguments[1].as_string::<i32>());
    let made = ones.iter().zip(twos).map(|pair| match pair {
        (Some(one), Some(two)) => Ok(Some(make(Json::read(one)?, Json::read(two)?).to_string())),
        // Nothing is changed, so the change is all there is.
        (None, Some(two)) => Ok(Some(Json::read(two)?.to_string())),
        (_, None) => Ok(None),
    });
    Ok(Arc::new(made.collect::<Result<StringArray>>()?))
}

/// Whether the second argument is in the first one: as it is, or as an object of which there are all members.
fn contains(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let (ones, twos) = (arguments[0].as_string::<i32>(), arguments[1].as_string::<i32>());
    let found = ones.iter().zip(twos).map(|pair| match pair {
        (Some(one), Some(two)) => Ok(Some(has(&Json::read(one)?, &Json::read(two)?))),
        _ => Ok(None),
    });
    Ok(Arc::new(found.collect::<Result<BooleanArray>>()?))
}

fn has(whole: &Json, part: &Json) -> bool {
    covers(whole, part)
        || match whole {
            Json::List(elements) => elements.iter().any(|element| has(element, part)),
            Json::Object(members) => members.iter().any(|(_, value)| has(value, part)),
            _ => false,
        }
}

/// Whether a value has all members or elements of another one, or is the same.
fn covers(whole: &Json, part: &Json) -> bool {
    match (whole, part) {
        (Json::Object(members), Json::Object(parts)) => parts.iter().all(|(name, part)| {
            members.iter().any(|(member, value)| member == name && covers(value, part))
        }),
        (Json::List(elements), Json::List(parts)) => {
            parts.iter().all(|part| elements.iter().any(|element| covers(element, part)))
        }
        (Json::Object(_) | Json::List(_), _) | (_, Json::Object(_) | Json::List(_)) => false,
        (whole, part) => whole.to_string() == part.to_string(),
    }
}

/// RFC 7396: members of the patch take the place of those of the same name, and NULL removes them.
fn patched(target: Json, patch: Json) -> Json {
    let Json::Object(changes) = patch else { return patch };
    let Json::Object(mut members) = target else { return Json::Object(changes) };
    for (name, change) in changes {
        let place = members.iter().position(|(member, _)| *member == name);
        match (place, change) {
            (Some(place), Json::Null) => drop(members.remove(place)),
            (None, Json::Null) => {}
            (Some(place), change) => {
                let value = std::mem::replace(&mut members[place].1, Json::Null);
                members[place].1 = patched(value, change);
            }
            (None, change) => members.push((name, change)),
        }
    }
    Json::Object(members)
}

/// The patch that makes the second of the first.
fn patch(from: Json, to: Json) -> Json {
    let (Json::Object(from), Json::Object(to)) = (&from, &to) else { return to };
    let gone = from.iter().filter(|(name, _)| !to.iter().any(|(member, _)| member == name));
    let mut changes: Vec<_> = gone.map(|(name, _)| (name.clone(), Json::Null)).collect();
    for (name, value) in to {
        match from.iter().find(|(member, _)| member == name) {
            Some((_, before)) if before.to_string() == value.to_string() => {}
            Some((_, before)) => changes.push((name.clone(), patch(before.clone(), value.clone()))),
            None => changes.push((name.clone(), value.clone())),
        }
    }
    Json::Object(changes)
}

/// Objects member by member; of all else the second one, unless it is NULL.
fn merged(one: Json, two: Json) -> Json {
    match (one, two) {
        (one, Json::Null) => one,
        (Json::Object(mut members), Json::Object(others)) => {
            for (name, other) in others {
                match members.iter_mut().find(|(member, _)| *member == name) {
                    Some((_, value)) => {
                        *value = merged(std::mem::replace(value, Json::Null), other);
                    }
                    None if matches!(other, Json::Null) => {}
                    None => members.push((name, other)),
                }
            }
            Json::Object(members)
        }
        (_, two) => two,
    }
}

/// The first argument with the third at the path that is the second, if it may change what is there or not.
fn changed(arguments: &[ArrayRef], may_change: fn(bool) -> bool) -> Result<ArrayRef> {
    let [texts, paths, values] = [0, 1, 2].map(|place| arguments[place].as_string::<i32>());
    let made = texts.iter().zip(paths).zip(values).map(|((text, steps), value)| {
        let (Some(text), Some(steps), Some(value)) = (text, steps, value) else { return Ok(None) };
        let mut json = Json::read(text)?;
        put(&mut json, &path(steps)?, Json::read(value)?, may_change);
        Ok(Some(json.to_string()))
    });
    Ok(Arc::new(made.collect::<Result<StringArray>>()?))
}

fn put(json: &mut Json, steps: &[Step], value: Json, may_change: fn(bool) -> bool) {
    let Some((step, rest)) = steps.split_first() else {
        if may_change(true) {
            *json = value;
        }
        return;
    };
    let inner = match (json, step) {
        (Json::Object(members), Step::Member(name)) => {
            match members.iter().position(|(member, _)| member == name) {
                Some(place) => members.get_mut(place).map(|(_, value)| value),
                None if may_change(false) => {
                    let value = rest.iter().rev().try_fold(value, |value, step| match step {
                        Step::Member(name) => Some(Json::Object(vec![(name.clone(), value)])),
                        Step::Element(_) => None,
                    });
                    members.extend(value.map(|value| (name.clone(), value)));
                    return;
                }
                None => None,
            }
        }
        (Json::List(elements), Step::Element(number)) => match element(elements, *number) {
            Some(place) => elements.get_mut(place),
            None => {
                let is_next = usize::try_from(*number) == Ok(elements.len());
                if is_next && rest.is_empty() && may_change(false) {
                    elements.push(value);
                }
                return;
            }
        },
        _ => None,
    };
    if let Some(inner) = inner {
        put(inner, rest, value, may_change);
    }
}

/// The place of an element, which a negative number counts from the end.
fn element(elements: &[Json], number: i64) -> Option<usize> {
    let size = usize::try_from(number.unsigned_abs()).ok()?;
    let place = if number < 0 { elements.len().checked_sub(size)? } else { size };
    (place < elements.len()).then_some(place)
}

fn removed(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let (texts, paths) = (arguments[0].as_string::<i32>(), arguments[1].as_string::<i32>());
    let made = texts.iter().zip(paths).map(|pair| {
        let (Some(text), Some(steps)) = pair else { return Ok(None) };
        let mut json = Json::read(text)?;
        remove(&mut json, &path(steps)?);
        Ok(Some(json.to_string()))
    });
    Ok(Arc::new(made.collect::<Result<StringArray>>()?))
}

fn remove(json: &mut Json, steps: &[Step]) {
    let Some((step, rest)) = steps.split_first() else { return };
    match (json, step) {
        (Json::Object(members), Step::Member(name)) => {
            let place = members.iter().position(|(member, _)| member == name);
            match place {
                Some(place) if rest.is_empty() => drop(members.remove(place)),
                Some(place) => remove(&mut members[place].1, rest),
                None => {}
            }
        }
        (Json::List(elements), Step::Element(number)) => match element(elements, *number) {
            Some(place) if rest.is_empty() => drop(elements.remove(place)),
            Some(place) => remove(&mut elements[place], rest),
            None => {}
        },
        _ => {}
    }
}

/// With members in the order of their names.
fn normal(json: Json) -> Json {
    match json {
        Json::Object(members) => {
            let members = members.into_iter().map(|(name, value)| (name, normal(value)));
            let mut members: Vec<_> = members.collect();
            members.sort_by(|(one, _), (two, _)| one.cmp(two));
            Json::Object(members)
        }
        Json::List(elements) => Json::List(elements.into_iter().map(normal).collect()),
        json => json,
    }
}

fn without_nulls(json: Json) -> Json {
    match json {
        Json::Object(members) => {
            let members = members.into_iter().filter(|(_, value)| !matches!(value, Json::Null));
            Json::Object(members.map(|(name, value)| (name, without_nulls(value))).collect())
        }
        Json::List(elements) => Json::List(elements.into_iter().map(without_nulls).collect()),
        json => json,
    }
}

/// The names of types in place of values, with one element for all of a list.
fn structure(json: &Json) -> Json {
    match json {
        Json::Object(members) if members.is_empty() => Json::Text("JSON".to_owned()),
        Json::Object(members) => Json::Object(
            members.iter().map(|(name, value)| (name.clone(), structure(value))).collect(),
        ),
        Json::List(elements) => {
            let all = elements.iter().map(structure).reduce(common);
            Json::List(vec![all.unwrap_or_else(|| Json::Text("NULL".to_owned()))])
        }
        value => Json::Text(value.type_name().to_owned()),
    }
}

/// The structure that all of some texts have in common.
pub(super) fn structure_of_all<'a>(texts: impl Iterator<Item = &'a str>) -> Result<String> {
    let mut all: Option<Json> = None;
    for text in texts {
        let next = structure(&Json::read(text)?);
        all = Some(match all {
            Some(all) => common(all, next),
            None => next,
        });
    }
    Ok(all.unwrap_or_else(|| Json::Text("NULL".to_owned())).to_string())
}

/// The structure of two values.
fn common(one: Json, two: Json) -> Json {
    let number = |name: &str| ["UBIGINT", "BIGINT", "DOUBLE"].iter().position(|of| *of == name);
    match (one, two) {
        (Json::Object(mut members), Json::Object(others)) => {
            for (name, other) in others {
                match members.iter_mut().find(|(member, _)| *member == name) {
                    Some((_, value)) => {
                        *value = common(std::mem::replace(value, Json::Null), other);
                    }
                    None => members.push((name, other)),
                }
            }
            Json::Object(members)
        }
        (Json::List(ones), Json::List(twos)) => {
            Json::List(ones.into_iter().chain(twos).reduce(common).into_iter().collect())
        }
        (Json::Text(null), other) | (other, Json::Text(null)) if null == "NULL" => other,
        (Json::Text(one), Json::Text(two)) if one == two => Json::Text(one),
        (Json::Text(one), Json::Text(two)) => match (number(&one), number(&two)) {
            (Some(first), Some(second)) => Json::Text(if first > second { one } else { two }),
            _ => Json::Text("JSON".to_owned()),
        },
        _ => Json::Text("JSON".to_owned()),
    }
}

fn pretty(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let texts = arguments[0].as_string::<i32>().iter();
    let made = texts.map(|text| {
        let Some(text) = text else { return Ok(None) };
        let mut to = String::with_capacity(2 * text.len());
        write_pretty(&Json::read(text)?, 0, &mut to)
            .map_err(|_| exec_datafusion_err!("JSON cannot be written"))?;
        Ok(Some(to))
    });
    Ok(Arc::new(made.collect::<Result<StringArray>>()?))
}

/// With a line for each value, after four blanks for each level.
fn write_pretty(json: &Json, level: usize, to: &mut String) -> std::fmt::Result {
    let width = 4 * (level + 1);
    let end = 4 * level;
    match json {
        Json::List(elements) if !elements.is_empty() => {
            for (place, element) in elements.iter().enumerate() {
                let sign = if place == 0 { '[' } else { ',' };
                write!(to, "{sign}\n{:width$}", "")?;
                write_pretty(element, level + 1, to)?;
            }
            write!(to, "\n{:end$}]", "")
        }
        Json::Object(members) if !members.is_empty() => {
            for (place, (name, value)) in members.iter().enumerate() {
                let sign = if place == 0 { '{' } else { ',' };
                write!(to, "{sign}\n{:width$}", "")?;
                write_text(name, to)?;
                to.push_str(": ");
                write_pretty(value, level + 1, to)?;
            }
            write!(to, "\n{:end$}}}", "")
        }
        json => write!(to, "{json}"),
    }
}

/// The value at a path, if it is neither a list nor an object.
fn plain_value(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let (texts, paths) = (arguments[0].as_string::<i32>(), arguments[1].as_string::<i32>());
    let found = texts.iter().zip(paths).map(|pair| {
        let (Some(text), Some(steps)) = pair else { return Ok(None) };
        let json = Json::read(text)?;
        let value = json.at(&path(steps)?);
        Ok(value.filter(|of| !matches!(of, Json::List(_) | Json::Object(_))).map(Json::to_string))
    });
    Ok(Arc::new(found.collect::<Result<StringArray>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json {
        Json::read(text).unwrap()
    }

    #[test]
    fn patches_and_their_differences_are_inverse() {
        let from = r#"{"a":1,"b":2,"d":{"x":1,"y":2}}"#;
        let to = r#"{"a":1,"b":3,"d":{"x":1},"c":4}"#;
        let change = patch(json(from), json(to));
        assert_eq!(change.to_string(), r#"{"b":3,"d":{"y":null},"c":4}"#);
        assert_eq!(patched(json(from), change).to_string(), to);
    }

    #[test]
    fn a_value_is_put_at_a_path() {
        let put_at = |at: &str, may_change: fn(bool) -> bool| {
            let mut json = json(r#"{"a":[1,2]}"#);
            put(&mut json, &path(at).unwrap(), Json::Null, may_change);
            json.to_string()
        };
        assert_eq!(put_at("$.a[-1]", |_| true), r#"{"a":[1,null]}"#);
        assert_eq!(put_at("$.a[2]", |is_there| !is_there), r#"{"a":[1,2,null]}"#);
        assert_eq!(put_at("$.x.y", |_| true), r#"{"a":[1,2],"x":{"y":null}}"#);
        assert_eq!(put_at("$.x", |is_there| is_there), r#"{"a":[1,2]}"#);
    }
}
