//! Seeded faults of this crate; see [`alluvium_trace::fault`].

use alluvium_trace::fault::FaultId;

pub(crate) use alluvium_trace::fault::armed;

/// A fault of this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Rows with NULL keys match in a join.
    NullsMeet,
    /// A condition `a <= b` bounds `a` by what bounds `b`.
    BoundDownwards,
    /// The bound of `a` from `a + 1 >= b` is that of `b`.
    BoundWithoutOffset,
    /// A side of a join is pruned by its own bounds instead of those of what meets it.
    BoundOfOwnSide,
    /// The bound of rows that two streams change is that of the first.
    BoundOfFirst,
    /// Rows without a match are pruned like pairs.
    BoundOfPairs,
    /// Groups are pruned by a column that is not in their key.
    BoundOfMembers,
    /// All columns count as following from the key of a group.
    AllFollows,
    /// A row of a band join meets those of the last slot that its band touches.
    LastSlotOnly,
}

impl Fault {
    /// Those that make wrong results, and do not panic.
    pub const WRONG: [Fault; 9] = [
        Fault::NullsMeet,
        Fault::BoundDownwards,
        Fault::BoundWithoutOffset,
        Fault::BoundOfOwnSide,
        Fault::BoundOfFirst,
        Fault::BoundOfPairs,
        Fault::BoundOfMembers,
        Fault::AllFollows,
        Fault::LastSlotOnly,
    ];
}

impl From<Fault> for FaultId {
    fn from(fault: Fault) -> Self {
        FaultId::new(152 + fault as u8)
    }
}
