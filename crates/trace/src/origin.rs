//! Which dataflow a panic or a [`Failure`](crate::Failure) comes from.
//!
//! Operators of many dataflows run on one thread, and unwinding passes through all of their callers. The work of a
//! dataflow [runs](Origin::run) in its name, which is recorded when it unwinds. Of several that are nested the
//! innermost counts: a view that lets a table's spine merge is not to blame for that. Nothing is done where nothing unwinds.
//!
//! The same holds for the time that work takes, which is the [operator's](Activity) whose it is.

use std::cell::{Cell, RefCell};
use std::mem;
use std::sync::Arc;

use crate::metrics::{Activity, Metrics, OperatorLabel};

/// The dataflow and the operator that code belongs to, if they are known.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    dataflow: Option<u64>,
    operator: Option<Arc<Activity>>,
}

thread_local! {
    /// Whose operators are being built on this thread.
    static BUILT: RefCell<Origin> = const { RefCell::new(Origin { dataflow: None, operator: None }) };
    /// Where the last unwinding on this thread came from.
    static UNWOUND: Cell<Option<u64>> = const { Cell::new(None) };
}

impl Origin {
    /// The dataflow of this number.
    pub fn of(dataflow: u64) -> Self {
        Self { dataflow: Some(dataflow), operator: None }
    }

    /// An operator of the same dataflow, whose work is counted by these metrics.
    #[must_use]
    pub fn operator(self, label: OperatorLabel, metrics: &Metrics) -> Self {
        let label = OperatorLabel { dataflow: self.dataflow, ..label };
        Self { operator: Some(metrics.open_operator(label)), ..self }
    }

    /// The dataflow, and the operator of it, that is being [built](Self::build) on this thread.
    pub fn here() -> Self {
        BUILT.with_borrow(Self::clone)
    }

    /// Builds operators and state that belong to this dataflow, and operator.
    pub fn build<R>(self, build: impl FnOnce() -> R) -> R {
        let _outer = Outer(BUILT.replace(self));
        build()
    }

    /// Runs work of this dataflow, and operator.
    #[inline(always)]
    pub fn run<R>(&self, act: impl FnOnce() -> R) -> R {
        let unwinding = Unwinding(self.dataflow);
        let run = self.operator.as_deref().and_then(Activity::begin);
        let result = act();
        if let Some(run) = run {
            run.end();
        }
        mem::forget(unwinding);
        result
    }

    /// Says the numbers of the operators of the dataflow that the operator reads, which are all that it reads.
    pub fn read(&self, inputs: Vec<usize>) {
        if let Some(operator) = &self.operator {
            operator.read(inputs);
        }
    }

    /// Counts updates that the operator produces, of so many bytes.
    #[inline]
    pub fn produce(&self, rows: usize, bytes: impl FnOnce() -> usize) {
        if let Some(operator) = &self.operator {
            operator.produce(rows, bytes);
        }
    }

    /// The number of the dataflow that the last unwinding on this thread came from, if it is known; once.
    pub fn take() -> Option<u64> {
        UNWOUND.take()
    }
}

/// Dropped only by unwinding.
struct Unwinding(Option<u64>);

impl Drop for Unwinding {
    #[cold]
    fn drop(&mut self) {
        if UNWOUND.get().is_none() {
            UNWOUND.set(self.0);
        }
    }
}

/// The origin that was current before, also after a panic.
struct Outer(Origin);

impl Drop for Outer {
    fn drop(&mut self) {
        BUILT.set(mem::take(&mut self.0));
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::Failure;

    fn unwinds(act: impl FnOnce()) -> Option<u64> {
        catch_unwind(AssertUnwindSafe(act)).expect_err("it unwinds");
        Origin::take()
    }

    #[test]
    fn the_innermost_dataflow_is_where_unwinding_comes_from() {
        let fails = || Failure::raise("on command");
        assert_eq!(unwinds(|| Origin::of(1).run(fails)), Some(1));
        assert_eq!(unwinds(|| Origin::of(1).run(|| Origin::of(2).run(fails))), Some(2));
        let after = || {
            Origin::of(1).run(|| {
                Origin::of(2).run(|| ());
                fails()
            })
        };
        assert_eq!(unwinds(after), Some(1), "what has returned is not to blame");
        assert_eq!(unwinds(|| Origin::of(1).run(|| Origin::default().run(fails))), Some(1));
        assert_eq!(unwinds(fails), None);
    }

    #[test]
    fn what_is_built_belongs_to_the_dataflow_that_is_built() {
        let here = || Origin::here().dataflow;
        let built = Origin::of(1).build(|| (Origin::of(2).build(here), here()));
        assert_eq!(built, (Some(2), Some(1)));
        assert_eq!(unwinds(|| Origin::of(3).build(|| Failure::raise("on command"))), None);
        assert_eq!(here(), None);
    }
}
