//! The log of an engine, by [`tracing`]: a program that installs a subscriber gets it, and others pay a comparison for each call.
//!
//! Spans are around the calls of a program. Events tell of inputs, outputs, checkpoints, failures and slow statements. None has a row or a value of a
//! statement, except that the fields `error` and `reason` are the messages of errors, which may quote them.

use std::fmt::Display;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use alluvium_trace::Epoch;
use tracing::field::Empty;
use tracing::span::EnteredSpan;
use tracing::{Level, debug_span, enabled, error, info, warn};

use crate::clock::milliseconds;

/// A line of the log of a process.
#[derive(Clone, Debug)]
pub struct LogLine {
    /// When it was written.
    pub at: SystemTime,
    /// `ERROR`, `WARN`, `INFO`, `DEBUG` or `TRACE`.
    pub level: &'static str,
    /// The module that it is from.
    pub target: String,
    /// The text, which has no values.
    pub message: String,
    /// The values: an object of JSON.
    pub fields: String,
}

/// Asks for the last lines of the log, the oldest first.
pub(crate) type LogLines = Arc<dyn Fn() -> Vec<LogLine> + Send + Sync>;

/// Enters the span of a call of a program, until it is dropped.
macro_rules! call {
    ($name:literal $(, $($field:tt)*)?) => {
        tracing::debug_span!($name $(, $($field)*)?).entered()
    };
}

/// Enters the span of a call that takes about a microsecond.
macro_rules! short_call {
    ($name:literal) => {
        tracing::trace_span!($name).entered()
    };
}
pub(crate) use {call, short_call};

/// A statement, from where it begins until this is dropped: a span, and an event if it was slow.
pub(crate) struct Statement {
    span: EnteredSpan,
    command: &'static str,
    /// When it began, and how long statements take at most that are not slow, if that is looked at.
    limit: Option<(Instant, Duration)>,
}

impl Statement {
    /// A statement begins. Its command may not be known yet: without one it is no statement in the end.
    pub(crate) fn begin(command: Option<&'static str>, slow: Option<Duration>) -> Self {
        let span = debug_span!("statement", command = Empty).entered();
        let limit = slow.filter(|_| enabled!(Level::WARN)).map(|slow| (Instant::now(), slow));
        let mut statement = Self { span, command: "", limit };
        if let Some(command) = command {
            statement.has_command(command);
        }
        statement
    }

    /// This is its command.
    pub(crate) fn has_command(&mut self, command: &'static str) {
        self.command = command;
        self.span.record("command", command);
    }
}

impl Drop for Statement {
    fn drop(&mut self) {
        let Some((begun, slow)) = self.limit else { return };
        let time = begun.elapsed();
        if time >= slow && !self.command.is_empty() {
            warn!(command = self.command, milliseconds = milliseconds(time), "slow statement");
        }
    }
}

/// An engine was opened.
pub(crate) fn opened(workers: usize, epoch: Epoch, time: Duration) {
    info!(workers, epoch, milliseconds = milliseconds(time), "engine opened");
}

/// A standby writes from now on.
pub(crate) fn promoted(epoch: Epoch) {
    info!(epoch, "standby promoted");
}

/// Tables whose first rows had not come could not be dropped.
pub(crate) fn not_dropped(error: impl Display) {
    error!(%error, "tables without their first rows not dropped");
}

/// Inputs could not be started.
pub(crate) fn not_started(error: impl Display) {
    error!(%error, "sources not started");
}

/// An engine has failed.
pub(crate) fn poisoned(reason: &str) {
    error!(reason, "engine failed");
}

/// What reads or is kept by a dataflow has failed.
pub(crate) fn failed(purpose: impl Display, reason: &str) {
    error!(%purpose, reason, "view failed");
}

/// An input is read from now on.
pub(crate) fn source_started(table: &str, source: &str) {
    info!(table, source, "source started");
}

/// An input was read to its end.
pub(crate) fn source_ended(table: &str, source: &str, rows: u64) {
    info!(table, source, rows, "source ended");
}

/// An input cannot be read any further.
pub(crate) fn source_failed(table: &str, source: &str, error: impl Display) {
    error!(table, source, %error, "source failed");
}

/// An input has refused so many rows by now. This tells of the first one, the tenth, the hundredth and so on.
pub(crate) fn refused(table: &str, source: &str, before: u64, now: u64) {
    if now.checked_ilog10() > before.checked_ilog10() {
        warn!(table, source, rows = now, "source refused rows");
    }
}

/// An output of changes is written from now on.
pub(crate) fn output_started(relation: &str) {
    info!(relation, "output started");
}

/// An output of changes has ended.
pub(crate) fn output_ended(relation: &str, ended: &Result<(), String>) {
    match ended {
        Ok(()) => info!(relation, "output ended"),
        Err(error) => error!(relation, error, "output failed"),
    }
}

/// Commits wait for subscribers or outputs that are far behind.
pub(crate) fn congested() {
    warn!(
        "commits wait for subscribers that are far behind; alluvium.outputs lists those that are written to files"
    );
}

/// Commits no longer wait for the subscribers of a relation.
pub(crate) fn decongested() {
    info!("commits no longer wait for subscribers");
}

/// A checkpoint is on the disk.
pub(crate) fn checkpoint_taken(number: u64, epoch: Epoch, blobs: usize, time: Duration) {
    info!(number, epoch, blobs, milliseconds = milliseconds(time), "checkpoint taken");
}

/// A checkpoint could not be taken.
pub(crate) fn checkpoint_failed(error: impl Display) {
    error!(%error, "checkpoint failed");
}
