//! Definitions of an open transaction.
//!
//! They are applied to a copy of the catalog's relations, by which the transaction resolves names. Nothing is locked, and nothing
//! is built before the transaction commits: a table that it has created has the rows that it has written, and the query of a view
//! stands in its place. What is staged is kept by its effect: first what becomes of relations that were there, then what is new.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use alluvium_sql::name;
use alluvium_sql::physical::compile;
use alluvium_sql::planner::named_sequences;
use alluvium_sql::statement::{Drop, TableDefinition, ViewDefinition, ViewKind};

use super::relations::{self, Taken, output_of};
use super::{Definitions, failed};
use crate::catalog::{Entries, Entry, Scope, Uses};
use crate::durable::record::Record;
use crate::error::{Conflict, Error, Result, SqlState};
use crate::worker::DataflowId;

/// What a transaction has defined so far.
#[derive(Clone)]
pub(crate) struct StagedDefinitions {
    /// The relations when it first defined something.
    base: Arc<Entries>,
    /// The relations as it sees them.
    entries: Arc<Entries>,
    /// The names whose relations have to be those of `base` when it commits.
    named: BTreeSet<String>,
    /// The relations of `base` that it drops.
    pub(super) dropped: Vec<Arc<Entry>>,
    /// The tables that it has created, and that are no more.
    forgotten: BTreeSet<DataflowId>,
    /// The statements about relations of `base`, in their order.
    pub(super) statements: Vec<Record>,
    /// What it creates, in an order in which that can be done.
    pub(super) created: Vec<Created>,
}

/// What a transaction creates.
#[derive(Clone)]
pub(super) enum Created {
    Table { definition: Arc<TableDefinition>, base: PathBuf, id: DataflowId },
    View { definition: Arc<ViewDefinition>, base: PathBuf },
}

impl Created {
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Table { definition, .. } => &definition.name,
            Self::View { definition, .. } => &definition.name,
        }
    }
}

impl StagedDefinitions {
    /// Nothing yet, over the relations that there are.
    pub(crate) fn new(base: Arc<Entries>) -> Self {
        Self {
            entries: base.clone(),
            base,
            named: BTreeSet::new(),
            dropped: Vec::new(),
            forgotten: BTreeSet::new(),
            statements: Vec::new(),
            created: Vec::new(),
        }
    }

    /// The relations as the transaction sees them.
    pub(crate) fn entries(&self) -> &Arc<Entries> {
        &self.entries
    }

    /// Whether a table of this dataflow is gone when the transaction commits.
    pub(crate) fn drops(&self, table: DataflowId) -> bool {
        self.forgotten.contains(&table)
            || self.dropped.iter().any(|entry| entry.dataflow() == Some(table))
    }

    /// What it creates is there.
    fn create(&mut self, created: Created, entry: Entry) {
        self.named.insert(entry.name.clone());
        Arc::make_mut(&mut self.entries).insert(entry.name.clone(), Arc::new(entry));
        self.created.push(created);
    }

    /// A relation is no more, with those that depend on it if that is meant.
    fn drop(&mut self, entry: &Arc<Entry>, cascade: bool) -> Result<()> {
        let mut gone = match cascade {
            true => self.entries.dependents(&entry.name),
            false => self.entries.check_unused(&entry.name).map(|()| Vec::new())?,
        };
        gone.push(entry.clone());
        if !entry.is_staged {
            self.statements.push(Record::dropped(entry.kind(), &entry.name, cascade));
        }
        for gone in gone {
            self.named.insert(gone.name.clone());
            Arc::make_mut(&mut self.entries).remove(&gone.name);
            if !gone.is_staged {
                self.dropped.push(gone);
                continue;
            }
            self.created.retain(|created| created.name() != gone.name);
            self.forgotten.extend(gone.as_table().map(|table| table.id));
        }
        Ok(())
    }

    /// Refuses to build what reads a relation whose name another one has until the transaction commits.
    fn check_not_replaced<'a>(
        &self,
        reader: &str,
        reads: impl IntoIterator<Item = &'a String>,
    ) -> Result<()> {
        let is_staged = |read: &&String| self.entries.get(*read).is_some_and(|read| read.is_staged);
        let mut replaced = reads.into_iter().filter(is_staged);
        match replaced.find(|read| self.base.contains_key(*read)) {
            None => Ok(()),
            Some(read) => Err(outside(format!(
                "\"{reader}\" reads \"{read}\", which this transaction puts into the place of another one: COMMIT first"
            ))),
        }
    }

    /// The relations of which this is said when they are there, with what becomes of those that are there now. Fails if one that
    /// the transaction has named is another one by now.
    pub(super) fn over(&self, current: &Entries) -> Result<Entries> {
        for name in &self.named {
            if !is_same(self.base.get(name), current.get(name)) {
                return Err(changed(name));
            }
        }
        let mut entries = current.clone();
        for entry in &self.dropped {
            entries.remove(&entry.name);
        }
        for entry in &self.dropped {
            if let Some(users) = entries.users(&entry.name) {
                return Err(Error::conflict(
                    Conflict::Serialization,
                    format!(
                        "\"{}\", which the transaction drops, is used by {users} since then; run the transaction again",
                        entry.name
                    ),
                ));
            }
        }
        for created in &self.created {
            let name = created.name();
            super::schemas::check_schema(&entries, name)?;
            entries.check_no_index(name)?;
            entries.check_no_sequence(name)?;
            if let Created::Table { definition, .. } = created {
                let mut sequences = definition.sequences().map(|(_, sequence, _)| sequence);
                if let Some(taken) = sequences.find(|name| entries.sequence(name).is_some()) {
                    return Err(changed(&taken));
                }
                let used = definition.defaults.iter().flatten().flat_map(named_sequences);
                let mut used = used.map(|written| name::of_text(&written));
                if let Some(gone) = used.find(|name| entries.sequence(name).is_none()) {
                    return Err(changed(&gone));
                }
            }
        }
        Ok(entries)
    }
}

/// Whether a relation is still the one that it was.
fn is_same(before: Option<&Arc<Entry>>, now: Option<&Arc<Entry>>) -> bool {
    match (before, now) {
        (None, None) => true,
        (Some(before), Some(now)) => {
            Arc::ptr_eq(before, now)
                || (before.dataflow().is_some() && before.dataflow() == now.dataflow())
        }
        _ => false,
    }
}

fn changed(name: &str) -> Error {
    Error::conflict(
        Conflict::Serialization,
        format!(
            "\"{name}\", which the transaction creates, drops, alters or reads in a definition, has been created, dropped or \
             altered by another one meanwhile; run the transaction again"
        ),
    )
}

/// The error of a definition that cannot be part of a transaction.
pub(crate) fn outside(message: String) -> Error {
    Error::sql(message).with_sqlstate(SqlState::ACTIVE_TRANSACTION)
}

impl Definitions {
    /// Has a transaction create a table. Returns false, and does nothing, if there is one that stays.
    pub(crate) fn stage_table(
        &self,
        staged: &mut StagedDefinitions,
        definition: &TableDefinition,
        base: &Path,
    ) -> Result<()> {
        let name = &definition.name;
        let taken = relations::taken(&staged.entries, name, definition.if_taken, Entry::is_table);
        match taken.map_err(|error| error.at(definition.position))? {
            Taken::Free => {}
            Taken::Keep => return Ok(()),
            Taken::Replace(before) => staged.drop(&before, false)?,
        }
        self.check_nothing_said(name)?;
        if !definition.connectors.is_empty() {
            return Err(outside(format!(
                "\"{name}\" has connectors, which are not part of a transaction: create it outside of BEGIN and COMMIT"
            )));
        }
        if !definition.lateness.is_empty() && staged.base.contains_key(name) {
            return Err(outside(format!(
                "\"{name}\" has LATENESS and takes the place of another table: COMMIT first"
            )));
        }
        relations::table_of(definition)?;
        self.check_sequences(definition, &staged.entries)?;
        let sequences = definition.sequences().map(|(_, sequence, _)| sequence);
        // A sequence that has the name goes on.
        let sequences = sequences.filter(|name| staged.base.sequence(name).is_none());
        self.sequencer.begin_sequences(sequences);
        let id = self.sequencer.reserve();
        let entry = Entry { is_staged: true, ..Entry::of_table(definition, id) };
        let (definition, base) = (Arc::new(definition.clone()), base.to_owned());
        staged.create(Created::Table { definition, base, id }, entry);
        Ok(())
    }

    /// Has a transaction create a view. Does nothing if there is one that stays.
    pub(crate) fn stage_view(
        &self,
        staged: &mut StagedDefinitions,
        definition: &ViewDefinition,
        base: &Path,
    ) -> Result<()> {
        let name = &definition.name;
        self.check_nothing_said(name)?;
        let is_view = |entry: &Entry| !entry.is_table();
        let taken = relations::taken(&staged.entries, name, definition.if_taken, is_view);
        match taken.map_err(|error| error.at(definition.position))? {
            Taken::Free => {}
            Taken::Keep => return Ok(()),
            // It cannot read the one that it replaces.
            Taken::Replace(before) => staged.drop(&before, false)?,
        }
        if !definition.connectors.is_empty() {
            return Err(outside(format!(
                "\"{name}\" has outputs, which are not part of a transaction: create it outside of BEGIN and COMMIT"
            )));
        }
        let planned = self.planner.view(definition, &Scope(&staged.entries))?;
        if planned.declared.is_some() || !planned.awaits.is_empty() {
            return Err(outside(format!(
                "\"{name}\" is part of a recursion that is declared, which is not part of a transaction: create it outside of \
                 BEGIN and COMMIT"
            )));
        }
        let reads = || planned.depends.iter().chain(&planned.reads);
        failed::check_reads(name, reads(), &staged.entries)?;
        staged.check_not_replaced(name, reads())?;
        if definition.kind != ViewKind::Local {
            compile(&planned.plan, output_of(definition.kind), &|_| false)?;
        }
        staged.named.extend(reads().filter(|read| staged.base.contains_key(*read)).cloned());
        let entry = Entry::of_view(definition, planned, (None, Uses::default()), None);
        let entry = Entry { is_staged: true, ..entry };
        self.catalog.note_depth(&entry);
        let (definition, base) = (Arc::new(definition.clone()), base.to_owned());
        staged.create(Created::View { definition, base }, entry);
        Ok(())
    }

    /// Has a transaction drop a table, or else a view.
    pub(crate) fn stage_drop(
        &self,
        staged: &mut StagedDefinitions,
        dropped: &Drop,
        is_table: bool,
    ) -> Result<()> {
        if dropped.if_exists && !staged.entries.contains_key(name::short(&dropped.name)) {
            staged.named.insert(dropped.name.clone());
            return Ok(());
        }
        let entry = staged.entries.relation(&dropped.name)?;
        match is_table {
            true => entry.as_table().map(drop)?,
            false => entry.check_view()?,
        }
        staged.drop(&entry, dropped.cascade)
    }

    /// Refuses to create in a transaction what something has been said of, which goes with its name.
    fn check_nothing_said(&self, name: &str) -> Result<()> {
        match self.is_said(name) {
            false => Ok(()),
            true => Err(outside(format!(
                "\"{name}\" is declared, or has a LATENESS: create it outside of BEGIN and COMMIT"
            ))),
        }
    }

    /// Fails if a transaction that commits is about to have a relation of this name.
    pub(super) fn check_unclaimed(&self, name: &str) -> Result<()> {
        match self.claimed.lock().contains(name) {
            false => Ok(()),
            true => Err(changed(name)),
        }
    }
}
