//! What holds for the rows of a plan.

use std::collections::BTreeSet;

use arrow::compute::SortOptions;

/// What holds for the rows of a plan, at all times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Properties {
    /// Unique keys: sets of output columns on which no two rows agree, NULLs counted as equal.
    ///
    /// The empty key says that there is at most one row.
    pub unique: Vec<Vec<usize>>,
    /// Whether rows are only ever inserted.
    pub append_only: bool,
}

/// How rows are ordered by a column where nothing else is specified.
pub(super) const ASCENDING: SortOptions = SortOptions { descending: false, nulls_first: false };

impl Properties {
    /// Properties with these unique keys, without the redundant ones.
    pub(super) fn new(unique: Vec<Vec<usize>>, append_only: bool) -> Self {
        Self { unique: minimal(unique), append_only }
    }

    /// Whether there is at most one row.
    pub(crate) fn at_most_one_row(&self) -> bool {
        self.unique.iter().any(Vec::is_empty)
    }

    /// The unique key with the fewest columns, and of several the one whose columns come first.
    pub(crate) fn shortest_key(&self) -> Option<&[usize]> {
        // They are in the order of their columns.
        self.unique.iter().min_by_key(|key| key.len()).map(Vec::as_slice)
    }

    /// Whether no two rows agree on these columns.
    pub(super) fn has_key_within(&self, columns: impl Iterator<Item = usize> + Clone) -> bool {
        let within = |column: &usize| columns.clone().any(|other| other == *column);
        self.unique.iter().any(|key| key.iter().all(within))
    }

    /// Columns that break the ties among rows of a group that are equal in an order; `None` if only all columns
    /// are known to.
    pub(super) fn tie_breakers(
        &self,
        keys: &[usize],
        order: &[(usize, SortOptions)],
    ) -> Option<Vec<usize>> {
        let fixed = |column: &usize| {
            keys.contains(column) || order.iter().any(|(ordered, _)| ordered == column)
        };
        self.unique
            .iter()
            .map(|key| key.iter().copied().filter(|column| !fixed(column)).collect::<Vec<_>>())
            .min_by_key(Vec::len)
    }
}

/// A key whose columns stand `width` places further right.
pub(super) fn shifted(key: &[usize], width: usize) -> Vec<usize> {
    key.iter().map(|column| column + width).collect()
}

/// Key sets without repetitions, and without keys that contain another.
fn minimal(keys: Vec<Vec<usize>>) -> Vec<Vec<usize>> {
    let sets: BTreeSet<BTreeSet<usize>> =
        keys.into_iter().map(|key| key.into_iter().collect()).collect();
    let is_minimal =
        |key: &BTreeSet<usize>| !sets.iter().any(|other| other != key && other.is_subset(key));
    sets.iter().filter(|key| is_minimal(key)).map(|key| key.iter().copied().collect()).collect()
}
