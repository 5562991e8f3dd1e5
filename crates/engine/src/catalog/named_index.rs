//! An index that a statement created.

use std::sync::Arc;

use alluvium_sql::statement::{IndexDefinition, TableDefinition, unique_names};

use super::{Catalog, Entries, Entry, Uses};
use crate::error::{Error, Result};
use crate::transaction::KeyColumns;
use crate::worker::DataflowId;

/// An index of a relation, which goes with it: one that a statement created, or that of a UNIQUE constraint of a table. It is one user,
/// under a name, of rows that views may share.
#[derive(Clone, Debug)]
pub(crate) struct NamedIndex {
    /// A name in the schema of the relation that no other relation or index has.
    pub(crate) name: String,
    /// The columns of the relation that the rows are sorted by.
    pub(crate) columns: Vec<usize>,
    /// The dataflow that keeps the rows; `None` while the relation has failed, and before it is built.
    pub(crate) id: Option<DataflowId>,
    /// The same, for those who count users.
    pub(crate) uses: Uses,
    /// The statement that created it; empty if that created its table.
    pub(crate) text: String,
    /// Of a UNIQUE constraint, how the values are encoded that no two rows have.
    pub(crate) unique: Option<Arc<KeyColumns>>,
}

/// An index that a statement created, as [`crate::RelationInfo`] lists it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct IndexInfo {
    /// Its name.
    pub name: String,
    /// The columns of its relation that it is sorted by.
    pub columns: Vec<usize>,
    /// The statement that created it.
    pub sql: String,
}

impl NamedIndex {
    /// The indexes of the UNIQUE constraints of a table, before they are built.
    pub(crate) fn of_uniques(table: &TableDefinition) -> Result<Vec<Arc<Self>>> {
        let columns: Vec<&str> =
            table.schema.fields().iter().map(|field| field.name().as_str()).collect();
        let names = unique_names(&table.name, &columns, &table.uniques)?;
        let indexes = names.into_iter().zip(&table.uniques).map(|(name, unique)| {
            let columns = unique.columns.clone();
            let unique = Some(Arc::new(KeyColumns::new(&table.schema, &columns)?));
            let (id, uses, text) = Default::default();
            Ok(Arc::new(Self { name, columns, id, uses, text, unique }))
        });
        indexes.collect()
    }

    /// Fails if it is that of a constraint, which goes with its table.
    pub(crate) fn check_dropped(&self, relation: &Entry) -> Result<()> {
        match self.unique {
            None => Ok(()),
            Some(_) => Err(Error::sql(format!(
                "\"{}\" is a UNIQUE constraint of \"{}\", and goes with it",
                self.name, relation.name
            ))),
        }
    }

    /// The same, whose relation has another name.
    pub(crate) fn of_relation(&self, name: &str) -> Result<Self> {
        let text = IndexDefinition::of_text(&self.text)?.of(name)?.text;
        Ok(Self { text, ..self.clone() })
    }

    /// The same without a dataflow, as when its relation has failed.
    pub(crate) fn stopped(&self) -> Self {
        Self { id: None, uses: Uses::default(), ..self.clone() }
    }

    /// Its description for users.
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

    /// The indexes of its UNIQUE constraints, with how their values are encoded.
    pub(crate) fn uniques(&self) -> impl Iterator<Item = (&NamedIndex, &Arc<KeyColumns>)> {
        self.indexes.iter().filter_map(|index| Some((&**index, index.unique.as_ref()?)))
    }

    /// Has the indexes of its UNIQUE constraints be those of the same table before it was altered, where they are of the same columns.
    pub(crate) fn keep_uniques(&mut self, before: &Entry) {
        for (index, before) in self.indexes.iter_mut().zip(&before.indexes) {
            if index.columns == before.columns {
                let (name, unique) = (index.name.clone(), index.unique.clone());
                *index = Arc::new(NamedIndex { name, unique, ..NamedIndex::clone(before) });
            }
        }
    }

    /// Fails, naming them, if statements have created indexes of it. `what` cannot be done with them.
    pub(crate) fn check_without_indexes(&self, what: &str) -> Result<()> {
        let created = self.indexes.iter().filter(|index| index.unique.is_none());
        let names: Vec<String> = created.map(|index| format!("\"{}\"", index.name)).collect();
        if names.is_empty() {
            return Ok(());
        }
        let names = names.join(", ");
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
