//! Names that are near one that does not exist.

use alluvium_sql_functions::function_names;
use alluvium_sql_functions::names::{did_you_mean, nearest};

use super::{Error, SqlState};

/// The error for a column that does not exist in `place`.
pub fn no_column<'a>(
    name: &str,
    place: Option<&str>,
    candidates: impl Iterator<Item = &'a str>,
) -> Error {
    let place = place.map(|place| format!(" in \"{place}\"")).unwrap_or_default();
    Error::new(format!("no column \"{name}\"{place}{}", did_you_mean(name, candidates)), None)
        .with_sqlstate(SqlState::NO_COLUMN)
}

/// As [`did_you_mean`], of functions. There are hundreds, so one that is meant begins with the same letter and is nearer.
pub(super) fn function_meant(name: &str) -> String {
    let first = name.chars().next();
    let candidates = function_names().filter(|candidate| candidate.chars().next() == first);
    nearest(name, (1 + name.chars().count()) / 3, candidates)
}

/// As [`did_you_mean`], of words that begin a statement.
pub fn keyword_meant(word: &str, candidates: &[&str]) -> String {
    nearest(word, word.chars().count() / 3, candidates.iter().copied()).replace('"', "")
}
