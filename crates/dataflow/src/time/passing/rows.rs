//! The rows that a bound passes.

use std::sync::Arc;

use alluvium_trace::memory::StateContext;
use alluvium_trace::{Batch, Bound, Cursors, Epoch, Pruning, Spine};
use differential_dataflow::operators::arrange::TraceAgent;
use differential_dataflow::trace::TraceReader;
use timely::progress::Antichain;

use super::rises::{Rises, behind};
use super::{InView, Rule};
use crate::fault::{self, Fault};
use crate::movement::delta::{Delta, EncodedDelta};
use crate::movement::fuel::Fuel;
use crate::rows::layout::{Layout, all_columns};
use crate::rows::weight::add;
use crate::state::states;

#[cfg(test)]
thread_local! {
    /// How many rows this thread has looked at.
    pub(crate) static VISITED: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Rows, and how far the bound has come among them.
pub(super) struct PassingRows {
    trace: TraceAgent<Spine<Epoch>>,
    pruning: Arc<dyn Pruning>,
    rule: Rule,
    /// All epochs before this one are done.
    lower: Epoch,
    /// It has passed everything below this.
    bound: Option<Bound>,
    /// Batches that may have rows of epochs that are not done.
    fresh: Vec<Batch<Epoch>>,
    running: Option<Running>,
    layout: Layout,
    columns: Vec<usize>,
    rows: EncodedDelta<Epoch>,
}

/// Epochs that are being gone through.
struct Running {
    lower: Epoch,
    upper: Epoch,
    rises: Rises,
    /// Whether there was no bound before: nothing was in view.
    is_first: bool,
    /// How many of the rises are done.
    done: usize,
    /// Rows of these epochs, and the batches that have them.
    arrivals: Cursors<Epoch>,
    fresh: Vec<Batch<Epoch>>,
    /// Whether these have rows of later epochs.
    has_later: bool,
    /// All rows from the bound before these epochs on.
    passed: Cursors<Epoch>,
}

impl PassingRows {
    pub(super) fn new(
        mut trace: TraceAgent<Spine<Epoch>>,
        layout: &Layout,
        rule: Rule,
        context: &StateContext,
    ) -> Self {
        let pruning = context.pruning().expect("rows that a bound passes are pruned by it");
        // All batches are read together, so any of them may be merged.
        trace.set_physical_compaction(Antichain::new().borrow());
        let lower = states::start().unwrap_or(0);
        Self {
            trace,
            pruning: Arc::clone(pruning),
            rule,
            lower,
            bound: lower.checked_sub(1).and_then(|last| behind(&**pruning, rule, last)),
            fresh: Vec::new(),
            running: None,
            columns: all_columns(layout.schema()),
            layout: layout.clone(),
            rows: EncodedDelta::new(context),
        }
    }

    /// Takes batches from the stream.
    pub(super) fn receive(&mut self, batches: &mut Vec<Batch<Epoch>>) {
        self.fresh.extend(batches.drain(..).filter(|batch| !batch.is_empty()));
    }

    /// Advances up to `upper` until the fuel is used up; returns whether it has come there. All rows from before are there.
    pub(super) fn advance(
        &mut self,
        upper: Epoch,
        fuel: &mut Fuel,
        mut emit: impl FnMut(Delta<Epoch>),
    ) -> bool {
        while self.lower < upper {
            if self.running.is_none() {
                self.running = Some(self.begin(upper));
            }
            let done = self.emit_arrivals(fuel, &mut emit) && self.emit_passed(fuel, &mut emit);
            if !done {
                return false;
            }
            fuel.consume(self.ship(&mut emit));
            self.finish();
        }
        true
    }

    fn begin(&mut self, upper: Epoch) -> Running {
        let mut rises = Rises::new(&*self.pruning, self.rule, self.bound, self.lower, upper);
        let first = rises.steps().first().copied();
        let is_first = self.bound.is_none() && first.is_some();
        let upper = match first {
            Some((epoch, _)) if is_first => {
                rises.end_with_first();
                epoch + 1
            }
            _ => upper,
        };
        let first = first.map(|(_, bound)| bound);
        let before = match self.rule.in_view {
            InView::Below => self.bound.or(first.map(|bound| Bound { least: i64::MIN, ..bound })),
            InView::From => self.bound.or(first),
        };
        let mut all = Vec::new();
        if first.is_some() {
            self.trace.map_batches(|batch| all.push(batch.clone()));
        }
        let fresh = std::mem::take(&mut self.fresh);
        // Rows that were passed before stay in view, or out of it.
        let arrivals = match self.rule.in_view {
            InView::Below => Cursors::scan(fresh.iter().cloned()),
            InView::From => scan_from(fresh.iter().cloned(), before),
        };
        let passed = scan_from(all, before);
        Running {
            lower: self.lower,
            upper,
            rises,
            is_first,
            done: 0,
            arrivals,
            fresh,
            has_later: false,
            passed,
        }
    }

    /// Emits the changes of rows that are in view; returns whether these were all.
    fn emit_arrivals(&mut self, fuel: &mut Fuel, emit: &mut impl FnMut(Delta<Epoch>)) -> bool {
        self.emit_all(fuel, emit, Running::collect_arrivals)
    }

    /// Emits the rows that come into view, or takes back those that leave it; returns whether these were all.
    fn emit_passed(&mut self, fuel: &mut Fuel, emit: &mut impl FnMut(Delta<Epoch>)) -> bool {
        self.emit_all(fuel, emit, Running::collect_passed)
    }

    /// Emits what `collect` collects until it is full, and again; returns whether that was all.
    fn emit_all(
        &mut self,
        fuel: &mut Fuel,
        emit: &mut impl FnMut(Delta<Epoch>),
        collect: fn(&mut Running, InView, &mut EncodedDelta<Epoch>),
    ) -> bool {
        loop {
            let Some(running) = &mut self.running else { return true };
            collect(running, self.rule.in_view, &mut self.rows);
            if !self.rows.is_full() {
                return true;
            }
            fuel.consume(self.ship(emit));
            if !fuel.is_left() {
                return false;
            }
        }
    }

    /// Emits the collected rows; returns its bytes.
    fn ship(&mut self, emit: &mut impl FnMut(Delta<Epoch>)) -> usize {
        let delta = self.rows.decode(&self.layout, &self.columns);
        let bytes = delta.as_ref().map_or(0, Delta::bytes);
        delta.into_iter().for_each(emit);
        bytes
    }

    fn finish(&mut self) {
        let Some(running) = self.running.take() else { return };
        let upper = running.upper;
        self.lower = upper;
        self.bound = running.rises.last();
        if running.has_later {
            self.fresh.splice(0..0, running.fresh);
        }
        let since = match self.rule.in_view {
            InView::Below => upper,
            // Not to `upper`: rows from before it must keep earlier times than those at it.
            InView::From => upper - 1,
        };
        self.trace.set_logical_compaction(Antichain::from_elem(since).borrow());
    }
}

impl Running {
    /// Collects changes of rows that are in view, until `rows` are full.
    fn collect_arrivals(&mut self, in_view: InView, rows: &mut EncodedDelta<Epoch>) {
        let Running { lower, upper, rises, arrivals, has_later, .. } = self;
        while let Some(key) = arrivals.key() {
            let Some(value) = arrivals.val() else {
                arrivals.step_key();
                continue;
            };
            count_visit();
            arrivals.updates(|time, weight| {
                if time >= *upper {
                    *has_later = true;
                    return;
                }
                let shows = match in_view {
                    // A row that is passed in its own epoch is among the rows that come into view.
                    InView::Below => {
                        rises.before(time).is_some_and(|bound| bound.forgets(key, &[]))
                    }
                    InView::From => {
                        rises.behind(time).is_some_and(|bound| !bound.forgets(key, &[]))
                    }
                };
                if shows && time >= *lower {
                    rows.push(key, value, time, weight);
                }
            });
            arrivals.step_val();
            if rows.is_full() {
                break;
            }
        }
    }

    /// Collects the rows that come into view, or those that leave it with their weights taken back, until `rows` are full.
    fn collect_passed(&mut self, in_view: InView, rows: &mut EncodedDelta<Epoch>) {
        let Running { rises, is_first, done, passed, .. } = self;
        let all_come = *is_first && in_view == InView::From;
        while let Some(key) = passed.key() {
            let Some((epoch, bound)) = rises.steps().get(*done) else { break };
            if bound.forgets(key, &[]) == all_come {
                *done += 1;
                continue;
            }
            let Some(value) = passed.val() else {
                passed.step_key();
                continue;
            };
            count_visit();
            let weight = weight_in(passed, in_view, *epoch);
            let weight = if all_come { -weight } else { weight };
            if weight != 0 {
                rows.push(key, value, *epoch, weight);
            }
            passed.step_val();
            if rows.is_full() {
                break;
            }
        }
    }
}

/// By what the weight in view of the present row changes when the bound passes it in `epoch`.
fn weight_in(passed: &Cursors<Epoch>, in_view: InView, epoch: Epoch) -> i64 {
    let mut weight = 0;
    match in_view {
        InView::Below => passed.updates(|time, more| {
            if time <= epoch {
                weight = add(weight, more);
            }
        }),
        // Rows that come too late have never been in view.
        InView::From => passed.updates(|time, more| {
            if time < epoch {
                weight = add(weight, -more);
            }
        }),
    }
    match in_view == InView::Below && fault::armed(Fault::FinalTwice) {
        true => 2 * weight,
        false => weight,
    }
}

fn scan_from(
    batches: impl IntoIterator<Item = Batch<Epoch>>,
    bound: Option<Bound>,
) -> Cursors<Epoch> {
    let first = bound.and_then(|bound| bound.first_key());
    Cursors::scan_from(batches, first.as_ref().map_or(&[][..], |first| first.bytes()))
}

#[inline]
fn count_visit() {
    #[cfg(test)]
    VISITED.set(VISITED.get() + 1);
}
