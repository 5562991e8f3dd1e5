//! Seeded faults of this crate; see [`alluvium_trace::fault`].

use alluvium_trace::fault::FaultId;

pub use alluvium_trace::fault::armed;

/// A fault of this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The result of a subquery for rows outside with NULL does not meet them.
    NullsStayOutside,
    /// COUNT of a subquery without rows is NULL.
    CountNothingAsNull,
    /// A month has 30 days.
    MonthsOfThirtyDays,
}

impl Fault {
    /// Those that make wrong results, and do not panic.
    pub const WRONG: [Fault; 3] =
        [Fault::NullsStayOutside, Fault::CountNothingAsNull, Fault::MonthsOfThirtyDays];
}

impl From<Fault> for FaultId {
    fn from(fault: Fault) -> Self {
        FaultId::new(144 + fault as u8)
    }
}
