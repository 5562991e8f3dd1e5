//! Deliberate faults, so that tests can show that they would be seen.
//!
//! Armed per thread, or in the whole process, and only where the feature `faults` is on; without it every question
//! is a constant `false`.

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
    /// A merge loses deletions.
    LoseRetraction,
    /// A merge skips a page that nothing else reaches into.
    SkipPage,
    /// Whoever reads a trace does not see its youngest batch.
    ForgetYoungest,
    /// One row in seven goes to the first worker, whatever its key.
    WrongWorker,
    /// A distinct row goes when one of its copies does.
    LeaveEarly,
    /// INTERSECT ALL gives each row once.
    IntersectOnce,
    /// Of several writes to a key in one epoch the first wins.
    FirstWriteWins,
    /// Errors stay when their causes are gone.
    KeepErrors,
    /// The last element of a list is left out when it is taken apart.
    LoseElement,
    /// A total takes a NULL for a value.
    CountNulls,
    /// The row of an aggregate of nothing stays when there is something.
    KeepDefault,
    /// Rows whose keys are NULL meet in a join.
    NullsMeet,
    /// An outer join does not give the rows of its left side that have no partner.
    NoLonelyRows,
}

impl Fault {
    /// Those that make wrong answers, and do not panic.
    pub const WRONG: [Fault; 23] = [
        Fault::JoinAtLeftTime,
        Fault::FirstTileOnly,
        Fault::LastTimeOnly,
        Fault::KeepOldAnswer,
        Fault::ForgetHistory,
        Fault::DropResidual,
        Fault::MissLastPartner,
        Fault::KeepNumbers,
        Fault::ForgetOldResults,
        Fault::IgnoreCopies,
        Fault::LoseRetraction,
        Fault::SkipPage,
        Fault::ForgetYoungest,
        Fault::WrongWorker,
        Fault::LeaveEarly,
        Fault::IntersectOnce,
        Fault::FirstWriteWins,
        Fault::KeepErrors,
        Fault::LoseElement,
        Fault::CountNulls,
        Fault::KeepDefault,
        Fault::NullsMeet,
        Fault::NoLonelyRows,
    ];
}

/// When a spine merges its layers: no fault, but what must not matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merging {
    /// As soon as one is small beside the next.
    InProportion,
    /// All of them, always.
    Always,
    /// Not for their sizes.
    Never,
}

#[cfg(feature = "faults")]
mod switch {
    use std::cell::Cell;
    use std::sync::atomic::{AtomicU8, Ordering};

    use super::Fault;

    /// The fault of the whole process, counted from one; zero is none.
    static EVERYWHERE: AtomicU8 = AtomicU8::new(0);
    /// How spines merge, all over the process.
    static MERGING: AtomicU8 = AtomicU8::new(0);

    /// Makes the operators of all threads make a mistake, or none. Two tests that do so cannot run at once.
    pub fn arm_everywhere(fault: Option<Fault>) {
        EVERYWHERE.store(fault.map_or(0, |fault| fault as u8 + 1), Ordering::Relaxed);
    }

    /// Makes all spines merge as they do, or in another way that has to come to the same.
    pub fn merge(merging: super::Merging) {
        MERGING.store(merging as u8, Ordering::Relaxed);
    }

    /// How spines merge.
    pub fn merging() -> super::Merging {
        match MERGING.load(Ordering::Relaxed) {
            0 => super::Merging::InProportion,
            1 => super::Merging::Always,
            _ => super::Merging::Never,
        }
    }

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
        ARMED.get() == Some(fault) || EVERYWHERE.load(Ordering::Relaxed) == fault as u8 + 1
    }
}

#[cfg(feature = "faults")]
pub use switch::{arm, arm_everywhere, armed, merge, merging, tile, tiled};

/// Whether this thread's operators are to make this mistake.
#[cfg(not(feature = "faults"))]
#[inline(always)]
pub fn armed(_fault: Fault) -> bool {
    false
}

/// How spines merge.
#[cfg(not(feature = "faults"))]
#[inline(always)]
pub fn merging() -> Merging {
    Merging::InProportion
}

/// Whether this thread's arrangements are to tile their batches.
#[cfg(not(feature = "faults"))]
#[inline(always)]
pub fn tiled() -> bool {
    false
}
