//! Matches of regular expressions: `regexp_extract`, `regexp_extract_all` and `regexp_split_to_array`.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListBuilder, StringBuilder};
use arrow::datatypes::{DataType, Field, Int64Type};
use datafusion_common::{Result, exec_datafusion_err, exec_err, plan_err};
use datafusion_expr::ScalarUDF;
use regex::{Regex, RegexBuilder};

use super::plain::{Plain, texts};

pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    let split = ["regexp_split_to_array", "string_split_regex", "str_split_regex"];
    vec![
        Plain::function(&["regexp_extract"], with_group, |_| DataType::Utf8, extract),
        Plain::function(&["regexp_extract_all"], with_group, list, extract_all),
        Plain::function(&split, texts::<2, 3>, list, split_by),
    ]
}

fn list(_: &[DataType]) -> DataType {
    DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true)))
}

/// A text, a pattern, perhaps the number of a group, and perhaps options.
fn with_group(arguments: &[DataType]) -> Result<Vec<DataType>> {
    // Options alone, without a group.
    if arguments.len() == 3 && arguments[2].is_string() {
        return texts::<3, 3>(arguments);
    }
    match arguments.get(2) {
        Some(group) if !group.is_integer() && !group.is_null() => {
            return plan_err!("the third argument is the number of a group, not {group}");
        }
        _ => {}
    }
    let mut types = texts::<2, 4>(&vec![DataType::Utf8; arguments.len()])?;
    texts::<2, 2>(&arguments[..2])?;
    if let Some(group) = types.get_mut(2) {
        *group = DataType::Int64;
    }
    Ok(types)
}

/// The pattern that was compiled last: most calls have a single one.
#[derive(Default)]
struct Last {
    compiled: Option<(String, String, Regex)>,
}

impl Last {
    fn compile(&mut self, pattern: &str, options: &str) -> Result<&Regex> {
        let is_same =
            |(known, with, _): &(String, String, Regex)| known == pattern && with == options;
        if !self.compiled.as_ref().is_some_and(is_same) {
            let mut builder = RegexBuilder::new(pattern);
            for option in options.chars() {
                match option {
                    'c' => builder.case_insensitive(false),
                    'i' => builder.case_insensitive(true),
                    's' => builder.dot_matches_new_line(true),
                    'm' | 'n' | 'p' => builder.multi_line(true),
                    'g' => &mut builder,
                    _ => return exec_err!("a regular expression has no option '{option}'"),
                };
            }
            let regex = builder
                .build()
                .map_err(|error| exec_datafusion_err!("'{pattern}' is no pattern: {error}"))?;
            self.compiled = Some((pattern.to_owned(), options.to_owned(), regex));
        }
        match &self.compiled {
            Some((_, _, regex)) => Ok(regex),
            None => exec_err!("'{pattern}' is no pattern"),
        }
    }
}

/// Calls `visit` for each row with the text, the pattern and the group; with `None` for NULL.
fn each(
    arguments: &[ArrayRef],
    mut visit: impl FnMut(Option<(&str, &Regex, usize)>),
) -> Result<()> {
    let texts = arguments[0].as_string::<i32>();
    let patterns = arguments[1].as_string::<i32>();
    let groups = arguments.get(2).and_then(|groups| groups.as_primitive_opt::<Int64Type>());
    let options = arguments.get(if groups.is_some() { 3 } else { 2 });
    let options = options.map(|options| options.as_string::<i32>());
    let mut last = Last::default();
    for (row, (text, pattern)) in texts.iter().zip(patterns).enumerate() {
        let group =
            groups.map_or(Some(0), |groups| groups.is_valid(row).then(|| groups.value(row)));
        let option =
            options.map_or(Some(""), |options| options.is_valid(row).then(|| options.value(row)));
        let (Some(text), Some(pattern), Some(group), Some(option)) = (text, pattern, group, option)
        else {
            visit(None);
            continue;
        };
        let regex = last.compile(pattern, option)?;
        match usize::try_from(group) {
            Ok(group) if group < regex.captures_len() => visit(Some((text, regex, group))),
            _ => return exec_err!("'{pattern}' has no group {group}"),
        }
    }
    Ok(())
}

/// The first match, or an empty text.
fn extract(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let mut matched = StringBuilder::new();
    each(arguments, |row| match row {
        Some((text, regex, 0)) => {
            matched.append_value(regex.find(text).map_or("", |found| found.as_str()));
        }
        Some((text, regex, group)) => {
            let found = regex.captures(text).and_then(|captures| captures.get(group));
            matched.append_value(found.map_or("", |found| found.as_str()));
        }
        None => matched.append_null(),
    })?;
    Ok(Arc::new(matched.finish()))
}

fn extract_all(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let mut matched = ListBuilder::new(StringBuilder::new());
    each(arguments, |row| {
        if let Some((text, regex, group)) = row {
            for captures in regex.captures_iter(text) {
                let found = captures.get(group).map_or("", |found| found.as_str());
                matched.values().append_value(found);
            }
        }
        matched.append(row.is_some());
    })?;
    Ok(Arc::new(matched.finish()))
}

fn split_by(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let mut parts = ListBuilder::new(StringBuilder::new());
    each(arguments, |row| {
        if let Some((text, regex, _)) = row {
            // Nothing is before the text and after it.
            let is_end = |found: &regex::Match<'_>| {
                found.is_empty() && (found.start() == 0 || found.end() == text.len())
            };
            let mut start = 0;
            for found in regex.find_iter(text).filter(|found| !is_end(found)) {
                parts.values().append_value(&text[start..found.start()]);
                start = found.end();
            }
            parts.values().append_value(&text[start..]);
        }
        parts.append(row.is_some());
    })?;
    Ok(Arc::new(parts.finish()))
}
