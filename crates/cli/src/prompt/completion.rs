//! Completion at the prompt.

use alluvium::name::{spelled, split, written};

use crate::shell::COMMANDS;
use crate::shell::backend::Listed;

/// The SQL keywords that are completed.
const KEYWORDS: &[&str] = &[
    "ALL",
    "AND",
    "AS",
    "ASC",
    "AVG",
    "BEGIN",
    "BETWEEN",
    "BIGINT",
    "BOOLEAN",
    "BY",
    "CASE",
    "CAST",
    "COALESCE",
    "COMMIT",
    "COPY",
    "COUNT",
    "CREATE",
    "CROSS",
    "DATE",
    "DATE_TRUNC",
    "DECIMAL",
    "DEFAULT",
    "DELETE",
    "DENSE_RANK",
    "DESC",
    "DISTINCT",
    "DOUBLE",
    "DROP",
    "ELSE",
    "END",
    "EXCEPT",
    "EXISTS",
    "EXPLAIN",
    "EXTRACT",
    "FALSE",
    "FILTER",
    "FROM",
    "FULL",
    "GROUP",
    "HAVING",
    "IN",
    "INNER",
    "INSERT",
    "INTEGER",
    "INTERSECT",
    "INTERVAL",
    "INTO",
    "IS",
    "JOIN",
    "KEY",
    "LEFT",
    "LIKE",
    "LIMIT",
    "LOCAL",
    "MATERIALIZED",
    "MAX",
    "MIN",
    "NOT",
    "NULL",
    "ON",
    "OR",
    "ORDER",
    "OUTER",
    "OVER",
    "PARTITION",
    "PRIMARY",
    "RANK",
    "RIGHT",
    "ROLLBACK",
    "ROLLUP",
    "ROW_NUMBER",
    "SELECT",
    "SET",
    "START",
    "SUBSCRIBE",
    "SUM",
    "TABLE",
    "THEN",
    "TIMESTAMP",
    "TO",
    "TRUE",
    "UNION",
    "UPDATE",
    "USING",
    "VALUES",
    "VARCHAR",
    "VIEW",
    "WHEN",
    "WHERE",
    "WITH",
];

/// Keywords that only the name of a relation can follow.
const BEFORE_RELATIONS: &[&str] =
    &["COPY", "FROM", "INTO", "JOIN", "SUBSCRIBE", "TABLE", "UPDATE", "VIEW"];

/// Completes keywords, commands, and the names of relations and columns.
pub(crate) struct Names(Box<dyn Fn() -> Vec<Listed>>);

impl Names {
    /// Completes the names that `relations` gives each time.
    pub(crate) fn new(relations: Box<dyn Fn() -> Vec<Listed>>) -> Self {
        Self(relations)
    }

    /// The completions of the word at the end of `line`, and the byte where the word starts.
    pub(crate) fn complete(&self, line: &str) -> (usize, Vec<String>) {
        complete(line, &(self.0)())
    }
}

fn complete(line: &str, relations: &[Listed]) -> (usize, Vec<String>) {
    if line.trim_start().starts_with('.') {
        let start = line.len() - line.trim_start().len();
        let known = COMMANDS.iter().map(|(name, ..)| name.to_string());
        return (start, known.filter(|name| name.starts_with(&line[start..])).collect());
    }
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    let start = line.trim_end_matches(is_part).len();
    let (before, word) = line.split_at(start);
    let mut found = Vec::new();
    if let Some(qualified) = before.strip_suffix('.') {
        let is_part = |character: char| is_part(character) || character == '.';
        let name = &qualified[qualified.trim_end_matches(is_part).len()..];
        for relation in relations {
            let (schema, own_name) = split(&relation.name);
            let is_named =
                [&relation.name, &own_name].iter().any(|of| of.eq_ignore_ascii_case(name));
            found.extend(is_named.then(|| columns(relation)).into_iter().flatten());
            found.extend(schema.eq_ignore_ascii_case(name).then(|| spelled(&own_name)));
        }
    } else {
        let last = before.split_whitespace().next_back().unwrap_or_default().to_uppercase();
        found.extend(relations.iter().map(|relation| written(&relation.name)));
        if !BEFORE_RELATIONS.contains(&last.as_str()) {
            found.extend(relations.iter().flat_map(columns));
            // Without a prefix there are too many keywords to list.
            if !word.is_empty() {
                let lower = word.chars().all(|character| !character.is_uppercase());
                let case = |keyword: &&str| {
                    if lower { keyword.to_lowercase() } else { keyword.to_string() }
                };
                found.extend(KEYWORDS.iter().map(case));
            }
        }
    }
    let begins = |name: &String| {
        let name = name.trim_start_matches('"');
        name.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
    };
    found.retain(begins);
    found.sort_unstable();
    found.dedup();
    (start, found)
}

fn columns(relation: &Listed) -> impl Iterator<Item = String> {
    relation.columns.iter().map(|name| spelled(name))
}

#[cfg(test)]
mod tests {
    use alluvium::Engine;

    use super::*;
    use crate::shell::backend::Backend;
    use crate::shell::local::Local;

    fn completed(line: &str) -> (usize, Vec<String>) {
        let engine = Engine::builder().workers(1).open_in_memory().unwrap();
        let text = "CREATE TABLE flights (dep_time INT, \"Seat\" INT);
            CREATE MATERIALIZED VIEW fleet AS SELECT COUNT(*) AS planes FROM flights;
            CREATE SCHEMA zoo; CREATE TABLE zoo.\"Apes\" (hair INT)";
        engine.execute(text).unwrap();
        Names::new(Local::new(engine).names()).complete(line)
    }

    #[test]
    fn names_complete_to_existing_relations_and_columns() {
        for (line, start, expected) in [
            ("SELECT * FROM fl", 14, &["fleet", "flights"][..]),
            ("SELECT * FROM ", 14, &["fleet", "flights", "zoo.\"Apes\""]),
            ("SELECT * FROM zoo.", 18, &["\"Apes\""]),
            ("SELECT zoo.Apes.h", 16, &["hair"]),
            ("SELECT FLI", 7, &["flights"]),
            ("SELECT flights.", 15, &["\"Seat\"", "dep_time"]),
            ("SELECT (se", 8, &["\"Seat\"", "select", "set"]),
            ("SEL", 0, &["SELECT"]),
            ("sel", 0, &["select"]),
            (" .t", 1, &[".tables", ".timer"]),
            ("SELECT x.", 9, &[]),
            ("é", 0, &[]),
        ] {
            let expected = expected.iter().map(|name| name.to_string()).collect();
            assert_eq!(completed(line), (start, expected), "{line}");
        }
    }
}
