//! Which dataflow a panic or a [`Failure`](crate::Failure) comes from.
//!
//! Operators of many dataflows run on one thread, and unwinding passes through all of their callers. The work of a
//! dataflow [runs](Origin::run) in its name, which is recorded when it unwinds. Of several that are nested the
//! innermost counts: a view that lets a table's spine merge is not to blame for that. Nothing is done where nothing unwinds.

use std::cell::Cell;
use std::mem;

/// The dataflow that code belongs to, if it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin(Option<u64>);

thread_local! {
    /// Whose operators are being built on this thread.
    static BUILT: Cell<Origin> = const { Cell::new(Origin(None)) };
    /// Where the last unwinding on this thread came from.
    static UNWOUND: Cell<Option<u64>> = const { Cell::new(None) };
}

impl Origin {
    /// The dataflow of this number.
    pub fn of(dataflow: u64) -> Self {
        Self(Some(dataflow))
    }

    /// The dataflow that is being [built](Self::build) on this thread.
    pub fn here() -> Self {
        BUILT.get()
    }

    /// Builds operators and state that belong to this dataflow.
    pub fn build<R>(self, build: impl FnOnce() -> R) -> R {
        let _outer = Outer(BUILT.replace(self));
        build()
    }

    /// Runs work of this dataflow.
    #[inline(always)]
    pub fn run<R>(self, act: impl FnOnce() -> R) -> R {
        let unwinding = Unwinding(self);
        let result = act();
        mem::forget(unwinding);
        result
    }

    /// The number of the dataflow that the last unwinding on this thread came from, if it is known; once.
    pub fn take() -> Option<u64> {
        UNWOUND.take()
    }
}

/// Dropped only by unwinding.
struct Unwinding(Origin);

impl Drop for Unwinding {
    #[cold]
    fn drop(&mut self) {
        if UNWOUND.get().is_none() {
            UNWOUND.set(self.0.0);
        }
    }
}

/// The origin that was current before, also after a panic.
struct Outer(Origin);

impl Drop for Outer {
    fn drop(&mut self) {
        BUILT.set(self.0);
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
        let built = Origin::of(1).build(|| (Origin::of(2).build(Origin::here), Origin::here()));
        assert_eq!(built, (Origin::of(2), Origin::of(1)));
        assert_eq!(unwinds(|| Origin::of(3).build(|| Failure::raise("on command"))), None);
        assert_eq!(Origin::here(), Origin::default());
    }
}
