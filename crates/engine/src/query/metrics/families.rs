//! Metrics for programs that watch: what system relations show, as numbers with names and labels.

use std::collections::BTreeMap;
use std::time::Duration;

use alluvium_trace::metrics::{Metrics, SpineMetrics};

use super::epochs::Reached;
use super::sessions::state;
use super::sources::Lag;
use super::{Relations, Shown, state_by_dataflow};
use crate::error::Result;
use crate::sink::ShownOutput;
use crate::source::{SourceProgress, SourceState};
use crate::worker::{Condition, DataflowId, Histogram};

/// Metrics of one name, as Prometheus and OpenMetrics have them. Units are seconds and bytes; a name ends with its unit.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct MetricFamily {
    /// The name, without the `_total` that counters have in addition.
    pub name: &'static str,
    /// The meaning, for people.
    pub help: &'static str,
    /// The kind of all values.
    pub kind: MetricKind,
    /// The values; there may be none.
    pub metrics: Vec<Metric>,
}

/// The kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MetricKind {
    /// It only grows while an engine runs.
    Counter,
    /// It goes up and down.
    Gauge,
    /// It counts by size.
    Histogram,
}

/// One metric of a family.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Metric {
    /// What tells it from others of the family: names of labels, and their values.
    pub labels: Vec<(&'static str, String)>,
    /// The value.
    pub value: MetricValue,
}

/// The value of a metric.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum MetricValue {
    /// A counter or a gauge.
    Number(f64),
    /// A histogram.
    Histogram {
        /// The ends of classes, and how many values each has. The last one has no end: it is infinite.
        buckets: Vec<(f64, u64)>,
        /// The sum of all values.
        sum: f64,
        /// How many values there are.
        count: u64,
    },
}

/// All families, in the order of their reference.
pub(crate) fn families(shown: &Shown<'_>) -> Result<Vec<MetricFamily>> {
    let mut all = Families(Vec::new());
    of_epochs(shown, &mut all);
    of_standby(shown, &mut all);
    of_memory(shown, &mut all);
    of_relations(shown, &mut all)?;
    let relations = shown.relations();
    of_state(shown, &relations, &mut all);
    of_operators(shown, &relations, &mut all);
    of_connectors(shown, &mut all);
    of_clients(shown, &mut all);
    Ok(all.0)
}

/// Families, to which others are added.
struct Families(Vec<MetricFamily>);

/// Names of labels, with their values.
type Labels = Vec<(&'static str, String)>;

impl Families {
    fn add(
        &mut self,
        kind: MetricKind,
        (name, help): (&'static str, &'static str),
        values: impl IntoIterator<Item = (Labels, f64)>,
    ) {
        let metric = |(labels, value)| Metric { labels, value: MetricValue::Number(value) };
        let metrics = values.into_iter().map(metric).collect();
        self.0.push(MetricFamily { name, help, kind, metrics });
    }

    fn counter(
        &mut self,
        told: (&'static str, &'static str),
        values: impl IntoIterator<Item = (Labels, f64)>,
    ) {
        self.add(MetricKind::Counter, told, values);
    }

    fn gauge(
        &mut self,
        told: (&'static str, &'static str),
        values: impl IntoIterator<Item = (Labels, f64)>,
    ) {
        self.add(MetricKind::Gauge, told, values);
    }

    fn histogram(&mut self, (name, help): (&'static str, &'static str), times: &Histogram) {
        let value = MetricValue::Histogram {
            buckets: times.classes().collect(),
            sum: times.sum().as_secs_f64(),
            count: times.count(),
        };
        let metrics = vec![Metric { labels: Vec::new(), value }];
        self.0.push(MetricFamily { name, help, kind: MetricKind::Histogram, metrics });
    }
}

fn alone(value: u64) -> [(Labels, f64); 1] {
    [(Vec::new(), value as f64)]
}

fn of_epochs(shown: &Shown<'_>, all: &mut Families) {
    let Reached { committed, durable, complete } =
        Reached::by(shown.progress, shown.sequencer.last());
    let version = env!("CARGO_PKG_VERSION").to_owned();
    all.gauge(
        ("alluvium_build_info", "The version of the engine, in its label. Always 1."),
        [(vec![("version", version)], 1.0)],
    );
    all.counter(
        ("alluvium_epochs_committed", "The last epoch that was committed."),
        alone(committed),
    );
    all.counter(
        ("alluvium_epochs_durable", "The last epoch that is durable, with a state directory."),
        durable.into_iter().flat_map(alone),
    );
    all.counter(
        ("alluvium_epochs_complete", "The last epoch that is complete in all relations."),
        alone(complete),
    );
    let delays = shown.progress.delays();
    all.histogram(
        (
            "alluvium_epoch_durable_delay_seconds",
            "The time from the commit of an epoch until it is durable.",
        ),
        &delays.durable,
    );
    all.histogram(
        (
            "alluvium_epoch_complete_delay_seconds",
            "The time from the commit of an epoch until it is complete in all relations.",
        ),
        &delays.complete,
    );
}

fn of_standby(shown: &Shown<'_>, all: &mut Families) {
    let following = shown.sequencer.durable().following();
    let lag = following.map(|following| following.lag(shown.progress.complete()));
    all.gauge(
        (
            "alluvium_standby_records_behind",
            "How many durable records of the journal a standby has not replayed.",
        ),
        lag.into_iter().flat_map(|lag| alone(lag.records)),
    );
    all.gauge(
        (
            "alluvium_standby_behind_seconds",
            "For how long a standby has known of the oldest of them.",
        ),
        lag.map(|lag| (Labels::new(), lag.behind.as_secs_f64())),
    );
    all.gauge(
        (
            "alluvium_standby_silence_seconds",
            "For how long a standby has heard nothing of the journal, which tells of itself each second.",
        ),
        lag.map(|lag| (Labels::new(), lag.silence.as_secs_f64())),
    );
}

fn of_memory(shown: &Shown<'_>, all: &mut Families) {
    let budget = shown.sequencer.budget();
    let kind = |kind: &str, bytes: usize| (vec![("kind", kind.to_owned())], bytes as f64);
    all.gauge(
        ("alluvium_memory_bytes", "Memory by kind: counted against the budget, free for state to come, and the resident part of mapped files."),
        [kind("counted", budget.used()), kind("free", budget.kept()), kind("mapped", budget.resident())],
    );
    all.gauge(
        ("alluvium_memory_peak_bytes", "The most memory that was counted."),
        alone(budget.peak() as u64),
    );
    let limit = Some(budget.policy().limit).filter(|limit| *limit != usize::MAX);
    all.gauge(
        ("alluvium_memory_budget_bytes", "The memory that may be counted, if there is a budget."),
        limit.into_iter().flat_map(|limit| alone(limit as u64)),
    );
    all.counter(
        ("alluvium_spilled_bytes", "The bytes that were written to state files."),
        alone(budget.written()),
    );
    all.gauge(
        ("alluvium_disk_full", "Whether the engine waits for room on a full disk: 0 or 1."),
        alone(shown.observed.disk_full.reason().is_some().into()),
    );
}

fn of_relations(shown: &Shown<'_>, all: &mut Families) -> Result<()> {
    let entries = shown.entries.values().filter(|entry| !entry.is_staged);
    let ids: Vec<DataflowId> = entries.clone().filter_map(|entry| entry.dataflow()).collect();
    let mut states = BTreeMap::from([("running", 0), ("filling", 0), ("failed", 0)]);
    let mut count = |state| *states.entry(state).or_insert(0) += 1;
    for condition in shown.progress.conditions(&ids)? {
        match condition {
            Condition::Runs(_) => count("running"),
            Condition::Fills(_) => count("filling"),
            Condition::Failed(_) => count("failed"),
            Condition::Gone => {}
        }
    }
    entries
        .filter(|entry| entry.dataflow().is_none() && entry.failed.is_some())
        .for_each(|_| count("failed"));
    all.gauge(
        ("alluvium_relations", "How many tables and views are maintained, by their state."),
        states
            .into_iter()
            .map(|(state, count)| (vec![("state", state.to_owned())], f64::from(count))),
    );
    Ok(())
}

/// The state of each relation.
fn of_state(shown: &Shown<'_>, relations: &Relations<'_>, all: &mut Families) {
    let of = state_by_dataflow(shown.progress.metrics());
    let of: BTreeMap<&str, &SpineMetrics> =
        of.iter().map(|(dataflow, sum)| (relations.name(dataflow), sum)).collect();
    let labels = |relation: &str| vec![("relation", relation.to_owned())];
    let each = |number: fn(&SpineMetrics) -> u64| {
        of.iter().map(|(relation, sum)| (labels(relation), number(sum) as f64)).collect::<Vec<_>>()
    };
    all.gauge(
        ("alluvium_state_rows", "The rows of state, changes that are not compacted included."),
        each(|it| it.rows),
    );
    let in_places = of.iter().flat_map(|(relation, sum)| {
        [("memory", sum.memory), ("file", sum.disk)].map(|(place, bytes)| {
            let mut labels = labels(relation);
            labels.push(("place", place.to_owned()));
            (labels, bytes as f64)
        })
    });
    let in_places: Vec<_> = in_places.collect();
    all.gauge(("alluvium_state_bytes", "The bytes of state, in memory and in files."), in_places);
    all.gauge(
        ("alluvium_merge_debt_bytes", "The bytes that merges have left to read."),
        each(|it| it.debt),
    );
    all.counter(("alluvium_merges", "The merges of state."), each(|it| it.merges));
    all.counter(
        ("alluvium_merged_bytes", "The bytes that merges and moves to files have written."),
        each(|it| it.written),
    );
}

fn of_operators(shown: &Shown<'_>, relations: &Relations<'_>, all: &mut Families) {
    let (mut by_relation, mut by_worker): (BTreeMap<String, Duration>, Vec<Duration>) =
        Default::default();
    for metrics in shown.progress.metrics() {
        let operators = Metrics::operators(metrics);
        by_worker.push(operators.iter().map(|operator| operator.all.busy).sum());
        for operator in operators.into_iter().filter(|operator| !operator.label.relation.is_empty())
        {
            let name = relations.name(&operator.label.relation).to_owned();
            *by_relation.entry(name).or_default() += operator.all.busy;
        }
    }
    all.counter(
        (
            "alluvium_operator_busy_seconds",
            "The time that the operators of a relation took, on all workers.",
        ),
        by_relation
            .into_iter()
            .map(|(relation, busy)| (vec![("relation", relation)], busy.as_secs_f64())),
    );
    all.counter(
        ("alluvium_worker_busy_seconds", "The time that a worker was at work."),
        by_worker
            .into_iter()
            .zip(0_u64..)
            .map(|(busy, worker)| (vec![("worker", worker.to_string())], busy.as_secs_f64())),
    );
}

fn of_connectors(shown: &Shown<'_>, all: &mut Families) {
    let inputs = shown.observed.inputs.progress();
    let of_inputs = |number: &dyn Fn(&SourceProgress) -> Option<f64>| {
        let labels = |it: &SourceProgress| {
            vec![("relation", it.table.clone()), ("number", it.number.to_string())]
        };
        let each = inputs.iter().filter_map(|it| Some((labels(it), number(it)?)));
        each.collect::<Vec<_>>()
    };
    all.counter(
        ("alluvium_source_rows", "The rows that an input of a table has brought in."),
        of_inputs(&|it| Some(it.rows as f64)),
    );
    all.counter(
        ("alluvium_source_bytes", "The bytes that were read for them, as they are stored."),
        of_inputs(&|it| Some(it.bytes as f64)),
    );
    all.counter(
        ("alluvium_source_refused", "The rows of an input that were refused."),
        of_inputs(&|it| Some(it.refused as f64)),
    );
    all.gauge(
        ("alluvium_source_lag_bytes", "The bytes of its file that an input has not read yet."),
        of_inputs(&|it| Some(Lag::of(it)?.bytes? as f64)),
    );
    let lag_seconds = |it: &SourceProgress| Some(Lag::of(it)?.time?.as_secs_f64());
    all.gauge(
        ("alluvium_source_lag_seconds", "The time that they have been there."),
        of_inputs(&lag_seconds),
    );
    let has_failed = |it: &SourceProgress| matches!(it.state, SourceState::Failed { .. });
    all.gauge(
        ("alluvium_source_failed", "Whether an input has failed: 0 or 1."),
        of_inputs(&|it| Some(f64::from(u8::from(has_failed(it))))),
    );
    let outputs = shown.observed.outputs.shown();
    let of_outputs = |number: &dyn Fn(&ShownOutput) -> Option<f64>| {
        let labels = |it: &ShownOutput| {
            vec![("relation", it.relation.clone()), ("path", it.path.display().to_string())]
        };
        outputs.iter().filter_map(|it| Some((labels(it), number(it)?))).collect::<Vec<_>>()
    };
    all.counter(
        ("alluvium_output_rows", "The changes that were written to an output."),
        of_outputs(&|it| Some(it.rows as f64)),
    );
    all.gauge(
        ("alluvium_output_lag_rows", "The changes that wait to be written to an output."),
        of_outputs(&|it| Some(it.waiting?.rows as f64)),
    );
    all.gauge(
        ("alluvium_output_lag_seconds", "The time that the first of them has waited."),
        of_outputs(&|it| Some(it.waiting?.time.as_secs_f64())),
    );
    all.gauge(
        ("alluvium_output_failed", "Whether an output cannot be written any further: 0 or 1."),
        of_outputs(&|it| Some(f64::from(u8::from(it.error.is_some())))),
    );
}

fn of_clients(shown: &Shown<'_>, all: &mut Families) {
    let mut sessions: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for session in shown.observed.clients.all() {
        *sessions.entry((session.protocol, state(&session))).or_default() += 1;
    }
    all.gauge(
        ("alluvium_sessions", "The sessions of clients, by protocol and state."),
        sessions.into_iter().map(|((protocol, state), count)| {
            (vec![("protocol", protocol.to_owned()), ("state", state.to_owned())], count as f64)
        }),
    );
    let locks = shown.observed.locks.all();
    let waiting = locks.iter().filter(|lock| !lock.is_granted).count();
    all.gauge(
        (
            "alluvium_locks_waiting",
            "How many transactions wait for a row that another one has locked.",
        ),
        alone(waiting as u64),
    );
}
