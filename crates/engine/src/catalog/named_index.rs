//! An index that a statement created.

use std::sync::Arc;

use super::{Catalog, Entries, Entry, Uses};
use crate::error::{Error, Result};
use crate::worker::DataflowId;

/// An index of a relation, which goes with it. It is one user, under a name, of rows that views may share.
#[derive(Clone, Debug)]
pub(crate) struct NamedIndex {
    /// A name in the schema of the relation that no other relation or index has.
    pub(crate) name: String,
    /// The columns of the relation that the rows are sorted by.
    pub(crate) columns: Vec<usize>,
    /// The dataflow that keeps the rows; `None` while the relation has failed.
    pub(crate) id: Option<DataflowId>,
    /// The same, for those who count users.
    pub(crate) uses: Uses,
    /// The statement that created it.
    pub(crate) text: String,
}

/// An index that a statement created, as [`crate::RelationInfo`] lists it.
#[derive(Clone, Debug)]
pub struct IndexInfo {
    /// Its name.
    pub name: String,
    /// The columns of its relation that it is sorted by.
    pub columns: Vec<usize>,
    /// The statement that created it.
    pub sql: String,
}

impl NamedIndex {
    /// The same, whose relation has failed.
    pub(super) fn stopped(&self) -> Self {
        Self { id: None, uses: Uses::default(), ..self.clone() }
    }

    /// What is said of it to users.
    pub(crate) fn info(&self) -> IndexInfo {
        let (name, columns, sql) = (self.name.clone(), self.columns.clone(), self.text.clone());
        IndexInfo { name, columns, sql }
    }
}

impl Entry {
    /// Its indexes with one more.
    pub(crate) fn with_index(&self, index: NamedIndex) -> Self {
        let mut entry = self.clone();
        entry.indexes.push(Arc::new(index));
        entry
    }

    /// Its indexes without the one of this name.
    pub(crate) fn without_index(&self, name: &str) -> Self {
        let mut entry = self.clone();
        entry.indexes.retain(|index| index.name != name);
        entry
    }

    /// Fails, naming them, if it has indexes. `what` cannot be done with them.
    pub(crate) fn check_without_indexes(&self, what: &str) -> Result<()> {
        if self.indexes.is_empty() {
            return Ok(());
        }
        let names = self.indexes.iter().map(|index| format!("\"{}\"", index.name));
        let names = names.collect::<Vec<_>>().join(", ");
        Err(Error::sql(format!(
            "\"{}\" has indexes, which go by its name and columns: DROP INDEX {names}, {what}, and create them again",
            self.name
        )))
    }
}

/// The index of this name, and its relation.
pub(crate) fn find<'a>(
    entries: &'a Entries,
    name: &str,
) -> Option<(&'a Arc<Entry>, &'a Arc<NamedIndex>)> {
    let indexes = |entry: &'a Arc<Entry>| entry.indexes.iter().map(move |index| (entry, index));
    entries.values().flat_map(indexes).find(|(_, index)| index.name == name)
}

impl Catalog {
    /// Adds an index to its relation.
    pub(crate) fn insert_index(&self, relation: &Entry, index: NamedIndex) {
        self.insert(relation.with_index(index));
    }

    /// Removes an index from its relation.
    pub(crate) fn remove_index(&self, relation: &Entry, index: &str) {
        self.insert(relation.without_index(index));
    }
}

impl Entries {
    /// Fails if an index has this name.
    pub(crate) fn check_no_index(&self, name: &str) -> Result<()> {
        match find(self, name) {
            None => Ok(()),
            Some((entry, _)) => Err(Error::sql(format!(
                "there is already an index \"{name}\", of \"{}\"",
                entry.name
            ))),
        }
    }
}
