//! Properties of the rows of a plan.

use std::collections::BTreeSet;

use arrow::compute::SortOptions;

use crate::fault::{self, Fault};

/// Properties of the rows of a plan, at all times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Properties {
    /// Unique keys: sets of output columns on which no two rows agree, NULLs counted as equal.
    ///
    /// The empty key says that there is at most one row.
    pub unique: Vec<Vec<usize>>,
    /// Further dependencies between columns: each unique key has all columns follow from it.
    pub dependencies: Vec<Dependency>,
    /// Whether rows are only ever inserted.
    pub append_only: bool,
}

/// A functional dependency: at all times, rows that agree on some columns agree on others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// The columns on which they agree.
    pub by: Vec<usize>,
    /// Those that follow from these. A dependency that is `promised` is one also without any, if none is passed on.
    pub columns: Vec<usize>,
    /// Whether it rests on a key that is not enforced. Only the forgetting of state may depend on it.
    pub promised: bool,
}

/// How rows are ordered by a column where nothing else is specified.
pub(super) const ASCENDING: SortOptions = SortOptions { descending: false, nulls_first: false };

impl Properties {
    /// Properties with these unique keys, without the redundant ones.
    pub(super) fn new(unique: Vec<Vec<usize>>, append_only: bool) -> Self {
        Self { unique: minimal(unique), dependencies: Vec::new(), append_only }
    }

    /// The same, with these dependencies as far as they do not follow from a unique key.
    pub(super) fn with(self, mut dependencies: Vec<Dependency>) -> Self {
        dependencies.retain(|one| one.promised || !self.has_key_within(one.by.iter().copied()));
        Self { dependencies, ..self }
    }

    /// All dependencies of rows of so many columns, those of unique keys with the others.
    pub(super) fn all_dependencies(&self, width: usize) -> Vec<Dependency> {
        let of_key = |key: &Vec<usize>| Dependency {
            by: key.clone(),
            columns: (0..width).filter(|column| !key.contains(column)).collect(),
            promised: false,
        };
        self.unique.iter().map(of_key).chain(self.dependencies.iter().cloned()).collect()
    }

    /// For each of so many columns whether its value follows from those of the columns `by`. Dependencies that are only promised
    /// count if `promised`.
    pub(super) fn determined(&self, by: &[usize], width: usize, promised: bool) -> Vec<bool> {
        let mut known = vec![fault::armed(Fault::AllFollows); width];
        by.iter().for_each(|column| known[*column] = true);
        let mut left: Vec<&Dependency> =
            self.dependencies.iter().filter(|one| promised || !one.promised).collect();
        loop {
            if self.unique.iter().any(|key| key.iter().all(|column| known[*column])) {
                return vec![true; width];
            }
            let before = left.len();
            left.retain(|one| {
                let follows = one.by.iter().all(|column| known[*column]);
                if follows {
                    one.columns.iter().for_each(|column| known[*column] = true);
                }
                !follows
            });
            if left.len() == before {
                return known;
            }
        }
    }

    /// The properties of these of so many columns. The columns of a key keep their order.
    pub(super) fn of_columns(&self, columns: &[usize], width: usize) -> Self {
        let place = |column: usize| columns.iter().position(|kept| *kept == column);
        let passed = |key: &Vec<usize>| key.iter().map(|column| place(*column)).collect();
        let kept: Vec<_> = columns.iter().map(|&column| Some(vec![column])).collect();
        Self {
            unique: self.unique.iter().filter_map(passed).collect(),
            dependencies: self.computed_dependencies(width, place, &kept),
            append_only: self.append_only,
        }
    }

    /// The dependencies of rows that are computed from those of so many columns: `passed` says where a column is passed on, and
    /// each of the columns that are computed follows from the columns that are listed for it, if there are such.
    pub(super) fn computed_dependencies(
        &self,
        width: usize,
        passed: impl Fn(usize) -> Option<usize>,
        computed: &[Option<Vec<usize>>],
    ) -> Vec<Dependency> {
        let mut dependencies = Vec::new();
        for one in &self.dependencies {
            let by: Option<Vec<usize>> = one.by.iter().map(|column| passed(*column)).collect();
            let Some(by) = by else { continue };
            let [sure, known] =
                [false, true].map(|promised| self.determined(&one.by, width, promised));
            let following = |known: &[bool]| -> Vec<usize> {
                let follows = |from: &Option<Vec<usize>>| {
                    from.as_ref().is_some_and(|from| from.iter().all(|column| known[*column]))
                };
                let numbers = (0..computed.len()).filter(|number| !by.contains(number));
                numbers.filter(|number| follows(&computed[*number])).collect()
            };
            let (columns, promised) = (following(&known), sure != known);
            if promised && !one.promised {
                let columns = following(&sure);
                dependencies.push(Dependency { by: by.clone(), columns, promised: false });
            }
            dependencies.push(Dependency { by, columns, promised });
        }
        dependencies
    }

    /// Whether rows that agree on these columns need a promise to agree on others.
    pub(super) fn relies_on_promise(&self, by: &[usize], width: usize) -> bool {
        if self.dependencies.iter().all(|one| !one.promised) {
            return false;
        }
        let known = self.determined(by, width, true);
        let follows = |one: &Dependency| one.promised && one.by.iter().all(|column| known[*column]);
        self.dependencies.iter().any(follows)
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

/// Dependencies whose columns stand `width` places further right.
pub(super) fn shifted_dependencies(
    dependencies: Vec<Dependency>,
    width: usize,
) -> impl Iterator<Item = Dependency> {
    dependencies.into_iter().map(move |Dependency { by, columns, promised }| Dependency {
        by: shifted(&by, width),
        columns: shifted(&columns, width),
        promised,
    })
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
