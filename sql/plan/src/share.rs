//! Sharing: state that several plans need is kept once.
//!
//! An *index* keeps the rows of a sub-plan sorted by some of their columns, in a dataflow of its own. Sharing turns
//! the sides of a plan's joins into indexes, and so it does with plain views that the plan has expanded in place and
//! that take state. Rows of which a dataflow decides itself whether they come in time are not shared. It only lists the indexes: the engine installs those that are missing, which it finds by their
//! fingerprints.
//!
//! An index that plans make has the columns that they need. One that a statement creates has all columns of its relation; a
//! join of some of them reads it where it is there, and then keeps no index of its own. Joins drop rows with NULL in a key. Such
//! an index has them; it can be read all the same if the other side has none that they could meet.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use alluvium_sql_planner::catalog::Relation;
use alluvium_sql_syntax::error::Result;

use super::fingerprint::Canonical;
use super::node::{IndexScan, Indexed};
use super::{Fingerprint, IncrementalPlan, Node, Renamed};

/// The rows of a sub-plan, sorted by some of their columns.
#[derive(Debug)]
pub struct Index {
    /// The rows, over the indexes that they are made of.
    pub rows: IncrementalPlan,
    /// The columns they are sorted by, which also decide the worker a row is on.
    pub keys: Vec<usize>,
}

impl Index {
    /// The index of a relation that a statement creates: all columns, by some of them. `None` if the relation keeps no rows.
    ///
    /// # Errors
    /// If there is no such column.
    pub fn of_relation(name: &str, relation: &Relation, keys: Vec<usize>) -> Result<Option<Self>> {
        let key_rows = IncrementalPlan::stored_rows(name, relation, keys.clone())?;
        let index = key_rows.and_then(|rows| {
            let places: Vec<usize> = (0..keys.len()).collect();
            Self::of_all_columns(&rows, &places).map(|(index, _)| index)
        });
        Ok(index)
    }

    /// The index of all columns of the relation that `rows` scans, by those that are `keys` there, and where the columns of
    /// `rows` are among them.
    fn of_all_columns(rows: &IncrementalPlan, keys: &[usize]) -> Option<(Self, Vec<usize>)> {
        let (rows, columns) = rows.all_columns_scanned()?;
        let keys = keys.iter().map(|&key| columns[key]).collect();
        Some((Self { rows, keys }, columns.to_vec()))
    }

    /// As [`Index::of_all_columns`], of `rows` that are scanned and have no NULL in `keys`, which the index has.
    fn with_nulls(rows: &IncrementalPlan, keys: &[usize]) -> Option<(Self, Vec<usize>)> {
        let (scan, columns) = rows.with_nulls(keys)?;
        let keys: Vec<usize> = keys.iter().map(|&key| columns[key]).collect();
        let (index, stored) = Self::of_all_columns(scan, &keys)?;
        Some((index, columns.into_iter().map(|column| stored[column]).collect()))
    }

    /// The relation whose columns it has, and those that it is sorted by, if it is one of all columns of a relation.
    pub fn relation(&self) -> Option<(&str, Vec<&str>)> {
        let Node::Scan(scan) = &self.rows.node else { return None };
        let name = |&key: &usize| self.rows.schema.field(key).name().as_str();
        Some((&scan.relation, self.keys.iter().map(name).collect()))
    }

    /// Identifies the index: equal rows under equal keys.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint_of(self.rows.fingerprint())
    }

    /// Its fingerprint once relations have other names, if it is made of no other indexes.
    pub fn fingerprint_with(&self, renamed: &Rc<Renamed>) -> Fingerprint {
        self.fingerprint_of(self.rows.fingerprint_with(renamed))
    }

    fn fingerprint_of(&self, rows: Fingerprint) -> Fingerprint {
        let mut canonical = Canonical::new("index");
        canonical.fingerprint(rows);
        canonical.columns(&self.keys);
        canonical.finish()
    }

    /// The indexes that its rows are made of, each once.
    pub fn parts(&self) -> Vec<Fingerprint> {
        let mut parts = Vec::new();
        self.rows.collect_indexes(&mut parts);
        parts.sort_unstable();
        parts.dedup();
        parts
    }
}

/// A plan over indexes.
#[derive(Clone, Debug)]
pub struct Shared {
    /// The plan.
    pub plan: IncrementalPlan,
    /// The indexes it reads, each once, and before those that are made of it.
    pub indexes: Vec<SharedIndex>,
}

/// An index that a plan reads.
#[derive(Clone, Debug)]
pub struct SharedIndex {
    /// Its fingerprint.
    pub fingerprint: Fingerprint,
    /// Its definition.
    pub index: Arc<Index>,
    /// Whether the plan reports the errors of its rows. Those inside a view are reported by the view.
    pub reported: bool,
}

impl IncrementalPlan {
    /// The plan over indexes, and the indexes it needs. Of the indexes that have all columns of a relation those are used that
    /// are `there`.
    pub fn share(mut self, there: &dyn Fn(Fingerprint) -> bool) -> Shared {
        let mut sharing = Sharing { there, indexes: Vec::new(), places: HashMap::new() };
        sharing.share(&mut self, false);
        Shared { plan: self, indexes: sharing.indexes }
    }

    fn collect_indexes(&self, found: &mut Vec<Fingerprint>) {
        found.extend(self.node.as_node().index().map(|scan| scan.index.fingerprint()));
        self.inputs().into_iter().for_each(|input| input.collect_indexes(found));
    }
}

/// An index of all columns of a relation, and where those of the rows that it would be read for are among them.
type Wider = (Index, Vec<usize>);

/// The indexes that have been found so far.
struct Sharing<'a> {
    /// Whether there is an index of this fingerprint.
    there: &'a dyn Fn(Fingerprint) -> bool,
    indexes: Vec<SharedIndex>,
    /// The place of each among them.
    places: HashMap<Fingerprint, usize>,
}

impl Sharing<'_> {
    fn share(&mut self, plan: &mut IncrementalPlan, in_view: bool) {
        let in_view = in_view || matches!(plan.node, Node::View(_));
        for input in plan.inputs_mut() {
            self.share(input, in_view);
        }
        // Whether a side reads an index with nulls, and would read one if it was there.
        let (mut has_nulls, mut would_have_nulls) = (false, false);
        for Indexed { input, keys, may_be_wider, may_have_nulls } in
            plan.node.as_node_mut().indexed()
        {
            let is_index =
                input.node.as_node().index().is_some_and(|scan| scan.is_sorted_by(&keys));
            let is_of_one_dataflow = input.has_own_waterlines() || input.recurs();
            if !is_index && !input.is_stored_by(&keys) && !is_of_one_dataflow {
                let rows = input.fingerprint();
                let wider = may_be_wider.then(|| Index::of_all_columns(input, &keys)).flatten();
                let with_nulls = || {
                    // The nulls of both sides would meet.
                    let may_have_nulls = may_be_wider && may_have_nulls && !has_nulls;
                    may_have_nulls.then(|| Index::with_nulls(input, &keys)).flatten()
                };
                let (wider, is_with_nulls) = match wider {
                    Some(wider) => (Some(wider), false),
                    None => (with_nulls(), true),
                };
                let (there, wider) = self.told_apart(wider);
                let wider = wider.filter(|_| !is_with_nulls || !would_have_nulls);
                has_nulls |= is_with_nulls && there.is_some();
                would_have_nulls |= is_with_nulls && wider.is_some();
                let (index, columns) = there.unwrap_or_else(|| {
                    (Index { rows: input.clone(), keys }, (0..input.width()).collect())
                });
                let index = self.find(index, !in_view);
                let wider = wider.map(|(index, _)| Arc::new(index));
                input.node = Node::IndexScan(IndexScan { index, columns, rows, wider });
            }
        }
    }

    /// An index, as the first of both if it is there.
    fn told_apart(&self, index: Option<Wider>) -> (Option<Wider>, Option<Wider>) {
        match index {
            Some((index, columns)) if (self.there)(index.fingerprint()) => {
                (Some((index, columns)), None)
            }
            index => (None, index),
        }
    }

    /// The index equal to this one, which is added if there is none.
    fn find(&mut self, index: Index, reported: bool) -> Arc<Index> {
        let fingerprint = index.fingerprint();
        let place = *self.places.entry(fingerprint).or_insert_with(|| {
            self.indexes.push(SharedIndex { fingerprint, index: Arc::new(index), reported: false });
            self.indexes.len() - 1
        });
        let found = &mut self.indexes[place];
        found.reported |= reported;
        found.index.clone()
    }
}
