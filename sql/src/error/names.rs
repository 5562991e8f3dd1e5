//! Names that are near one that does not exist.

use datafusion_common::utils::datafusion_strsim::levenshtein;

use super::{Error, SqlState};
use crate::planner::functions::function_names;

/// The error for a column that does not exist in `place`.
pub(crate) fn no_column<'a>(
    name: &str,
    place: Option<&str>,
    candidates: impl Iterator<Item = &'a str>,
) -> Error {
    let place = place.map(|place| format!(" in \"{place}\"")).unwrap_or_default();
    Error::new(format!("no column \"{name}\"{place}{}", did_you_mean(name, candidates)), None)
        .with_sqlstate(SqlState::NO_COLUMN)
}

/// `; did you mean "…"?` with the candidate nearest to `name`, or nothing if none is near.
pub(crate) fn did_you_mean<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> String {
    nearest(name, 1 + name.chars().count() / 3, candidates)
}

/// As [`did_you_mean`], of functions. There are hundreds, so one that is meant begins with the same letter and is nearer.
pub(super) fn function_meant(name: &str) -> String {
    let first = name.chars().next();
    let candidates = function_names().filter(|candidate| candidate.chars().next() == first);
    nearest(name, (1 + name.chars().count()) / 3, candidates)
}

/// As [`did_you_mean`], of words that begin a statement.
pub(crate) fn keyword_meant(word: &str, candidates: &[&str]) -> String {
    nearest(word, word.chars().count() / 3, candidates.iter().copied()).replace('"', "")
}

/// `; did you mean "…"?` with the nearest candidate that is at most so many letters away.
fn nearest<'a>(name: &str, near: usize, candidates: impl Iterator<Item = &'a str>) -> String {
    candidates
        .filter_map(|candidate| {
            let distance = levenshtein(&name.to_lowercase(), &candidate.to_lowercase());
            let rank = if is_start(name, candidate) { distance.min(1) } else { distance };
            (rank <= near).then_some((rank, distance, candidate))
        })
        .min()
        .map(|(_, _, candidate)| format!("; did you mean \"{candidate}\"?"))
        .unwrap_or_default()
}

/// Whether a name begins the candidate, as `dep` does `dep_time`; such names are near.
fn is_start(name: &str, candidate: &str) -> bool {
    name.len() >= 3 && candidate.to_lowercase().starts_with(&name.to_lowercase())
}
