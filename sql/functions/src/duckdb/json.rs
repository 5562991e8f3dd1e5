//! Functions of JSON, which is text.

use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};

use arrow::array::types::Int64Type;
use arrow::array::{
    Array, ArrayRef, AsArray, BooleanBuilder, Int64Builder, ListBuilder, StringBuilder,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Float64Type};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion_common::{Result, exec_datafusion_err, exec_err, plan_err};
use datafusion_expr::ScalarUDF;

use super::json_value::{Json, Step, path, write_text};
use super::plain::{Plain, wrong_number};

/// `json_extract`, which is the operator `->`.
pub static EXTRACT: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Plain::function(&["json_extract", "json_extract_path"], with_path::<2>, utf8, extract)
});

/// `json_extract_string`, which is the operator `->>`.
pub static EXTRACT_TEXT: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let names = ["json_extract_string", "json_extract_path_text"];
    Plain::function(&names, with_path::<2>, utf8, extract_text)
});

pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    let big = |_: &[DataType]| DataType::Int64;
    let names =
        |_: &[DataType]| DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true)));
    let anything = |types: &[DataType]| Ok(types.to_vec());
    let boolean = |_: &[DataType]| DataType::Boolean;
    vec![
        Arc::clone(&EXTRACT),
        Arc::clone(&EXTRACT_TEXT),
        Plain::function(&["json"], with_path::<1>, utf8, extract),
        Plain::function(&["json_type"], with_path::<1>, utf8, type_name),
        Plain::function(&["json_array_length"], with_path::<1>, big, array_length),
        Plain::function(&["json_keys"], with_path::<1>, names, keys),
        Plain::function(&["json_exists"], with_path::<2>, boolean, exists),
        Plain::function(&["json_valid"], with_path::<1>, boolean, is_valid),
        Plain::function(&["to_json", "json_quote", "array_to_json"], one, utf8, to_json),
        Plain::function(&["json_array"], anything, utf8, array),
        Plain::function(&["json_object"], members, utf8, object),
    ]
}

fn utf8(_: &[DataType]) -> DataType {
    DataType::Utf8
}

/// JSON and a path, which may be missing if `LEAST` is one.
fn with_path<const LEAST: usize>(arguments: &[DataType]) -> Result<Vec<DataType>> {
    if arguments.len() < LEAST || arguments.len() > 2 {
        return wrong_number(LEAST, 2, arguments.len());
    }
    let is_text = |kind: &DataType| kind.is_string() || kind.is_null();
    if !is_text(&arguments[0]) {
        return plan_err!("JSON is text here, not {}", arguments[0]);
    }
    let mut types = vec![DataType::Utf8];
    match arguments.get(1) {
        Some(place) if place.is_integer() => types.push(DataType::Int64),
        Some(path) if is_text(path) => types.push(DataType::Utf8),
        Some(other) => return plan_err!("a path is a text or an integer, not {other}"),
        None => {}
    }
    Ok(types)
}

fn one(arguments: &[DataType]) -> Result<Vec<DataType>> {
    match arguments {
        [_] => Ok(arguments.to_vec()),
        _ => wrong_number(1, 1, arguments.len()),
    }
}

/// Names and values.
fn members(arguments: &[DataType]) -> Result<Vec<DataType>> {
    if arguments.len() % 2 == 1 {
        return plan_err!("a name and a value are expected for each member");
    }
    let places = arguments.iter().enumerate();
    Ok(places.map(|(at, kind)| if at % 2 == 0 { DataType::Utf8 } else { kind.clone() }).collect())
}

/// Calls `visit` for each row with the value at its path, if there is one; `None` stands for NULL.
fn each(
    arguments: &[ArrayRef],
    mut visit: impl FnMut(Option<Option<&Json>>) -> Result<()>,
) -> Result<()> {
    let texts = arguments[0].as_string::<i32>();
    let mut last: Option<(&str, Vec<Step>)> = None;
    for (row, text) in texts.iter().enumerate() {
        let paths = arguments.get(1);
        let (Some(text), true) = (text, paths.is_none_or(|paths| paths.is_valid(row))) else {
            visit(None)?;
            continue;
        };
        let value = Json::read(text)?;
        match paths {
            None => visit(Some(Some(&value)))?,
            Some(places) if places.data_type() == &DataType::Int64 => {
                let place = Step::Element(places.as_primitive::<Int64Type>().value(row));
                visit(Some(value.at(&[place])))?;
            }
            Some(paths) => {
                let text = paths.as_string::<i32>().value(row);
                let steps = match last.take() {
                    Some((known, steps)) if known == text => steps,
                    _ => path(text)?,
                };
                visit(Some(value.at(&steps)))?;
                last = Some((text, steps));
            }
        }
    }
    Ok(())
}

fn texts(arguments: &[ArrayRef], text: impl Fn(&Json) -> Option<String>) -> Result<ArrayRef> {
    let mut texts = StringBuilder::new();
    each(arguments, |value| {
        texts.append_option(value.flatten().and_then(&text));
        Ok(())
    })?;
    Ok(Arc::new(texts.finish()))
}

fn extract(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    texts(arguments, |value| Some(value.to_string()))
}

fn extract_text(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    texts(arguments, |value| match value {
        Json::Null => None,
        Json::Text(text) => Some(text.clone()),
        other => Some(other.to_string()),
    })
}

fn type_name(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    texts(arguments, |value| Some(value.type_name().to_owned()))
}

fn array_length(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let mut lengths = Int64Builder::new();
    each(arguments, |value| {
        lengths.append_option(value.flatten().map(|value| match value {
            Json::List(elements) => elements.len() as i64,
            _ => 0,
        }));
        Ok(())
    })?;
    Ok(Arc::new(lengths.finish()))
}

fn keys(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let mut keys = ListBuilder::new(StringBuilder::new());
    each(arguments, |value| {
        if let Some(Some(Json::Object(members))) = value {
            members.iter().for_each(|(name, _)| keys.values().append_value(name));
        }
        keys.append(value.flatten().is_some());
        Ok(())
    })?;
    Ok(Arc::new(keys.finish()))
}

fn exists(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let mut found = BooleanBuilder::new();
    each(arguments, |value| {
        found.append_option(value.map(|value| value.is_some()));
        Ok(())
    })?;
    Ok(Arc::new(found.finish()))
}

fn is_valid(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    if arguments.len() > 1 {
        return exec_err!("json_valid takes one argument");
    }
    let mut valid = BooleanBuilder::new();
    for text in arguments[0].as_string::<i32>() {
        valid.append_option(text.map(|text| Json::read(text).is_ok()));
    }
    Ok(Arc::new(valid.finish()))
}

fn to_json(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let values = &arguments[0];
    let mut written = StringBuilder::new();
    for row in 0..values.len() {
        if values.is_null(row) || values.data_type().is_null() {
            written.append_null();
        } else {
            let mut text = String::new();
            write(values, row, &mut text)?;
            written.append_value(text);
        }
    }
    Ok(Arc::new(written.finish()))
}

fn array(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let mut written = StringBuilder::new();
    for row in 0..arguments.first().map_or(1, |values| values.len()) {
        let mut text = "[".to_owned();
        for (place, values) in arguments.iter().enumerate() {
            text.push_str(if place > 0 { "," } else { "" });
            write(values, row, &mut text)?;
        }
        text.push(']');
        written.append_value(text);
    }
    Ok(Arc::new(written.finish()))
}

fn object(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let mut written = StringBuilder::new();
    for row in 0..arguments.first().map_or(1, |values| values.len()) {
        let mut text = "{".to_owned();
        for (place, member) in arguments.chunks_exact(2).enumerate() {
            if member[0].is_null(row) {
                return exec_err!("the name of a member of JSON is NULL");
            }
            text.push_str(if place > 0 { "," } else { "" });
            write_name(member[0].as_string::<i32>().value(row), &mut text)?;
            write(&member[1], row, &mut text)?;
        }
        text.push('}');
        written.append_value(text);
    }
    Ok(Arc::new(written.finish()))
}

fn write_name(name: &str, to: &mut String) -> Result<()> {
    write_text(name, to)
        .and_then(|()| to.write_char(':'))
        .map_err(|_| exec_datafusion_err!("a name of a member cannot be written"))
}

/// Without an exponent from 0.000001 up to 21 digits, as JavaScript and DuckDB do.
fn write_double(value: f64, to: &mut String) -> std::fmt::Result {
    match value.abs() {
        size if size != 0.0 && !(1e-6..1e21).contains(&size) => write!(to, "{value:?}"),
        _ if value.fract() == 0.0 => write!(to, "{value:.1}"),
        _ => write!(to, "{value}"),
    }
}

/// Writes a value as JSON.
fn write(values: &ArrayRef, row: usize, to: &mut String) -> Result<()> {
    let failed = |_| exec_datafusion_err!("a value of {} cannot be written", values.data_type());
    if values.is_null(row) {
        to.push_str("null");
        return Ok(());
    }
    let text = || -> Result<String> {
        let formatter = ArrayFormatter::try_new(values, &FormatOptions::new())?;
        Ok(formatter.value(row).to_string())
    };
    match values.data_type() {
        DataType::Null => to.push_str("null"),
        DataType::Float32 | DataType::Float64 => {
            let doubles = cast(&values.slice(row, 1), &DataType::Float64)?;
            let value = doubles.as_primitive::<Float64Type>().value(0);
            match value.is_finite() {
                true => write_double(value, to).map_err(failed)?,
                false => to.push_str("null"),
            }
        }
        number if number.is_numeric() || number == &DataType::Boolean => to.push_str(&text()?),
        DataType::List(_) => {
            let elements = values.as_list::<i32>().value(row);
            to.push('[');
            for place in 0..elements.len() {
                to.push_str(if place > 0 { "," } else { "" });
                write(&elements, place, to)?;
            }
            to.push(']');
        }
        DataType::Struct(fields) => {
            to.push('{');
            for (place, (field, column)) in
                fields.iter().zip(values.as_struct().columns()).enumerate()
            {
                to.push_str(if place > 0 { "," } else { "" });
                write_name(field.name(), to)?;
                write(column, row, to)?;
            }
            to.push('}');
        }
        DataType::Map(..) => {
            let entries = values.as_map().value(row);
            let names = cast(entries.column(0), &DataType::Utf8)?;
            to.push('{');
            for place in 0..entries.len() {
                to.push_str(if place > 0 { "," } else { "" });
                write_name(names.as_string::<i32>().value(place), to)?;
                write(entries.column(1), place, to)?;
            }
            to.push('}');
        }
        DataType::Timestamp(..) => {
            write_text(&text()?.replacen('T', " ", 1), to).map_err(failed)?;
        }
        _ => write_text(&text()?, to).map_err(failed)?,
    }
    Ok(())
}
