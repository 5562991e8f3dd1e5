//! The states of a dataflow: where its operators keep rows, and starting with rows that were kept before.
//!
//! An operator with a trace registers it while its dataflow is [built](build). So the builder of a dataflow can pin the batches of
//! all of its traces later, and build the same dataflow again, on another day, with these batches in the traces.
//!
//! # Starting again
//!
//! A dataflow that is built with [`Saved`] batches starts at their end: everything before it has passed through already.
//!
//! - Traces have the batches from the beginning, and the batches are not sent again.
//! - Sources send nothing from before: neither imports, which skip what their traces have, nor constants.
//! - Joins and reductions take everything before for done.
//!
//! # Other workers
//!
//! Most operators keep rows on the worker of the shard of their key, wherever they come from. Then other workers can start
//! with the same rows, [repartitioned](Placement). Two kinds of state depend on the number of workers besides:
//!
//! - Some rows stay on the worker that made them, which may be another one when they are taken back. In a dataflow that was
//!   repartitioned, these rows go to the worker of their shard first ([`is_dealt`]).
//! - Some operators work on as many [`partitions`] as there were workers when the dataflow was first built.
//!
//! No operator keeps anything else, apart from rows in flight. So batches are pinned when nothing is: once the
//! dataflow has all changes that were sent to it.

use std::any::Any;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use alluvium_trace::memory::StateContext;
use alluvium_trace::{Batch, Epoch, PageTime};
use differential_dataflow::operators::arrange::{TraceAgent, TraceWriter};
use differential_dataflow::trace::{BatchReader, Trace, TraceReader};
use timely::progress::Antichain;

pub use crate::state::placement::{Placement, Share};

/// The name of a state: unique in its dataflow, and the same on every worker and in every process.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StateName {
    /// Which state of the plan it is part of.
    pub id: String,
    /// The fingerprint of that state's bytes, in hexadecimal digits.
    pub fingerprint: String,
    /// The operator that keeps it.
    pub operator: String,
    /// How many traces of the same state and operator were made before.
    pub number: u32,
}

/// Where the operators of a dataflow keep rows.
#[derive(Default)]
pub struct States {
    traces: BTreeMap<StateName, Pin>,
}

/// Returns the present batches of a trace.
type Pin = Box<dyn Fn() -> Vec<Batch<Epoch>>>;

impl States {
    /// The present batches of each trace, without empty ones; none of a trace without readers.
    pub fn pin(&self) -> Vec<(StateName, Vec<Batch<Epoch>>)> {
        self.traces.iter().map(|(name, pin)| (name.clone(), pin())).collect()
    }
}

/// The state that a dataflow starts with.
#[derive(Clone, Debug, Default)]
pub struct Saved {
    /// All epochs before this one have passed through it.
    pub upper: Epoch,
    /// The batches of each trace, in the order of their times: those of this worker, or those that each of the others kept, if
    /// there is a `share`.
    pub batches: HashMap<StateName, Vec<Vec<Batch<Epoch>>>>,
    /// This worker's share of the batches of others.
    pub share: Option<Share>,
    /// The number of workers it was first built for, if its rows have been repartitioned since.
    pub built_for: Option<usize>,
}

/// The dataflow that is being built on this thread.
struct Building {
    states: States,
    saved: Option<Saved>,
    /// The traces that are missing in the saved state.
    missing: Vec<StateName>,
    /// Where the operator that is being built keeps rows.
    placement: Placement,
}

thread_local! {
    static BUILDING: RefCell<Option<Building>> = const { RefCell::new(None) };
}

/// Builds a dataflow, and returns its states as well. It starts with what was `saved`, if that is given.
///
/// # Panics
///
/// If nothing was saved for one of its traces.
pub fn build<R>(saved: Option<Saved>, build: impl FnOnce() -> R) -> (R, States) {
    let (states, missing, placement) = Default::default();
    let building = Building { states, saved, missing, placement };
    let outer = Outer(BUILDING.replace(Some(building)));
    let built = build();
    let building = BUILDING.take().expect("it is set above");
    drop(outer);
    assert!(building.missing.is_empty(), "nothing was saved for {:?}", building.missing);
    (built, building.states)
}

/// The build to go back to when one ends, also by a panic.
struct Outer(Option<Building>);

impl Drop for Outer {
    fn drop(&mut self) {
        BUILDING.set(self.0.take());
    }
}

/// Where the dataflow that is being built starts; `None` if nothing was saved for it.
pub(crate) fn start() -> Option<Epoch> {
    BUILDING.with_borrow(|building| Some(building.as_ref()?.saved.as_ref()?.upper))
}

/// Whether the rows of the dataflow that is being built have been repartitioned since it was first built.
pub fn is_dealt() -> bool {
    built_for().is_some()
}

/// How many partitions there are of what each worker does for itself: as many as workers when the dataflow that is being
/// built was first built. There are `workers` now.
pub(crate) fn partitions(workers: usize) -> usize {
    built_for().unwrap_or(workers)
}

fn built_for() -> Option<usize> {
    BUILDING.with_borrow(|building| building.as_ref()?.saved.as_ref()?.built_for)
}

/// Builds an operator that keeps rows elsewhere than on the worker of the shard of their key.
pub fn placed<R>(placement: Placement, build: impl FnOnce() -> R) -> R {
    let set = |placement| {
        BUILDING.with_borrow_mut(|building| {
            let building = building.as_mut()?;
            Some(std::mem::replace(&mut building.placement, placement))
        })
    };
    let outer = set(placement);
    let built = build();
    outer.and_then(set);
    built
}

/// Makes a new trace one of the states of the dataflow that is being built, and puts the batches into it that were saved.
/// Returns the end of these.
pub(crate) fn add<Tr>(
    context: &StateContext,
    trace: &TraceAgent<Tr>,
    writer: &mut TraceWriter<Tr>,
) -> Antichain<Tr::Time>
where
    Tr: Trace<Batch = Batch<<Tr as TraceReader>::Time>> + 'static,
    Tr::Time: PageTime,
{
    let kept = BUILDING.with_borrow_mut(|building| building.as_mut()?.add(context, trace));
    let minimum = Antichain::from_elem(timely::progress::Timestamp::minimum());
    // Iterations are not saved.
    let kept = kept.and_then(|kept| (Box::new(kept) as Box<dyn Any>).downcast().ok());
    let Some(kept) = kept else { return minimum };
    let kept: Started<Tr::Time> = *kept;
    for batch in kept.batches {
        writer.insert(batch, Some(timely::progress::Timestamp::minimum()));
    }
    writer.seal(kept.upper.clone());
    kept.upper
}

/// The state that a trace starts with.
struct Started<T> {
    batches: Vec<Batch<T>>,
    upper: Antichain<T>,
}

impl Building {
    /// Adds a trace. Returns what it starts with, if something was saved.
    fn add<Tr>(&mut self, context: &StateContext, trace: &TraceAgent<Tr>) -> Option<Started<Epoch>>
    where
        Tr: Trace<Batch = Batch<<Tr as TraceReader>::Time>> + 'static,
        Tr::Time: PageTime,
    {
        let label = context.label();
        let mut name = StateName {
            id: label.id.clone(),
            fingerprint: label.fingerprint.clone(),
            operator: label.operator.clone(),
            number: 0,
        };
        while self.states.traces.contains_key(&name) {
            name.number += 1;
        }
        // Neither compaction nor the end of the trace waits for this: a trace without readers need not be kept.
        let trace = Rc::downgrade(&trace.trace_box_unstable());
        let pin = move || {
            let mut batches: Vec<Batch<Tr::Time>> = Vec::new();
            if let Some(trace) = trace.upgrade() {
                trace.borrow().trace().map_batches(|batch| batches.push(batch.clone()));
            }
            batches.retain(|batch| !batch.is_empty());
            let batches = (Box::new(batches) as Box<dyn Any>).downcast();
            batches.map_or_else(|_| Vec::new(), |batches| *batches)
        };
        self.states.traces.insert(name.clone(), Box::new(pin));
        let saved = self.saved.as_mut()?;
        let Some(mut batches) = saved.batches.remove(&name) else {
            self.missing.push(name);
            return None;
        };
        let batches = match saved.share {
            Some(share) => self.placement.deal(batches, share, saved.upper, context),
            None => batches.pop().unwrap_or_default(),
        };
        Some(Started { batches: joined(batches, saved.upper), upper: at(saved.upper) })
    }
}

/// The batches, each from where the one before it ends, up to `upper`.
fn joined(batches: Vec<Batch<Epoch>>, upper: Epoch) -> Vec<Batch<Epoch>> {
    let mut lower = at(0);
    let joined = batches.into_iter().map(|batch| {
        let end = batch.upper().first().map_or(upper, |end| upper.min(*end));
        let since = batch.description().since().clone();
        let start = std::mem::replace(&mut lower, at(end));
        batch.spanning(start, at(end), since)
    });
    joined.collect()
}

fn at(epoch: Epoch) -> Antichain<Epoch> {
    Antichain::from_elem(epoch)
}
