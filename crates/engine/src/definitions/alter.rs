//! ALTER.
//!
//! The relation's definition is edited in its text, so that a restart finds one statement that creates it as it is. Subscriptions of it
//! end.
//!
//! - A new name of a relation is one that all who read it know it by from then on ([`followers`](super::followers)). It takes effect as the
//!   definitions of a transaction do ([`exchange`](super::exchange)). Outputs are of a name that stays.
//! - Other changes are refused while views, indexes or outputs read the relation.
//! - A new name, of a relation or of a column, moves what is kept to a new dataflow: no row is touched.
//! - Other columns make a new table. Its rows are written from those of the old one in an epoch of their own, which is part
//!   of the definition: to replay that is to write them again.

use std::path::Path;
use std::sync::Arc;

use alluvium_sql::name;
use alluvium_sql::statement::{Alter, AlteredKind, Change, Constraint, TableDefinition};
use arrow::array::{Array, ArrayRef, UInt32Array};
use arrow::compute::take;

use super::staged::{Altered, StagedDefinitions};
use super::{Definitions, relations, sequences};
use crate::catalog::{Definition, Entries, Entry, RelationKind, Table, View};
use crate::changes::TableChange;
use crate::clock::Moment;
use crate::connectors::Connectors;
use crate::durable::checkpoint::DataflowKey;
use crate::durable::record::{Record, Recorded};
use crate::error::{Conflict, Error, Result, SqlState};
use crate::interrupt;
use crate::query::{Answer, Reader};
use crate::sequencer::Role;
use crate::transaction::{KeyColumns, Staging};
use crate::writer::{Defaults, Writer};

/// The parts of an engine that ALTER needs.
#[derive(Clone, Copy)]
pub(crate) struct Parts<'a> {
    pub(crate) writer: &'a Writer,
    pub(crate) reader: &'a Reader,
    pub(crate) connectors: &'a Connectors,
    /// The directory that relative paths are counted from.
    pub(crate) base: &'a Path,
}

/// The initial rows of an altered table.
enum Contents {
    /// The rows of the table before.
    Same,
    /// These rows.
    Rows(Vec<TableChange>),
}

impl Definitions {
    /// Alters a table or view. Nothing is committed meanwhile.
    pub(crate) fn alter(&self, alter: &Alter, parts: Parts<'_>) -> Result<()> {
        match alter.change {
            Change::Resume => return self.resume(alter, parts.connectors),
            Change::Rename { .. } => return self.rename(alter, parts),
            _ => {}
        }
        let replays = self.sequencer.durable().is_replaying();
        if let Ok(entry) = self.catalog.get(&alter.name) {
            match self.wait_if_filling(&entry) {
                // A replayed statement had not failed then.
                Err(Error::Failed { .. }) if replays => {}
                filled => filled?,
            }
        }
        let writing = parts.writer.lock()?;
        let lock = self.lock();
        self.failing.settle_locked(&lock);
        if alter.if_exists && !self.catalog.contains(&alter.name) {
            return Ok(());
        }
        let entry = self.catalog.get(&alter.name)?;
        check_kind(&entry, alter)?;
        if !replays {
            entry.check_runs()?;
        }
        let altered = self.alter_table(&entry, alter, parts);
        drop((writing, lock));
        altered.and_then(|()| self.sequencer.durable().sync_all())
    }

    /// Gives a relation another name, by which all that reads it goes on to read it, with all that is kept.
    fn rename(&self, alter: &Alter, parts: Parts<'_>) -> Result<()> {
        let replays = self.sequencer.durable().is_replaying();
        loop {
            let mut staged = StagedDefinitions::new(self.catalog.entries());
            if alter.if_exists && !staged.entries().contains_key(name::short(&alter.name)) {
                return Ok(());
            }
            let entry = staged.entries().relation(&alter.name)?;
            check_kind(&entry, alter)?;
            // A replayed statement had not failed then.
            if !replays {
                entry.check_runs()?;
            }
            let after = Altered::of(&entry, &alter.change)?;
            if let Ok(table) = entry.as_table() {
                check_unconnected(&entry, table)?;
            }
            let to = after.name().to_owned();
            self.stage_altered(&mut staged, (&entry, after.clone()), alter, parts.base, parts)?;
            let mut candidates = self.build(staged, parts.writer)?;
            let writing = parts.writer.lock()?;
            let renamed = candidates.take_places(parts, writing, |exchange| {
                // No value is recorded by a name that is another one by then.
                let sequences = match (&entry.definition, &after) {
                    (Definition::Table(before), Altered::Table(table))
                        if table.sequences().next().is_some() =>
                    {
                        self.check_moved_sequences(&before.defined, table)?;
                        Some((self.sequencer.hold_sequences(), before, table))
                    }
                    _ => None,
                };
                let committed = self.sequencer.define(exchange.defined)?;
                if let Some((mut held, before, table)) = sequences {
                    sequences::move_sequences(&mut held, &before.defined, table);
                }
                self.forget_announced(&to);
                Ok(committed)
            });
            match renamed {
                // Something that it concerns has been defined meanwhile.
                Err(Error::Conflict { kind: Conflict::Serialization, .. }) => {}
                renamed => {
                    renamed?;
                    return self.sequencer.durable().sync_all();
                }
            }
        }
    }

    fn alter_table(&self, entry: &Arc<Entry>, alter: &Alter, parts: Parts<'_>) -> Result<()> {
        let table = entry.as_table()?;
        let Some(definition) = table.defined.altered(&alter.change)? else { return Ok(()) };
        check_unconnected(entry, table)?;
        check_unread(entry, &self.catalog.entries())?;
        if parts.connectors.outputs.read(&entry.name) {
            return Err(is_written(entry));
        }
        self.check_uniques(&definition, Some(entry), &self.catalog.entries())?;
        let now = parts.writer.now()?;
        let compiled = Arc::new(relations::table_of(&definition)?);
        if let Change::AddConstraint { kind, .. } = alter.change
            && !self.sequencer.durable().is_replaying()
        {
            let key = match kind {
                Constraint::PrimaryKey => Some(&definition.primary_key),
                Constraint::Unique => definition.uniques.last().map(|unique| &unique.columns),
                Constraint::Check => None,
            };
            key.map_or(Ok(()), |key| check_distinct(&definition, key, parts.reader))?;
        }
        let contents = match alter.change {
            Change::RenameColumn { .. } => Contents::Same,
            _ if !table.kept => Contents::Same,
            Change::AddColumn { ref column, .. } => {
                Contents::Rows(self.rewritten(entry, &definition, Some(column), now, parts)?)
            }
            _ => Contents::Rows(self.rewritten(entry, &definition, None, now, parts)?),
        };
        self.check_moved_sequences(&table.defined, &definition)?;
        let record = self.altered(entry, &definition.name, alter, &definition.text, parts, now)?;
        // No value is recorded by a name that is another one by then.
        let has_sequences = table.defined.sequences().next().is_some();
        let held = has_sequences.then(|| self.sequencer.hold_sequences());
        interrupt::deferred(|| {
            let (record, key) =
                (record.as_ref(), DataflowKey::relation(&definition.name, compiled.fingerprint()));
            let (role, rows) = match contents {
                Contents::Same => {
                    let kept = self.sequencer.kept(table.id)?;
                    let kept = kept.of_plan(&compiled.fingerprint().to_string());
                    (Role::of(key, Some(kept)), Vec::new())
                }
                Contents::Rows(rows) => (Role::Kept(key), rows),
            };
            let id = self.install_table(&definition.name, &compiled, table.kept, record, role)?;
            self.progress.wait_filled(id)?;
            if !rows.is_empty() {
                self.sequencer.fill(id, rows, now)?;
            }
            self.sequencer.hand_on(table.id, id, &definition.name);
            self.move_comments(entry, &definition.name, &definition.schema);
            if let Some(mut held) = held {
                sequences::move_sequences(&mut held, &table.defined, &definition);
            }
            let altered = Entry::of_table(&definition, id)?;
            self.forget_announced(&altered.name);
            self.cut_all(&entry.name);
            let last = self.sequencer.last();
            // From now on statements read the altered table, which has no rows as of earlier epochs.
            self.sequencer.report(last);
            self.catalog.replace(&entry.name, altered.clone().since(last));
            entry.indexes.iter().for_each(|index| self.release(&index.uses));
            self.sequencer.remove(table.id);
            self.build_uniques(&altered.name)?;
            // The old table's waterlines go by its name, which may be the same.
            self.sequencer.declare(&altered);
            Ok(())
        })
    }

    /// The rows of a table as another definition has them, with the DEFAULT of the column that is `added`. Those that take
    /// much memory are in files.
    fn rewritten(
        &self,
        entry: &Entry,
        definition: &TableDefinition,
        added: Option<&TableDefinition>,
        now: Moment,
        Parts { writer, reader, .. }: Parts<'_>,
    ) -> Result<Vec<TableChange>> {
        let id = entry.as_table()?.id;
        let altered = Entry::of_table(definition, id)?;
        let added = added.map(|column| Entry::of_table(column, id)).transpose()?;
        let defaults = added.as_ref().map(|column| writer.defaults(column, now));
        let checks = altered.checks(&self.planner)?.cloned();
        let mut staging = Staging::of_new(&altered, checks, &writer.context);
        let mut before = reader.contents(&entry.name)?;
        while let Some(rows) = before.pull()? {
            interrupt::check()?;
            let mut columns: Vec<ArrayRef> = Vec::with_capacity(altered.schema.fields().len());
            for field in altered.schema.fields() {
                columns.extend(rows.column_by_name(field.name()).cloned());
            }
            if let Some(defaults) = &defaults {
                let first = UInt32Array::from(vec![0; rows.num_rows()]);
                columns.push(take(default(defaults, &entry.name)?, &first, None)?);
            }
            staging.insert(&columns)?;
        }
        staging.into_insertions(writer.context.budget())
    }

    /// The record of an ALTER, which leaves a relation as the text `whole` defines it; `None` without a journal.
    fn altered(
        &self,
        entry: &Entry,
        name: &str,
        alter: &Alter,
        whole: &str,
        parts: Parts<'_>,
        now: Moment,
    ) -> Result<Option<Recorded>> {
        let recorded = self.recorded(name, || {
            let definition = Record::definition(&alter.text, parts.base, now)?;
            Ok((definition, Record::definition(whole, parts.base, now)?))
        })?;
        let before = Some(entry.name.clone());
        Ok(recorded.map(|recorded| Recorded { before, ..recorded }))
    }
}

/// Fails if the rows of a table come from a connector.
fn check_unconnected(entry: &Entry, table: &Table) -> Result<()> {
    match table.defined.connectors.is_empty() {
        true => Ok(()),
        false => Err(Error::sql(format!(
            "the rows of \"{}\" come from a connector, which knows the table as it is: create another table with that \
             connector, and DROP this one",
            entry.name
        ))),
    }
}

/// The error of a relation that has an output.
pub(super) fn is_written(entry: &Entry) -> Error {
    Error::sql(format!(
        "\"{}\" is written to a file, whose columns and name stay: create another relation and DROP this one",
        entry.name
    ))
}

/// Fails if something among relations reads one that is to change, and goes by its name or columns.
pub(super) fn check_unread(entry: &Entry, entries: &Entries) -> Result<()> {
    entry.check_without_indexes("ALTER")?;
    match entries.users(&entry.name) {
        None => Ok(()),
        Some(users) => Err(Error::sql(format!(
            "\"{}\" is used by {users}: DROP what uses it, ALTER, and create that again",
            entry.name
        ))),
    }
}

/// Fails if a view is more than its text says, which goes by its name.
pub(super) fn check_only_text(entry: &Entry, view: &View) -> Result<()> {
    if view.recursion.is_some() {
        return Err(Error::sql(format!(
            "\"{}\" recurs, and goes by its name there: create another view and DROP this one",
            entry.name
        )));
    }
    match view.late_by.is_empty() {
        true => Ok(()),
        false => Err(Error::sql(format!(
            "\"{}\" has LATENESS, which goes by its name: create another view and DROP this one",
            entry.name
        ))),
    }
}

/// Fails if two rows of a table have the same key, which is to be one of it.
fn check_distinct(definition: &TableDefinition, key: &[usize], reader: &Reader) -> Result<()> {
    let key = key.iter().map(|column| definition.schema.field(*column).name());
    let key: Vec<String> = key.map(|column| name::spelled(column)).collect();
    if key.is_empty() {
        return Ok(());
    }
    let (columns, table) = (key.join(", "), name::written(&definition.name));
    // A NULL in a primary key is found with the rows that are written again; in another one it is no duplicate.
    let known = key.iter().map(|column| format!("{column} IS NOT NULL"));
    let known = known.collect::<Vec<_>>().join(" AND ");
    let twice = format!(
        "SELECT {columns} FROM {table} WHERE {known} GROUP BY {columns} HAVING count(*) > 1 LIMIT 1"
    );
    let Answer { batches, .. } = reader.select(&twice)?;
    let Some(rows) = batches.iter().find(|rows| rows.num_rows() > 0) else { return Ok(()) };
    let whole: Vec<usize> = (0..rows.num_columns()).collect();
    let key = KeyColumns::new(rows.schema_ref(), &whole)?.written(rows, 0);
    let message = format!("several rows of \"{}\" have the key {key}", definition.name);
    Err(Error::data(message).with_sqlstate(SqlState::UNIQUE))
}

/// The value that a column which is added has in rows that are there.
fn default<'a>(added: &'a Defaults<'_>, table: &str) -> Result<&'a ArrayRef> {
    let (field, value) = (added.field(0), added.row()?);
    if !field.is_nullable() && value.column(0).is_null(0) {
        return Err(Error::data(format!(
            "column \"{}\" is NOT NULL, and \"{table}\" has rows: give it a DEFAULT, which they then have",
            field.name()
        )));
    }
    Ok(value.column(0))
}

/// Fails if a relation is of another kind than a statement says. As in Postgres, `ALTER TABLE` renames views as well.
pub(super) fn check_kind(entry: &Entry, alter: &Alter) -> Result<()> {
    let what = match (alter.kind, entry.kind()) {
        (AlteredKind::Table, _) if matches!(alter.change, Change::Rename { .. }) => return Ok(()),
        (AlteredKind::Table, RelationKind::Table) => return Ok(()),
        (AlteredKind::View, view) if view != RelationKind::Table => return Ok(()),
        (AlteredKind::MaterializedView, RelationKind::MaterializedView) => return Ok(()),
        (_, RelationKind::Table) => "write ALTER TABLE",
        (_, _) => "write ALTER VIEW",
    };
    Err(Error::sql(format!("\"{}\" is a {}: {what}", entry.name, entry.kind().noun())))
}
