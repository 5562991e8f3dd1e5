//! The questions: expressions with places for arguments, each over the kinds of arguments that people give them.

use super::kind::{Dialect, Kind, kinds};

/// The list of forms; its head says how it is written.
const FORMS: &str = include_str!("forms.txt");

/// An expression of a function or an operator, for one kind of each argument.
#[derive(Clone)]
pub(super) struct Form {
    /// The name of the function or operator, by which results are counted.
    pub(super) name: String,
    /// In each dialect, with `$1` and so on; `None` where there is none.
    templates: [Option<String>; 3],
    pub(super) kinds: Vec<&'static Kind>,
}

impl Form {
    /// The expression over these arguments, written as expressions; `None` if the dialect has none.
    pub(super) fn expression(&self, dialect: Dialect, arguments: &[String]) -> Option<String> {
        let template = self.templates[dialect as usize].as_deref()?;
        let mut parts = template.split('$');
        let mut expression = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let number = part.chars().next().and_then(|digit| digit.to_digit(10));
            match number.and_then(|number| arguments.get((number as usize).checked_sub(1)?)) {
                Some(argument) => {
                    expression += argument;
                    expression += part.get(1..).unwrap_or_default();
                }
                None => {
                    expression.push('$');
                    expression += part;
                }
            }
        }
        Some(expression)
    }

    /// The expression over constants; `None` if the dialect has no such expression, or no such types.
    pub(super) fn constant(&self, dialect: Dialect, values: &[&str]) -> Option<String> {
        let arguments: Option<Vec<_>> = self
            .kinds
            .iter()
            .zip(values)
            .map(|(kind, value)| kind.literal(dialect, value))
            .collect();
        self.expression(dialect, &arguments?)
    }

    /// Which of some names the kinds have.
    pub(super) fn has(&self, names: &[&str]) -> bool {
        self.kinds.iter().any(|kind| names.contains(&kind.name))
    }
}

/// All forms, in the order of the list.
///
/// Fails with the line that says something unknown.
pub(super) fn forms() -> Result<Vec<Form>, String> {
    let mut forms = Vec::new();
    for line in FORMS.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let mut fields = line.split('\t');
        let (Some(name), Some(template)) = (fields.next(), fields.next()) else {
            return Err(format!("a name and an expression are missing: {line}"));
        };
        let plain = || Some(template.to_owned());
        let mut templates = [plain(), plain(), plain()];
        let mut signatures: Vec<Vec<&'static Kind>> = vec![Vec::new()];
        for field in fields {
            let written = |text: &str| (text != "-").then(|| text.to_owned());
            if let Some(text) = field.strip_prefix("duckdb:") {
                templates[Dialect::DuckDb as usize] = written(text);
            } else if let Some(text) = field.strip_prefix("postgres:") {
                templates[Dialect::Postgres as usize] = written(text);
            } else {
                signatures = extended(&signatures, field).ok_or_else(|| line.to_owned())?;
            }
        }
        forms.extend(signatures.into_iter().map(|kinds| Form {
            name: name.to_owned(),
            templates: templates.clone(),
            kinds,
        }));
    }
    Ok(forms)
}

/// The signatures with one more argument, of each kind that the alternatives stand for; `None` if one stands for none.
fn extended(
    signatures: &[Vec<&'static Kind>],
    alternatives: &str,
) -> Option<Vec<Vec<&'static Kind>>> {
    let mut longer = Vec::new();
    for signature in signatures {
        let mut next: Vec<&'static Kind> = Vec::new();
        for alternative in alternatives.split('|') {
            let found = match alternative {
                "same" => signature.first().copied().into_iter().collect(),
                name => kinds(name),
            };
            if found.is_empty() {
                return None;
            }
            next.extend(found);
        }
        longer.extend(next.into_iter().map(|kind| {
            let mut signature = signature.clone();
            signature.push(kind);
            signature
        }));
    }
    Some(longer)
}

/// The combinations of values that a signature is asked with: all of them up to `limit`, otherwise as many, which have each
/// value of each kind if `limit` allows it.
pub(super) fn rows(kinds: &[&'static Kind], limit: usize) -> Vec<Vec<&'static str>> {
    let all: usize = kinds.iter().map(|kind| kind.values.len()).product();
    let nth = |number: usize| -> Vec<&'static str> {
        let mut rest = number;
        let pick = |kind: &&'static Kind| {
            let count = kind.values.len();
            let value = kind.values[rest % count];
            rest /= count;
            value
        };
        kinds.iter().map(pick).collect()
    };
    if all <= limit {
        return (0..all).map(nth).collect();
    }
    let mut random = fastrand::Rng::with_seed(all as u64);
    let mut rows: Vec<Vec<&'static str>> = Vec::new();
    let longest = kinds.iter().map(|kind| kind.values.len()).max().unwrap_or(0);
    for number in 0..longest.min(limit) {
        // Each argument runs through its values at an offset of its own.
        let offset: Vec<usize> = kinds.iter().map(|_| random.usize(..longest)).collect();
        let pick = |(place, kind): (usize, &&'static Kind)| {
            let at = if place == 0 { number } else { number + offset[place] };
            kind.values[at % kind.values.len()]
        };
        rows.push(kinds.iter().enumerate().map(pick).collect());
    }
    while rows.len() < limit {
        rows.push(nth(random.usize(..all)));
    }
    rows.sort_unstable();
    rows.dedup();
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_can_be_read_and_fills_its_places() {
        let forms = forms().unwrap();
        let plus = forms.iter().find(|form| form.name == "+").unwrap();
        let values = ["1", "2"];
        assert_eq!(
            plus.constant(Dialect::Own, &values).unwrap(),
            "CAST('1' AS TINYINT) + CAST('2' AS TINYINT)"
        );
        assert!(forms.len() > 1_000, "{}", forms.len());
    }

    /// Functions without a form: their answers are no function of their arguments, or types that only DataFusion has.
    const NO_FORM: &[&str] = &[
        // Of the time, of the session, of sequences, at random, or of the program.
        "current_date",
        "current_time",
        "localtimestamp",
        "now",
        "random",
        "uuid",
        "version",
        "current_database",
        "current_schema",
        "current_schemas",
        "current_setting",
        "current_user",
        "session_user",
        "set_config",
        "nextval",
        "currval",
        "lastval",
        "setval",
        "file_row_index",
        "input_file_name",
        // Rows rather than a value.
        "generate_subscripts",
        // Types of Arrow by name, and unions.
        "arrow_cast",
        "arrow_try_cast",
        "arrow_typeof",
        "arrow_field",
        "arrow_metadata",
        "with_metadata",
        "cast_to_type",
        "try_cast_to_type",
        "union_extract",
        "union_tag",
        // Of DataFusion alone: there is no other answer to compare with.
        "array_add",
        "array_compact",
        "array_dims",
        "array_except",
        "array_ndims",
        "list_normalize",
        "array_positions",
        "array_remove",
        "array_remove_all",
        "array_remove_n",
        "array_repeat",
        "array_replace",
        "array_replace_all",
        "list_replace_n",
        "array_scale",
        "array_subtract",
        "array_union",
        "arrays_zip",
        "empty",
        "named_struct",
        // Other names of functions that have a form.
        "array_aggr",
        "array_aggregate",
        "array_cosine_similarity",
        "array_distance",
        "array_extract",
        "array_negative_dot_product",
        "array_negative_inner_product",
        "array_reverse_sort",
        "array_slice",
        "array_sort",
        "array_unique",
        "aggregate",
        "list_aggr",
        "list_negative_dot_product",
        "list_push_front",
        "list_stddev",
        // Parts of the definitions of other functions.
        "like_pattern",
        "most_frequent",
        "weighted_mean",
        "json_structure_of_all",
    ];

    /// Aggregates that SQL defines.
    const AGGREGATES: &[&str] = &[
        "approx_count_distinct",
        "approx_quantile",
        "approx_top_k",
        "arbitrary",
        "arg_max_null",
        "arg_min_null",
        "count_if",
        "count_star",
        "countif",
        "decimal_average",
        "every",
        "favg",
        "first",
        "fsum",
        "geomean",
        "geometric_mean",
        "group_concat",
        "json_group_array",
        "json_group_object",
        "json_group_structure",
        "kahan_sum",
        "last",
        "list",
        "listagg",
        "max",
        "min",
        "string_agg",
        "sum_no_overflow",
        "sumkahan",
        "variance",
        "wavg",
        "weighted_avg",
    ];

    #[test]
    fn every_function_has_a_form() {
        let forms = FORMS.to_lowercase();
        let mut called = std::collections::HashSet::new();
        for (at, _) in forms.match_indices('(') {
            let before = &forms[..at];
            let is_name = |character: char| character.is_ascii_alphanumeric() || character == '_';
            called.insert(&before[before.trim_end_matches(is_name).len()..]);
        }
        let mut missing = Vec::new();
        for names in alluvium_sql::functions::scalar_names() {
            let is_known = |name: &&str| {
                called.contains(name) || NO_FORM.contains(name) || AGGREGATES.contains(name)
            };
            if !names.iter().any(is_known) {
                missing.push(names.join(" "));
            }
        }
        assert!(missing.is_empty(), "functions without a form:\n{}", missing.join("\n"));
    }

    #[test]
    fn rows_are_all_combinations_or_have_every_first_value() {
        let kinds = [Kind::of("double").unwrap(), Kind::of("bigint").unwrap()];
        let all = rows(&kinds, 1_000);
        assert_eq!(all.len(), kinds[0].values.len() * kinds[1].values.len());
        let some = rows(&kinds, 24);
        assert!(some.len() <= 24);
        for value in kinds[0].values {
            assert!(some.iter().any(|row| row[0] == *value), "{value}");
        }
    }
}
