//! The functions that queries can call: the engine's own, and those of the catalog.

use std::collections::BTreeMap;

use alluvium::unstable::{FunctionKind, function_kind, function_names};

/// The view that lists their names, and their kinds as `pg_proc` has them. The texts are those that define functions.
pub(super) fn sql(texts: &[String]) -> String {
    let own = function_names().map(|name| (name, kind(name)));
    let defined = texts.iter().flat_map(|text| text.lines()).filter_map(|line| {
        let (name, _) = line.strip_prefix("CREATE FUNCTION ")?.split_once('(')?;
        Some((name.trim_matches('"'), 'f'))
    });
    let all: BTreeMap<&str, char> = own.chain(defined).collect();
    // Operators are functions with names that are no words.
    let is_word =
        |name: &str| name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    let rows: Vec<String> = all
        .iter()
        .filter(|(name, _)| is_word(name))
        .map(|(name, kind)| format!("('{name}', '{kind}')"))
        .collect();
    format!(
        "CREATE VIEW pg_internal.functions (name, kind) AS SELECT * FROM (VALUES {}) AS known;\n",
        rows.join(", ")
    )
}

fn kind(name: &str) -> char {
    match function_kind(name, false) {
        Some(FunctionKind::Aggregate) => 'a',
        Some(FunctionKind::Window) => 'w',
        Some(FunctionKind::Scalar) | None => 'f',
    }
}
