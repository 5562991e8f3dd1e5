//! Views that recur over themselves and over each other.
//!
//! `DECLARE RECURSIVE VIEW` makes a name known, with columns. A declared view that is created waits until all declared views are
//! created that it reads, itself or through local views. Then all of them are there at once: the dataflow of each computes the
//! whole recursion. Views that only read them may have been created before, and are planned again.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use alluvium_sql::catalog::DeclaredRecursion;
use alluvium_sql::physical::compile;
use alluvium_sql::plan::PlannedView;
use alluvium_sql::planner::Extent;
use alluvium_sql::statement::{IfTaken, ViewDeclaration, ViewDefinition, ViewKind};
use arrow::datatypes::SchemaRef;

use super::Definitions;
use super::lateness::defined;
use super::relations::{Start, output_of};
use crate::catalog::{Declared, Definition, Entries, Entry, Scope, Waiting};
use crate::durable::record::{Record, Recorded};
use crate::error::{Error, Result};
use crate::interrupt;
use crate::worker::DataflowId;
use crate::writer::Writer;

/// The declared views that are created and wait for others, by name.
type WaitingViews = BTreeMap<String, Arc<Waiting>>;

/// Refuses a view that reads one that is declared and not complete, and is neither declared nor local.
pub(super) fn check_awaited(definition: &ViewDefinition, planned: &PlannedView) -> Result<()> {
    match planned.awaits.first() {
        Some(awaited) if definition.kind != ViewKind::Local => {
            let name = &definition.name;
            let error = Error::sql(format!(
                "\"{name}\" reads \"{awaited}\", which is declared, and not there before all views are created that it recurs \
                 over: create \"{name}\" behind them, declare it, or make it a LOCAL view"
            ));
            Err(error.at(definition.position))
        }
        _ => Ok(()),
    }
}

impl Definitions {
    /// Declares a view, durably.
    pub(crate) fn declare_view(
        &self,
        declaration: &ViewDeclaration,
        base: &Path,
        writer: &Writer,
    ) -> Result<()> {
        interrupt::deferred(|| self.add_declaration(declaration, base, writer))?;
        self.sequencer.durable().sync_all()
    }

    fn add_declaration(
        &self,
        declaration: &ViewDeclaration,
        base: &Path,
        writer: &Writer,
    ) -> Result<()> {
        let _lock = self.lock();
        let ViewDeclaration { name, schema, text, .. } = declaration;
        self.taken(name, IfTaken::Fail, |_| false)?;
        if self.is_announced(name) {
            let message =
                format!("\"{name}\" has a LATENESS, which a view that recurs cannot have");
            return Err(Error::sql(message));
        }
        let record = self.recorded(name, || {
            let declared = Record::definition(text, base, writer.now()?)?;
            Ok((declared.clone(), declared))
        })?;
        record.map(|record| self.sequencer.record(&record)).transpose()?;
        self.catalog.insert(declared_entry(name, schema.clone(), None));
        Ok(())
    }

    /// Whether a view of this name is declared, and not created.
    pub(super) fn is_only_declared(&self, name: &str) -> bool {
        self.catalog.get(name).is_ok_and(|entry| entry.is_only_declared())
    }

    /// Whether a view that does not exist yet is declared, or has a LATENESS.
    pub(super) fn is_said(&self, name: &str) -> bool {
        self.is_announced(name) || self.is_only_declared(name)
    }

    /// Creates a declared view. Returns the dataflows that are filled for it and for others, with their names. The caller holds the
    /// definitions' lock.
    pub(super) fn add_recursive(
        &self,
        definition: &ViewDefinition,
        planned: PlannedView,
        record: Option<&Recorded>,
        writer: &Writer,
    ) -> Result<Vec<(String, DataflowId)>> {
        // A view that cannot be kept is refused before the others are there.
        compile(&planned.plan, output_of(definition.kind), &|_| false)?;
        let name = definition.name.clone();
        let waiting = Arc::new(Waiting { definition: definition.clone(), planned });
        let mut views = waiting_views(&self.catalog.entries());
        views.insert(name.clone(), waiting.clone());
        let Some(members) = recurring_with(&name, &views) else {
            if !definition.connectors.is_empty() {
                let error = Error::sql(format!(
                    "\"{name}\" has outputs, so it must be the last one that is created of the views that recur over each other"
                ));
                return Err(error.at(definition.position));
            }
            record.map(|record| self.sequencer.record(record)).transpose()?;
            let schema = self.catalog.get(&name)?.schema.clone();
            self.catalog.insert(declared_entry(&name, schema, Some(waiting)));
            return Ok(Vec::new());
        };
        let mut filled = self.complete(&members, &views, Some((&name, record)), writer)?;
        // Others may have waited for these.
        loop {
            let views = waiting_views(&self.catalog.entries());
            let complete = views.keys().filter_map(|name| recurring_with(name, &views));
            let Some(members) = complete.min_by_key(BTreeSet::len) else { return Ok(filled) };
            filled.extend(self.complete(&members, &views, None, writer)?);
        }
    }

    /// Installs views that recur over each other, the one with a record first, and plans those again that wait for them.
    fn complete(
        &self,
        members: &BTreeSet<String>,
        views: &WaitingViews,
        recorded: Option<(&String, Option<&Recorded>)>,
        writer: &Writer,
    ) -> Result<Vec<(String, DataflowId)>> {
        let of: Vec<&Arc<Waiting>> = members.iter().filter_map(|name| views.get(name)).collect();
        let recursion = Arc::new(recursion(&of)?);
        let planned = of.iter().map(|waiting| {
            let definition = &waiting.definition;
            let planned = waiting.planned.clone().within(&recursion, definition, &self.planner)?;
            compile(&planned.plan, output_of(definition.kind), &|_| false)?;
            Ok((definition, planned))
        });
        let mut planned = planned.collect::<Result<Vec<_>>>()?;
        let is_recorded = |name: &String| recorded.is_some_and(|(recorded, _)| recorded == name);
        planned.sort_by_key(|(definition, _)| !is_recorded(&definition.name));
        let mut filled = Vec::with_capacity(planned.len());
        for (definition, planned) in planned {
            let record = recorded.filter(|_| is_recorded(&definition.name));
            let record = record.and_then(|(_, record)| record);
            let recursion = Some(recursion.clone());
            let start = Start::Empty(record);
            let entry = self.install_view(
                definition,
                planned,
                recursion,
                start,
                &self.catalog.entries(),
                writer,
            )?;
            filled.extend(entry.dataflow().map(|id| (entry.name.clone(), id)));
            self.catalog.insert(entry);
        }
        self.plan_again(members).map(|()| filled)
    }

    /// Plans the local and the declared views again that read views which are there now.
    fn plan_again(&self, there: &BTreeSet<String>) -> Result<()> {
        let entries = self.catalog.entries();
        let is_there = |name: &String| there.contains(name);
        let mut stale: BTreeSet<&str> = BTreeSet::new();
        for entry in entries.values() {
            let awaits = match &entry.definition {
                Definition::View(view) => &view.awaits[..],
                Definition::Declared(_) => {
                    entry.waiting().map_or(&[][..], |waiting| &waiting.planned.awaits)
                }
                Definition::Table(_) => &[],
            };
            if awaits.iter().any(is_there) {
                stale.insert(&entry.name);
            }
        }
        // A view comes after the local ones that it reads. Declared views are not expanded where they are read.
        while let Some(name) = stale.iter().copied().find(|name| {
            let is_local = |read: &String| {
                read != name
                    && stale.contains(read.as_str())
                    && entries.get(read).is_some_and(|read| read.waiting().is_none())
            };
            !entries[*name].depends.iter().any(is_local)
        }) {
            stale.remove(name);
            self.plan_one_again(&entries[name])?;
        }
        Ok(())
    }

    fn plan_one_again(&self, entry: &Entry) -> Result<()> {
        let entries = self.catalog.entries();
        if let Some(waiting) = entry.waiting() {
            let definition = waiting.definition.clone();
            let planned = PlannedView::of(&definition, &self.planner, &Scope(&entries))?;
            let (name, schema) = (&entry.name, entry.schema.clone());
            let waiting = Arc::new(Waiting { definition, planned });
            self.catalog.insert(declared_entry(name, schema, Some(waiting)));
            return Ok(());
        }
        let view = entry.as_view()?;
        let mut definition = defined(view)?;
        definition.lateness.clone_from(&view.late_by);
        let planned = PlannedView::of(&definition, &self.planner, &Scope(&entries))?;
        self.catalog.insert(view.planned_again(entry, planned));
        Ok(())
    }
}

fn declared_entry(name: &str, schema: SchemaRef, view: Option<Arc<Waiting>>) -> Entry {
    let depends = view.as_ref().map_or_else(Vec::new, |view| view.planned.depends.clone());
    let definition = Definition::Declared(Declared { view });
    let (indexes, failed) = Default::default();
    let (name, since, is_staged) = (name.to_owned(), 0, false);
    Entry { name, schema, depends, definition, indexes, failed, since, is_staged }
}

/// The declared views that are created and wait for others.
fn waiting_views(entries: &Entries) -> WaitingViews {
    let waiting = entries.values().filter_map(|entry| {
        let waiting = entry.waiting()?.clone();
        Some((entry.name.clone(), waiting))
    });
    waiting.collect()
}

/// The views that recur with one, itself among them; `None` while one of them is missing.
///
/// Complete recursions are installed at once. So a view that becomes complete has been waited for by all that it reads.
fn recurring_with(name: &str, views: &WaitingViews) -> Option<BTreeSet<String>> {
    let mut found = BTreeSet::from([name.to_owned()]);
    let mut rest = vec![name.to_owned()];
    while let Some(name) = rest.pop() {
        for read in &views.get(&name)?.planned.awaits {
            if found.insert(read.clone()) {
                rest.push(read.clone());
            }
        }
    }
    Some(found)
}

/// The recursion of these views. Fails if it is too large.
fn recursion(waiting: &[&Arc<Waiting>]) -> Result<DeclaredRecursion> {
    let (mut views, mut extent, mut limit) = (Vec::new(), Extent::default(), 0);
    for Waiting { definition, planned } in waiting.iter().map(|view| &***view) {
        extent = extent.beside(planned.extent)?;
        views.extend(planned.declared.clone());
        limit = limit.max(definition.recursion_limit);
    }
    Ok(DeclaredRecursion { views, extent, limit })
}
