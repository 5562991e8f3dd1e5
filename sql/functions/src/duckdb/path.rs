//! Paths of files, as texts.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListBuilder, StringArray, StringBuilder};
use arrow::datatypes::{DataType, Field};
use datafusion_common::{Result, exec_err, plan_err};
use datafusion_expr::ScalarUDF;

use super::plain::{Plain, texts, wrong_number};

pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    let text = |_: &[DataType]| DataType::Utf8;
    let list =
        |_: &[DataType]| DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true)));
    let separated = texts::<1, 2>;
    vec![
        Plain::function(&["parse_filename"], named, text, file_name),
        Plain::function(&["parse_dirname"], separated, text, |of| each(of, first_folder)),
        Plain::function(&["parse_dirpath"], separated, text, |of| each(of, folders)),
        Plain::function(&["parse_path"], separated, list, parts),
        Plain::function(&["path_join"], some, text, joined),
    ]
}

fn some(arguments: &[DataType]) -> Result<Vec<DataType>> {
    texts::<1, 100>(arguments)
}

/// A path, perhaps whether its extension goes, and perhaps a separator.
fn named(arguments: &[DataType]) -> Result<Vec<DataType>> {
    let kinds = match arguments {
        [_] => vec![DataType::Utf8],
        [_, second] if second.is_string() => vec![DataType::Utf8; 2],
        [_, _] => vec![DataType::Utf8, DataType::Boolean],
        [_, _, _] => vec![DataType::Utf8, DataType::Boolean, DataType::Utf8],
        _ => return wrong_number(1, 3, arguments.len()),
    };
    match arguments[0].is_string() || arguments[0].is_null() {
        true => Ok(kinds),
        false => plan_err!("a path is a text, not {}", arguments[0]),
    }
}

/// The characters between folders.
fn separators(name: Option<&str>) -> Result<&'static [char]> {
    match name.map(str::to_ascii_lowercase).as_deref() {
        None | Some("both_slash" | "default") => Ok(&['/', '\\']),
        Some("forward_slash" | "system") => Ok(&['/']),
        Some("backslash") => Ok(&['\\']),
        Some(other) => exec_err!(
            "\"{other}\" is no separator: both_slash, forward_slash, backslash and system are"
        ),
    }
}

/// Calls a function of each path and its separators.
fn each(arguments: &[ArrayRef], part: for<'a> fn(&'a str, &[char]) -> &'a str) -> Result<ArrayRef> {
    let paths = arguments[0].as_string::<i32>();
    let names = arguments.get(1).map(|names| names.as_string::<i32>());
    let parts = paths.iter().enumerate().map(|(row, path)| {
        let name = match names {
            Some(names) if names.is_null(row) => return Ok(None),
            names => names.map(|names| names.value(row)),
        };
        let separators = separators(name)?;
        Ok(path.map(|path| part(path, separators)))
    });
    Ok(Arc::new(parts.collect::<Result<StringArray>>()?))
}

fn first_folder<'a>(path: &'a str, separators: &[char]) -> &'a str {
    match path.find(separators) {
        Some(0) => &path[..1],
        Some(end) => &path[..end],
        None => "",
    }
}

fn folders<'a>(path: &'a str, separators: &[char]) -> &'a str {
    match path.rfind(separators) {
        // The root is in itself.
        Some(0) if path.len() == 1 => path,
        end => end.map_or("", |end| &path[..end]),
    }
}

fn last<'a>(path: &'a str, separators: &[char]) -> &'a str {
    path.rsplit(separators).next().unwrap_or("")
}

fn file_name(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let Some(trimmed) = arguments.get(1).and_then(|of| of.as_boolean_opt()) else {
        return each(arguments, last);
    };
    let named = [Some(Arc::clone(&arguments[0])), arguments.get(2).cloned()];
    let named: Vec<ArrayRef> = named.into_iter().flatten().collect();
    let names = each(&named, last)?;
    let names = names.as_string::<i32>().iter().zip(trimmed);
    let names = names.map(|(name, is_trimmed)| {
        let name = name?;
        let end = name.rfind('.').filter(|_| is_trimmed == Some(true));
        is_trimmed.map(|_| end.map_or(name, |end| &name[..end]))
    });
    Ok(Arc::new(names.collect::<StringArray>()))
}

fn parts(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let paths = arguments[0].as_string::<i32>();
    let names = arguments.get(1).map(|names| names.as_string::<i32>());
    let mut parts = ListBuilder::new(StringBuilder::new());
    for (row, path) in paths.iter().enumerate() {
        let is_known = names.is_none_or(|names| names.is_valid(row));
        let Some(path) = path.filter(|_| is_known) else {
            parts.append_null();
            continue;
        };
        let separators = separators(names.map(|names| names.value(row)))?;
        // The root is a folder, too.
        let root = if path.starts_with(separators) { &path[..1] } else { "" };
        for part in std::iter::once(root).chain(path.split(separators)) {
            if !part.is_empty() {
                parts.values().append_value(part);
            }
        }
        parts.append(true);
    }
    Ok(Arc::new(parts.finish()))
}

/// The paths joined, without `.` and with `..` resolved.
fn joined(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let columns: Vec<_> = arguments.iter().map(|of| of.as_string::<i32>()).collect();
    let rows = columns.first().map_or(0, |column| column.len());
    let joined = (0..rows).map(|row| {
        if columns.iter().any(|column| column.is_null(row)) {
            return Ok(None);
        }
        let (mut parts, mut is_rooted): (Vec<&str>, bool) = (Vec::new(), false);
        for (place, column) in columns.iter().enumerate() {
            let path = column.value(row);
            match (place, path.starts_with('/')) {
                (0, rooted) => is_rooted = rooted,
                (_, true) => {
                    return exec_err!("\"{path}\" begins at the root, so it joins no path");
                }
                (_, false) => {}
            }
            for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
                match (part, parts.last()) {
                    ("..", Some(last)) if *last != ".." => drop(parts.pop()),
                    ("..", None) if is_rooted => {}
                    (part, _) => parts.push(part),
                }
            }
        }
        let root = if is_rooted { "/" } else { "" };
        Ok(Some(format!("{root}{}", parts.join("/"))))
    });
    Ok(Arc::new(joined.collect::<Result<StringArray>>()?))
}
