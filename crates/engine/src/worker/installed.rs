//! A dataflow as its worker holds it.

use std::sync::Arc;

use alluvium_dataflow::contents::Contents;
use alluvium_sql::physical::{StreamInput, TableDataflow, ViewDataflow};
use alluvium_trace::Epoch;
use timely::dataflow::operators::probe::Handle as Probe;

use super::command::DataflowId;
use super::progress::Published;

/// A dataflow that runs on this worker.
pub(super) struct Installed {
    pub(super) id: DataflowId,
    /// What it is known as to other dataflows; `None` if they cannot read it.
    pub(super) name: Option<String>,
    /// Until it is complete as of this epoch, nobody may read it.
    as_of: Epoch,
    ready: bool,
    kind: Kind,
}

enum Kind {
    Table(Box<TableDataflow>),
    /// A table that keeps nothing, by its name.
    Stream(Arc<str>),
    View(Box<ViewDataflow>),
}

impl Installed {
    pub(super) fn table(id: DataflowId, as_of: Epoch, name: String, table: TableDataflow) -> Self {
        Self { id, name: Some(name), as_of, ready: false, kind: Kind::Table(Box::new(table)) }
    }

    pub(super) fn stream(id: DataflowId, as_of: Epoch, name: String) -> Self {
        let kind = Kind::Stream(name.as_str().into());
        Self { id, name: Some(name), as_of, ready: false, kind }
    }

    pub(super) fn view(
        id: DataflowId,
        as_of: Epoch,
        name: Option<String>,
        view: ViewDataflow,
    ) -> Self {
        Self { id, name, as_of, ready: false, kind: Kind::View(Box::new(view)) }
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

    /// Where rows enter that pass through tables which keep none.
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
            Kind::View(view) => Some(&view.probe),
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
        // The probe says that nothing more can arrive; what is kept may still have to be sealed.
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

    /// Promises not to read what it keeps as of an epoch before `epoch`.
    pub(super) fn allow_compaction(&mut self, epoch: Epoch) {
        for contents in self.kept() {
            contents.allow_compaction(epoch);
        }
    }

    /// What other threads may read of it.
    pub(super) fn publish(&self) -> Published {
        let (contents, errors, refused) = match &self.kind {
            Kind::Table(table) => (Some(&table.contents), None, Some(table.refused.clone())),
            Kind::Stream(_) => (None, None, None),
            Kind::View(view) => (view.contents.as_ref(), view.errors.as_ref(), None),
        };
        Published {
            contents: contents.map(Contents::snapshot),
            errors: errors.map(Contents::snapshot),
            refused,
        }
    }
}
