//! Seeded faults: deliberate mistakes, so that tests can show that they would be noticed.
//!
//! Every crate lists its own faults in an enum and asks [`armed`] where it would make the mistake. At most one fault is
//! armed, on a thread or in the whole process, and only where the feature `faults` is on. Without it [`armed`] is a
//! constant `false`.

/// Identifies a fault among those of all crates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultId(u8);

impl FaultId {
    /// The fault of a number. Crates number their faults so that no two have the same: this one from 1 on.
    pub const fn new(number: u8) -> Self {
        FaultId(number)
    }
}

/// A fault of this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A merge drops retractions.
    LoseRetraction,
    /// A merge skips a page that overlaps no other source.
    SkipPage,
    /// Readers of a trace do not see its youngest batch.
    ForgetYoungest,
    /// A merge drops the rows at its bound, too.
    PruneOneMore,
    /// A trace drops what later changes do not need, though readers have earlier ones to come.
    ForgetReaders,
    /// A batch is dropped when about half of it is below the bound.
    DropHalfBatch,
    /// Of the last rows below a bound, a merge keeps one less than are needed.
    KeepOneLess,
}

impl Fault {
    /// Those that make wrong results, and do not panic.
    pub const WRONG: [Fault; 7] = [
        Fault::LoseRetraction,
        Fault::SkipPage,
        Fault::ForgetYoungest,
        Fault::PruneOneMore,
        Fault::ForgetReaders,
        Fault::DropHalfBatch,
        Fault::KeepOneLess,
    ];
}

impl From<Fault> for FaultId {
    fn from(fault: Fault) -> Self {
        FaultId::new(1 + fault as u8)
    }
}

#[cfg(feature = "faults")]
mod registry {
    use std::cell::Cell;
    use std::sync::atomic::{AtomicU8, Ordering};

    use super::FaultId;

    /// The fault of the whole process; zero for none.
    static EVERYWHERE: AtomicU8 = AtomicU8::new(0);

    thread_local! {
        static ARMED: Cell<Option<FaultId>> = const { Cell::new(None) };
    }

    /// Arms a fault in the whole process, or none. Two tests that do so cannot run at once.
    pub fn arm_everywhere(fault: Option<FaultId>) {
        EVERYWHERE.store(fault.map_or(0, |fault| fault.0), Ordering::Relaxed);
    }

    /// Arms a fault on this thread, or none.
    pub fn arm(fault: Option<FaultId>) {
        ARMED.set(fault);
    }

    /// The fault that is armed on this thread.
    pub(crate) fn current() -> Option<FaultId> {
        ARMED.get()
    }

    /// Runs `act` with this fault armed on this thread: work that the thread does for another.
    pub(crate) fn with<R>(fault: Option<FaultId>, act: impl FnOnce() -> R) -> R {
        let before = ARMED.replace(fault);
        let result = act();
        ARMED.set(before);
        result
    }

    /// Whether code on this thread makes this mistake.
    #[inline]
    pub fn armed(fault: impl Into<FaultId>) -> bool {
        let fault = fault.into();
        ARMED.get() == Some(fault) || EVERYWHERE.load(Ordering::Relaxed) == fault.0
    }
}

#[cfg(feature = "faults")]
pub use registry::{arm, arm_everywhere, armed};
#[cfg(feature = "faults")]
pub(crate) use registry::{current, with};

/// Whether code on this thread makes this mistake.
#[cfg(not(feature = "faults"))]
#[inline(always)]
pub fn armed(_fault: impl Into<FaultId>) -> bool {
    false
}

/// The fault that is armed on this thread.
#[cfg(not(feature = "faults"))]
#[inline(always)]
pub(crate) fn current() -> Option<FaultId> {
    None
}

/// Runs `act` with this fault armed on this thread.
#[cfg(not(feature = "faults"))]
#[inline(always)]
pub(crate) fn with<R>(_fault: Option<FaultId>, act: impl FnOnce() -> R) -> R {
    act()
}
