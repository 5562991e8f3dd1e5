//! Seeded faults of this crate; see [`alluvium_trace::fault`].

use alluvium_trace::fault::FaultId;

pub(crate) use alluvium_trace::fault::armed;

/// A fault of this crate, which many clients at once would notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nobody is woken who waits for an epoch in a relation.
    LoseWaker,
    /// A relation is read before it has the epoch.
    ReadEarly,
    /// What reads a view that has failed does not fail.
    KeepReaders,
    /// A subscriber misses a change if others share its queue.
    MissChange,
    /// A subscriber gets changes that its snapshot has, too.
    RepeatChange,
    /// A kept plan takes the first literal for all of them.
    FirstLiteral,
    /// A plan is kept when there are other definitions.
    KeepPlans,
}

impl Fault {
    /// All of them.
    pub const ALL: [Fault; 7] = [
        Fault::LoseWaker,
        Fault::ReadEarly,
        Fault::KeepReaders,
        Fault::MissChange,
        Fault::RepeatChange,
        Fault::FirstLiteral,
        Fault::KeepPlans,
    ];

    /// Those that a single client notices, who never waits in vain.
    pub const WRONG: [Fault; 1] = [Fault::ReadEarly];
}

impl From<Fault> for FaultId {
    fn from(fault: Fault) -> Self {
        FaultId::new(192 + fault as u8)
    }
}
