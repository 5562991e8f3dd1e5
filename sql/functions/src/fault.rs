//! Seeded faults of this crate; see [`alluvium_trace::fault`].

use alluvium_trace::fault::FaultId;

pub use alluvium_trace::fault::armed;

/// A fault of this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Of an hour that clocks show twice the first one is meant.
    FirstClock,
    /// For an hour after clocks are changed they show the time of before.
    LateClock,
}

impl Fault {
    /// Those that make wrong results, and do not panic.
    pub const WRONG: [Fault; 2] = [Fault::FirstClock, Fault::LateClock];
}

impl From<Fault> for FaultId {
    fn from(fault: Fault) -> Self {
        FaultId::new(128 + fault as u8)
    }
}
