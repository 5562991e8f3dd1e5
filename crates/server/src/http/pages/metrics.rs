//! `/metrics`: the metrics of the engine and of the server in the text of OpenMetrics, which Prometheus reads.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use alluvium::{Action, Metric, MetricFamily, MetricKind, MetricValue, Object, Session};
use axum::Extension;
use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::Exemplar;
use prometheus_client::registry::Registry;

use crate::http::connection::Connection;
use crate::http::problem::Problem;
use crate::http::service::Http;
use crate::identity::Identity;
use crate::traffic::Families;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The label of metrics of a relation.
const RELATION: &str = "relation";

/// All metrics, those of the server among them; for a role with rights to some relations, those of these relations.
pub(in crate::http) async fn metrics(
    State(http): State<Arc<Http>>,
    Extension(connection): Extension<Arc<Connection>>,
    Extension(identity): Extension<Identity>,
) -> Result<Response, Problem> {
    let mut caller = http.uncounted(&identity, &connection)?;
    let shared = http.shared.clone();
    let sees_all = identity.is_superuser || identity.role().is_none();
    let families = caller.call(move |session| {
        let mut families = match shared.metrics() {
            // The server's own tell that the engine has failed.
            Err(_) if sees_all && !shared.is_usable() => Vec::new(),
            families => families.map_err(|error| Problem::of(&error))?,
        };
        if !sees_all {
            leave_out(&mut families, session);
        }
        Ok(families)
    });
    let families = families.await?;
    let server = sees_all.then(|| http.shared.server_metrics());
    let text = written(families, server).map_err(|_| {
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the metrics cannot be written")
    })?;
    Ok(([(CONTENT_TYPE, HeaderValue::from_static(OPEN_METRICS))], text).into_response())
}

/// Leaves out the metrics that the session may not see.
fn leave_out(families: &mut Vec<MetricFamily>, session: &mut Session) {
    let mut known: HashMap<String, bool> = HashMap::new();
    let mut may = |metric: &Metric| {
        let relation = metric.labels.iter().find(|(name, _)| *name == RELATION);
        relation.is_some_and(|(_, relation)| {
            *known
                .entry(relation.clone())
                .or_insert_with(|| session.may(Action::Select, Object::Relation(relation)))
        })
    };
    families.iter_mut().for_each(|family| family.metrics.retain(&mut may));
    families.retain(|family| !family.metrics.is_empty());
}

fn written(families: Vec<MetricFamily>, server: Option<Families>) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Read(families)));
    if let Some(server) = server {
        registry.register_collector(Box::new(server));
    }
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

/// Metrics that have been read.
#[derive(Debug)]
struct Read(Vec<MetricFamily>);

impl Collector for Read {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for MetricFamily { name, help, kind, metrics, .. } in &self.0 {
            let kind = match kind {
                MetricKind::Counter => MetricType::Counter,
                MetricKind::Histogram => MetricType::Histogram,
                _ => MetricType::Gauge,
            };
            let mut family = encoder.encode_descriptor(name, help, None, kind)?;
            for Metric { labels, value, .. } in metrics {
                let mut metric = family.encode_family(labels)?;
                match (kind, value) {
                    (MetricType::Counter, MetricValue::Number(number)) => {
                        let exemplar = None::<&Exemplar<NoLabelSet, f64>>;
                        metric.encode_counter(number, exemplar)?;
                    }
                    (_, MetricValue::Number(number)) => metric.encode_gauge(number)?,
                    (_, MetricValue::Histogram { buckets, sum, count, .. }) => {
                        metric.encode_histogram::<NoLabelSet>(*sum, *count, buckets, None)?;
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }
}
