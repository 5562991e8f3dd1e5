//! All numbers, as OpenMetrics has them. `docs/reference/metrics.md` says what they mean.

use std::fmt;
use std::sync::atomic::AtomicU64;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

use super::statement::OUTCOMES;
use super::{Protocol, REFUSALS, Traffic, Traffics, read};

/// The names of labels, and their values.
type Labels = Vec<(&'static str, &'static str)>;

/// A name, its meaning, and the values.
type Family = (&'static str, &'static str, Vec<(Labels, u64)>);

/// The numbers of a server.
#[derive(Debug)]
pub(crate) struct Families {
    pub(crate) traffics: Traffics,
    pub(crate) is_usable: bool,
    /// How many are logged in, and how many may be.
    pub(crate) clients: usize,
    pub(crate) most_clients: usize,
    /// How many statements wait.
    pub(crate) waiting: usize,
}

impl Families {
    /// The traffic of each protocol, labelled by it.
    fn each(&self) -> impl Iterator<Item = (Labels, &Traffic)> {
        let labels = |protocol: &Protocol| vec![("protocol", protocol.name())];
        Protocol::ALL.iter().map(move |it| (labels(it), &**self.traffics.of(*it)))
    }

    /// One number of each protocol.
    fn one(&self, of: impl Fn(&Traffic) -> &AtomicU64) -> Vec<(Labels, u64)> {
        self.each().map(|(labels, traffic)| (labels, read(of(traffic)))).collect()
    }

    /// Several numbers of each protocol, told apart by a label.
    fn several<const N: usize>(
        &self,
        label: &'static str,
        values: [&'static str; N],
        of: impl Fn(&Traffic) -> [&AtomicU64; N],
    ) -> Vec<(Labels, u64)> {
        let each = self.each().flat_map(|(labels, traffic)| {
            let labelled = move |(value, counter)| {
                let mut labels = labels.clone();
                labels.push((label, value));
                (labels, read(counter))
            };
            values.into_iter().zip(of(traffic)).map(labelled)
        });
        each.collect()
    }

    fn counters(&self) -> [Family; 6] {
        [
            (
                "alluvium_server_connections",
                "The connections that were accepted.",
                self.one(|it| &it.connections),
            ),
            (
                "alluvium_server_connections_refused",
                "The connections that were refused before a client could log in, by the reason.",
                self.several("reason", REFUSALS.map(|(_, name)| name), |it| it.refused.each_ref()),
            ),
            (
                "alluvium_server_received_bytes",
                "The bytes that were received, as they pass the network.",
                self.one(|it| &it.received),
            ),
            (
                "alluvium_server_sent_bytes",
                "The bytes that were sent, as they pass the network.",
                self.one(|it| &it.sent),
            ),
            (
                "alluvium_server_logins",
                "The logins of clients, by their outcome.",
                self.several("outcome", ["done", "failed"], |it| [&it.logins, &it.failed_logins]),
            ),
            (
                "alluvium_server_statements",
                "The statements of clients that have ended, by their outcome.",
                self.several("outcome", OUTCOMES.map(|(_, name)| name), |it| {
                    it.statements.each_ref()
                }),
            ),
        ]
    }

    fn gauges(&self) -> [Family; 5] {
        let alone = |number: usize| vec![(Labels::new(), number as u64)];
        [
            (
                "alluvium_server_connections_open",
                "The connections that are open.",
                self.one(|it| &it.open),
            ),
            (
                "alluvium_server_clients",
                "The clients that are logged in, of all protocols.",
                alone(self.clients),
            ),
            (
                "alluvium_server_clients_limit",
                "How many clients may be logged in.",
                alone(self.most_clients),
            ),
            (
                "alluvium_server_statements_waiting",
                "The statements that wait until they can run.",
                alone(self.waiting),
            ),
            (
                "alluvium_server_subscriptions",
                "The subscriptions that are open.",
                self.one(|it| &it.subscriptions),
            ),
        ]
    }
}

impl Collector for Families {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let gauge = |metric: &mut MetricEncoder<'_>, number: u64| metric.encode_gauge(&number);
        let usable = (
            "alluvium_server_usable",
            "Whether the engine can be used: 0 or 1.",
            MetricType::Gauge,
        );
        family(&mut encoder, usable, [(Labels::new(), self.is_usable.into())], gauge)?;
        for (name, help, values) in self.counters() {
            family(&mut encoder, (name, help, MetricType::Counter), values, |metric, number| {
                metric.encode_counter::<NoLabelSet, _, u64>(&number, None)
            })?;
        }
        for (name, help, values) in self.gauges() {
            family(&mut encoder, (name, help, MetricType::Gauge), values, gauge)?;
        }
        let durations = self.each().map(|(labels, traffic)| (labels, &traffic.durations));
        family(
            &mut encoder,
            (
                "alluvium_server_statement_duration_seconds",
                "The time that a statement took until its answer was written.",
                MetricType::Histogram,
            ),
            durations,
            |metric, durations| {
                let classes = durations.classes();
                let count = classes.iter().map(|(_, count)| count).sum();
                metric.encode_histogram::<NoLabelSet>(durations.sum(), count, &classes, None)
            },
        )
    }
}

/// Writes a family.
fn family<V>(
    encoder: &mut DescriptorEncoder<'_>,
    (name, help, kind): (&str, &str, MetricType),
    values: impl IntoIterator<Item = (Labels, V)>,
    write: impl Fn(&mut MetricEncoder<'_>, V) -> fmt::Result,
) -> fmt::Result {
    let mut family = encoder.encode_descriptor(name, help, None, kind)?;
    for (labels, value) in values {
        write(&mut family.encode_family(&labels)?, value)?;
    }
    Ok(())
}
