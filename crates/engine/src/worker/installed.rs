//! The dataflows of a worker.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use alluvium_dataflow::movement::import::{Imports, ScannedRows};
use alluvium_dataflow::state::contents::Contents;
use alluvium_dataflow::state::states::States;
use alluvium_dataflow::time::waterlines::Waterlines;
use alluvium_sql::physical::{Relations, StreamInput, TableDataflow, ViewDataflow};
use alluvium_sql::plan::Fingerprint;
use alluvium_trace::Epoch;
use alluvium_trace::memory::StateContext;
use timely::dataflow::operators::probe::Handle as Probe;

use super::command::{DataflowId, Reads, Shard};
use super::failures::Purpose;
use super::published::Published;

/// A dataflow that runs on this worker.
pub(super) struct Installed {
    pub(super) id: DataflowId,
    /// The name by which other dataflows read it; `None` if they cannot.
    pub(super) name: Option<String>,
    /// It has the rows of its inputs once it is complete as of this epoch.
    as_of: Epoch,
    filling: Filling,
    /// The frontier it was last published with.
    pub(super) shown: Epoch,
    /// Whether it is among those that wait to be advanced.
    pub(super) waits: bool,
    kind: Kind,
    /// Where its operators keep rows.
    states: States,
    purpose: Purpose,
    running: Option<Running>,
}

/// A dataflow as timely runs it.
pub(super) struct Running {
    /// Its number there.
    pub(super) number: usize,
    /// The context of its state.
    pub(super) context: StateContext,
}

/// How far a new dataflow has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Filling {
    /// It takes in the rows that were there when it was built.
    Loads,
    /// It has them, and does what was committed meanwhile, up to `end`. It was `lag` epochs behind, and has come no nearer
    /// when it was advanced for the last `rounds` times.
    CatchesUp { end: Epoch, lag: u64, rounds: u32 },
    /// It is nearly there: commits wait for it as for any other.
    Counts,
    /// It can be read.
    Ready,
}

/// How many epochs a dataflow may be behind when commits begin to wait for it.
const NEAR: u64 = 32;

/// How often a dataflow may be advanced without coming nearer until commits wait for it.
const PATIENCE: u32 = 8;

enum Kind {
    Table(Box<TableDataflow>),
    /// A table that keeps nothing, by its name.
    Stream(Arc<str>),
    View(Box<ViewDataflow>),
}

impl Installed {
    pub(super) fn table(
        id: DataflowId,
        as_of: Epoch,
        name: String,
        (table, states): (TableDataflow, States),
    ) -> Self {
        Self::new(id, as_of, Some(name), Kind::Table(Box::new(table)), states).counted()
    }

    pub(super) fn stream(id: DataflowId, as_of: Epoch, name: String) -> Self {
        let kind = Kind::Stream(name.as_str().into());
        Self::new(id, as_of, Some(name), kind, States::default()).counted()
    }

    pub(super) fn view(
        id: DataflowId,
        as_of: Epoch,
        name: Option<String>,
        (view, states): (ViewDataflow, States),
    ) -> Self {
        Self::new(id, as_of, name, Kind::View(Box::new(view)), states)
    }

    fn new(id: DataflowId, as_of: Epoch, name: Option<String>, kind: Kind, states: States) -> Self {
        let filling = Filling::Loads;
        let (shown, waits, running) = (0, false, None);
        let purpose = name.clone().map_or(Purpose::Index, Purpose::Relation);
        Self { id, name, as_of, filling, shown, waits, kind, states, purpose, running }
    }

    /// The same, for which commits wait from the start.
    pub(super) fn counted(self) -> Self {
        Self { filling: Filling::Counts, ..self }
    }

    /// The same, which timely runs so.
    pub(super) fn run_by(self, running: Running) -> Self {
        Self { running: Some(running), ..self }
    }

    /// The same, for this purpose.
    pub(super) fn meant_as(self, purpose: Purpose) -> Self {
        Self { purpose, ..self }
    }

    /// Ends its inputs, after which nothing runs it any more. Returns its number in timely.
    fn fail(&mut self) -> Option<usize> {
        let running = self.running.take();
        if let Some(Running { context, .. }) = &running {
            context.close_dataflow();
        }
        if let Kind::View(view) = &mut self.kind {
            view.streams.clear();
            view.imports = Imports::default();
        }
        running.map(|running| running.number)
    }

    /// Its state.
    fn pin(&self) -> Shard {
        let counts = |table: &TableDataflow| {
            (table.refused.load(Ordering::Relaxed), table.late.load(Ordering::Relaxed))
        };
        let (refused, late) = match &self.kind {
            Kind::Table(table) => counts(table),
            Kind::Stream(_) => (0, 0),
            Kind::View(view) => {
                (0, view.late.as_ref().map_or(0, |late| late.load(Ordering::Relaxed)))
            }
        };
        Shard { refused, late, states: self.states.pin() }
    }

    /// Promises that no rows enter it before `epoch`, for those that read it. It still has to be [advanced](Self::advance_to).
    pub(super) fn promise(&mut self, epoch: Epoch) {
        for contents in self.kept() {
            contents.advance_to(epoch);
        }
    }

    /// Runs up to `epoch`, which was promised by all that it reads.
    pub(super) fn advance_to(&mut self, epoch: Epoch) {
        match &mut self.kind {
            Kind::Table(table) => table.input.advance_to(epoch),
            Kind::Stream(_) => {}
            Kind::View(view) => {
                view.streams.iter_mut().for_each(|input| input.advance_to(epoch));
                view.imports.advance_to(epoch);
            }
        }
    }

    /// The table, if it is one.
    pub(super) fn as_table(&mut self) -> Option<&mut TableDataflow> {
        match &mut self.kind {
            Kind::Table(table) => Some(table),
            Kind::Stream(_) | Kind::View(_) => None,
        }
    }

    /// The name of the table that keeps nothing, if it is one.
    pub(super) fn as_stream(&self) -> Option<Arc<str>> {
        match &self.kind {
            Kind::Stream(name) => Some(name.clone()),
            Kind::Table(_) | Kind::View(_) => None,
        }
    }

    /// Whether it reads other dataflows.
    pub(super) fn is_view(&self) -> bool {
        matches!(self.kind, Kind::View(_))
    }

    /// Its name, if it is a table.
    pub(super) fn table_name(&self) -> Option<&str> {
        match &self.kind {
            Kind::Table(_) => self.name.as_deref(),
            Kind::Stream(name) => Some(name),
            Kind::View(_) => None,
        }
    }

    /// The inputs for rows of tables that keep none.
    pub(super) fn stream_inputs(&mut self) -> &mut [StreamInput] {
        match &mut self.kind {
            Kind::View(view) => &mut view.streams,
            Kind::Table(_) | Kind::Stream(_) => &mut [],
        }
    }

    /// How far it is with its inputs when it is filled, if it reads other dataflows.
    pub(super) fn scanned(&self) -> Option<&Arc<ScannedRows>> {
        match &self.kind {
            Kind::View(view) => Some(view.imports.scanned()),
            Kind::Table(_) | Kind::Stream(_) => None,
        }
    }

    /// Its rows, if it keeps them.
    pub(super) fn contents(&self) -> Option<&Contents> {
        match &self.kind {
            Kind::Table(table) => Some(&table.contents),
            Kind::Stream(_) => None,
            Kind::View(view) => view.contents.as_ref(),
        }
    }

    fn probe(&self) -> Option<&Probe<Epoch>> {
        match &self.kind {
            Kind::Table(table) => Some(&table.probe),
            Kind::Stream(_) => None,
            Kind::View(view) => view.probe.as_ref(),
        }
    }

    fn kept(&mut self) -> impl Iterator<Item = &mut Contents> {
        let (contents, errors) = match &mut self.kind {
            Kind::Table(table) => (Some(&mut table.contents), None),
            Kind::Stream(_) => (None, None),
            Kind::View(view) => (view.contents.as_mut(), view.errors.as_mut()),
        };
        contents.into_iter().chain(errors)
    }

    /// All epochs before this one are complete here; `None` if no epoch can come any more.
    pub(super) fn frontier(&mut self) -> Option<Epoch> {
        let first =
            |probe: &Probe<Epoch>| probe.with_frontier(|frontier| frontier.first().copied());
        let probe = self.probe().and_then(first);
        // A probe says that nothing more can arrive; the kept batches say what is sealed.
        self.kept().filter_map(Contents::frontier).chain(probe).min()
    }

    /// Whether a dataflow that is filled is so near that commits should wait for it, now that it is at `frontier` and all epochs
    /// before `end` have been sent to it.
    ///
    /// A dataflow is filled beside the others, which do not wait for it. While it takes in the existing rows, epochs go by. Then it
    /// does them several at a time, so it comes nearer; when it is near, or comes no nearer, commits wait for it.
    pub(super) fn is_near(&mut self, frontier: Option<Epoch>, end: Epoch) -> bool {
        let frontier = frontier.unwrap_or(Epoch::MAX);
        if self.filling == Filling::Loads && frontier > self.as_of {
            self.filling = Filling::CatchesUp { end: frontier, lag: Epoch::MAX, rounds: 0 };
        }
        if let Filling::CatchesUp { rounds, .. } = self.filling
            && (end.saturating_sub(frontier) <= NEAR || rounds == PATIENCE)
        {
            self.filling = Filling::Counts;
        }
        self.is_counted()
    }

    /// Advances one that is filled to `end`, if it has done all up to where it was advanced before.
    pub(super) fn advance_again(&mut self, frontier: Option<Epoch>, end: Epoch) {
        let Filling::CatchesUp { end: before, lag, rounds } = self.filling else { return };
        let frontier = frontier.unwrap_or(Epoch::MAX);
        if frontier < before {
            return;
        }
        let now = end.saturating_sub(frontier);
        self.filling = match now < lag / 2 {
            true => Filling::CatchesUp { end, lag: now, rounds: 0 },
            false => Filling::CatchesUp { end, lag, rounds: rounds + 1 },
        };
        self.advance_to(end);
    }

    /// Whether one that counts can be read, now that it is at `frontier`, the worker at `published`, and all epochs before `end`
    /// have been sent to it.
    pub(super) fn catch_up(
        &mut self,
        frontier: Option<Epoch>,
        published: Epoch,
        end: Epoch,
    ) -> bool {
        if frontier.is_none_or(|frontier| frontier >= published.min(end)) {
            self.filling = Filling::Ready;
        }
        self.is_ready()
    }

    /// Whether commits wait for it.
    pub(super) fn is_counted(&self) -> bool {
        matches!(self.filling, Filling::Counts | Filling::Ready)
    }

    /// Whether it can be read.
    pub(super) fn is_ready(&self) -> bool {
        self.filling == Filling::Ready
    }

    /// Promises not to read what it keeps as of an epoch before `epoch`, nor changes of a relation of epochs up to `first`.
    pub(super) fn allow_compaction(&mut self, epoch: Epoch, first: Epoch) {
        let first = if self.name.is_some() { first } else { epoch };
        for contents in self.kept() {
            contents.allow_compaction(epoch, first);
        }
    }

    /// Its snapshots for other threads; `waterlines` are those of tables.
    pub(super) fn publish(&self, waterlines: &Waterlines) -> Published {
        let (contents, errors) = match &self.kind {
            Kind::Table(table) => (Some(&table.contents), None),
            Kind::Stream(_) => (None, None),
            Kind::View(view) => (view.contents.as_ref(), view.errors.as_ref()),
        };
        let (refused, late) = match &self.kind {
            Kind::Table(table) => (Some(table.refused.clone()), Some(table.late.clone())),
            Kind::Stream(_) => (None, None),
            Kind::View(view) => (None, view.late.clone()),
        };
        let waterlines =
            (self.is_view() && late.is_some()).then(|| waterlines.of_dataflow(self.id.0));
        Published {
            since: self.as_of,
            contents: contents.map(Contents::snapshot),
            errors: errors.map(Contents::snapshot),
            refused,
            late,
            waterlines,
        }
    }
}

/// The dataflows of a worker.
#[derive(Default)]
pub(super) struct Dataflows {
    installed: BTreeMap<DataflowId, Installed>,
    /// Those that have failed and are not removed yet: nothing runs them.
    failed: BTreeMap<DataflowId, Installed>,
}

impl Dataflows {
    pub(super) fn insert(&mut self, installed: Installed) {
        self.installed.insert(installed.id, installed);
    }

    pub(super) fn remove(&mut self, id: DataflowId) -> Option<Installed> {
        self.installed.remove(&id).or_else(|| self.failed.remove(&id))
    }

    /// Whether a dataflow is there whose rows can be computed again, so that it can fail alone.
    pub(super) fn can_fail(&self, id: DataflowId) -> bool {
        self.get(id).is_some_and(Installed::is_view)
    }

    /// The purpose of a dataflow.
    pub(super) fn purpose(&self, id: DataflowId) -> Option<&Purpose> {
        self.get(id).map(|installed| &installed.purpose)
    }

    /// Takes a dataflow that has failed from those that run. Returns its number in timely, unless that has been done before.
    pub(super) fn fail(&mut self, id: DataflowId) -> Option<Option<usize>> {
        let mut installed = self.installed.remove(&id)?;
        let number = installed.fail();
        self.failed.insert(id, installed);
        Some(number)
    }

    fn get(&self, id: DataflowId) -> Option<&Installed> {
        self.installed.get(&id).or_else(|| self.failed.get(&id))
    }

    pub(super) fn ids(&self) -> Vec<DataflowId> {
        self.installed.keys().copied().collect()
    }

    pub(super) fn get_mut(&mut self, id: DataflowId) -> Option<&mut Installed> {
        self.installed.get_mut(&id)
    }

    /// All of them once, from the one after `id` on, and from the first on again.
    pub(super) fn after(&self, id: DataflowId) -> impl Iterator<Item = &Installed> {
        let behind = self.installed.range((Bound::Excluded(id), Bound::Unbounded));
        behind.chain(self.installed.range(..=id)).map(|(_, installed)| installed)
    }

    /// Those that commits wait for.
    pub(super) fn counted(&self) -> Vec<DataflowId> {
        let counted = self.installed.values().filter(|installed| installed.is_counted());
        counted.map(|installed| installed.id).collect()
    }

    /// The state of each of these.
    pub(super) fn pin(&self, ids: &[DataflowId]) -> BTreeMap<DataflowId, Shard> {
        let pin = |id: &DataflowId| Some((*id, self.installed.get(id)?.pin()));
        ids.iter().filter_map(pin).collect()
    }

    /// Whether a dataflow reads others.
    pub(super) fn is_view(&self, id: DataflowId) -> bool {
        self.get(id).is_some_and(Installed::is_view)
    }

    /// Takes out the one that was built last.
    pub(super) fn pop_last(&mut self) -> Option<Installed> {
        let last = self.installed.pop_last().or_else(|| self.failed.pop_last());
        last.map(|(_, installed)| installed)
    }
}

/// The dataflows that a new one can read.
pub(super) struct Readable<'a> {
    pub(super) dataflows: &'a Dataflows,
    /// Which of them it reads.
    pub(super) reads: &'a Reads,
    /// The first epoch that is still to be sent.
    pub(super) next_epoch: Epoch,
    pub(super) waterlines: &'a Waterlines,
    /// Those of the new one.
    pub(super) own_waterlines: Waterlines,
}

impl Relations for Readable<'_> {
    fn contents(&self, relation: &str) -> Option<Contents> {
        let id = self.reads.relations.get(relation)?;
        self.dataflows.get(*id)?.contents().cloned()
    }

    fn index(&self, fingerprint: Fingerprint) -> Option<Contents> {
        let id = self.reads.indexes.get(&fingerprint)?;
        self.dataflows.get(*id)?.contents().cloned()
    }

    fn are_present(&self, as_of: Epoch) -> bool {
        as_of + 1 == self.next_epoch
    }

    fn waterlines(&self) -> &Waterlines {
        self.waterlines
    }

    fn own_waterlines(&self) -> &Waterlines {
        &self.own_waterlines
    }

    fn waterlines_of(&self, view: &str) -> Option<Waterlines> {
        let id = self.reads.waterlines.get(view)?;
        Some(self.waterlines.of_dataflow(id.0))
    }
}
