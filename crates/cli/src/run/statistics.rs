//! Statistics of a run as JSON.

use std::io::Write;
use std::time::Duration;

use alluvium::SourceProgress;
use serde_json::{Value, json};

use super::contents;
use crate::args::RunArgs;
use crate::process::memory::Memory;
use crate::shell::{Shell, Stop};

/// Statistics of a program that has ended.
pub(crate) struct Statistics {
    program: String,
    workers: usize,
    /// The time from the start of the program until all views were complete and written.
    elapsed: Duration,
    epochs: u64,
    /// The numbers of rows that COPY has inserted and refused.
    copied: (u64, u64),
    sources: Vec<SourceProgress>,
    /// The number of rows of each materialized view.
    views: Vec<(String, u64)>,
    memory: Option<Memory>,
}

impl Statistics {
    /// Collects the statistics.
    pub(crate) fn of<W: Write>(
        shell: &Shell<W>,
        args: &RunArgs,
        elapsed: Duration,
    ) -> Result<Self, Stop> {
        let memory = Memory::of_this_process();
        let views = contents::materialized(shell)?.into_iter();
        let views = views.map(|view| Ok((view.name.clone(), contents::count(shell, &view.name)?)));
        let views = views.collect::<Result<_, Stop>>()?;
        let progress = shell.engine().progress();
        Ok(Self {
            program: args.program.display().to_string(),
            workers: args.workers.get(),
            elapsed,
            epochs: progress.complete,
            copied: shell.copied(),
            sources: progress.sources,
            views,
            memory,
        })
    }

    /// As JSON. Rows are those read from sources and by COPY.
    pub(crate) fn json(&self) -> Value {
        let sum = |of: fn(&SourceProgress) -> u64| self.sources.iter().map(of).sum::<u64>();
        let rows = self.copied.0 + sum(|source| source.rows);
        let elapsed = self.elapsed.as_secs_f64();
        let sources = self.sources.iter().map(|source| {
            json!({
                "table": source.table,
                "name": source.name,
                "path": source.path.display().to_string(),
                "rows": source.rows,
                "refused": source.refused,
                "bytes": source.bytes,
            })
        });
        let views = self.views.iter().map(|(name, rows)| (name.clone(), Value::from(*rows)));
        json!({
            "program": self.program,
            "workers": self.workers,
            "elapsed_s": elapsed,
            "rows": rows,
            "rows_per_s": rows as f64 / elapsed,
            "refused": self.copied.1 + sum(|source| source.refused),
            "epochs": self.epochs,
            "peak_rss_bytes": self.memory.map(|memory| memory.peak),
            "sources": sources.collect::<Vec<_>>(),
            "views": views.collect::<serde_json::Map<_, _>>(),
        })
    }
}
