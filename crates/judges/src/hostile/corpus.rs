//! The statements of the SQL files.

use sqllogictest::{Condition, Record, parse_with_name};

use crate::files::database::Letter;
use crate::files::texts;

/// The statements of one file, in order.
pub(crate) fn scripts() -> Vec<Vec<String>> {
    let scripts = texts().into_iter().map(|(name, text)| script(&name, &text));
    scripts.filter(|script| !script.is_empty()).collect()
}

fn script(name: &str, text: &str) -> Vec<String> {
    let records: Vec<Record<Letter>> = parse_with_name(text, name)
        .unwrap_or_else(|error| panic!("not a file of records: {error}"));
    let statement = |record| match record {
        Record::Statement { conditions, sql, .. } | Record::Query { conditions, sql, .. } => {
            let other =
                conditions.iter().any(|condition| matches!(condition, Condition::OnlyIf { .. }));
            (!other).then_some(sql)
        }
        _ => None,
    };
    records.into_iter().filter_map(statement).collect()
}
