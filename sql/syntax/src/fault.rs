//! Seeded faults of this crate; see [`alluvium_trace::fault`].

use alluvium_trace::fault::FaultId;

pub use alluvium_trace::fault::armed;

/// A fault of this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A comparison of rows ends with their first values.
    FirstValueOnly,
}

impl Fault {
    /// Those that make wrong results, and do not panic.
    pub const WRONG: [Fault; 1] = [Fault::FirstValueOnly];
}

impl From<Fault> for FaultId {
    fn from(fault: Fault) -> Self {
        FaultId::new(136 + fault as u8)
    }
}
