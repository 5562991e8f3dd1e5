//! The dataflows of a worker.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use alluvium_dataflow::contents::Contents;
use alluvium_dataflow::states::States;
use alluvium_dataflow::waterlines::Waterlines;
use alluvium_sql::physical::{PhysicalPlan, Relations, StreamInput, TableDataflow, ViewDataflow};
use alluvium_sql::plan::Fingerprint;
use alluvium_trace::Epoch;
use timely::dataflow::operators::probe::Handle as Probe;

use super::command::{DataflowId, Shard};
use super::progress::Published;

/// A dataflow that runs on this worker.
pub(super) struct Installed {
    pub(super) id: DataflowId,
    /// The name by which other dataflows read it; `None` if they cannot.
    pub(super) name: Option<String>,
    /// It is readable once it is complete as of this epoch.
    as_of: Epoch,
    ready: bool,
    /// The frontier it was last published with.
    pub(super) shown: Epoch,
    /// Whether it is among those that wait to be advanced.
    pub(super) waits: bool,
    kind: Kind,
    /// Where its operators keep rows.
    states: States,
}

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
        Self::new(id, as_of, Some(name), Kind::Table(Box::new(table)), states)
    }

    pub(super) fn stream(id: DataflowId, as_of: Epoch, name: String) -> Self {
        let kind = Kind::Stream(name.as_str().into());
        Self::new(id, as_of, Some(name), kind, States::default())
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
        Self { id, name, as_of, ready: false, shown: 0, waits: false, kind, states }
    }

    /// What it keeps.
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
        // A probe says that nothing more can arrive; what is kept says what is sealed.
        self.kept().filter_map(Contents::frontier).chain(probe).min()
    }

    /// Whether it has caught up with the epoch it was built as of, now that it is at `frontier`.
    pub(super) fn catch_up(&mut self, frontier: Option<Epoch>) -> bool {
        self.ready |= frontier.is_none_or(|frontier| frontier > self.as_of);
        self.ready
    }

    /// Whether it had caught up when last asked.
    pub(super) fn is_ready(&self) -> bool {
        self.ready
    }

    /// Promises not to read what it keeps as of an epoch before `epoch`, nor changes of a relation that are `history` epochs
    /// older.
    pub(super) fn allow_compaction(&mut self, epoch: Epoch, history: u64) {
        let history = if self.name.is_some() { history } else { 0 };
        for contents in self.kept() {
            contents.allow_compaction(epoch, history);
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
    /// Those that others read by name.
    names: HashMap<String, DataflowId>,
}

impl Dataflows {
    pub(super) fn insert(&mut self, installed: Installed) {
        if let Some(name) = &installed.name {
            self.names.insert(name.clone(), installed.id);
        }
        self.installed.insert(installed.id, installed);
    }

    pub(super) fn remove(&mut self, id: DataflowId) -> Option<Installed> {
        let removed = self.installed.remove(&id);
        if let Some(name) = removed.as_ref().and_then(|removed| removed.name.as_ref())
            && self.names.get(name) == Some(&id)
        {
            self.names.remove(name);
        }
        removed
    }

    pub(super) fn ids(&self) -> Vec<DataflowId> {
        self.installed.keys().copied().collect()
    }

    pub(super) fn get_mut(&mut self, id: DataflowId) -> Option<&mut Installed> {
        self.installed.get_mut(&id)
    }

    /// All of them once, from the one behind `id` on, and from the first on again.
    pub(super) fn after(&self, id: DataflowId) -> impl Iterator<Item = &Installed> {
        let behind = self.installed.range((Bound::Excluded(id), Bound::Unbounded));
        behind.chain(self.installed.range(..=id)).map(|(_, installed)| installed)
    }

    /// What each of them keeps.
    pub(super) fn pin(&self) -> BTreeMap<DataflowId, Shard> {
        self.installed.iter().map(|(id, installed)| (*id, installed.pin())).collect()
    }

    /// Takes out the one that was built last.
    pub(super) fn pop_last(&mut self) -> Option<Installed> {
        self.installed.pop_last().map(|(_, installed)| installed)
    }

    /// The dataflows that a plan over these indexes reads, each once.
    pub(super) fn read_by(
        &self,
        plan: &PhysicalPlan,
        indexes: &BTreeMap<Fingerprint, DataflowId>,
    ) -> Vec<DataflowId> {
        let relations = plan.relations().iter().filter_map(|name| self.names.get(name));
        let mut read: Vec<DataflowId> = relations.chain(indexes.values()).copied().collect();
        read.sort_unstable();
        read.dedup();
        read
    }
}

/// The dataflows that a new one can read.
pub(super) struct Readable<'a> {
    pub(super) dataflows: &'a Dataflows,
    /// Which of them are its indexes.
    pub(super) indexes: &'a BTreeMap<Fingerprint, DataflowId>,
    /// The first epoch that is still to be sent.
    pub(super) next_epoch: Epoch,
    pub(super) waterlines: &'a Waterlines,
    /// Those of the new one.
    pub(super) own_waterlines: Waterlines,
}

impl Relations for Readable<'_> {
    fn contents(&self, relation: &str) -> Option<Contents> {
        let Dataflows { installed, names } = self.dataflows;
        installed.get(names.get(relation)?)?.contents().cloned()
    }

    fn index(&self, fingerprint: Fingerprint) -> Option<Contents> {
        let id = self.indexes.get(&fingerprint)?;
        self.dataflows.installed.get(id)?.contents().cloned()
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
        let id = self.dataflows.names.get(view)?;
        Some(self.waterlines.of_dataflow(id.0))
    }
}
