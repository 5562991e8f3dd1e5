//! The latency of epochs.

use std::time::Duration;

use serde_json::{Value, json};

/// The latency of epochs, in milliseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Latency {
    /// The median.
    pub p50: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The 99.9th percentile.
    pub p999: f64,
    /// The largest.
    pub most: f64,
    /// How many epochs took how long: a bucket for each limit from that of the fastest epoch to that of the slowest.
    pub histogram: Vec<Bucket>,
}

/// The epochs that took at most `limit`, and longer than the limit of the bucket before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bucket {
    /// The limit in milliseconds: 1, 2 or 5 times a power of ten.
    pub limit: f64,
    /// The number of epochs.
    pub epochs: u64,
}

impl Latency {
    /// The latency of all epochs; zero without any.
    pub fn of(mut epochs: Vec<Duration>) -> Self {
        epochs.sort_unstable();
        // The smallest latency that at least this part of all does not exceed.
        let quantile = |part: f64| {
            let rank = (part * epochs.len() as f64).ceil() as usize;
            epochs.get(rank.saturating_sub(1)).copied().map_or(0.0, milliseconds)
        };
        Self {
            p50: quantile(0.5),
            p99: quantile(0.99),
            p999: quantile(0.999),
            most: quantile(1.0),
            histogram: histogram(&epochs),
        }
    }

    /// As part of a report.
    pub(crate) fn to_json(&self) -> Value {
        let histogram: Vec<Value> = self
            .histogram
            .iter()
            .map(|bucket| json!({ "limit": bucket.limit, "epochs": bucket.epochs }))
            .collect();
        json!({
            "p50": self.p50,
            "p99": self.p99,
            "p999": self.p999,
            "max": self.most,
            "histogram": histogram,
        })
    }

    /// Reads a part of a report; `None` if a field is missing.
    pub(crate) fn from_json(entry: &Value) -> Option<Self> {
        let quantile = |name: &str| entry.get(name)?.as_f64();
        let bucket = |bucket: &Value| {
            let limit = bucket.get("limit")?.as_f64()?;
            Some(Bucket { limit, epochs: bucket.get("epochs")?.as_u64()? })
        };
        let histogram = entry.get("histogram")?.as_array()?.iter().map(bucket);
        Some(Self {
            p50: quantile("p50")?,
            p99: quantile("p99")?,
            p999: quantile("p999")?,
            most: quantile("max")?,
            histogram: histogram.collect::<Option<_>>()?,
        })
    }
}

fn milliseconds(latency: Duration) -> f64 {
    latency.as_secs_f64() * 1e3
}

/// The buckets of latencies in ascending order.
fn histogram(mut epochs: &[Duration]) -> Vec<Bucket> {
    let powers = (0..19).map(|power| 10u64.pow(power));
    let limits = powers.flat_map(|power| [power, 2 * power, 5 * power]).map(Duration::from_nanos);
    let mut buckets = Vec::new();
    for limit in limits {
        if epochs.is_empty() {
            break;
        }
        let within = epochs.partition_point(|&epoch| epoch <= limit);
        if within > 0 || !buckets.is_empty() {
            buckets.push(Bucket { limit: limit.as_nanos() as f64 / 1e6, epochs: within as u64 });
        }
        epochs = &epochs[within..];
    }
    buckets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_latencies_that_a_part_of_all_epochs_does_not_exceed() {
        let epochs = |count: u64| (1..=count).rev().map(Duration::from_millis).collect();
        let Latency { p50, p99, p999, most, .. } = Latency::of(epochs(2000));
        assert_eq!((p50, p99, p999, most), (1000.0, 1980.0, 1998.0, 2000.0));
        assert_eq!(Latency::of(epochs(1)).p50, 1.0);
        assert_eq!(Latency::of(Vec::new()), Latency::default());
    }

    #[test]
    fn the_histogram_has_each_epoch_once_and_no_empty_ends() {
        let epochs = [900, 1_100, 1_900, 2_100, 40_000].map(Duration::from_micros);
        let Latency { histogram, .. } = Latency::of(epochs.to_vec());
        let buckets: Vec<(f64, u64)> =
            histogram.iter().map(|bucket| (bucket.limit, bucket.epochs)).collect();
        let expected = [(1.0, 1), (2.0, 2), (5.0, 1), (10.0, 0), (20.0, 0), (50.0, 1)];
        assert_eq!(buckets, expected);
    }
}
