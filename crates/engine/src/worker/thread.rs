//! The loop of one worker.

use std::collections::{BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use alluvium_dataflow::movement::sink::Sink;
use alluvium_dataflow::state::states;
use alluvium_dataflow::time::waterlines::Waterlines;
use alluvium_sql::physical::{PhysicalPlan, ViewDataflow};
use alluvium_trace::memory::StateContext;
use alluvium_trace::{Epoch, Failure, Origin};
use arrow::array::RecordBatch;
use arrow::buffer::ScalarBuffer;
use crossbeam_channel::Receiver;
use timely::WorkerConfig;
use timely::communication::Allocator;
use timely::worker::Worker as TimelyWorker;

use super::command::{Advance, Command, Dataflow, DataflowId, Reads, Resumed};
use super::fail::Unwound;
use super::failures::Purpose;
use super::installed::{Dataflows, Installed, Readable, Running};
use super::progress::Progress;
use super::published::{Published, Reached};
use super::readers::Readers;
use super::sampling::Sampling;
use crate::changes::TableChange;
use crate::history::History;
use crate::poison::Poison;

/// Runs a worker on this thread until it gets the command to shut down or the engine is poisoned.
pub(super) fn run(
    index: usize,
    allocator: Allocator,
    commands: Receiver<Command>,
    progress: Arc<Progress>,
    poison: Arc<Poison>,
    context: StateContext,
    history: Arc<History>,
) {
    let start = progress.complete();
    // Timely never sleeps without a timer.
    let timely =
        TimelyWorker::new(WorkerConfig::default(), allocator, Some(std::time::Instant::now()));
    let sampling = Sampling::new(context.metrics());
    let mut worker = Worker {
        index,
        sampling,
        timely,
        commands,
        progress,
        poison: poison.clone(),
        context,
        history,
        installed: Dataflows::default(),
        readers: Readers::default(),
        waterlines: Waterlines::default(),
        next_epoch: start + 1,
        published: start + 1,
        shown_sent: start + 1,
        lowest: start + 1,
        pending: BTreeSet::new(),
        waiting: VecDeque::new(),
        filling: Vec::new(),
        running: Vec::new(),
        uncompacted: BTreeSet::new(),
        refreshed: DataflowId(0),
        removed: Vec::new(),
        caught_up: false,
        shown_complete: 0,
        shown_merges: 0,
        active: Instant::now(),
        seen_failures: 0,
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

pub(super) struct Worker {
    index: usize,
    sampling: Sampling,
    pub(super) timely: TimelyWorker,
    commands: Receiver<Command>,
    pub(super) progress: Arc<Progress>,
    pub(super) poison: Arc<Poison>,
    /// The context of all state of this worker.
    context: StateContext,
    /// How far back changes are kept.
    history: Arc<History>,
    pub(super) installed: Dataflows,
    pub(super) readers: Readers,
    /// The waterlines of the tables, and those of dataflows.
    waterlines: Waterlines,
    /// The first epoch that is not committed here.
    next_epoch: Epoch,
    /// The frontier last published; never falls back, though a new view starts below it.
    published: Epoch,
    /// Up to where epochs had been sent when progress was last published.
    shown_sent: Epoch,
    /// The first epoch that some dataflow still has to do.
    lowest: Epoch,
    /// The dataflows whose last changes are not published yet.
    pub(super) pending: BTreeSet<DataflowId>,
    /// Those of them that are still to be advanced, in turn, and up to where they are complete without that.
    pub(super) waiting: VecDeque<(DataflowId, Epoch)>,
    /// The dataflows that are being filled, which no commit waits for.
    pub(super) filling: Vec<DataflowId>,
    /// Those that run, and how far they were advanced.
    pub(super) running: Vec<(DataflowId, Epoch)>,
    /// The dataflows that may be compacted further once their last epoch is complete everywhere.
    pub(super) uncompacted: BTreeSet<DataflowId>,
    /// The last dataflow that was published again without having changed.
    refreshed: DataflowId,
    /// The dataflows that are gone, while other threads still see them.
    removed: Vec<DataflowId>,
    /// Whether a dataflow has caught up that other threads do not see.
    caught_up: bool,
    /// The last complete epoch when progress was last published.
    shown_complete: Epoch,
    /// How many results of merges were installed when all dataflows were last published.
    shown_merges: u64,
    /// When it last got a command or came further.
    active: Instant,
    /// How many failures it has looked at.
    pub(super) seen_failures: usize,
}

/// A view or an index that is being built.
struct New<'a> {
    id: DataflowId,
    name: &'a str,
    as_of: Epoch,
    /// The context of its state.
    context: &'a StateContext,
}

/// Dataflows that have come further, as other threads see them.
type Changed = Vec<(DataflowId, Published)>;

/// Dataflows that do not have all that was sent to them, and the first epoch that is not complete in each.
type Behind = Vec<(DataflowId, Epoch)>;

/// How many dataflows are published with an epoch that has not changed them.
const REFRESH: usize = 16;

/// How many views run at a time, more or less: what a few of them touch stays in the caches of the processor from one step to the
/// next.
const TOGETHER: usize = 16;

/// How long a worker has had nothing to do when it settles.
const REST: Duration = Duration::from_millis(20);

impl Worker {
    fn run(&mut self) {
        while !self.poison.is_spread() {
            let turn = self.sampling.begin_turn();
            let before = self.active;
            // A command that comes after this unparks the thread, so that the step below does not sleep.
            while let Ok(command) = self.commands.try_recv() {
                self.active = Instant::now();
                match command {
                    Command::Install { id, as_of, dataflow, resumed } => {
                        self.sampling.measure_all();
                        self.install(id, as_of, dataflow, resumed);
                    }
                    Command::Remove(id) => self.remove(id),
                    Command::Commit { epoch, advance, rows, changes } => {
                        let complete = self.published.saturating_sub(1);
                        self.sampling.begin_epoch(epoch, rows, complete, self.active);
                        if !self.filling.is_empty() {
                            self.sampling.measure_all();
                        }
                        self.commit(epoch, &advance, changes);
                    }
                    Command::Raise { epoch, raised } => {
                        for (column, value) in &*raised {
                            self.waterlines.raise(column.clone(), epoch, *value);
                        }
                    }
                    Command::Pin(reply) => {
                        self.fill();
                        let all = self.installed.counted();
                        self.wait_for(&all);
                        // The receiver may be gone.
                        let _ = reply.send((self.index, self.installed.pin(&all)));
                    }
                    Command::Shutdown => return,
                    #[cfg(test)]
                    Command::Run(act) => act(),
                }
            }
            self.publish();
            self.context.set_busy(!self.pending.is_empty());
            let has_worked = self.active > before;
            let turn = match self.is_active() {
                true => turn,
                // The step may sleep.
                false => {
                    self.sampling.end_turn(turn, has_worked);
                    None
                }
            };
            self.step();
            self.sampling.end_turn(turn, has_worked);
        }
    }

    /// Whether dataflows have something to do, so that the next step does not sleep.
    fn is_active(&self) -> bool {
        self.timely.activations().borrow().empty_for() == Some(Duration::ZERO)
    }

    /// Steps the dataflows, or sleeps while they have nothing to do, though not at once: mostly something comes soon.
    fn step(&mut self) {
        if self.active.elapsed() < self.progress.spin() {
            self.step_dataflows(Some(Duration::ZERO));
            return;
        }
        // The progress of a sleeping worker is known without waking it.
        self.publish_each();
        if self.is_settled() {
            self.step_dataflows(None);
            return;
        }
        let start = Instant::now();
        self.step_dataflows(Some(REST));
        if start.elapsed() >= REST && self.pending.is_empty() {
            self.settle();
        }
    }

    /// Whether others see the state as it is, and as far compacted as it can be.
    fn is_settled(&self) -> bool {
        let is_compacted = self.shown_complete + 1 >= self.published;
        is_compacted && self.shown_merges == self.context.installed()
    }

    /// Publishes all dataflows once more: older snapshots keep batches that were merged since. Then compacts what could
    /// not be compacted before.
    fn settle(&mut self) {
        self.shown_merges = self.context.installed();
        let ready = self.installed.after(self.refreshed).filter(|installed| installed.is_ready());
        let waterlines = &self.waterlines;
        let all = ready.map(|installed| (installed.id, installed.publish(waterlines))).collect();
        // It has nothing to do.
        self.show(all, Vec::new());
    }

    fn install(
        &mut self,
        id: DataflowId,
        as_of: Epoch,
        dataflow: Dataflow,
        resumed: Option<Resumed>,
    ) {
        let (refused, late, saved) = match resumed {
            Some(Resumed { refused, late, saved }) => (refused, late, Some(saved)),
            None => (0, 0, None),
        };
        let mut read = Vec::new();
        if let Dataflow::Index { reads, .. } | Dataflow::View { reads, .. } = &dataflow {
            read = reads.ids();
            // A table publishes its changes to those that have its rows. All else is read as it comes, but for a dataflow that has
            // had everything up to `as_of`: no batch that it reads may hold both that and more.
            let is_subscription =
                matches!(dataflow, Dataflow::View { sink: Some(_), counts: false, .. });
            let takes_all = saved.is_none() || is_subscription;
            let is_awaited = |id: &DataflowId| !takes_all || !self.installed.is_view(*id);
            let awaited: Vec<DataflowId> = read.iter().copied().filter(is_awaited).collect();
            self.wait_for(&awaited);
        }
        let running = Running {
            number: self.timely.next_dataflow_index(),
            context: self.context.for_dataflow(),
        };
        let context = running.context.clone();
        let installed = Origin::of(id.0).build(|| match dataflow {
            Dataflow::Table { name, table } => {
                let (timely, start) = (&mut self.timely, self.next_epoch);
                let render = || table.render(timely, &name, start, &self.waterlines, &context);
                let (table, states) = states::build(saved, render);
                table.refused.store(refused, Ordering::Relaxed);
                table.late.store(late, Ordering::Relaxed);
                Installed::table(id, as_of, name, (table, states)).run_by(running)
            }
            Dataflow::Stream { name } => Installed::stream(id, as_of, name),
            Dataflow::Index { plan, reads } => {
                let name = id.of_index();
                let new = New { id, name: &name, as_of, context: &context };
                let render = || self.render(&new, &plan, &reads, None);
                Installed::view(id, as_of, None, states::build(saved, render)).run_by(running)
            }
            Dataflow::View { name, plan, reads, sink, counts } => {
                let purpose = match sink {
                    Some(_) => Purpose::Subscription(name.clone()),
                    None => Purpose::Relation(name.clone()),
                };
                let sink = sink.map(|sink| sink as Box<dyn Sink>);
                let new = New { id, name: &name, as_of, context: &context };
                let render = || self.render(&new, &plan, &reads, sink);
                let (view, states) = states::build(saved, render);
                if let Some(count) = &view.late {
                    count.store(late, Ordering::Relaxed);
                }
                let name = view.contents.is_some().then_some(name);
                let view = Installed::view(id, as_of, name, (view, states));
                let view = view.run_by(running).meant_as(purpose);
                if counts { view.counted() } else { view }
            }
        });
        let is_filled = !installed.is_counted();
        if let Some(scanned) = installed.scanned().filter(|_| is_filled) {
            self.progress.show_filling(id, scanned);
        }
        self.installed.insert(installed);
        let failed = (self.progress.failures().count() > 0).then(|| read.clone());
        self.readers.insert(id, read, as_of);
        self.advance(&[id]);
        if is_filled && let Some(installed) = self.installed.get_mut(id) {
            installed.advance_to(self.next_epoch);
            self.filling.push(id);
        }
        if let Some(read) = failed {
            self.end_new(id, &read);
        }
    }

    /// Steps until these dataflows have all rows that were sent to them. The other workers do the same.
    fn wait_for(&mut self, dataflows: &[DataflowId]) {
        while self.waiting.iter().any(|(id, _)| dataflows.contains(id)) {
            self.run_waiting();
        }
        while dataflows.iter().any(|id| self.is_behind(*id)) && !self.poison.is_spread() {
            self.step_dataflows(None);
        }
    }

    /// Whether a dataflow that has not failed still lacks rows that were sent to it.
    fn is_behind(&mut self, id: DataflowId) -> bool {
        let frontier = self.installed.get_mut(id).and_then(Installed::frontier);
        frontier.is_some_and(|frontier| Some(frontier) < self.readers.advanced(id))
    }

    fn render(
        &mut self,
        &New { id, name, as_of, context }: &New<'_>,
        plan: &PhysicalPlan,
        reads: &Reads,
        sink: Option<Box<dyn Sink>>,
    ) -> ViewDataflow {
        let waterlines = &self.waterlines;
        let own_waterlines = waterlines.of_dataflow(id.0);
        let dataflows = &self.installed;
        let next_epoch = self.next_epoch;
        let relations = Readable { dataflows, reads, next_epoch, waterlines, own_waterlines };
        plan.render(&mut self.timely, name, as_of, &relations, sink, context)
    }

    fn remove(&mut self, id: DataflowId) {
        let removed = self.installed.remove(id);
        if let Some(table) = removed.as_ref().and_then(Installed::table_name) {
            self.waterlines.remove(table);
        }
        self.attempt(|_| drop(removed));
        self.waterlines.remove_dataflow(id.0);
        self.readers.remove(id);
        self.pending.remove(&id);
        self.uncompacted.remove(&id);
        self.removed.push(id);
    }

    fn commit(
        &mut self,
        epoch: Epoch,
        advance: &Advance,
        changes: Vec<(DataflowId, Vec<TableChange>)>,
    ) {
        for (id, changes) in changes {
            let Some(installed) = self.installed.get_mut(id) else { continue };
            if let Some(table) = installed.as_table() {
                for change in changes {
                    table.input.send(epoch, change.sequence(), move || loaded(&change));
                }
            } else if let Some(stream) = installed.as_stream() {
                self.pass(epoch, id, &stream, &changes);
            }
        }
        self.next_epoch = epoch + 1;
        match advance {
            Advance::Changed(tables) => self.advance(tables),
            Advance::All => self.advance(&self.installed.ids()),
        }
    }

    /// Advances these dataflows, and all that read them, as far as the epochs are: views in turn.
    fn advance(&mut self, changed: &[DataflowId]) {
        let mut reached = self.readers.advance(changed, self.next_epoch);
        reached.sort_unstable();
        // First of all, because running dataflows rely on it.
        for id in &reached {
            if let Some(installed) = self.installed.get_mut(*id) {
                installed.promise(self.next_epoch);
            }
        }
        for id in reached {
            let Some(installed) = self.installed.get_mut(id) else { continue };
            self.pending.insert(id);
            if !installed.is_view() {
                installed.advance_to(self.next_epoch);
                self.running.push((id, self.next_epoch));
            } else if installed.is_counted() && !installed.waits {
                installed.waits = true;
                self.waiting.push_back((id, self.next_epoch - 1));
            }
        }
    }

    /// Advances views that wait: at least one, because those that run may wait for it.
    fn run_waiting(&mut self) {
        let mut places = TOGETHER.saturating_sub(self.running.len()).max(1);
        while places > 0
            && let Some((id, _)) = self.waiting.pop_front()
        {
            let end = self.readers.advanced(id);
            // It may have been removed meanwhile.
            if let (Some(installed), Some(end)) = (self.installed.get_mut(id), end) {
                installed.waits = false;
                installed.advance_to(end);
                self.running.push((id, end));
                places -= 1;
            }
        }
    }

    /// Sends changes of a table that keeps nothing to all that read it.
    fn pass(&mut self, epoch: Epoch, id: DataflowId, stream: &str, changes: &[TableChange]) {
        for reader in self.readers.of(id) {
            let Some(installed) = self.installed.get_mut(reader) else { continue };
            for input in installed.stream_inputs().iter_mut().filter(|it| *it.relation == *stream) {
                for change in changes {
                    let change = change.clone();
                    input.send(epoch, move || loaded(&change));
                }
            }
        }
    }

    /// Publishes progress and changed snapshots if an epoch is complete here, or if a thread waits for a relation.
    fn publish(&mut self) {
        self.fill();
        let waiting = self.waiting.iter().map(|(_, complete)| *complete);
        let mut reached = waiting.fold(self.next_epoch, Epoch::min);
        let (installed, caught_up) = (&mut self.installed, &mut self.caught_up);
        let published = self.published;
        self.running.retain(|(id, end)| {
            let Some(installed) = installed.get_mut(*id) else { return false };
            let frontier = installed.frontier();
            *caught_up |= !installed.is_ready() && installed.catch_up(frontier, published, *end);
            let frontier = frontier.unwrap_or(Epoch::MAX);
            let runs = !installed.is_ready() || frontier < *end;
            if runs {
                reached = reached.min(frontier);
            }
            runs
        });
        self.run_waiting();
        if reached <= self.published && !self.caught_up && self.removed.is_empty() {
            if self.progress.is_awaited() {
                self.publish_each();
            }
            return;
        }
        self.active = Instant::now();
        self.published = self.published.max(reached);
        self.caught_up = false;
        let (mut changed, behind) = self.changed();
        self.refresh(&mut changed);
        self.show(changed, behind);
    }

    /// Advances dataflows that are filled, and has commits wait for those that are nearly there.
    fn fill(&mut self) {
        let (installed, readers, running) = (&mut self.installed, &self.readers, &mut self.running);
        self.filling.retain(|id| {
            let (Some(installed), Some(end)) = (installed.get_mut(*id), readers.advanced(*id))
            else {
                return false;
            };
            let frontier = installed.frontier();
            if installed.is_near(frontier, end) {
                installed.advance_to(end);
                running.push((*id, end));
                return false;
            }
            installed.advance_again(frontier, end);
            true
        });
        self.context.set_filling(!self.filling.is_empty());
    }

    /// Publishes the dataflows that have come further, though others have not.
    fn publish_each(&mut self) {
        if self.pending.is_empty() && self.shown_sent == self.next_epoch {
            return;
        }
        let (changed, behind) = self.changed();
        if !changed.is_empty() || self.shown_sent < self.next_epoch {
            self.show(changed, behind);
        }
    }

    /// The dataflows that have come further since they were last published, and those that still have something to do.
    fn changed(&mut self) -> (Changed, Behind) {
        let (mut changed, mut behind) = (Vec::with_capacity(self.pending.len()), Vec::new());
        let (installed, readers, uncompacted) =
            (&mut self.installed, &self.readers, &mut self.uncompacted);
        let waterlines = &self.waterlines;
        let mut lowest = self.next_epoch;
        self.pending.retain(|id| {
            let Some(installed) = installed.get_mut(*id) else { return false };
            let frontier = installed.frontier().unwrap_or(Epoch::MAX);
            lowest = lowest.min(frontier);
            if !installed.is_ready() {
                return true;
            }
            if frontier > installed.shown {
                installed.shown = frontier;
                uncompacted.insert(*id);
                changed.push((*id, installed.publish(waterlines)));
            }
            let is_behind = readers.advanced(*id).is_some_and(|end| frontier < end);
            if is_behind {
                behind.push((*id, frontier));
            }
            is_behind
        });
        self.lowest = lowest;
        (changed, behind)
    }

    /// Publishes progress and these snapshots; the dataflows in `behind` have not done all that was sent to them.
    fn show(&mut self, changed: Changed, behind: Behind) {
        let removed = std::mem::take(&mut self.removed);
        let reached = Reached { frontier: self.published, sent: self.next_epoch, behind };
        self.shown_sent = self.next_epoch;
        let (complete, compactible) = self.progress.publish(self.index, reached, changed, &removed);
        self.shown_complete = complete;
        // A dataflow that is filled asks for those of earlier epochs.
        self.waterlines.forget_before(complete.min(self.lowest));
        self.compact(compactible);
    }

    /// Adds a few dataflows that have not changed, in turn. Spines also merge batches later, and a snapshot from before
    /// keeps the merged batches in memory.
    fn refresh(&mut self, changed: &mut Vec<(DataflowId, Published)>) {
        for installed in self.installed.after(self.refreshed).take(REFRESH) {
            self.refreshed = installed.id;
            if installed.is_ready() && !self.pending.contains(&installed.id) {
                changed.push((installed.id, installed.publish(&self.waterlines)));
            }
        }
    }

    /// Promises no reads as of an epoch before `upto`, and none of changes before the history.
    fn compact(&mut self, upto: Epoch) {
        let first = self.history.first(upto);
        let installed = &mut self.installed;
        let mut unwound = Vec::new();
        self.uncompacted.retain(|id| {
            let Some(installed) = installed.get_mut(*id) else { return false };
            let last = installed.shown.saturating_sub(1);
            let compact = || installed.allow_compaction(upto.min(last), first);
            unwound.extend(catch_unwind(AssertUnwindSafe(compact)).err().map(Unwound::from));
            upto < last
        });
        unwound.into_iter().for_each(|unwound| self.blame(unwound));
    }

    /// Ends all dataflows, the last one first, whatever state a panic left them in.
    fn take_down(&mut self) {
        self.context.close();
        while let Some(installed) = self.installed.pop_last() {
            self.contain(|_| drop(installed));
        }
        for dataflow in self.timely.installed_dataflows() {
            self.contain(|timely| timely.drop_dataflow(dataflow));
        }
        self.context.join();
    }

    fn contain(&mut self, end: impl FnOnce(&mut TimelyWorker)) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| end(&mut self.timely))) {
            self.poison.spread_panic("a worker", &*panic);
        }
    }
}

/// The rows and weights of a committed change; ends the worker, with the reason, if they cannot be read.
fn loaded(change: &TableChange) -> (RecordBatch, Option<ScalarBuffer<i64>>) {
    change.load().unwrap_or_else(|error| Failure::raise(error))
}
