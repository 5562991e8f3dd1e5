//! Seeded faults of this crate; see [`alluvium_trace::fault`].

use alluvium_trace::fault::FaultId;

pub(crate) use alluvium_trace::fault::armed;

/// A fault of this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Threads that wait for an epoch in a relation are not woken.
    LoseWaker,
    /// A relation is read before it has the epoch.
    ReadEarly,
    /// Readers of a failed view do not fail.
    KeepReaders,
    /// A subscriber misses a change if others share its queue.
    MissChange,
    /// A subscriber gets changes that its snapshot has, too.
    RepeatChange,
    /// A kept plan takes the first literal for all of them.
    FirstLiteral,
    /// A plan is kept when there are other definitions.
    KeepPlans,
    /// Nothing that a transaction has read is validated.
    SkipValidation,
    /// Commits of others while a transaction is validated are not compared.
    SkipLastCommits,
    /// Views that a transaction has read are not validated.
    SkipViews,
    /// Rows that others have deleted are not among what they have written.
    SkipDeleted,
    /// A transaction moves to a later version though its reads differ there.
    MoveVersion,
    /// Each statement of a transaction reads the last version.
    ReadLast,
    /// A commit loses the changes of one of its tables.
    LoseTable,
    /// Late rows are sifted out of an UPDATE or DELETE.
    SiftChanges,
    /// A transaction does not see what it has deleted or inserted.
    HideWrites,
    /// ON CONFLICT does not see what the transaction has written before.
    MissConflicts,
    /// Rows of before that have a value which is UNIQUE are not found.
    MissValues,
}

impl Fault {
    /// Those that many clients notice.
    pub const ALL: [Fault; 7] = [
        Fault::LoseWaker,
        Fault::ReadEarly,
        Fault::KeepReaders,
        Fault::MissChange,
        Fault::RepeatChange,
        Fault::FirstLiteral,
        Fault::KeepPlans,
    ];

    /// Those of transactions, which a replay of their histories notices.
    pub const TRANSACTIONS: [Fault; 11] = [
        Fault::SkipValidation,
        Fault::SkipLastCommits,
        Fault::SkipViews,
        Fault::SkipDeleted,
        Fault::MoveVersion,
        Fault::ReadLast,
        Fault::LoseTable,
        Fault::SiftChanges,
        Fault::HideWrites,
        Fault::MissConflicts,
        Fault::MissValues,
    ];

    /// Those that a single client notices, who never waits in vain.
    pub const WRONG: [Fault; 1] = [Fault::ReadEarly];
}

impl From<Fault> for FaultId {
    fn from(fault: Fault) -> Self {
        FaultId::new(192 + fault as u8)
    }
}
