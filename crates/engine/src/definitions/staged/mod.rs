//! Definitions of an open transaction.
//!
//! They are applied to a copy of the catalog's relations, by which the transaction resolves names. Nothing is locked, and nothing
//! is built before the transaction commits: a table that it has created has the rows that it has written, and the query of a view
//! stands in its place. Staged definitions are kept by effect: first changes of existing relations, then new ones.

mod altered;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use alluvium_sql::name;
use alluvium_sql::physical::{compile, compile_index};
use alluvium_sql::plan::{Index, PlannedView};
use alluvium_sql::statement::{
    Drop, GrantKind, IfTaken, IndexDefinition, SchemaDefinition, TableDefinition, ViewDefinition,
    ViewKind,
};

pub(super) use self::altered::Altered;
use super::comments::{self, StagedComments};
use super::relations::{self, Taken, output_of};
use super::{Definitions, failed, indexes, schemas};
use crate::catalog::{Definition, Entries, Entry, NamedIndex, Scope, Uses, named_index};
use crate::durable::record::Record;
use crate::error::{Conflict, Error, Result, SqlState};
use crate::roles::{RoleEdit, Roles};
use crate::sequencer::Comments;
use crate::worker::DataflowId;

/// The definitions of a transaction so far.
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
    /// The relations of `base` whose places others take.
    pub(super) moved: Vec<Moved>,
    /// The indexes that it drops, with the names of their relations, which stay.
    pub(super) dropped_indexes: Vec<(String, Arc<NamedIndex>)>,
    /// The schemas that it creates.
    pub(super) schemas: Vec<String>,
    /// The tables that it has created and dropped.
    forgotten: BTreeSet<DataflowId>,
    /// Its comments on relations and indexes.
    pub(super) comments: StagedComments,
    /// Its edits of roles.
    roles: Vec<RoleEdit>,
    /// The version of the roles when it first edited them, but for the owners of what it creates.
    roles_version: Option<u64>,
    /// How often its edits of roles may have changed.
    roles_revision: usize,
    /// The relations of `base` that others replace, which have their rights.
    replaced: BTreeSet<String>,
    /// The statements about relations of `base`, in their order.
    pub(super) statements: Vec<Record>,
    /// The relations it creates, in an order in which that can be done.
    pub(super) created: Vec<Created>,
}

/// Something that a transaction creates.
#[derive(Clone)]
pub(super) enum Created {
    Table { definition: Arc<TableDefinition>, base: PathBuf, id: DataflowId },
    View { definition: Arc<ViewDefinition>, base: PathBuf },
    Index { definition: Arc<IndexDefinition>, base: PathBuf },
}

/// A relation that has another name, or columns of other names.
#[derive(Clone)]
pub(super) struct Moved {
    /// As it was.
    pub(super) before: Arc<Entry>,
    /// As it is then.
    pub(super) after: Altered,
    pub(super) base: PathBuf,
}

impl Created {
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Table { definition, .. } => &definition.name,
            Self::View { definition, .. } => &definition.name,
            Self::Index { definition, .. } => &definition.name,
        }
    }

    /// The relation that it is, or is an index of.
    fn relation(&self) -> &str {
        match self {
            Self::Index { definition, .. } => &definition.relation,
            _ => self.name(),
        }
    }
}

impl StagedDefinitions {
    /// Nothing yet, over the existing relations.
    pub(crate) fn new(base: Arc<Entries>) -> Self {
        Self {
            entries: base.clone(),
            base,
            named: BTreeSet::new(),
            dropped: Vec::new(),
            moved: Vec::new(),
            dropped_indexes: Vec::new(),
            schemas: Vec::new(),
            forgotten: BTreeSet::new(),
            comments: StagedComments::default(),
            roles: Vec::new(),
            roles_version: None,
            roles_revision: 0,
            replaced: BTreeSet::new(),
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

    /// A relation has to be the one that it was when the transaction commits.
    pub(super) fn depend_on(&mut self, relation: &str) {
        self.named.insert(relation.to_owned());
    }

    /// The comments as the transaction sees them, given those outside of it.
    pub(crate) fn comments(&self, mut comments: Comments) -> Comments {
        let mut moved = Vec::with_capacity(self.moved.len());
        for Moved { before, after, .. } in &self.moved {
            let Some(entry) = self.entries.get(after.name()) else { continue };
            let said =
                comments::altered(comments.take(&before.name), &before.schema, &entry.schema);
            moved.push((after.name(), said));
        }
        for entry in &self.dropped {
            comments.forget(&entry.name);
            entry.indexes.iter().for_each(|index| comments.forget(&index.name));
        }
        self.dropped_indexes.iter().for_each(|(_, index)| comments.forget(&index.name));
        moved.into_iter().for_each(|(name, said)| comments.put(name, said));
        self.comments.apply(&mut comments);
        comments
    }

    /// The roles as the transaction sees them, given those outside of it.
    pub(crate) fn roles(&self, mut roles: Roles) -> Roles {
        for entry in &self.dropped {
            let is_replaced = self.replaced.contains(&entry.name);
            if !is_replaced || !self.entries.contains_key(&entry.name) {
                roles.forget(&entry.name);
            }
        }
        // Two may have each other's names.
        let between = |number: usize| format!("{number} of those that are renamed");
        let renamed = self.moved.iter().map(|moved| (&moved.before.name, moved.after.name()));
        let renamed: Vec<_> = renamed.enumerate().collect();
        renamed.iter().for_each(|(number, (before, _))| roles.rename(before, &between(*number)));
        renamed.iter().for_each(|(number, (_, after))| roles.rename(&between(*number), after));
        self.roles.iter().for_each(|edit| roles.edit(edit));
        roles
    }

    /// Its edits of roles.
    pub(crate) fn role_edits(&self) -> &[RoleEdit] {
        &self.roles
    }

    /// How often its edits of roles may have changed.
    pub(crate) fn roles_revision(&self) -> usize {
        self.roles_revision
    }

    /// Adds edits of roles, which were judged by those of a version.
    pub(crate) fn edit_roles(&mut self, edits: Vec<RoleEdit>, version: u64) {
        self.roles_revision += 1;
        let is_claim = |edit: &RoleEdit| matches!(edit, RoleEdit::Claim { .. });
        if !edits.iter().all(is_claim) {
            self.roles_version.get_or_insert(version);
        }
        for (kind, name) in edits.iter().filter_map(RoleEdit::object) {
            if *kind == GrantKind::Relation {
                self.named.insert(name.clone());
            }
        }
        self.roles.extend(edits);
    }

    /// Fails if roles have changed since the transaction has edited them: it might undo that.
    pub(super) fn check_roles(&self, roles: &Roles) -> Result<()> {
        match self.roles_version.is_none_or(|version| version == roles.version()) {
            true => Ok(()),
            false => Err(Error::conflict(
                Conflict::Serialization,
                "roles or their rights have changed since the transaction has changed some; run the transaction again",
            )),
        }
    }

    /// The indexes of a relation that takes the place of another one, but for those that the transaction creates.
    pub(super) fn moved_indexes(&self, name: &str) -> Vec<Arc<NamedIndex>> {
        let is_created = |index: &Arc<NamedIndex>| {
            self.created.iter().any(|created| created.name() == index.name)
        };
        let indexes = self.entries.get(name).into_iter().flat_map(|entry| &entry.indexes);
        indexes.filter(|index| !is_created(index)).cloned().collect()
    }

    /// Whether a relation has this name until the transaction commits.
    pub(super) fn base_has(&self, name: &str) -> bool {
        self.base.contains_key(name)
    }

    /// Whether a relation would have a name that another one has until the transaction commits.
    pub(super) fn replaces(&self, entry: &Entry, name: &str) -> bool {
        let moved = self.moved.iter().find(|moved| moved.after.name() == entry.name);
        let before = moved.map_or(&*entry.name, |moved| &*moved.before.name);
        self.base.contains_key(name) && (entry.is_staged || before != name)
    }

    /// Puts relations that take the places of others behind those that they read, and leaves out those that are as they were.
    pub(super) fn sort_moved(&mut self) {
        let mut left = std::mem::take(&mut self.moved);
        while !left.is_empty() {
            let depends = |moved: &Moved, names: &BTreeSet<String>| {
                let depends = self.entries.get(moved.after.name()).map(|entry| &entry.depends);
                depends.into_iter().flatten().any(|name| names.contains(name))
            };
            let names = |moved: &[Moved]| -> BTreeSet<String> {
                moved.iter().map(|moved| moved.after.name().to_owned()).collect()
            };
            let waiting = names(&left);
            let next = left.iter().position(|moved| !depends(moved, &waiting)).unwrap_or_default();
            let next = left.remove(next);
            let is_other = match (&next.after, &next.before.definition) {
                (Altered::Table(after), Definition::Table(before)) => {
                    after.text != before.defined.text
                }
                // Its text may name relations in another way.
                _ => depends(&next, &names(&self.moved)),
            };
            if is_other || next.before.name != next.after.name() {
                self.moved.push(next);
            }
        }
    }

    /// Has a relation take the place of another one.
    fn put(&mut self, entry: &Arc<Entry>, after: Altered, altered: Arc<Entry>, base: &Path) {
        if entry.is_staged {
            let created = self.created.iter_mut().find(|created| created.name() == entry.name);
            match (created, after) {
                (Some(Created::Table { definition, .. }), Altered::Table(after)) => {
                    *definition = after;
                }
                (Some(Created::View { definition, .. }), Altered::View(after)) => {
                    *definition = after;
                }
                _ => {}
            }
        } else {
            let is_it = |moved: &&mut Moved| moved.after.name() == entry.name;
            match self.moved.iter_mut().find(is_it) {
                Some(moved) => moved.after = after,
                None => {
                    let (before, base) = (entry.clone(), base.to_owned());
                    self.moved.push(Moved { before, after, base });
                }
            }
        }
        self.named.extend([entry.name.clone(), altered.name.clone()]);
        let entries = Arc::make_mut(&mut self.entries);
        entries.remove(&entry.name);
        entries.insert(altered.name.clone(), altered);
    }

    /// Adds a created relation.
    fn create(&mut self, created: Created, entry: Entry) {
        self.named.insert(entry.name.clone());
        Arc::make_mut(&mut self.entries).insert(entry.name.clone(), Arc::new(entry));
        self.created.push(created);
    }

    /// Drops a relation with its rights, and with `cascade` also those that depend on it.
    fn drop(&mut self, entry: &Arc<Entry>, cascade: bool) -> Result<()> {
        for gone in self.take_out(entry, cascade)? {
            self.replaced.remove(&gone.name);
            let object = (GrantKind::Relation, gone.name.clone());
            self.roles.retain(|edit| edit.object() != Some(&object));
        }
        Ok(())
    }

    /// Drops a relation for another one of its name, which gets its rights.
    fn replace(&mut self, entry: &Arc<Entry>) -> Result<()> {
        self.take_out(entry, false)?;
        if !entry.is_staged {
            self.replaced.insert(entry.name.clone());
        }
        Ok(())
    }

    /// Takes a relation out, with `cascade` also those that depend on it. Returns all of these.
    fn take_out(&mut self, entry: &Arc<Entry>, cascade: bool) -> Result<Vec<Arc<Entry>>> {
        let mut gone = match cascade {
            true => self.entries.dependents(&entry.name),
            false => self.entries.check_unused(&entry.name).map(|()| Vec::new())?,
        };
        gone.push(entry.clone());
        if !entry.is_staged {
            self.statements.push(Record::dropped(entry.kind(), &entry.name, cascade));
        }
        self.roles_revision += 1;
        for gone in &gone {
            self.named.insert(gone.name.clone());
            Arc::make_mut(&mut self.entries).remove(&gone.name);
            self.created.retain(|created| created.relation() != gone.name);
            self.dropped_indexes.retain(|(relation, _)| *relation != gone.name);
            self.comments.forget(&gone.name);
            gone.indexes.iter().for_each(|index| self.comments.forget(&index.name));
            if !gone.is_staged {
                let moved = self.moved.iter().position(|moved| moved.after.name() == gone.name);
                let before = match moved {
                    Some(moved) => self.moved.remove(moved).before,
                    None => self.base.get(&gone.name).unwrap_or(gone).clone(),
                };
                self.dropped.push(before);
                continue;
            }
            self.forgotten.extend(gone.as_table().map(|table| table.id));
        }
        Ok(gone)
    }

    /// Refuses to build what reads a relation whose name another one has until the transaction commits.
    fn check_not_replaced<'a>(
        &self,
        reader: &str,
        reads: impl IntoIterator<Item = &'a String>,
    ) -> Result<()> {
        let is_replaced = |read: &&String| {
            let is_moved = self.moved.iter().any(|moved| moved.after.name() == **read);
            let is_staged = self.entries.get(*read).is_some_and(|read| read.is_staged);
            is_moved || (is_staged && self.base.contains_key(*read))
        };
        match reads.into_iter().find(is_replaced) {
            None => Ok(()),
            Some(read) => Err(outside(format!(
                "\"{reader}\" reads \"{read}\", which this transaction puts into the place of another one: COMMIT first"
            ))),
        }
    }

    /// The relations with these definitions applied to the current ones. Fails if one that
    /// the transaction has named is another one by now.
    pub(super) fn over(&self, current: &Entries) -> Result<Entries> {
        for name in &self.named {
            if !is_same(self.base.get(name), current.get(name)) {
                return Err(changed(name));
            }
        }
        let mut entries = current.clone();
        let before = || self.dropped.iter().chain(self.moved.iter().map(|moved| &moved.before));
        for entry in before() {
            entries.remove(&entry.name);
        }
        for entry in before() {
            if let Some(users) = entries.users(&entry.name) {
                return Err(Error::conflict(
                    Conflict::Serialization,
                    format!(
                        "\"{}\", which the transaction drops or alters, is used by {users} since then; run the transaction again",
                        entry.name
                    ),
                ));
            }
        }
        for schema in &self.schemas {
            if !entries.schemas.insert(schema.clone()) {
                return Err(changed(schema));
            }
        }
        for moved in &self.moved {
            let name = moved.after.name();
            entries.extend(self.entries.get(name).map(|entry| (name.to_owned(), entry.clone())));
        }
        let moved = self.moved.iter().map(|moved| moved.after.name());
        for name in moved.chain(self.created.iter().map(Created::name)) {
            schemas::check_schema(&entries, name)?;
            let is_dropped = |(_, index): &(_, Arc<NamedIndex>)| index.name == name;
            if !self.dropped_indexes.iter().any(is_dropped) {
                entries.check_no_index(name)?;
            }
            entries.check_no_sequence(name)?;
        }
        for created in &self.created {
            if let Created::Table { definition, .. } = created {
                let mut sequences = definition.sequences().map(|(_, sequence, _)| sequence);
                if let Some(taken) = sequences.find(|name| entries.sequence(name).is_some()) {
                    return Err(changed(&taken));
                }
                let mut used = definition.used_sequences();
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
    /// Has a transaction create a table. Does nothing if there is one that stays.
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
            Taken::Replace(before) => staged.replace(&before)?,
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
        self.planner.checks(definition)?;
        self.check_sequences(definition, &staged.entries)?;
        self.check_uniques(definition, None, &staged.entries)?;
        let sequences = definition.sequences().map(|(_, sequence, _)| sequence);
        // A sequence that has the name continues.
        let sequences = sequences.filter(|name| staged.base.sequence(name).is_none());
        self.sequencer.begin_sequences(sequences);
        let id = self.sequencer.reserve();
        let entry = Entry { is_staged: true, ..Entry::of_table(definition, id)? };
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
        let mut comments = Comments::default();
        let is_view = |entry: &Entry| !entry.is_table();
        let taken = relations::taken(&staged.entries, name, definition.if_taken, is_view);
        match taken.map_err(|error| error.at(definition.position))? {
            Taken::Free => {}
            Taken::Keep => return Ok(()),
            // It cannot read the one that it replaces.
            Taken::Replace(before) => {
                comments = staged.comments(self.sequencer.comments());
                staged.replace(&before)?;
            }
        }
        if !definition.connectors.is_empty() {
            return Err(outside(format!(
                "\"{name}\" has outputs, which are not part of a transaction: create it outside of BEGIN and COMMIT"
            )));
        }
        let planned = PlannedView::of(definition, &self.planner, &Scope(&staged.entries))?;
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
        comments.retain_columns(name, &entry.schema);
        staged.comments.put(name, &comments.take(name));
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

    /// Has a transaction create an index.
    pub(crate) fn stage_index(
        &self,
        staged: &mut StagedDefinitions,
        definition: &IndexDefinition,
        base: &Path,
    ) -> Result<()> {
        let name = &definition.name;
        let of_relation = |error: Error| error.at(definition.relation_position);
        schemas::check_schema(&staged.entries, name).map_err(of_relation)?;
        if definition.if_not_exists && named_index::find(&staged.entries, name).is_some() {
            return Ok(());
        }
        let taken = relations::taken(&staged.entries, name, IfTaken::Fail, Entry::is_table);
        taken.map_err(|error| error.at(definition.position))?;
        let entry = staged.entries.relation(&definition.relation).map_err(of_relation)?;
        indexes::check_kept(&entry).map_err(of_relation)?;
        entry.check_runs().map_err(of_relation)?;
        let columns = definition.places(&entry.schema)?;
        // It is one of the rows that are kept later.
        let relation = Entry { is_staged: false, ..Entry::clone(&entry) }.relation();
        let index = Index::of_relation(&entry.name, &relation, columns.clone())?;
        let index = index.ok_or_else(|| Error::sql(format!("\"{}\" keeps no rows", entry.name)))?;
        compile_index(&index)?;
        let text = definition.text.clone();
        let (id, uses) = (None, Uses::default());
        let index = NamedIndex { name: name.clone(), columns, id, uses, text, unique: None };
        staged.named.extend([name.clone(), entry.name.clone()]);
        let indexed = Arc::new(entry.with_index(index));
        Arc::make_mut(&mut staged.entries).insert(entry.name.clone(), indexed);
        let (definition, base) = (Arc::new(definition.clone()), base.to_owned());
        staged.created.push(Created::Index { definition, base });
        Ok(())
    }

    /// Has a transaction drop an index.
    pub(crate) fn stage_drop_index(
        &self,
        staged: &mut StagedDefinitions,
        dropped: &Drop,
    ) -> Result<()> {
        let name = &dropped.name;
        let Some((entry, index)) = named_index::find(&staged.entries, name) else {
            return match staged.entries.get(name) {
                Some(entry) => {
                    let kind = entry.kind().noun();
                    Err(Error::sql(format!("\"{name}\" is a {kind}, not an index")))
                }
                None if dropped.if_exists => Ok(()),
                None => Err(Error::sql(format!("there is no index \"{name}\""))),
            };
        };
        index.check_dropped(entry)?;
        let (relation, index) = (entry.name.clone(), index.clone());
        let without = Arc::new(entry.without_index(name));
        staged.comments.forget(name);
        let created = staged.created.len();
        staged.created.retain(|created| created.name() != name);
        if staged.created.len() == created {
            staged.statements.push(Record::dropped_index(name));
            staged.dropped_indexes.push((relation.clone(), index));
        }
        staged.named.insert(relation.clone());
        Arc::make_mut(&mut staged.entries).insert(relation, without);
        Ok(())
    }

    /// Has a transaction create a schema. Does nothing if it may be there and is.
    pub(crate) fn stage_schema(
        &self,
        staged: &mut StagedDefinitions,
        schema: &SchemaDefinition,
    ) -> Result<()> {
        let name = &schema.name;
        schemas::check_free(name)?;
        if staged.entries.has_schema(name) {
            return match schema.if_not_exists {
                true => Ok(()),
                false => Err(schemas::there_is(name)),
            };
        }
        staged.statements.push(Record::schema(name));
        staged.schemas.push(name.clone());
        Arc::make_mut(&mut staged.entries).schemas.insert(name.clone());
        Ok(())
    }

    /// Refuses to create in a transaction a relation whose name is declared or has a LATENESS.
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
