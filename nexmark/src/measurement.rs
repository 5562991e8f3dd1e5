//! Measurements of a query, as JSON and as a line of a table.

use std::fmt;

use serde_json::{Value, json};

use crate::checksum::Checksum;
use crate::latency::Latency;

/// The measurements of one query.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// Its name.
    pub query: String,
    /// The number of events in all streams.
    pub events: u64,
    /// The number of workers.
    pub workers: u64,
    /// The time from the first insert to the completion of the last epoch, in seconds.
    pub elapsed: f64,
    /// The processor time of the whole process in the same period, in seconds.
    pub processor: f64,
    /// The peak of resident memory of the process, since its start.
    pub peak_bytes: u64,
    /// Anonymous resident memory at the end.
    pub anonymous_bytes: u64,
    /// Resident pages of files at the end.
    pub file_bytes: u64,
    /// The largest growth of resident memory since the first event, sampled every ten milliseconds: anonymous
    /// memory and pages of files mapped since, without pages of the program.
    pub used_bytes: u64,
    /// The anonymous memory in it.
    pub used_anonymous_bytes: u64,
    /// The largest memory that the engine accounted for in the same samples: memory charged to the budget, memory
    /// retained for reuse, and resident pages of mapped files.
    pub accounted_bytes: u64,
    /// The memory of the events that existed before the clock started; part of the peak.
    pub input_bytes: u64,
    /// The bytes of all events as inserted, as columns in memory.
    pub entered_bytes: u64,
    /// Rows in the state of operators at the end.
    pub state_rows: u64,
    /// Memory of that state.
    pub memory_bytes: u64,
    /// The peak of memory charged to the budget; see [`alluvium::State::memory_peak_bytes`].
    pub memory_peak_bytes: u64,
    /// State on disk at the end.
    pub disk_bytes: u64,
    /// Bytes written to disk because the budget was exceeded.
    pub spilled_bytes: u64,
    /// The checksum of the view at the end.
    pub contents: Checksum,
    /// The checksum of its columns without [those that the query leaves open](crate::query::Query::open).
    pub decided: Checksum,
    /// The latency of epochs, from commit to completion; with a rate, from scheduled arrival to completion.
    pub latency: Latency,
}

impl Measurement {
    /// Events per second.
    pub fn rate(&self) -> f64 {
        self.events as f64 / self.elapsed
    }

    /// The number of bytes written to files per byte inserted.
    pub fn write_amplification(&self) -> f64 {
        self.spilled_bytes as f64 / (self.entered_bytes as f64).max(1.0)
    }

    /// As an entry of a report.
    pub fn to_json(&self) -> Value {
        json!({
            "query": self.query,
            "events": self.events,
            "workers": self.workers,
            "elapsed_s": self.elapsed,
            "events_per_s": self.rate(),
            "cpu_s": self.processor,
            "peak_rss_bytes": self.peak_bytes,
            "rss_anon_bytes": self.anonymous_bytes,
            "rss_file_bytes": self.file_bytes,
            "used_bytes": self.used_bytes,
            "used_anonymous_bytes": self.used_anonymous_bytes,
            "accounted_bytes": self.accounted_bytes,
            "input_bytes": self.input_bytes,
            "entered_bytes": self.entered_bytes,
            "state_rows": self.state_rows,
            "memory_bytes": self.memory_bytes,
            "memory_peak_bytes": self.memory_peak_bytes,
            "disk_bytes": self.disk_bytes,
            "spilled_bytes": self.spilled_bytes,
            "output_rows": self.contents.rows,
            "checksum": format!("{:016x}", self.contents.sum),
            "decided_checksum": format!("{:016x}", self.decided.sum),
            "epoch_ms": self.latency.to_json(),
        })
    }

    /// Reads an entry of a report; `None` if a field is missing.
    pub fn from_json(entry: &Value) -> Option<Self> {
        let number = |name: &str| entry.get(name)?.as_u64();
        let real = |name: &str| entry.get(name)?.as_f64();
        let checksum = |name: &str| {
            let sum = u64::from_str_radix(entry.get(name)?.as_str()?, 16).ok()?;
            Some(Checksum { sum, rows: entry.get("output_rows")?.as_i64()? })
        };
        Some(Self {
            query: entry.get("query")?.as_str()?.to_owned(),
            events: number("events")?,
            workers: number("workers")?,
            elapsed: real("elapsed_s")?,
            processor: real("cpu_s")?,
            peak_bytes: number("peak_rss_bytes")?,
            anonymous_bytes: number("rss_anon_bytes")?,
            file_bytes: number("rss_file_bytes")?,
            used_bytes: number("used_bytes")?,
            used_anonymous_bytes: number("used_anonymous_bytes")?,
            accounted_bytes: number("accounted_bytes")?,
            input_bytes: number("input_bytes")?,
            entered_bytes: number("entered_bytes")?,
            state_rows: number("state_rows")?,
            memory_bytes: number("memory_bytes")?,
            memory_peak_bytes: number("memory_peak_bytes")?,
            disk_bytes: number("disk_bytes")?,
            spilled_bytes: number("spilled_bytes")?,
            contents: checksum("checksum")?,
            decided: checksum("decided_checksum")?,
            latency: Latency::from_json(entry.get("epoch_ms")?)?,
        })
    }
}

/// A report of some queries.
pub fn report(measurements: &[Measurement]) -> Value {
    let entries: Vec<Value> = measurements.iter().map(Measurement::to_json).collect();
    json!({ "queries": entries })
}

/// The header of a table.
pub struct Header;

impl fmt::Display for Header {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            to,
            "query    events/s  seconds      cpu   peak MiB  used MiB  accounted  written   p50 ms   p99 ms  \
             p999 ms  output rows  checksum"
        )
    }
}

/// The latencies of a query's epochs: one line for each bucket.
pub struct Histogram<'a>(pub &'a Measurement);

impl fmt::Display for Histogram<'_> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Latency { histogram, most, .. } = &self.0.latency;
        let epochs: u64 = histogram.iter().map(|bucket| bucket.epochs).sum();
        write!(to, "{:5} {epochs} epochs, the slowest {most:.1} ms", self.0.query)?;
        for bucket in histogram {
            let part = bucket.epochs as f64 / epochs as f64;
            let bar = "#".repeat((part * 60.0).ceil() as usize);
            write!(to, "\n{:>9} ms {:9}  {bar}", bucket.limit, bucket.epochs)?;
        }
        Ok(())
    }
}

/// A line of a table.
impl fmt::Display for Measurement {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mebibytes = |bytes: u64| bytes as f64 / (1024.0 * 1024.0);
        let Latency { p50, p99, p999, .. } = self.latency;
        write!(
            to,
            "{:5} {:11.0} {:8.2} {:8.2} {:10.0} {:9.0} {:10.0} {:8.2} {:8.1} {:8.1} {:8.1} {:12}  {:016x}",
            self.query,
            self.rate(),
            self.elapsed,
            self.processor,
            mebibytes(self.peak_bytes),
            mebibytes(self.used_bytes),
            mebibytes(self.accounted_bytes),
            self.write_amplification(),
            p50,
            p99,
            p999,
            self.contents.rows,
            self.contents.sum,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::latency::Bucket;

    #[test]
    fn a_report_can_be_read_again() {
        let measurement = Measurement {
            query: "q4".to_owned(),
            events: 10,
            workers: 2,
            elapsed: 0.25,
            processor: 0.5,
            peak_bytes: 1,
            anonymous_bytes: 2,
            file_bytes: 3,
            used_bytes: 9,
            used_anonymous_bytes: 10,
            accounted_bytes: 13,
            input_bytes: 4,
            entered_bytes: 11,
            state_rows: 5,
            memory_bytes: 6,
            memory_peak_bytes: 12,
            disk_bytes: 7,
            spilled_bytes: 8,
            contents: Checksum { sum: u64::MAX - 1, rows: 9 },
            decided: Checksum { sum: 14, rows: 9 },
            latency: Latency {
                p50: 1.5,
                p99: 2.5,
                p999: 3.5,
                most: 4.5,
                histogram: vec![Bucket { limit: 2.0, epochs: 6 }],
            },
        };
        let report = report(std::slice::from_ref(&measurement));
        let text: Value = serde_json::from_str(&report.to_string()).unwrap();
        assert_eq!(text["queries"][0]["events_per_s"], 40.0);
        assert_eq!(Measurement::from_json(&text["queries"][0]), Some(measurement));
    }
}
