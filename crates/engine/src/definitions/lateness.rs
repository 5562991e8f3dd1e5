//! LATENESS of columns of views.
//!
//! The dataflow of a view drops late changes before they are read. So lateness is part of how the view is built: an
//! existing view without readers is built again. The lateness of a view that does not exist yet waits for it. It goes with
//! the view.

use std::borrow::Cow;
use std::path::Path;

use alluvium_sql::statement::{self, StatementKind, ViewDefinition, ViewLateness};

use super::Definitions;
use super::relations::{Begun, Built};
use crate::catalog::{Definition, Entry, View};
use crate::connectors::Connectors;
use crate::durable::record::Record;
use crate::error::{Error, Result};
use crate::interrupt;
use crate::writer::Writer;

impl Definitions {
    /// Says how late changes of a view may come, durably.
    pub(crate) fn declare_lateness(
        &self,
        declared: &ViewLateness,
        base: &Path,
        writer: &Writer,
        connectors: &Connectors,
    ) -> Result<()> {
        interrupt::deferred(|| match self.add_lateness(declared, base, writer, connectors)? {
            Some(begun) => self.finish_view(begun, connectors),
            None => Ok(()),
        })?;
        self.sequencer.durable().sync_all()
    }

    fn add_lateness(
        &self,
        declared: &ViewLateness,
        base: &Path,
        writer: &Writer,
        connectors: &Connectors,
    ) -> Result<Option<Begun>> {
        let (_lock, entry) = match self.catalog.contains(&declared.view) {
            true => self.lock_filled(&declared.view)?,
            false => {
                let _lock = self.lock();
                return self.announce(declared, base, writer).map(|()| None);
            }
        };
        if let Definition::Declared(_) | Definition::View(View { recursion: Some(_), .. }) =
            &entry.definition
        {
            return Err(Error::sql(format!(
                "\"{0}\" recurs: say LATENESS of a view over \"{0}\"",
                entry.name
            )));
        }
        let Definition::View(view) = &entry.definition else {
            return Err(Error::sql(format!(
                "\"{}\" is a table: LATENESS of its columns stands in CREATE TABLE",
                entry.name
            )));
        };
        entry.check_without_indexes("write LATENESS")?;
        self.check_unread(&entry, connectors)?;
        let mut definition = defined(view)?;
        definition.lateness.push(declared.clone());
        let record = self.recorded(&entry.name, || {
            let now = writer.now()?;
            let said = Record::definition(&declared.text, base, now)?;
            Ok((said, Record::definition(&whole(&definition), base, now)?))
        })?;
        match self.build_view(&definition, Some(entry.clone()), record, writer)? {
            Built::Begun(begun) => Ok(Some(begun)),
            // The relations that a view reads were full before the view was.
            Built::Waits(_) => {
                Err(Error::sql("the view reads one that is filled; run the statement again"))
            }
        }
    }

    /// Waits for a view.
    fn announce(&self, declared: &ViewLateness, base: &Path, writer: &Writer) -> Result<()> {
        let mut announced = self.announced.lock();
        let mut waiting = announced.get(&declared.view).cloned().unwrap_or_default();
        if waiting.iter().any(|said| said.text == declared.text) {
            // A program that ended after this is run again.
            return Ok(());
        }
        waiting.push(declared.clone());
        let record = self.recorded(&declared.view, || {
            let now = writer.now()?;
            let said = Record::definition(&declared.text, base, now)?;
            Ok((said, Record::definition(&texts(&waiting), base, now)?))
        })?;
        record.map(|record| self.sequencer.record(&record)).transpose()?;
        announced.insert(declared.view.clone(), waiting);
        Ok(())
    }

    /// The definition of a view that is created, with the lateness announced for it before.
    pub(super) fn with_announced<'a>(
        &self,
        definition: &'a ViewDefinition,
    ) -> Cow<'a, ViewDefinition> {
        match self.announced.lock().get(&definition.name) {
            None => Cow::Borrowed(definition),
            Some(lateness) => {
                let lateness = lateness.clone();
                Cow::Owned(ViewDefinition { lateness, ..definition.clone() })
            }
        }
    }

    /// Whether something waits for a relation of this name.
    pub(super) fn is_announced(&self, name: &str) -> bool {
        self.announced.lock().contains_key(name)
    }

    /// Drops the lateness that waited for a relation of this name.
    pub(super) fn forget_announced(&self, name: &str) {
        self.announced.lock().remove(name);
    }

    /// Refuses to change what a view's readers see.
    fn check_unread(&self, entry: &Entry, connectors: &Connectors) -> Result<()> {
        let name = &entry.name;
        let views = self.catalog.dependents(name);
        let mut readers: Vec<String> =
            views.iter().map(|view| format!("\"{}\"", view.name)).collect();
        if connectors.outputs.read(name) {
            readers.push("an output".to_owned());
        } else if self.is_subscribed(name) {
            readers.push("a subscription".to_owned());
        }
        match readers.is_empty() {
            true => Ok(()),
            false => Err(Error::sql(format!(
                "\"{name}\" is read already, by {}: write LATENESS before its readers are created, or before CREATE VIEW",
                readers.join(", ")
            ))),
        }
    }
}

/// The statements that define a view: how late its changes may come, and itself.
pub(super) fn whole(definition: &ViewDefinition) -> String {
    let ViewDefinition { lateness, text, .. } = definition;
    match lateness.is_empty() {
        true => text.clone(),
        false => format!("{};\n{text}", texts(lateness)),
    }
}

fn texts(lateness: &[ViewLateness]) -> String {
    let texts: Vec<&str> = lateness.iter().map(|lateness| &*lateness.text).collect();
    texts.join(";\n")
}

/// The definition of a view, as it was written, with its present lateness.
pub(super) fn defined(view: &View) -> Result<ViewDefinition> {
    for statement in statement::parse(&view.text) {
        if let StatementKind::CreateView(definition) = statement?.kind {
            return Ok(ViewDefinition { lateness: view.late_by.clone(), ..definition });
        }
    }
    Err(Error::sql("the view was not defined by CREATE VIEW"))
}
