//! The relations that a query scans, pinned as of one epoch.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use alluvium_sql::planner::CLOCK;
use datafusion::datasource::{MemTable, TableProvider};

use super::access_path::AccessPath;
use super::file::Files;
use super::metrics::MetricFamily;
use super::objects::information_schema;
use super::reader::{Reader, Reading};
use super::{clock, errors, explain, file, metrics, objects, relations, table, tables};
use crate::authorizer::{Object, Rights};
use crate::catalog::{ERRORS, Entries, Entry, NamedIndex, RELATIONS, TABLES, is_system, system};
use crate::clock::Moment;
use crate::error::{Error, Result};
use crate::transaction::Transaction;
use crate::worker::{DataflowId, Published};

/// A table for DataFusion in place of each relation, by name.
pub(super) type Providers = BTreeMap<String, Arc<dyn TableProvider>>;

/// The relations, sequences and schemas that the system relations among these names may show to a session.
fn visible(
    names: &[String],
    reading: Reading<'_>,
    is_visible: impl Fn(&Rights, Object<'_>) -> bool,
) -> Arc<Entries> {
    match reading.rights.filter(|_| names.iter().any(|name| is_system(name))) {
        None => reading.entries.clone(),
        Some(rights) => Arc::new(reading.entries.only(|object| is_visible(rights, object))),
    }
}

impl Reader {
    /// The relations of these names, all as of one epoch, and the value of `NOW()` for the query.
    pub(super) fn providers(
        &self,
        names: &[String],
        reading: Reading<'_>,
    ) -> Result<(Providers, Moment)> {
        let entry = |name: &String| match reading.files.contains_key(name) {
            true => None,
            false => reading.entries.get(name).map(|entry| &**entry),
        };
        let (created, kept): (Vec<&Entry>, Vec<&Entry>) =
            names.iter().filter_map(entry).partition(|entry| entry.is_staged);
        // Those of which rows and state are shown.
        let shown = visible(
            names,
            reading,
            |rights, object| matches!(object, Object::Relation(name) if rights.shows(name)),
        );
        kept.iter().try_for_each(|entry| entry.check_runs())?;
        let views: Vec<&Entry> = match names.iter().any(|name| name == ERRORS) {
            true => shown
                .values()
                .map(|entry| &**entry)
                .filter(|entry| entry.as_view().is_ok())
                .collect(),
            false => Vec::new(),
        };
        // The errors of a view are reported by its own dataflow and by the indexes it reads.
        let mut reporters: Vec<(&Entry, DataflowId)> = Vec::new();
        for entry in views {
            let own = entry.dataflow().into_iter();
            let indexes = entry.as_view().into_iter().flat_map(|view| &view.uses.reported);
            reporters.extend(own.chain(indexes.copied()).map(|id| (entry, id)));
        }
        let kept_ids: Vec<DataflowId> = kept.iter().filter_map(|entry| entry.dataflow()).collect();
        let counted: Vec<&Entry> = match names.iter().any(|name| name == TABLES) {
            true => tables::shown(&shown),
            false => Vec::new(),
        };
        let indexes = kept.iter().flat_map(|entry| &entry.indexes).filter_map(|index| index.id);
        // The answer is there without them: an index that is dropped or fails meanwhile has the same rows in another order.
        let mut others: Vec<DataflowId> = indexes.collect();
        let mut time = reading.transaction.map_or(0, Transaction::time);
        let (of_kept, with_indexes) = (kept.len(), kept.len() + others.len());
        others.extend(reporters.iter().map(|(_, id)| *id));
        others.extend(counted.iter().filter_map(|entry| entry.dataflow()));
        // A query of files alone, or of nothing, is the same as of any epoch, its time included.
        let is_of_files = kept.is_empty()
            && others.is_empty()
            && !names.iter().any(|name| is_system(name) || name == CLOCK);
        let begun = reading.waited.map(|_| Instant::now());
        let pinned = match reading.transaction {
            Some(_) if is_of_files => Some((0, Vec::new())),
            Some(open) => open.pin(self, (&kept, &others), reading.durable)?,
            None => {
                self.sequencer.sync(reading.at_least)?;
                let pinned = self.progress.pin(&kept_ids, &others, reading.at_least)?;
                pinned.map(|pinned| {
                    time = pinned.time;
                    (pinned.epoch, pinned.dataflows)
                })
            }
        };
        if let (Some(begun), Some(waited)) = (begun, reading.waited) {
            waited.set(begun.elapsed());
        }
        let Some((epoch, mut parts)) = pinned else {
            let is_gone = |entry: &&&Entry| {
                let there = self.catalog.get(&entry.name);
                there.is_ok_and(|there| there.dataflow() != entry.dataflow())
            };
            let gone = kept.iter().find(is_gone).or(kept.first());
            return Err(Error::replaced(gone.map_or("", |entry| &entry.name)));
        };
        let count_parts = parts.split_off(with_indexes + reporters.len());
        let view_parts = parts.split_off(with_indexes);
        let mut index_parts = parts.split_off(of_kept).into_iter();
        let mut providers = Providers::new();
        for (entry, parts) in kept.iter().zip(parts) {
            let overlay = match reading.transaction {
                Some(transaction) if entry.is_table() => transaction.overlay(entry)?,
                _ => None,
            };
            let path = |index: Option<&NamedIndex>, parts: Vec<Published>| AccessPath {
                index: index.map(|index| index.name.as_str().into()),
                snapshots: parts.into_iter().filter_map(|part| part.contents).collect(),
            };
            let indexes = entry.indexes.iter().filter(|index| index.id.is_some());
            let indexes = indexes.zip(index_parts.by_ref()).filter(|(_, parts)| !parts.is_empty());
            let indexes = indexes.map(|(index, parts)| path(Some(index), parts));
            let paths = [path(None, parts)].into_iter().chain(indexes).collect();
            let noted = match (reading.transaction, entry.dataflow()) {
                // No other session writes to a session's own.
                _ if entry.temporary().is_some() => None,
                (Some(transaction), Some(id)) if reading.counts => {
                    Some(transaction.noted(id, &entry.name))
                }
                _ => None,
            };
            let table = table::RelationTable::new(entry, epoch, paths, overlay).noted(noted);
            providers.insert(entry.name.clone(), Arc::new(table));
        }
        // Relations that the transaction has created have the rows that it has written.
        for entry in created {
            let overlay = reading.transaction.map(|transaction| transaction.overlay(entry));
            let path = AccessPath { index: None, snapshots: Arc::default() };
            let overlay = overlay.transpose()?.flatten();
            let table = table::RelationTable::new(entry, epoch, vec![path], overlay);
            providers.insert(entry.name.clone(), Arc::new(table));
        }
        if names.iter().any(|name| name == ERRORS) {
            let views: Vec<&Entry> = reporters.iter().map(|(view, _)| *view).collect();
            let mut refused = self.refusals.rows(epoch)?;
            if reading.rights.is_some() {
                refused = errors::of(&shown, &refused)?;
            }
            let shows_rows = |view: &Entry| {
                let is_shown = |input: &str| shown.contains_key(input);
                reading.rights.is_none() || reading.entries.reads_only(&view.name, is_shown)
            };
            let table = errors::table(&views, view_parts, epoch, refused, shows_rows)?;
            providers.insert(ERRORS.to_owned(), table);
        }
        let reasons = || explain::state::reasons(&shown);
        let of_metrics = metrics::Shown {
            progress: &self.progress,
            sequencer: &self.sequencer,
            entries: &shown,
            role: reading.rights.map(Rights::role),
            observed: &self.observed,
        };
        providers.extend(metrics::tables_named(names, &of_metrics, reasons)?);
        if names.iter().any(|name| name == TABLES) {
            providers.insert(TABLES.to_owned(), tables::table(self, &counted, count_parts, epoch)?);
        }
        let comments = || {
            let comments = self.sequencer.comments();
            match reading.transaction.and_then(Transaction::definitions) {
                Some(staged) => staged.comments(comments),
                None => comments,
            }
        };
        // Those of which it is told that they are there.
        let told = visible(names, reading, Rights::tells);
        if names.iter().any(|name| name == RELATIONS) {
            let table = relations::table(&self.progress, &told, &comments())?;
            providers.insert(RELATIONS.to_owned(), table);
        }
        information_schema::add(names, &told, comments, &mut providers)?;
        let settings = reading.taker.map(|taker| taker.settings);
        let roles = || {
            let roles = self.sequencer.roles().get();
            match reading.transaction.and_then(Transaction::definitions) {
                Some(staged) => staged.roles(roles),
                None => roles,
            }
        };
        providers.extend(objects::tables_named(names, &told, comments, settings, roles)?);
        if names.iter().any(|name| name == CLOCK) {
            providers.insert(CLOCK.to_owned(), clock::table(time)?);
        }
        for name in names {
            if let Some(file) = reading.files.get(name) {
                let (file, formats) = (file.clone(), self.formats.clone());
                providers.insert(name.clone(), Arc::new(file::FileTable { file, formats }));
            }
        }
        Ok((providers, time))
    }

    /// The metrics of the engine.
    pub(crate) fn metrics(&self) -> Result<Vec<MetricFamily>> {
        metrics::families(&metrics::Shown {
            progress: &self.progress,
            sequencer: &self.sequencer,
            entries: &self.catalog.entries(),
            role: None,
            observed: &self.observed,
        })
    }

    /// Tables for DataFusion with the columns of these relations, and without rows.
    pub(super) fn without_rows(
        &self,
        names: &[String],
        entries: &Entries,
        files: &Files,
    ) -> Result<Providers> {
        let mut providers = Providers::new();
        for name in names {
            let provider: Arc<dyn TableProvider> = match (files.get(name), entries.get(name)) {
                (Some(file), _) => {
                    let (file, formats) = (file.clone(), self.formats.clone());
                    Arc::new(file::FileTable { file, formats })
                }
                (None, Some(entry)) => {
                    let path = AccessPath { index: None, snapshots: Arc::default() };
                    Arc::new(table::RelationTable::new(entry, 0, vec![path], None))
                }
                (None, None) => match system(name) {
                    Some(schema) => Arc::new(MemTable::try_new(schema.clone(), vec![Vec::new()])?),
                    None => clock::table(0)?,
                },
            };
            providers.insert(name.clone(), provider);
        }
        Ok(providers)
    }
}
