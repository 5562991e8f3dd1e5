//! Dataflows that fail.
//!
//! A panic in a view, an index or a subscription ends that dataflow and all that read it, on every worker, and
//! nothing else. The worker that it happens on says so ([`Failures`]) before it publishes any progress that ignores them, and
//! wakes the others. Each worker drops them at once, at a point of its own: no worker waits for another, and messages that are still on
//! their way to them are dropped. Commands come later that [remove](super::Command::Remove) them; until then a dataflow that
//! reads them can still be built, because all workers build the same ones, and fails as well.
//!
//! Any other panic, or one in a table, stops the engine.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use alluvium_dataflow::panic_text;
use alluvium_trace::{Failure, Origin};

use super::command::DataflowId;
use super::failures::{Failed, Failures};
use super::thread::Worker;
use crate::fault::{Fault, armed};

/// The panic caught from a thread.
pub(super) struct Unwound {
    /// The dataflow that it comes from, if that is known.
    origin: Option<DataflowId>,
    caught: Box<dyn Any + Send>,
}

impl From<Box<dyn Any + Send>> for Unwound {
    /// The panic caught last.
    fn from(caught: Box<dyn Any + Send>) -> Self {
        Self { origin: Origin::take().map(DataflowId), caught }
    }
}

impl Worker {
    /// Steps all dataflows, or sleeps for so long. One that unwinds has failed.
    pub(super) fn step_dataflows(&mut self, wait: Option<Duration>) {
        let stepped = catch_unwind(AssertUnwindSafe(|| self.timely.step_or_park(wait)));
        if let Err(caught) = stepped {
            self.activate_again();
            self.blame(Unwound::from(caught));
        }
        self.end_failed();
    }

    /// Schedules again the operators of a step that has ended early: timely forgets them with the step. Those that have run already
    /// run once more for nothing.
    fn activate_again(&mut self) {
        let activations = self.timely.activations();
        let mut activations = activations.borrow_mut();
        let active: RefCell<Vec<Vec<usize>>> = RefCell::default();
        activations.map_active(|path| active.borrow_mut().push(path.to_vec()));
        active.take().iter().for_each(|path| activations.activate(path));
    }

    /// Runs `act`. If it unwinds, a dataflow has failed, or this worker does.
    pub(super) fn attempt(&mut self, act: impl FnOnce(&mut Self)) {
        if let Err(caught) = catch_unwind(AssertUnwindSafe(|| act(self))) {
            self.blame(Unwound::from(caught));
            self.end_failed();
        }
    }

    /// Fails the dataflow that it comes from. Unwinds further if that is none that can fail alone.
    pub(super) fn blame(&mut self, Unwound { origin, caught }: Unwound) {
        let id = origin.filter(|id| self.installed.can_fail(*id));
        let Some(id) = id else { resume_unwind(caught) };
        let reason = match (Failure::reason(&*caught), panic_text(&*caught)) {
            (Some(reason), _) => reason.to_owned(),
            (None, Some(what)) => format!("it panicked: {what}"),
            (None, None) => "it panicked".to_owned(),
        };
        self.fail(id, reason.into());
    }

    /// Says that a dataflow has failed, and that all have that read it here.
    fn fail(&mut self, id: DataflowId, reason: Arc<str>) {
        let progress = Arc::clone(&self.progress);
        progress.failures().add(self.with_readers(id, &reason));
        self.poison.wake();
    }

    /// Ends a dataflow that has just been built, if it has failed on another worker already or reads one that has failed.
    pub(super) fn end_new(&mut self, id: DataflowId, reads: &[DataflowId]) {
        let progress = Arc::clone(&self.progress);
        if progress.failures().get(id).is_some() {
            self.end(id);
        }
        for read in reads {
            if let Some(failed) = progress.failures().get(*read) {
                self.fail(*read, failed.reason);
            }
        }
        self.end_failed();
    }

    /// A dataflow that fails for this reason, and those that read it here, directly or through others.
    fn with_readers(&self, id: DataflowId, reason: &Arc<str>) -> Vec<(DataflowId, Failed)> {
        let Some(purpose) = self.installed.purpose(id) else { return Vec::new() };
        let read: Arc<str> = format!("it reads {purpose}, which has failed: {reason}").into();
        let mut failed = vec![(id, Failed { purpose: purpose.clone(), reason: reason.clone() })];
        let readers = self.readers.all_of(id).into_iter();
        let readers = readers.filter(|_| !armed(Fault::KeepReaders));
        failed.extend(readers.filter_map(|reader| {
            let purpose = self.installed.purpose(reader)?.clone();
            Some((reader, Failed { purpose, reason: read.clone() }))
        }));
        failed
    }

    /// Ends the dataflows that have failed, here or on another worker, and what reads them, if there are new ones.
    #[inline]
    pub(super) fn end_failed(&mut self) {
        if self.progress.failures().count() > self.seen_failures {
            self.end_all();
        }
    }

    #[cold]
    fn end_all(&mut self) {
        let progress = Arc::clone(&self.progress);
        let failures: &Failures = progress.failures();
        loop {
            let new = failures.after(self.seen_failures);
            if new.is_empty() {
                return;
            }
            self.seen_failures += new.len();
            let mut ended = Vec::new();
            for (id, failed) in &new {
                // Others may have more readers here than where they have failed.
                let readers = self.readers.all_of(*id);
                if readers.iter().any(|reader| failures.get(*reader).is_none()) {
                    self.fail(*id, failed.reason.clone());
                }
                ended.extend(readers);
                ended.push(*id);
            }
            // Readers come after the dataflows that they read, and end before them.
            ended.sort_unstable();
            ended.dedup();
            ended.into_iter().rev().for_each(|id| self.end(id));
        }
    }

    /// Drops the operators of a dataflow. Its state can still be imported.
    fn end(&mut self, id: DataflowId) {
        self.pending.remove(&id);
        self.uncompacted.remove(&id);
        self.waiting.retain(|(waits, _)| *waits != id);
        self.running.retain(|(runs, _)| *runs != id);
        self.filling.retain(|filled| *filled != id);
        let Some(number) = self.installed.fail(id) else { return };
        let timely = &mut self.timely;
        let drop = || number.into_iter().for_each(|number| timely.drop_dataflow(number));
        // Others have less to keep without it.
        if let Err(caught) = catch_unwind(AssertUnwindSafe(drop)) {
            self.blame(Unwound::from(caught));
        }
    }
}
