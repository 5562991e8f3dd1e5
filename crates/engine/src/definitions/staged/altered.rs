//! ALTER inside of a transaction, and new names of relations.

use std::path::Path;
use std::sync::Arc;

use alluvium_sql::name;
use alluvium_sql::statement::{Alter, Change, IfTaken, TableDefinition, ViewDefinition};

use super::{Created, StagedDefinitions, outside};
use crate::catalog::{Definition, Entry, View};
use crate::definitions::alter::{Parts, check_kind, check_only_text, check_unread, is_written};
use crate::definitions::followers::Follower;
use crate::definitions::relations;
use crate::definitions::{Definitions, lateness};
use crate::durable::record::Record;
use crate::error::{Error, Result};

/// Why a transaction cannot alter a relation in some way.
const ALTER_OUTSIDE: &str = "inside a transaction ALTER only renames a relation that was there before, or a column of a table; COMMIT first";

/// A relation as ALTER leaves it.
#[derive(Clone)]
pub(in crate::definitions) enum Altered {
    Table(Arc<TableDefinition>),
    View(Arc<ViewDefinition>),
}

impl Altered {
    /// A relation of another name.
    pub(in crate::definitions) fn of(entry: &Entry, change: &Change) -> Result<Self> {
        match (&entry.definition, change) {
            (Definition::Table(table), _) => {
                let altered = table.defined.altered(change)?;
                let altered = altered.unwrap_or_else(|| TableDefinition::clone(&table.defined));
                Ok(Self::Table(Arc::new(altered)))
            }
            (_, Change::Rename { to, .. }) => {
                let view = entry.as_view()?;
                check_only_text(entry, view)?;
                Ok(Self::View(Arc::new(lateness::defined(view)?.renamed(to)?)))
            }
            _ => Err(Error::sql("a view can only be renamed")),
        }
    }

    pub(in crate::definitions) fn name(&self) -> &str {
        match self {
            Self::Table(table) => &table.name,
            Self::View(view) => &view.name,
        }
    }

    /// The statement that creates it.
    pub(in crate::definitions) fn text(&self) -> &str {
        match self {
            Self::Table(table) => &table.text,
            Self::View(view) => &view.text,
        }
    }
}

impl Definitions {
    /// Has a transaction alter a relation, of which it may have `written` rows.
    pub(crate) fn stage_alter(
        &self,
        staged: &mut StagedDefinitions,
        alter: &Alter,
        base: &Path,
        has_written: impl Fn(&Entry) -> bool,
        parts: Parts<'_>,
    ) -> Result<()> {
        if alter.if_exists && !staged.entries.contains_key(name::short(&alter.name)) {
            staged.named.insert(alter.name.clone());
            return Ok(());
        }
        let entry = staged.entries.relation(&alter.name)?;
        check_kind(&entry, alter)?;
        entry.check_runs()?;
        let after = match (&alter.change, entry.as_view()) {
            (Change::Rename { .. }, Ok(_)) => Altered::of(&entry, &alter.change)?,
            (_, Ok(_)) => return Err(outside(ALTER_OUTSIDE.to_owned())),
            (change, Err(_)) => {
                let is_name = matches!(change, Change::Rename { .. });
                if !is_name && has_written(&entry) {
                    return Err(outside(format!(
                        "the transaction has written rows of \"{}\", whose columns stay until it is committed: COMMIT first",
                        entry.name
                    )));
                }
                if !entry.is_staged && !is_name && !matches!(change, Change::RenameColumn { .. }) {
                    return Err(outside(ALTER_OUTSIDE.to_owned()));
                }
                let table = entry.as_table()?;
                let has_sequences = table.defined.sequences().next().is_some();
                if !table.defined.connectors.is_empty()
                    || !table.lateness.is_empty()
                    || has_sequences
                {
                    return Err(outside(format!(
                        "\"{}\" has connectors, LATENESS or generated columns: ALTER it outside of BEGIN and COMMIT",
                        entry.name
                    )));
                }
                match table.defined.altered(change)? {
                    Some(definition) => Altered::Table(Arc::new(definition)),
                    None => return Ok(()),
                }
            }
        };
        if let Change::Rename { to, .. } = &alter.change {
            self.check_nothing_said(to)?;
        }
        self.stage_altered(staged, (&entry, after), alter, base, parts)
    }

    /// Has a transaction put a relation into the place of another one, whose name or columns are others then.
    pub(in crate::definitions) fn stage_altered(
        &self,
        staged: &mut StagedDefinitions,
        (entry, after): (&Arc<Entry>, Altered),
        alter: &Alter,
        base: &Path,
        Parts { writer, connectors, .. }: Parts<'_>,
    ) -> Result<()> {
        let is_renamed = match &alter.change {
            Change::Rename { to, position } => {
                let taken = relations::taken(&staged.entries, to, IfTaken::Fail, Entry::is_table);
                taken.map_err(|error| error.at(*position))?;
                true
            }
            _ => {
                check_unread(entry, &staged.entries)?;
                false
            }
        };
        if connectors.outputs.read(&entry.name) && !entry.is_staged {
            return Err(is_written(entry));
        }
        let altered = match (&after, &entry.definition) {
            (Altered::Table(definition), Definition::Table(table)) => {
                self.check_uniques(definition, Some(entry), &staged.entries)?;
                let mut altered = Entry::of_table(definition, table.id)?;
                altered.keep_uniques(entry);
                altered
            }
            (Altered::View(definition), Definition::View(view)) => {
                let text = definition.text.clone();
                let definition = Definition::View(View { text, ..view.clone() });
                let (name, indexes) = (after.name().to_owned(), Vec::new());
                Entry { name, definition, indexes, ..Entry::clone(entry) }
            }
            _ => return Err(outside(ALTER_OUTSIDE.to_owned())),
        };
        let (since, is_staged) = (entry.since, entry.is_staged);
        let mut altered = Entry { since, is_staged, ..altered };
        for index in entry.indexes.iter().filter(|index| index.unique.is_none()) {
            altered.indexes.push(Arc::new(index.of_relation(&altered.name)?));
        }
        let followers = match is_renamed {
            true => self.followers(entry, &altered, &staged.entries, connectors)?,
            false => Vec::new(),
        };
        if let Some(created) = followers.iter().find(|follower| follower.before.is_staged)
            && !entry.is_staged
        {
            return Err(outside(format!(
                "\"{}\" is read by \"{}\", which this transaction creates: COMMIT first",
                entry.name, created.before.name
            )));
        }
        // Indexes go by the names of relations: those of the other one are there until the transaction is committed.
        let named = altered.indexes.iter().filter(|index| index.unique.is_none());
        if staged.replaces(entry, &altered.name)
            && !(followers.is_empty() && (entry.is_staged || named.count() == 0))
        {
            return Err(outside(format!(
                "\"{}\" has indexes or views that read it, and cannot take the place of another \"{}\" in the same transaction: COMMIT \
                 first",
                entry.name, altered.name
            )));
        }
        for created in &mut staged.created {
            if let Created::Index { definition, .. } = created
                && definition.relation == entry.name
            {
                *definition = Arc::new(definition.of(&altered.name)?);
            }
        }
        if !entry.is_staged {
            staged.statements.push(Record::definition(&alter.text, base, writer.now()?)?);
        }
        staged.comments.alter(entry, &altered);
        staged.roles_revision += 1;
        staged.roles.iter_mut().for_each(|edit| edit.rename(&entry.name, &altered.name));
        staged.put(entry, after, Arc::new(altered), base);
        for Follower { before, definition, after } in followers {
            staged.put(&before, Altered::View(definition), after, base);
        }
        Ok(())
    }
}
