//! Calls of functions with other arguments than they take.

use alluvium_sql_functions::{FUNCTIONS, Functions};

use super::wording::without_kind;

/// A call as DataFusion refuses it.
struct Call<'a> {
    name: &'a str,
    /// The types of its arguments, if the message has them.
    types: Option<&'a str>,
    /// Why, as the function itself says.
    reason: Option<&'a str>,
}

/// Functions for which the user may have written an operator, or another name.
const WRITTEN: &[(&str, &str)] = &[
    ("array_append", "||, or array_append(),"),
    ("array_concat", "||, or array_concat(),"),
    ("array_prepend", "||, or array_prepend(),"),
    ("cardinality", "ANY or ALL, or cardinality(),"),
    ("nvl", "ifnull(), or nvl(),"),
];

/// How functions are called that have no documentation.
const UNDOCUMENTED: &[(&str, &str)] = &[
    ("arg_max", "arg_max(value, order)"),
    ("arg_min", "arg_min(value, order)"),
    ("date_bin", "date_bin(interval, time[, origin])"),
    ("date_part", "date_part('unit', time)"),
    ("date_trunc", "date_trunc('unit', time)"),
    ("max", "max(expression)"),
    ("min", "min(expression)"),
    ("now", "now()"),
    ("percentile_cont", "percentile_cont(fraction) WITHIN GROUP (ORDER BY number)"),
    ("sum", "sum(number)"),
    ("to_char", "to_char(time, 'format')"),
];

/// Rewords a message about such a call for someone who knows SQL; `None` if it is about something else.
pub(super) fn told(message: &str) -> Option<String> {
    let Call { name, types, reason } = Call::of(message)?;
    match (name, types) {
        ("array_element", Some(types)) => {
            let what = types.split_once(", ").map_or(types, |(what, _)| what);
            return Some(format!("{what} has no elements: list[1] takes a list, map['key'] a map"));
        }
        ("make_array", Some(types)) => {
            return Some(format!("the elements of a list have one type, not {types}: CAST them"));
        }
        _ => {}
    }
    let written = WRITTEN.iter().find(|(function, _)| *function == name);
    let mut text =
        written.map_or_else(|| format!("{name}()"), |(_, written)| (*written).to_owned());
    match types {
        Some("") => text.push_str(" needs arguments"),
        Some(types) => text.push_str(&format!(" does not take ({types})")),
        None => text.push_str(" does not take these arguments"),
    }
    match (syntax(&FUNCTIONS, name), reason) {
        (Some(syntax), _) => text.push_str(&format!(": write {syntax}")),
        (None, Some(reason)) => text.push_str(&format!(": {reason}")),
        (None, None) => {}
    }
    Some(text)
}

impl<'a> Call<'a> {
    fn of(message: &'a str) -> Option<Call<'a>> {
        const NO_MATCH: &str = "No function matches the given name and argument types '";
        const OWN: &str = "user-defined coercion failed with: ";
        if let Some((before, behind)) = message.split_once(NO_MATCH) {
            let (call, _) = behind.split_once("'. You might")?;
            let (name, types) = call.strip_suffix(')')?.split_once('(')?;
            let reason = before.split_once(OWN).map(|(_, reason)| without_kind(reason));
            let reason = reason.map(|reason| reason.trim_end_matches(['.', ' ']));
            return Some(Call { name, types: Some(types), reason });
        }
        if let Some(rest) = message.strip_prefix("Function '")
            && let Some((name, rest)) = rest.split_once('\'')
            && rest.starts_with(" failed to match any signature")
        {
            // Each signature that has as many arguments says the type that it does not take.
            let types = rest
                .rsplit_once("(DataType: ")
                .and_then(|(_, found)| found.split_once(").").or_else(|| found.rsplit_once(')')));
            return Some(Call { name, types: types.map(|(types, _)| types), reason: None });
        }
        let rest = message.strip_prefix("Failed to coerce arguments to satisfy a call to '")?;
        let (name, rest) = rest.split_once("' function: coercion from ")?;
        let (types, _) = rest.split_once(" to the signature ")?;
        Some(Call { name, types: Some(types), reason: None })
    }
}

/// How a function is called, if that is documented.
fn syntax(functions: &Functions, name: &str) -> Option<String> {
    let scalar = functions.scalar.get(name).and_then(|function| function.documentation());
    let aggregate = || functions.aggregate.get(name).and_then(|function| function.documentation());
    let window = || functions.window.get(name).and_then(|function| function.documentation());
    let documentation = scalar.or_else(aggregate).or_else(window);
    let undocumented = || UNDOCUMENTED.iter().find(|(known, _)| *known == name);
    documentation
        .map(|documentation| documentation.syntax_example.clone())
        .or_else(|| undocumented().map(|(_, syntax)| (*syntax).to_owned()))
}
