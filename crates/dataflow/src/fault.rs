//! Deliberate faults, so that tests can show that they would be seen.
//!
//! Armed per thread, and only where the feature `faults` is on; without it every question is a
//! constant `false`.

/// A mistake an operator can be told to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A map panics.
    PanicInMap,
    /// A join or a reduction panics.
    PanicInTactic,
    /// The end of a dataflow, where changes leave it, panics.
    PanicInSink,
    /// A pair changes at its left time, not at the later of both.
    JoinAtLeftTime,
    /// A reduction looks at the first of the batches that arrive together only.
    FirstTileOnly,
    /// A reduction answers for the last time of a key only.
    LastTimeOnly,
    /// A reduction takes nothing of its previous answer back.
    KeepOldAnswer,
    /// A reduction overlooks what its input held before.
    ForgetHistory,
    /// A join takes all pairs that agree on their keys for partners.
    DropResidual,
    /// One partner, or one copy of a row on the other side, counts for none.
    MissLastPartner,
    /// The first rows of a group do not shift when a row among them comes or goes.
    KeepNumbers,
    /// What comes of a group is put out without what came of it before being taken back.
    ForgetOldResults,
    /// A row that is there several times is evaluated once.
    IgnoreCopies,
}

#[cfg(feature = "faults")]
mod switch {
    use std::cell::Cell;

    use super::Fault;

    thread_local! {
        static ARMED: Cell<Option<Fault>> = const { Cell::new(None) };
        static TILED: Cell<bool> = const { Cell::new(false) };
    }

    /// Makes the arrangements of this thread put out a batch for each time they have seen, where they
    /// would put out one: no fault, but what an upstream tactic may do to its readers.
    pub fn tile(tiled: bool) {
        TILED.set(tiled);
    }

    /// Whether this thread's arrangements are to tile their batches.
    #[inline]
    pub fn tiled() -> bool {
        TILED.get()
    }

    /// Makes the operators of this thread make a mistake, or none.
    pub fn arm(fault: Option<Fault>) {
        ARMED.set(fault);
    }

    /// Whether this thread's operators are to make this mistake.
    #[inline]
    pub fn armed(fault: Fault) -> bool {
        ARMED.get() == Some(fault)
    }
}

#[cfg(feature = "faults")]
pub use switch::{arm, armed, tile, tiled};

/// Whether this thread's operators are to make this mistake.
#[cfg(not(feature = "faults"))]
#[inline(always)]
pub fn armed(_fault: Fault) -> bool {
    false
}

/// Whether this thread's arrangements are to tile their batches.
#[cfg(not(feature = "faults"))]
#[inline(always)]
pub fn tiled() -> bool {
    false
}
