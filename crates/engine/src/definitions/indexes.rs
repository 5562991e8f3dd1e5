//! CREATE INDEX and DROP INDEX.
//!
//! An index that a statement creates is one of the [indexes](crate::catalog::Indexes) that views share, under a name: views
//! of joins by its columns use it, and while they do its rows stay, whether or not it is dropped. It goes with its relation.

use std::path::Path;
use std::sync::Arc;

use alluvium_sql::physical::compile_index;
use alluvium_sql::plan::Index;
use alluvium_sql::statement::{Drop, IfTaken, IndexDefinition, TableDefinition};

use super::Definitions;
use super::failed::unfilled;
use super::{relations, schemas};
use crate::catalog::{Definition, Entries, Entry, NamedIndex, Uses, named_index};
use crate::durable::record::{Record, Recorded};
use crate::error::{Error, Result};
use crate::worker::DataflowId;
use crate::writer::Writer;

impl Definitions {
    /// Creates an index, durably; does nothing if it may be there and is. If the caller `waits` it is full then.
    pub(crate) fn create_index(
        &self,
        definition: &IndexDefinition,
        base: &Path,
        writer: &Writer,
        waits: bool,
    ) -> Result<()> {
        let (name, at) = (&definition.name, definition.position);
        let id = {
            let _lock = self.lock();
            schemas::check_schema(&self.catalog.entries(), name)
                .map_err(|error| error.at(definition.relation_position))?;
            if definition.if_not_exists
                && named_index::find(&self.catalog.entries(), name).is_some()
            {
                return Ok(());
            }
            self.taken(name, IfTaken::Fail, Entry::is_table).map_err(|error| error.at(at))?;
            self.begin_index(definition, base, writer)?
        };
        if let Some(id) = id.filter(|_| waits) {
            self.progress.wait_filled(id).map_err(|error| {
                self.undo_index(name, id);
                unfilled(name, error)
            })?;
        }
        self.sequencer.durable().sync_all()
    }

    /// Orders the dataflow of an index, unless its relation has failed, and adds it to the catalog. The caller holds the
    /// definitions' lock.
    fn begin_index(
        &self,
        definition: &IndexDefinition,
        base: &Path,
        writer: &Writer,
    ) -> Result<Option<DataflowId>> {
        let name = &definition.name;
        let of_relation = |error: Error| error.at(definition.relation_position);
        let entry = self.catalog.get(&definition.relation).map_err(of_relation)?;
        check_kept(&entry).map_err(of_relation)?;
        let is_left_out = entry.failed.is_some() && self.sequencer.durable().is_replaying();
        if !is_left_out {
            entry.check_runs().map_err(of_relation)?;
        }
        let columns = definition.places(&entry.schema)?;
        let index = Index::of_relation(&entry.name, &entry.relation(), columns.clone())?;
        let index = index.ok_or_else(|| Error::sql(format!("\"{}\" keeps no rows", entry.name)))?;
        let compiled = compile_index(&index)?;
        let record = match self.is_durable() {
            true => Some(Record::definition(&definition.text, base, writer.now()?)?),
            false => None,
        };
        let mut uses = Uses::default();
        let id = match is_left_out {
            true => None,
            false => {
                self.use_index(&compiled, None, &self.catalog.entries(), &mut uses)?;
                Some(uses.all[&compiled.fingerprint])
            }
        };
        if let Some(record) = record {
            let recorded = Recorded::new(name.clone(), record);
            self.sequencer.record(&recorded).inspect_err(|_| self.release(&uses))?;
        }
        let (name, text) = (name.clone(), definition.text.clone());
        let index = NamedIndex { name, columns, id, uses, text, unique: None };
        self.catalog.insert_index(&entry, index);
        Ok(id)
    }

    /// Drops an index whose creation was given up.
    fn undo_index(&self, name: &str, id: DataflowId) {
        let _lock = self.lock();
        let entries = self.catalog.entries();
        // It has no dataflow any more if its relation has failed meanwhile.
        let is_it = |found: &NamedIndex| found.id.is_none_or(|found| found == id);
        if let Some((entry, found)) =
            named_index::find(&entries, name).filter(|(_, found)| is_it(found))
        {
            // If this fails the engine has stopped.
            let _ = self.forget_index(entry, found);
        }
    }

    /// An index of a relation that has another dataflow, over that. It starts with the rows that it has, if it has a dataflow itself.
    pub(super) fn indexed_again(
        &self,
        entry: &Entry,
        index: &NamedIndex,
        entries: &Entries,
    ) -> Result<NamedIndex> {
        let NamedIndex { name, columns, text, unique, id: before, .. } = index;
        let (name, columns, text) = (name.clone(), columns.clone(), text.clone());
        let sorted = Index::of_relation(&entry.name, &entry.relation(), columns.clone())?;
        let sorted =
            sorted.ok_or_else(|| Error::sql(format!("\"{}\" keeps no rows", entry.name)))?;
        let compiled = compile_index(&sorted)?;
        let mut uses = Uses::default();
        self.use_index(&compiled, *before, entries, &mut uses)?;
        let id = Some(uses.all[&compiled.fingerprint]);
        Ok(NamedIndex { name, columns, id, uses, text, unique: unique.clone() })
    }

    /// Builds the indexes of the UNIQUE constraints of a table that is in the catalog. Without them its rows are compared one by one.
    /// The caller holds the definitions' lock.
    pub(super) fn build_uniques(&self, table: &str) -> Result<()> {
        let Ok(mut entry) = self.catalog.get(table) else { return Ok(()) };
        for (place, index) in entry.indexes.clone().iter().enumerate() {
            if index.unique.is_some() && index.id.is_none() {
                let built = self.indexed_again(&entry, index, &self.catalog.entries())?;
                Arc::make_mut(&mut entry).indexes[place] = Arc::new(built);
                self.catalog.insert(Entry::clone(&entry));
            }
        }
        Ok(())
    }

    /// Fails if something has the name of the index of a UNIQUE constraint of a table that is about to be there, instead of `before` if
    /// that is there.
    pub(super) fn check_uniques(
        &self,
        table: &TableDefinition,
        before: Option<&Entry>,
        entries: &Entries,
    ) -> Result<()> {
        let own: Vec<&str> = before
            .iter()
            .flat_map(|entry| entry.uniques())
            .map(|(index, _)| &*index.name)
            .collect();
        for index in NamedIndex::of_uniques(table)? {
            let name = &index.name;
            if *name == table.name {
                return Err(Error::sql(format!("\"{name}\" is a table, and a constraint of it")));
            }
            if !own.contains(&&**name) {
                self.check_unclaimed(name)?;
                relations::taken(entries, name, IfTaken::Fail, Entry::is_table)?;
            }
        }
        Ok(())
    }

    /// Drops an index. Views that share its rows keep them.
    pub(crate) fn drop_index(&self, index: &Drop) -> Result<()> {
        let lock = self.lock();
        let (name, entries) = (&index.name, self.catalog.entries());
        let Some((entry, found)) = named_index::find(&entries, name) else {
            return match entries.get(name) {
                Some(entry) => {
                    let kind = entry.kind().noun();
                    Err(Error::sql(format!("\"{name}\" is a {kind}, not an index")))
                }
                None if index.if_exists => Ok(()),
                None => Err(Error::sql(format!("there is no index \"{name}\""))),
            };
        };
        found.check_dropped(entry)?;
        self.forget_index(entry, found)?;
        drop(lock);
        self.sequencer.durable().sync_all()
    }

    fn forget_index(&self, entry: &Entry, index: &NamedIndex) -> Result<()> {
        self.sequencer.record_drop(&Record::dropped_index(&index.name), [&*index.name])?;
        self.catalog.remove_index(entry, &index.name);
        self.release(&index.uses);
        Ok(())
    }
}

/// Refuses an index of rows that are not kept.
pub(super) fn check_kept(entry: &Entry) -> Result<()> {
    if entry.keeps_rows() {
        return Ok(());
    }
    let name = &entry.name;
    Err(Error::sql(match &entry.definition {
        Definition::Table(_) => format!(
            "\"{name}\" keeps no rows that an index could have: {}",
            alluvium_sql::statement::KEEPING
        ),
        Definition::View(_) | Definition::Declared(_) => format!(
            "\"{name}\" is a {}, which keeps no rows that an index could have: write CREATE MATERIALIZED VIEW",
            entry.kind().noun()
        ),
    }))
}
