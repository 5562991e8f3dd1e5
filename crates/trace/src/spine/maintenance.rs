//! The maintenance of a spine: which jobs begin, and the use of their results.

use std::mem;
use std::ops::Range;
use std::panic::resume_unwind;

use differential_dataflow::trace::BatchReader;
use timely::PartialOrder;

use super::Spine;
use super::job::MergeJob;
use super::policy::Reason;
use super::running::{self, Running};
use super::version::Layer;
use super::work::Task;
use crate::batch::Batch;
use crate::bound::Bound;
use crate::fault::{self, Fault};
use crate::schedule::Pace;
use crate::time::{MAXIMUM_LANES, PageTime};

/// How many bytes of a spine's jobs are done when its worker has nothing else to do, at first. The number doubles each
/// time.
pub(super) const FIRST_TICK: u64 = 64 << 10;

/// The most bytes that are done then: changes that come meanwhile wait as long.
const LAST_TICK: u64 = 1 << 20;

impl<T: PageTime> Spine<T> {
    /// Does all maintenance that the frontiers allow; none while the context is [closed].
    ///
    /// [closed]: crate::memory::StateContext::close
    pub(super) fn maintain(&mut self) {
        if self.context.is_closing() {
            return;
        }
        let origin = self.origin.clone();
        origin.run(|| self.maintain_all());
    }

    fn maintain_all(&mut self) {
        let mut has_changed = self.install_done();
        loop {
            while self.version.open_next(&self.physical) {
                self.has_new_layers = true;
                self.merge_by_size();
                has_changed = false;
            }
            if has_changed {
                self.merge_by_size();
            }
            self.merge_by_churn();
            self.merge_by_bound();
            self.spill();
            self.keep_pace();
            has_changed = self.install_done();
            if !has_changed {
                break;
            }
        }
        if self.jobs.is_empty() {
            self.waker.clear();
        } else if self.is_ticking() {
            self.waker.set();
        }
        self.report();
    }

    /// A batch is about to be inserted.
    pub(super) fn arrive(&mut self, batch: &Batch<T>) {
        if !batch.is_empty() {
            self.tick = FIRST_TICK;
            self.counters.inserted(batch.bytes());
            self.jobs.iter_mut().for_each(|job| job.insert(batch.bytes() as u64));
        }
    }

    /// Whether the spine must poll its jobs: no other thread does them, or none reports when they are done.
    fn is_ticking(&self) -> bool {
        self.context.compaction().is_none() || self.waker.any_thread().is_none()
    }

    /// Does slices of jobs that no other thread does, if the worker has nothing else to do or too much is waiting in all.
    pub(super) fn tick(&mut self) {
        let is_due = self.waker.is_missing() || self.waker.is_due();
        if self.jobs.is_empty() || !is_due || self.context.is_closing() {
            return;
        }
        let must_go_on = self.context.budget().is_nearly_overindebted();
        if self.context.compaction().is_none() && (!self.context.is_busy() || must_go_on) {
            self.jobs.iter().for_each(|job| job.advance(self.tick));
            self.tick = LAST_TICK.min(2 * self.tick);
        }
    }

    /// Merges layers until their sizes are in proportion, and those that look-ups have paid for, apart from those that jobs
    /// have.
    fn merge_by_size(&mut self) {
        for part in running::free(&self.jobs, self.version.open().len()) {
            let (start, mut end) = (part.start, part.end);
            if let Some(range) = self.policy.by_reads(&self.version.open()[part]) {
                end = start + range.start;
                self.merge(end..start + range.end, Reason::Reads);
            }
            while let Some(range) = self.policy.by_size(&self.version.open()[start..end]) {
                let range = start + range.start..start + range.end;
                end = range.start;
                self.merge(range, Reason::Size);
            }
        }
    }

    /// Merges the layers that logical compaction has passed, once enough of their updates may cancel.
    fn merge_by_churn(&mut self) {
        self.is_churn_due = false;
        // Its result says what may still cancel.
        if self.jobs.first().is_some_and(|job| job.layers.start == 0 && !job.is_spill) {
            return;
        }
        let layers = self.version.open();
        let is_passed = |layer: &&Layer<T>| {
            PartialOrder::less_equal(&layer.batch.upper().borrow(), &self.logical.borrow())
        };
        let passed = layers.iter().take_while(is_passed);
        if !self.policy.by_churn(passed.clone()) {
            return;
        }
        let count = passed.count();
        if self.jobs.first().is_some_and(|job| job.layers.start < count) {
            self.is_churn_due = true;
            return;
        }
        self.merge(0..count, Reason::Churn);
        // The rest may be small beside the layers that logical compaction has not passed.
        self.merge_by_size();
    }

    /// Drops the layers of which no row is needed, and writes those again of which a good part is not. The rest of these
    /// is needed, so it is not written again before the bound has passed a good part of it, too.
    fn merge_by_bound(&mut self) {
        let bound = self.bound();
        if bound == self.pruned && !self.has_new_layers {
            return;
        }
        (self.pruned, self.has_new_layers) = (bound, false);
        let Some(bound) = bound else { return };
        for part in running::free(&self.jobs, self.version.open().len()) {
            for layer in part {
                let Layer { batch, least, .. } = &self.version.open()[layer];
                let before = least.filter(|_| bound.last > 0);
                let Some(summary) = batch.summary() else { continue };
                if summary.is_below(&bound) {
                    self.counters.sought(batch.seeks());
                    let batch = batch.emptied();
                    self.install(layer..layer + 1, Layer::new(batch, 0));
                    self.context.install();
                } else if summary.is_partly_below(&bound, before) {
                    self.merge(layer..layer + 1, Reason::Bound);
                }
            }
        }
    }

    /// The bound of the rows that no reader needs any more.
    fn bound(&self) -> Option<Bound> {
        let pruning = self.context.pruning()?;
        let frontier = match fault::armed(Fault::ForgetReaders) {
            true => &self.upper,
            false => &self.logical,
        };
        let epoch = frontier.iter().map(|time| {
            let mut lanes = [0; MAXIMUM_LANES];
            time.store(&mut lanes[..T::LANES]);
            lanes[0]
        });
        let mut bound = pruning.bound(epoch.min()?)?;
        if fault::armed(Fault::PruneOneMore) {
            bound.least = bound.least.saturating_add(1);
        }
        Some(bound)
    }

    /// Replaces these open layers, of which there is at least one, by one: now or when the job is done.
    fn merge(&mut self, range: Range<usize>, reason: Reason) {
        let layers = &self.version.open()[range.clone()];
        let fresh: usize = layers.iter().map(|layer| layer.fresh).sum();
        let bound = self.bound();
        let is_below = |batch: &Batch<T>| {
            bound.is_some_and(|bound| batch.summary().is_some_and(|it| it.is_below(&bound)))
        };
        let needed = |layer: &Layer<T>| match is_below(&layer.batch) {
            true => layer.batch.emptied(),
            false => layer.batch.clone(),
        };
        let inputs = layers.iter().map(needed).collect();
        let job = MergeJob::new(inputs, self.logical.borrow(), bound);
        if let Some(batch) = job.trivial() {
            let fresh = fresh.min(batch.len());
            let full = layers.iter().find(|layer| !layer.batch.is_empty());
            let least = full.and_then(|layer| layer.least);
            self.install(range, Layer { batch, fresh, least });
            return;
        }
        self.counters.chosen(reason);
        // All updates that can cancel will.
        let fresh = if range.start == 0 && job.passes_all() { 0 } else { fresh };
        let least = bound.map(|bound| bound.least);
        self.begin(range, (fresh, least), Task::Merge(job), Some(reason));
    }

    /// Does a task at once, or begins a job of it: a merge for a reason, or a move to a file.
    fn begin(
        &mut self,
        layers: Range<usize>,
        (fresh, least): (usize, Option<i64>),
        task: Task<T>,
        reason: Option<Reason>,
    ) {
        let bytes = task.bytes();
        if self.is_at_once(bytes) {
            let is_spill = matches!(task, Task::Spill(_));
            let updates = || task.updates();
            let listed = self.counters.begin_compaction(reason, bytes, updates, None);
            let batch = task.run(&self.context);
            listed.into_iter().for_each(|listed| listed.end(batch.bytes()));
            self.replace(layers, Layer { batch, fresh, least }, is_spill);
        } else if !self.is_churn_due {
            let waker = self.waker.any_thread().cloned();
            let place = self.jobs.partition_point(|job| job.layers.start < layers.start);
            let job = Running::begin(
                layers,
                (fresh, least),
                (task, reason),
                &self.context,
                waker,
                &self.counters,
            );
            self.jobs.insert(place, job);
        }
    }

    /// Whether a job of so many bytes is done at once.
    fn is_at_once(&self, bytes: usize) -> bool {
        let schedule = self.context.schedule();
        self.context.compaction().is_none() && schedule.pace == Pace::AtOnce
            || bytes < schedule.smallest_job
    }

    /// Does the part of each job that is due.
    fn keep_pace(&self) {
        let budget = self.context.budget();
        let is_critical = budget.is_critical();
        let has_head_start = self.context.compaction().is_some() && !budget.is_indebted();
        for job in &self.jobs {
            match is_critical || budget.is_overindebted() {
                true => job.complete(),
                false => job.keep_pace(has_head_start),
            }
        }
    }

    /// Installs the results of jobs that are done. Whether there were any.
    fn install_done(&mut self) -> bool {
        let mut has_changed = false;
        while let Some(done) = self.jobs.iter().position(Running::is_done) {
            has_changed = true;
            let mut job = self.jobs.remove(done);
            self.has_new_layers = true;
            match job.take() {
                Some(Ok(batch)) => {
                    let layers = mem::take(&mut job.layers);
                    let (fresh, least) = (job.fresh, job.least);
                    job.listed.take().into_iter().for_each(|listed| listed.end(batch.bytes()));
                    self.replace(layers, Layer { batch, fresh, least }, job.is_spill);
                }
                // The inputs stay.
                Some(Err(caught)) => resume_unwind(caught),
                None => {}
            }
        }
        has_changed
    }

    /// Puts a result in the place of its inputs.
    fn replace(&mut self, layers: Range<usize>, layer: Layer<T>, is_spill: bool) {
        if !is_spill {
            self.counters.merged();
        }
        self.counters.written(layer.batch.bytes());
        let replaced = &self.version.open()[layers.clone()];
        self.counters.sought(replaced.iter().map(|layer| layer.batch.seeks()).sum());
        let fresh = layer.fresh.min(layer.batch.len());
        self.install(layers, Layer { fresh, ..layer });
        self.context.install();
    }

    /// Puts one layer in the place of these open ones, which no job has.
    fn install(&mut self, layers: Range<usize>, layer: Layer<T>) {
        for job in self.jobs.iter_mut().filter(|job| job.layers.start >= layers.end) {
            let fewer = layers.len() - 1;
            job.layers = job.layers.start - fewer..job.layers.end - fewer;
        }
        self.version.install(layers, layer);
        self.has_new_layers = true;
    }

    /// Moves layers to files, the largest first, while more memory is in use than should be.
    fn spill(&mut self) {
        let budget = self.context.budget().clone();
        if self.context.storage().is_none() {
            return;
        }
        // Other spines do the same, which may suffice. And a reader may keep alive what was moved, so that memory is
        // still short: no spine moves more than the excess it has seen.
        let (excess, mut moved) = (budget.excess_after_spills(), 0);
        while moved < excess && budget.is_over() {
            let smallest = budget.policy().smallest_file;
            let is_free = |layer| self.jobs.iter().all(|job| !job.layers.contains(&layer));
            let layers = self.version.open();
            let Some(layer) = self.policy.next_to_spill(layers, smallest, is_free) else {
                break;
            };
            let Layer { batch, fresh, least } = layers[layer].clone();
            moved += batch.bytes();
            self.begin(layer..layer + 1, (fresh, least), Task::Spill(batch), None);
        }
    }

    /// Updates the metrics.
    fn report(&self) {
        let mut held = [0; 4];
        for batch in self.version.batches().filter(|batch| !batch.is_empty()) {
            held[0] += batch.len();
            held[if batch.is_file() { 2 } else { 1 }] += batch.bytes();
            held[3] += 1;
        }
        self.counters.set(held);
        if let (Some(by), Some(bound)) = (self.context.pruning(), self.pruned) {
            let below = bound.first_key().map(|first| {
                let of = |batch: &Batch<T>| batch.updates_between(&[1], Some(first.bytes()));
                self.version.batches().map(of).sum::<usize>() as u64
            });
            self.counters.set_bound(by, bound.least, below);
        }
        self.counters.set_seeks(self.version.batches().map(Batch::seeks).sum());
        self.counters.set_jobs(self.jobs.len(), self.jobs.iter().map(Running::count_debt).sum());
    }
}
