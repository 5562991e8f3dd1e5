//! Sequences: those that statements have created, and those of generated columns, which go with their tables.

use std::sync::Arc;

use alluvium_sql::statement::{SequenceDefinition, SequenceOptions};

use super::{Catalog, Definition, Entries, Entry};
use crate::error::{Error, Result, SqlState};

impl Entries {
    /// The values of the sequence of this name.
    pub(crate) fn sequence(&self, name: &str) -> Option<SequenceOptions> {
        match self.sequences.get(name) {
            Some(sequence) => Some(sequence.options),
            None => self.generated(name).map(|(_, options)| options),
        }
    }

    /// The table that has a generated column with the sequence of this name, and its values.
    pub(crate) fn generated(&self, name: &str) -> Option<(&Arc<Entry>, SequenceOptions)> {
        let tables = self.values().filter_map(|entry| Some((entry, entry.as_table().ok()?)));
        let all = tables.flat_map(|(entry, table)| {
            table.defined.sequences().map(move |sequence| (entry, sequence))
        });
        let mut found = all.filter(|(_, (_, sequence, _))| sequence == name);
        found.next().map(|(entry, (_, _, generated))| (entry, generated.options))
    }

    /// The table that has a DEFAULT which takes values of a sequence.
    pub(crate) fn user_of_sequence(&self, name: &str) -> Option<&Arc<Entry>> {
        let uses = |entry: &&Arc<Entry>| match &entry.definition {
            Definition::Table(table) => table.defined.used_sequences().any(|used| used == name),
            Definition::View(_) | Definition::Declared(_) => false,
        };
        self.values().find(uses)
    }
}

impl Catalog {
    pub(crate) fn insert_sequence(&self, sequence: SequenceDefinition) {
        let mut entries = self.entries.write();
        let sequences = &mut Arc::make_mut(&mut entries).sequences;
        sequences.insert(sequence.name.clone(), Arc::new(sequence));
    }

    pub(crate) fn remove_sequence(&self, name: &str) {
        let mut entries = self.entries.write();
        Arc::make_mut(&mut entries).sequences.remove(name);
    }
}

impl Entries {
    /// Fails if a sequence has this name.
    pub(crate) fn check_no_sequence(&self, name: &str) -> Result<()> {
        match self.sequence(name) {
            None => Ok(()),
            Some(_) => Err(Error::sql(format!("there is already a sequence \"{name}\""))
                .with_sqlstate(SqlState::DUPLICATE_RELATION)),
        }
    }
}
