//! CREATE, ALTER and DROP SEQUENCE.

use std::sync::Arc;

use alluvium_sql::name;
use alluvium_sql::statement::{
    ColumnDefault, Drop, IfTaken, SequenceDefinition, SequenceRestart, TableDefinition,
};

use super::{Definitions, taken};
use crate::catalog::{Entries, Entry};
use crate::durable::record::{Record, Recorded, SequenceValue};
use crate::error::{Error, Result, SqlState};
use crate::sequencer::HeldSequences;
use crate::sequences::no_sequence;

impl Definitions {
    /// Creates a sequence, durably; does nothing if it may be there and is.
    pub(crate) fn create_sequence(&self, sequence: &SequenceDefinition) -> Result<()> {
        let lock = self.lock();
        let name = &sequence.name;
        let entries = self.catalog.entries();
        if sequence.if_not_exists && entries.sequence(name).is_some() {
            return Ok(());
        }
        drop(entries);
        self.taken(name, IfTaken::Fail, |_| false)?;
        let definition = Record::sequence(&sequence.text);
        self.sequencer.record(&Recorded::new(name.clone(), definition))?;
        self.sequencer.begin_sequences([name.clone()]);
        self.catalog.insert_sequence(sequence.clone());
        drop(lock);
        self.sequencer.durable().sync_all()
    }

    /// Drops a sequence that no table uses.
    pub(crate) fn drop_sequence(&self, sequence: &Drop) -> Result<()> {
        let lock = self.lock();
        let name = &sequence.name;
        let entries = self.catalog.entries();
        if let Some((table, _)) = entries.generated(name) {
            let message = format!(
                "\"{name}\" is the sequence of a column of \"{}\", and goes with it",
                table.name
            );
            return Err(Error::sql(message).with_sqlstate(SqlState::DEPENDED_ON));
        }
        if !entries.sequences.contains_key(name) {
            return match sequence.if_exists {
                true => Ok(()),
                false => Err(no_sequence(name)),
            };
        }
        check_unused(&entries, name, &[])?;
        drop(entries);
        self.sequencer.record_drop(&Record::dropped_sequence(name), [&**name])?;
        self.remove_sequence(name);
        drop(lock);
        self.sequencer.durable().sync_all()
    }

    /// Removes a sequence, whose end is recorded.
    pub(super) fn remove_sequence(&self, name: &str) {
        self.catalog.remove_sequence(name);
        self.sequencer.hold_sequences().forget(name);
    }

    /// Has a sequence begin again.
    pub(crate) fn restart_sequence(&self, restart: &SequenceRestart) -> Result<()> {
        let lock = self.lock();
        let name = &restart.name;
        let Some(options) = self.catalog.entries().sequence(name) else {
            return match restart.if_exists {
                true => Ok(()),
                false => Err(no_sequence(name)),
            };
        };
        let last = restart.with.unwrap_or(options.start);
        let value = SequenceValue { last, is_called: false };
        let record = self.sequencer.set_value(name, &options, value)?;
        drop(lock);
        self.sequencer.durable().sync(record)
    }

    /// Fails if a table among others cannot have the sequences of its columns, or a DEFAULT names one that is not there. A table that it
    /// takes the place of has the same name.
    pub(super) fn check_sequences(&self, table: &TableDefinition, entries: &Entries) -> Result<()> {
        for (_, sequence, _) in table.sequences() {
            let of = entries.generated(&sequence).map(|(entry, _)| &*entry.name);
            if of != Some(&*table.name) {
                self.check_unclaimed(&sequence)?;
                taken(entries, &sequence, IfTaken::Fail, |_| false)?;
            }
        }
        // Rows that are read again would have other values.
        if !table.connectors.is_empty() && table.takes_values() {
            let message = "a table whose rows come from a connector cannot have columns with values of a sequence: rows that are \
                           read again after a restart would have others";
            let error = Error::sql(message).with_sqlstate(SqlState::NOT_SUPPORTED);
            return Err(error.at(table.position));
        }
        let names = table.defaults.iter().flatten().flat_map(ColumnDefault::named_sequences);
        let missing = |written: &String| entries.sequence(&name::of_text(written)).is_none();
        let mut missing = names.filter(missing);
        match missing.next() {
            None => Ok(()),
            Some(written) => Err(no_sequence(&written).at(table.position)),
        }
    }

    /// Fails if sequences of columns that are renamed, or whose table is, cannot have their new names.
    pub(super) fn check_moved_sequences(
        &self,
        before: &TableDefinition,
        table: &TableDefinition,
    ) -> Result<()> {
        let is_new = |name: &String| before.sequences().all(|(_, before, _)| before != *name);
        let mut names = table.sequences().map(|(_, sequence, _)| sequence).filter(is_new);
        names.try_for_each(|name| self.taken(&name, IfTaken::Fail, |_| false).map(drop))
    }
}

/// A table is another one from here on: the sequences of its columns have other names, or are gone.
pub(super) fn move_sequences(
    held: &mut HeldSequences<'_>,
    before: &TableDefinition,
    table: &TableDefinition,
) {
    let has_same_columns = before.generated.len() == table.generated.len();
    let after: Vec<String> = table.sequences().map(|(_, sequence, _)| sequence).collect();
    for (number, (_, sequence, _)) in before.sequences().enumerate() {
        match after.get(number) {
            _ if after.contains(&sequence) => {}
            Some(renamed) if has_same_columns => held.rename(&sequence, renamed),
            _ => held.forget(&sequence),
        }
    }
}

/// Fails if a relation takes values of a sequence, other than those that go with it.
pub(super) fn check_unused(entries: &Entries, sequence: &str, gone: &[Arc<Entry>]) -> Result<()> {
    let stays = |table: &&Arc<Entry>| gone.iter().all(|entry| entry.name != table.name);
    match entries.user_of_sequence(sequence).filter(stays) {
        None => Ok(()),
        Some(table) => {
            let message = format!(
                "a DEFAULT of \"{}\" takes values of \"{sequence}\": DROP the column or the table first",
                table.name
            );
            Err(Error::sql(message).with_sqlstate(SqlState::DEPENDED_ON))
        }
    }
}
