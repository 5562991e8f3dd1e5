//! System relations of metrics: `alluvium.arrangements`, `operators`, `epochs`, `memory`, `compactions`, `sources`, `outputs`, `sessions`,
//! `locks`, `log` and `standby`.

mod arrangements;
mod compactions;
mod epochs;
mod families;
mod locks;
mod log;
mod memory;
mod operators;
mod outputs;
mod sessions;
mod sources;
mod standby;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use alluvium_trace::memory::DiskFullGate;
use alluvium_trace::metrics::{Metrics, SpineMetrics};
use arrow::array::{ArrayRef, RecordBatch, TimestampMicrosecondArray, UInt64Array};
use datafusion::datasource::{MemTable, TableProvider};

pub(super) use self::arrangements::StateKey;
pub(crate) use self::families::families;
pub use self::families::{Metric, MetricFamily, MetricKind, MetricValue};
use crate::catalog::metrics::{
    ARRANGEMENTS, COMPACTIONS, EPOCHS, LOCKS, LOG, MEMORY, OPERATORS, OUTPUTS, SESSIONS, SOURCES,
    STANDBY,
};
use crate::catalog::{Entries, system};
use crate::clock::{Moment, milliseconds, moment};
use crate::error::Result;
use crate::log::LogLines;
use crate::sequencer::Sequencer;
use crate::session::clients::Clients;
use crate::sink::Outputs;
use crate::source::Inputs;
use crate::worker::Progress;
use crate::writer::RowLocks;

/// Where the metrics are, and of what they are shown.
pub(crate) struct Shown<'a> {
    pub(super) progress: &'a Progress,
    pub(super) sequencer: &'a Sequencer,
    /// The relations that are there.
    pub(super) entries: &'a Entries,
    /// Whose rights they are; if there is one, only these are shown, and not all that the engine does.
    pub(super) role: Option<&'a str>,
    pub(super) observed: &'a Observed,
}

/// The parts of an engine that queries only look at.
pub(crate) struct Observed {
    pub(crate) inputs: Arc<Inputs>,
    pub(crate) outputs: Arc<Outputs>,
    pub(crate) locks: Arc<RowLocks>,
    pub(crate) clients: Arc<Clients>,
    /// The last lines of the log.
    pub(crate) log: LogLines,
    pub(crate) disk_full: DiskFullGate,
}

impl<'a> Shown<'a> {
    /// The relations that metrics are of.
    fn relations(&self) -> Relations<'a> {
        let Shown { entries, role, .. } = *self;
        Relations { entries, indexes: index_names(entries), only_these: role.is_some() }
    }
}

/// Those of them that are among the names. The reasons are those for which state is not pruned.
pub(super) fn tables_named(
    names: &[String],
    shown: &Shown<'_>,
    reasons: impl Fn() -> Result<BTreeMap<StateKey, String>>,
) -> Result<Vec<(String, Arc<dyn TableProvider>)>> {
    let Shown { progress, sequencer, entries, role, observed } = *shown;
    let workers = progress.metrics();
    let relations = || shown.relations();
    let mut found: Vec<(String, Arc<dyn TableProvider>)> = Vec::new();
    for name in names {
        let columns = match name.as_str() {
            ARRANGEMENTS => arrangements::columns(workers, &reasons()?, &relations()),
            OPERATORS => operators::columns(workers, &relations()),
            EPOCHS => epochs::columns(progress, sequencer.last(), entries),
            MEMORY => memory::columns(sequencer.budget(), workers, &relations()),
            COMPACTIONS => compactions::columns(workers, &relations()),
            SOURCES => sources::columns(observed.inputs.progress(), &relations()),
            OUTPUTS => outputs::columns(observed.outputs.shown(), &relations()),
            SESSIONS => sessions::columns(observed.clients.all(), role),
            // They tell of everybody.
            LOG if role.is_some() => log::columns(&[]),
            LOG => log::columns(&(observed.log)()),
            STANDBY => {
                let following = sequencer.durable().following();
                standby::columns(following.map(|following| following.lag(progress.complete())))
            }
            LOCKS => locks::columns(observed.locks.all(), &relations())?,
            _ => continue,
        };
        let Some(schema) = system(name) else { continue };
        let rows = RecordBatch::try_new(schema.clone(), columns)?;
        let table = MemTable::try_new(schema.clone(), vec![vec![rows]])?;
        found.push((name.clone(), Arc::new(table)));
    }
    Ok(found)
}

/// The relations that metrics are of.
struct Relations<'a> {
    entries: &'a Entries,
    /// The names that were given to indexes, by those of their dataflows.
    indexes: BTreeMap<String, String>,
    /// Whether only these are shown.
    only_these: bool,
}

impl Relations<'_> {
    /// Whether the metrics of a dataflow of this name are shown.
    fn shows(&self, dataflow: &str) -> bool {
        !self.only_these
            || self.entries.contains_key(dataflow)
            || self.indexes.contains_key(dataflow)
    }

    /// The name of the relation of a dataflow: that of an index is the one that was given to it, if any was.
    fn name<'a>(&'a self, dataflow: &'a str) -> &'a str {
        self.indexes.get(dataflow).map_or(dataflow, String::as_str)
    }
}

fn numbers(numbers: impl IntoIterator<Item = u64>) -> ArrayRef {
    Arc::new(UInt64Array::from_iter_values(numbers))
}

fn some_numbers(numbers: impl IntoIterator<Item = Option<u64>>) -> ArrayRef {
    Arc::new(numbers.into_iter().collect::<UInt64Array>())
}

fn some_moments(moments: impl IntoIterator<Item = Option<Moment>>) -> ArrayRef {
    let moments: TimestampMicrosecondArray = moments.into_iter().collect();
    Arc::new(moments.with_timezone("+00:00"))
}

/// Times of the system's clock.
fn some_times(times: impl IntoIterator<Item = Option<SystemTime>>) -> ArrayRef {
    some_moments(times.into_iter().map(|time| moment(time?).ok()))
}

/// The metrics of all workers, each with the number of its worker.
fn of_workers<T>(workers: &[Arc<Metrics>], of: impl Fn(&Metrics) -> Vec<T>) -> Vec<(u64, T)> {
    let of_worker = |(metrics, worker): (&Arc<Metrics>, u64)| {
        of(metrics).into_iter().map(move |metrics| (worker, metrics))
    };
    workers.iter().zip(0..).flat_map(of_worker).collect()
}

/// The state of each dataflow, by name: the sums of its spines on all workers, of what the metrics of relations show.
fn state_by_dataflow(workers: &[Arc<Metrics>]) -> BTreeMap<String, SpineMetrics> {
    let mut of: BTreeMap<String, SpineMetrics> = BTreeMap::new();
    for spine in workers.iter().flat_map(|metrics| metrics.spines()) {
        let sum = of.entry(spine.label.relation).or_default();
        sum.rows += spine.rows;
        sum.memory += spine.memory;
        sum.disk += spine.disk;
        sum.merges += spine.merges;
        sum.written += spine.written;
        sum.debt += spine.debt;
    }
    of
}

/// The names that were given to indexes, by those of their dataflows.
fn index_names(entries: &Entries) -> BTreeMap<String, String> {
    let mut named: BTreeMap<String, String> = BTreeMap::new();
    for index in entries.values().flat_map(|entry| &entry.indexes) {
        let Some(id) = index.id else { continue };
        // Two by the same columns are one.
        let names = named.entry(id.of_index()).or_default();
        let comma = if names.is_empty() { "" } else { ", " };
        *names += &format!("{comma}{}", index.name);
    }
    named
}
