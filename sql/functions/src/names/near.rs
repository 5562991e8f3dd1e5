//! Names that are near one that does not exist.

use datafusion_common::utils::datafusion_strsim::levenshtein;

/// `; did you mean "…"?` with the candidate nearest to `name`, or nothing if none is near.
pub fn did_you_mean<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> String {
    nearest(name, 1 + name.chars().count() / 3, candidates)
}

/// `; did you mean "…"?` with the nearest candidate that is at most so many letters away.
pub fn nearest<'a>(name: &str, near: usize, candidates: impl Iterator<Item = &'a str>) -> String {
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
