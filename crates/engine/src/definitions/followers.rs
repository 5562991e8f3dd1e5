//! Views that read a relation which gets another name, and go on.
//!
//! The definition of such a view is edited where it names the relation. Its plan is the same but for that name, which is made sure
//! of, and its dataflow is another one that [starts with what the one before keeps](Continued): no row is touched. So are those of
//! the views that read it, and of the indexes that they share.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use alluvium_sql::physical::{Compiled, Output, PhysicalPlan, compile};
use alluvium_sql::plan::{Fingerprint, IncrementalPlan, PlannedView, Renamed, Shared};
use alluvium_sql::statement::ViewDefinition;

use super::install::Replaced;
use super::relations::{self, Start};
use super::staged::Altered;
use super::{Definitions, lateness};
use crate::catalog::{Entries, Entry, NamedIndex, Scope, Uses, View};
use crate::connectors::Connectors;
use crate::durable::checkpoint::DataflowKey;
use crate::durable::restore::RestoredDataflow;
use crate::error::{Error, Result};
use crate::sequencer::Role;
use crate::writer::Writer;

/// A view that reads a relation which gets another name, itself or through others.
pub(super) struct Follower {
    /// As it was.
    pub(super) before: Arc<Entry>,
    pub(super) definition: Arc<ViewDefinition>,
    /// As it is then, with the dataflow that it has.
    pub(super) after: Arc<Entry>,
}

impl Definitions {
    /// The views that read a relation which is `after` that of another name, each after those that it reads. Fails if one of them
    /// cannot read it by that name.
    pub(super) fn followers(
        &self,
        entry: &Entry,
        after: &Entry,
        entries: &Entries,
        connectors: &Connectors,
    ) -> Result<Vec<Follower>> {
        let mut readers = entries.dependents(&entry.name);
        readers.reverse();
        if let (Some(reader), Ok(table)) = (readers.first(), entry.as_table())
            && !table.lateness.is_empty()
        {
            let what = "and its LATENESS goes by its name there";
            return Err(cannot_follow(entry, reader, what));
        }
        let mut then = entries.clone();
        then.remove(&entry.name);
        then.insert(after.name.clone(), Arc::new(after.clone()));
        let renamed = Renamed::new([(entry.name.clone(), after.name.clone())]);
        let mut followers = Vec::with_capacity(readers.len());
        for before in readers {
            let view = match before.as_view() {
                Ok(view) if view.recursion.is_none() => view,
                _ => return Err(cannot_follow(entry, &before, "which recurs over other views")),
            };
            if !view.late_by.is_empty() {
                return Err(cannot_follow(entry, &before, "which has LATENESS"));
            }
            if connectors.outputs.read(&before.name) {
                return Err(cannot_follow(entry, &before, "which is written to a file"));
            }
            let mut definition = lateness::defined(view)?;
            if before.depends.contains(&entry.name) {
                definition = definition.reading(&entry.name, &after.name)?;
            }
            let other_way =
                || cannot_follow(entry, &before, "and would be computed in another way");
            let planned = PlannedView::of(&definition, &self.planner, &Scope(&then))
                .map_err(|_| other_way())?;
            let is_same = planned.plan.fingerprint() == view.plan.fingerprint_with(&renamed)
                && planned.schema == before.schema;
            if !is_same {
                return Err(other_way());
            }
            let dataflow = (view.id, view.uses.clone());
            let (indexes, failed) = (before.indexes.clone(), before.failed.clone());
            let (since, is_staged) = (before.since, before.is_staged);
            let follower = Entry::of_view(&definition, planned, dataflow, None);
            let after = Arc::new(Entry { indexes, failed, since, is_staged, ..follower });
            then.insert(after.name.clone(), after.clone());
            followers.push(Follower { before, definition: Arc::new(definition), after });
        }
        Ok(followers)
    }

    /// Installs the dataflows of a relation that takes the place of another one, under the names of `renamed`, with these `indexes`. `entries`
    /// are those that it reads. The caller holds the definitions' lock.
    pub(super) fn move_relation(
        &self,
        before: &Entry,
        after: &Altered,
        indexes: &[Arc<NamedIndex>],
        (entries, renamed): (&Entries, &Rc<Renamed>),
        writer: &Writer,
    ) -> Result<Entry> {
        let kept = before.dataflow().map(|id| self.kept(id)).transpose()?;
        let moved = match after {
            Altered::Table(definition) => {
                let table = Arc::new(relations::table_of(definition)?);
                let fingerprint = table.fingerprint();
                let kept = kept.map(|kept| kept.of_plan(&fingerprint.to_string()));
                let role = Role::of(DataflowKey::relation(&definition.name, fingerprint), kept);
                let (name, is_kept) = (&definition.name, definition.is_kept());
                let id = self.install_table(name, &table, is_kept, None, role)?;
                Entry::of_table(definition, id)?
            }
            Altered::View(definition) => {
                let planned = PlannedView::of(definition, &self.planner, &Scope(entries))?;
                match (kept, &before.failed) {
                    (None, Some(_)) => {
                        let failed = before.failed.clone();
                        let dataflow = (None, Uses::default());
                        Entry { failed, ..Entry::of_view(definition, planned, dataflow, None) }
                    }
                    (None, None) => {
                        let start = Start::Empty(None);
                        self.install_view(definition, planned, None, start, entries, writer)?
                    }
                    (Some(kept), _) => {
                        let start =
                            Start::With(Continued { before: before.as_view()?, kept, renamed });
                        self.install_view(definition, planned, None, start, entries, writer)?
                    }
                }
            }
        };
        self.with_indexes(moved, indexes, entries)
    }

    /// A relation with these indexes, of which those that have dataflows get others over it.
    fn with_indexes(
        &self,
        mut moved: Entry,
        indexes: &[Arc<NamedIndex>],
        entries: &Entries,
    ) -> Result<Entry> {
        let mut over = entries.clone();
        over.insert(moved.name.clone(), Arc::new(moved.clone()));
        let indexes = indexes.iter().map(|index| match index.id {
            Some(_) if moved.dataflow().is_some() => {
                self.indexed_again(&moved, index, &over).map(Arc::new)
            }
            _ => Ok(Arc::new(index.stopped())),
        });
        moved.indexes = indexes.collect::<Result<_>>()?;
        Ok(moved)
    }
}

/// What the dataflow of a view keeps, for one that takes its place and has the same plan under other names of relations.
pub(super) struct Continued<'a> {
    pub(super) before: &'a View,
    pub(super) kept: RestoredDataflow,
    pub(super) renamed: &'a Rc<Renamed>,
}

impl Continued<'_> {
    /// The plan of a view, called `name`, over the indexes that the one before uses, and the dataflows of these.
    pub(super) fn compiled(
        &self,
        name: &str,
        plan: &IncrementalPlan,
        output: Output,
    ) -> Result<(Compiled, Replaced)> {
        let uses = &self.before.uses.all;
        let before: IncrementalPlan = self.before.plan.as_ref().clone();
        if before.fingerprint_with(self.renamed) != plan.fingerprint() {
            return Err(in_another_way(name));
        }
        let Shared { indexes, .. } = before.share(&|index| uses.contains_key(&index));
        let then: BTreeSet<Fingerprint> =
            indexes.iter().map(|shared| shared.index.fingerprint_with(self.renamed)).collect();
        let compiled = compile(plan, output, &|index| then.contains(&index))?;
        if indexes.len() != compiled.indexes.len() {
            return Err(in_another_way(name));
        }
        let replaced = indexes.iter().zip(&compiled.indexes).filter_map(|(before, index)| {
            Some((index.fingerprint, *uses.get(&before.fingerprint)?))
        });
        let replaced = replaced.collect();
        Ok((compiled, replaced))
    }

    /// What it keeps, for the dataflow of a plan.
    pub(super) fn kept(self, name: &str, plan: &PhysicalPlan) -> Result<RestoredDataflow> {
        self.kept.of_names(plan).ok_or_else(|| in_another_way(name))
    }
}

fn in_another_way(name: &str) -> Error {
    Error::sql(format!(
        "\"{name}\" would be computed in another way than before: create another view and drop this one"
    ))
}

/// The error of a relation that keeps its name as long as a view reads it.
fn cannot_follow(entry: &Entry, reader: &Entry, why: &str) -> Error {
    let (name, reader) = (&entry.name, &reader.name);
    Error::sql(format!(
        "\"{name}\" is read by \"{reader}\", {why}: DROP \"{reader}\", ALTER, and create that again"
    ))
}
