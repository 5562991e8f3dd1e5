//! The time that operators take, and the rows that they produce.
//!
//! # Design
//!
//! An operator runs in the name of its [`Origin`](crate::Origin), which has its [`Activity`]. To read the clock twice costs as much as
//! a good part of what an operator does for one row, so not all runs are measured: the thread that runs operators says
//! [which](measure), and for how many others each of them stands. Rows are counted in all runs.
//!
//! Runs are nested: a view lets the spine of a table merge. Each operator has the time that it takes itself, without those inside of
//! it, so the sum over all operators is the time in which any ran.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::recent::Recent;

/// The place of an operator, for people.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct OperatorLabel {
    /// The number of its dataflow, if it is part of one.
    pub dataflow: Option<u64>,
    /// The table, view or index that it computes.
    pub relation: String,
    /// Its number among the operators of the dataflow.
    pub number: usize,
    /// The operation, as plans name it.
    pub name: String,
    /// The fingerprint of its rows, in hexadecimal digits; empty if it has none.
    pub fingerprint: String,
}

/// What an operator has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// The time that it took, estimated from the runs that were measured.
    pub busy: Duration,
    /// How often it ran, estimated in the same way.
    pub runs: u64,
    /// How many updates it has produced.
    pub rows: u64,
    /// Their bytes in memory, estimated as well.
    pub bytes: u64,
}

impl Work {
    /// This work and other work.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            busy: self.busy + other.busy,
            runs: self.runs + other.runs,
            rows: self.rows + other.rows,
            bytes: self.bytes + other.bytes,
        }
    }

    /// The part of it that was done since an earlier moment.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            busy: self.busy.saturating_sub(earlier.busy),
            runs: self.runs.saturating_sub(earlier.runs),
            rows: self.rows.saturating_sub(earlier.rows),
            bytes: self.bytes.saturating_sub(earlier.bytes),
        }
    }
}

/// The work of one operator on one worker.
#[derive(Clone, Debug)]
pub struct OperatorMetrics {
    /// Which operator it is.
    pub label: OperatorLabel,
    /// All that it has done.
    pub all: Work,
    /// Its work of the last minute, more or less.
    pub minute: Work,
    /// All that the operators have done that it reads; `None` if it reads something else, or that is not known.
    pub inputs: Option<Work>,
}

/// The counters of an operator. One thread counts, any may read.
#[derive(Debug, Default)]
pub struct Activity {
    label: OperatorLabel,
    nanoseconds: AtomicU64,
    runs: AtomicU64,
    rows: AtomicU64,
    bytes: AtomicU64,
    past: Mutex<Recent<Work>>,
    /// The numbers of the operators of its dataflow that it reads, if these are all that it reads.
    inputs: OnceLock<Vec<usize>>,
}

impl Activity {
    fn new(label: OperatorLabel) -> Self {
        Self { label, ..Self::default() }
    }

    fn work(&self) -> Work {
        Work {
            busy: Duration::from_nanos(self.nanoseconds.load(Ordering::Relaxed)),
            runs: self.runs.load(Ordering::Relaxed),
            rows: self.rows.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
        }
    }

    /// Counts updates that the operator produces, of so many bytes.
    #[inline]
    pub(crate) fn produce(&self, rows: usize, bytes: impl FnOnce() -> usize) {
        add(&self.rows, rows as u64);
        let weight = WEIGHT.get();
        if weight > 0 {
            add(&self.bytes, weight * bytes() as u64);
        }
    }

    /// Says the numbers of the operators of its dataflow that it reads, which are all that it reads.
    pub(crate) fn read(&self, inputs: Vec<usize>) {
        // An operator is built once.
        let _ = self.inputs.set(inputs);
    }

    /// Adds time that was measured without a run, which counts for so many.
    pub fn spend(&self, time: Duration, weight: u64) {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        add(&self.nanoseconds, nanoseconds.saturating_mul(weight));
        add(&self.runs, weight);
    }

    /// A run begins; `None` if it is not measured.
    #[inline(always)]
    pub(crate) fn begin(&self) -> Option<Run<'_>> {
        match WEIGHT.get() {
            0 => None,
            weight => Some(self.begin_measured(weight)),
        }
    }

    #[cold]
    fn begin_measured(&self, weight: u64) -> Run<'_> {
        Run { activity: self, weight, outer: INNER.replace(Duration::ZERO), begun: Instant::now() }
    }
}

/// Adds to a counter that only this thread changes.
fn add(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
}

thread_local! {
    /// For how many runs one counts that is measured; 0 if none is.
    static WEIGHT: Cell<u64> = const { Cell::new(0) };
    /// The time of the runs that have ended inside of the present one, or of none.
    static INNER: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Measures the runs of operators on this thread from now on, each of which counts for so many; for 0, none.
pub fn measure(weight: u64) {
    WEIGHT.set(weight);
}

/// Takes the time of all measured runs on this thread since it was last called.
pub fn take_measured() -> Duration {
    INNER.take()
}

/// A run of an operator that is measured.
pub(crate) struct Run<'a> {
    activity: &'a Activity,
    weight: u64,
    /// The time of the runs before this one inside of the same outer run.
    outer: Duration,
    begun: Instant,
}

impl Run<'_> {
    /// The run has ended.
    #[cold]
    pub(crate) fn end(self) {
        let time = self.begun.elapsed();
        let inner = INNER.replace(self.outer + time);
        self.activity.spend(time.saturating_sub(inner), self.weight);
    }
}

/// The activities of the operators of one worker.
#[derive(Debug, Default)]
pub(crate) struct Activities {
    all: Mutex<Vec<Arc<Activity>>>,
}

impl Activities {
    /// A new one.
    pub(crate) fn open(&self, label: OperatorLabel) -> Arc<Activity> {
        let activity = Arc::new(Activity::new(label));
        let mut all = self.all.lock();
        if all.len() == all.capacity() {
            // Only this list has those whose operators were dropped.
            all.retain(|activity| Arc::strong_count(activity) > 1);
        }
        all.push(activity.clone());
        activity
    }

    /// Remembers the work up to now, if it is time to.
    pub(crate) fn note(&self, now: Instant) {
        for activity in &*self.all.lock() {
            activity.past.lock().note(now, activity.work());
        }
    }

    /// The work of all operators that are there, in the order in which they were made.
    pub(crate) fn list(&self, now: Instant) -> Vec<OperatorMetrics> {
        let all = self.all.lock();
        let present = || all.iter().filter(|activity| Arc::strong_count(activity) > 1);
        let place = |activity: &Activity| (activity.label.dataflow, activity.label.number);
        let works: HashMap<_, _> =
            present().map(|activity| (place(activity), activity.work())).collect();
        let metrics = |activity: &Arc<Activity>| {
            let all = activity.work();
            let minute = all.since(activity.past.lock().before(now));
            let work = |number: &usize| works.get(&(activity.label.dataflow, *number)).copied();
            let inputs = activity.inputs.get().and_then(|inputs| {
                inputs.iter().try_fold(Work::default(), |sum, input| Some(sum.and(work(input)?)))
            });
            OperatorMetrics { label: activity.label.clone(), all, minute, inputs }
        };
        present().map(metrics).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::thread::sleep;

    use super::*;

    fn spend(activity: &Activity, act: impl FnOnce()) {
        let run = activity.begin();
        act();
        run.into_iter().for_each(Run::end);
    }

    #[test]
    fn time_inside_of_another_run_is_counted_once() {
        let (outer, inner) = (Activity::default(), Activity::default());
        let wait = || sleep(Duration::from_millis(20));
        spend(&outer, wait);
        assert_eq!(outer.work(), Work::default(), "it is not measured");
        measure(3);
        let begun = Instant::now();
        spend(&outer, || {
            wait();
            spend(&inner, wait);
            spend(&inner, wait);
        });
        let all = begun.elapsed();
        measure(0);
        let (outer, inner) = (outer.work(), inner.work());
        assert_eq!((outer.runs, inner.runs), (3, 6));
        assert!(
            outer.busy >= Duration::from_millis(60) && inner.busy >= Duration::from_millis(120)
        );
        assert!(outer.busy + inner.busy <= 3 * all);
        assert!(take_measured() <= all && take_measured() == Duration::ZERO);
    }

    #[test]
    fn the_last_minute_is_told_apart_from_all() {
        let activities = Activities::default();
        let activity = activities.open(OperatorLabel { number: 7, ..Default::default() });
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        for second in 0..100 {
            activity.produce(1, || 8);
            activities.note(after(second));
        }
        let [metrics] = &activities.list(after(100))[..] else { panic!("there is one") };
        assert_eq!((metrics.label.number, metrics.all.rows), (7, 100));
        assert!((59..=70).contains(&metrics.minute.rows), "{}", metrics.minute.rows);
        let later = &activities.list(after(1000))[0];
        assert!(later.minute.rows < 10, "{}", later.minute.rows);
        drop(activity);
        assert!(activities.list(after(100)).is_empty());
    }

    #[test]
    fn operators_know_what_those_that_they_read_have_done() {
        let activities = Activities::default();
        let open = |dataflow, number| {
            activities.open(OperatorLabel {
                dataflow: Some(dataflow),
                number,
                ..Default::default()
            })
        };
        let (first, second, other) = (open(1, 0), open(1, 1), open(2, 0));
        first.produce(3, || 8);
        other.produce(5, || 8);
        second.read(vec![0, 0]);
        other.read(vec![7]);
        let rows = |it: &OperatorMetrics| it.inputs.map(|inputs| inputs.rows);
        let inputs: Vec<_> = activities.list(Instant::now()).iter().map(rows).collect();
        assert_eq!(inputs, [None, Some(6), None]);
        drop((first, second, other));
    }
}
