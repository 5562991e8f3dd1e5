//! `alluvium.epochs`: how far the engine and each relation are, and how long epochs take.

use std::sync::Arc;

use alluvium_trace::Epoch;
use arrow::array::{ArrayRef, ListBuilder, UInt64Builder};

use super::some_numbers;
use crate::catalog::Entries;
use crate::query::objects::some_texts;
use crate::worker::{DelayHistograms, Histogram, Progress};

/// How far the engine is.
pub(super) struct Reached {
    pub(super) committed: Epoch,
    /// `None` if nothing has to be durable.
    pub(super) durable: Option<Epoch>,
    /// In all relations.
    pub(super) complete: Epoch,
}

impl Reached {
    /// The progress of an engine whose last committed epoch this is.
    pub(super) fn by(progress: &Progress, committed: Epoch) -> Self {
        let durable = Some(progress.durable()).filter(|durable| *durable != Epoch::MAX);
        let durable = durable.map(|durable| durable.min(committed));
        Self { committed, durable, complete: progress.complete().min(committed) }
    }
}

/// The engine first, whose last committed epoch this is, and then the relations among `entries` that are maintained.
pub(super) fn columns(progress: &Progress, committed: Epoch, entries: &Entries) -> Vec<ArrayRef> {
    let dataflows = entries.values().filter(|entry| !entry.is_staged);
    let dataflows = dataflows.filter_map(|entry| Some((&entry.name, entry.dataflow()?)));
    let (names, ids): (Vec<&String>, Vec<_>) = dataflows.unzip();
    let reached = progress.reached(&ids);
    let Reached { durable, complete: engine, .. } = Reached::by(progress, committed);
    let DelayHistograms { durable: until_durable, complete: until_complete } = progress.delays();
    let rows = 1 + names.len();
    let of_engine = |value: Option<u64>| -> ArrayRef {
        let others = std::iter::repeat_n(None, names.len());
        some_numbers(std::iter::once(value).chain(others))
    };
    let complete = std::iter::once(Some(engine)).chain(reached);
    vec![
        some_texts(std::iter::once(None).chain(names.iter().map(Some))),
        of_engine(Some(committed)),
        of_engine(durable),
        some_numbers(complete.map(|it| it.map(|it| it.min(committed)))),
        of_engine(until_durable.quantile(0.5)),
        of_engine(until_durable.quantile(0.99)),
        of_engine(until_complete.quantile(0.5)),
        of_engine(until_complete.quantile(0.99)),
        counts(&until_durable, rows),
        counts(&until_complete, rows),
    ]
}

/// The counts of the engine, in the first of so many rows.
fn counts(histogram: &Histogram, rows: usize) -> ArrayRef {
    let mut lists = ListBuilder::new(UInt64Builder::new());
    lists.values().append_slice(histogram.counts());
    lists.append(true);
    (1..rows).for_each(|_| lists.append_null());
    Arc::new(lists.finish())
}
