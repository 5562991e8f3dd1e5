//! The loop of one worker.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use alluvium_dataflow::contents::Contents;
use alluvium_dataflow::sink::Sink;
use alluvium_sql::physical::{PhysicalPlan, Relations, ViewDataflow};
use alluvium_sql::plan::Fingerprint;
use alluvium_trace::Epoch;
use alluvium_trace::memory::context;
use arrow::array::RecordBatch;
use arrow::buffer::ScalarBuffer;
use crossbeam_channel::Receiver;
use timely::WorkerConfig;
use timely::communication::Allocator;
use timely::worker::Worker as TimelyWorker;

use super::command::{Command, Dataflow, DataflowId};
use super::installed::Installed;
use super::progress::Progress;
use crate::poison::Poison;
use crate::transaction::TableChange;

/// Runs a worker on this thread until it is told to shut down or the engine is poisoned.
pub(super) fn run(
    index: usize,
    allocator: Allocator,
    commands: Receiver<Command>,
    progress: Arc<Progress>,
    poison: Arc<Poison>,
) {
    // Timely never sleeps without a timer.
    let timely =
        TimelyWorker::new(WorkerConfig::default(), allocator, Some(std::time::Instant::now()));
    let mut worker = Worker {
        index,
        timely,
        commands,
        progress,
        poison: poison.clone(),
        installed: Vec::new(),
        next_epoch: 1,
        published: 1,
        compacted: 0,
        stale: false,
    };
    // The worker outlives the loop: were it dropped by the unwinding, a second panic would abort.
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| worker.run())) {
        poison.spread_panic("a worker", &*panic);
    }
    worker.take_down();
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(worker))) {
        poison.spread_panic("a worker", &*panic);
    }
}

struct Worker {
    index: usize,
    timely: TimelyWorker,
    commands: Receiver<Command>,
    progress: Arc<Progress>,
    poison: Arc<Poison>,
    /// In the order they were built: identifiers ascend.
    installed: Vec<Installed>,
    /// The first epoch that is not committed here.
    next_epoch: Epoch,
    /// The frontier last published; never falls back, though a new view starts behind it.
    published: Epoch,
    /// The epoch up to which compaction was last allowed.
    compacted: Epoch,
    /// Whether other threads see a dataflow that is gone, or do not see one that has caught up.
    stale: bool,
}

impl Worker {
    fn run(&mut self) {
        while !self.poison.is_spread() {
            // A command that comes after this unparks the thread, so that the step below does not sleep.
            while let Ok(command) = self.commands.try_recv() {
                match command {
                    Command::Install { id, as_of, dataflow } => self.install(id, as_of, dataflow),
                    Command::Remove(id) => self.remove(id),
                    Command::Commit { epoch, changes } => self.commit(epoch, changes),
                    Command::Shutdown => return,
                    #[cfg(test)]
                    Command::Run(act) => act(),
                }
            }
            self.publish();
            self.timely.step_or_park(None);
        }
    }

    fn install(&mut self, id: DataflowId, as_of: Epoch, dataflow: Dataflow) {
        let installed = match dataflow {
            Dataflow::Table { name, table } => {
                let timely = &mut self.timely;
                let table = table.render(timely, &name, self.next_epoch, &context::current());
                Installed::table(id, as_of, name, table)
            }
            Dataflow::Stream { name } => Installed::stream(id, as_of, name),
            Dataflow::Index { plan, indexes } => {
                let name = format!("index {}", id.0);
                let index = self.render(&plan, &name, as_of, &indexes, None);
                Installed::view(id, as_of, None, index)
            }
            Dataflow::View { name, plan, indexes, sink } => {
                let sink = sink.map(|sink| sink as Box<dyn Sink>);
                let view = self.render(&plan, &name, as_of, &indexes, sink);
                let name = view.contents.is_some().then_some(name);
                Installed::view(id, as_of, name, view)
            }
        };
        self.installed.push(installed);
    }

    fn render(
        &mut self,
        plan: &PhysicalPlan,
        name: &str,
        as_of: Epoch,
        indexes: &BTreeMap<Fingerprint, DataflowId>,
        sink: Option<Box<dyn Sink>>,
    ) -> ViewDataflow {
        let relations = Readable { installed: &self.installed, indexes };
        plan.render(&mut self.timely, name, as_of, &relations, sink, &context::current())
    }

    fn remove(&mut self, id: DataflowId) {
        self.installed.retain(|installed| installed.id != id);
        self.stale = true;
    }

    fn commit(&mut self, epoch: Epoch, changes: Vec<(DataflowId, Vec<TableChange>)>) {
        for (id, changes) in changes {
            let at = self.installed.binary_search_by_key(&id, |installed| installed.id);
            let Ok(at) = at else { continue };
            if let Some(table) = self.installed[at].as_table() {
                for change in changes {
                    table.input.send(epoch, change.sequence(), move || loaded(&change));
                }
            } else if let Some(stream) = self.installed[at].as_stream() {
                self.pass(epoch, &stream, &changes);
            }
        }
        self.next_epoch = epoch + 1;
        for installed in &mut self.installed {
            if let Some(table) = installed.as_table() {
                table.input.advance_to(epoch + 1);
            }
            for input in installed.stream_inputs() {
                input.advance_to(epoch + 1);
            }
        }
    }

    /// Sends the rows of a table that keeps none to all that read it.
    fn pass(&mut self, epoch: Epoch, stream: &str, changes: &[TableChange]) {
        for installed in &mut self.installed {
            for input in installed.stream_inputs().iter_mut().filter(|it| *it.relation == *stream) {
                for change in changes {
                    let change = change.clone();
                    input.send(epoch, move || loaded(&change).0);
                }
            }
        }
    }

    /// Shows other threads what is new, if anything is.
    fn publish(&mut self) {
        let mut reached = self.next_epoch;
        for installed in &mut self.installed {
            let frontier = installed.frontier();
            self.stale |= !installed.is_ready() && installed.catch_up(frontier);
            reached = frontier.map_or(reached, |frontier| reached.min(frontier));
        }
        if reached <= self.published && !self.stale {
            return;
        }
        self.published = self.published.max(reached);
        self.stale = false;
        let shown = self.installed.iter().filter(|installed| installed.is_ready());
        let shown = shown.map(|installed| (installed.id, installed.publish())).collect();
        let complete = self.progress.publish(self.index, self.published, shown);
        if complete > self.compacted {
            self.compacted = complete;
            for installed in &mut self.installed {
                installed.allow_compaction(complete);
            }
        }
    }

    /// Ends all dataflows, the last one first, whatever state a panic left them in.
    fn take_down(&mut self) {
        context::current().close();
        while let Some(installed) = self.installed.pop() {
            self.contain(|_| drop(installed));
        }
        for dataflow in self.timely.installed_dataflows() {
            self.contain(|timely| timely.drop_dataflow(dataflow));
        }
    }

    fn contain(&mut self, end: impl FnOnce(&mut TimelyWorker)) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| end(&mut self.timely))) {
            self.poison.spread_panic("a worker", &*panic);
        }
    }
}

/// The rows and weights of a committed change; ends the worker, with the reason, if they cannot be read.
fn loaded(change: &TableChange) -> (RecordBatch, Option<ScalarBuffer<i64>>) {
    change.load().unwrap_or_else(|error| panic!("{error}"))
}

/// The dataflows that a new one can read.
struct Readable<'a> {
    installed: &'a [Installed],
    /// Which of them are its indexes.
    indexes: &'a BTreeMap<Fingerprint, DataflowId>,
}

impl Relations for Readable<'_> {
    fn contents(&self, relation: &str) -> Option<Contents> {
        let mut all = self.installed.iter();
        let found = all.find(|installed| installed.name.as_deref() == Some(relation))?;
        found.contents().cloned()
    }

    fn index(&self, fingerprint: Fingerprint) -> Option<Contents> {
        let id = self.indexes.get(&fingerprint)?;
        let at = self.installed.binary_search_by_key(id, |installed| installed.id).ok()?;
        self.installed[at].contents().cloned()
    }
}
