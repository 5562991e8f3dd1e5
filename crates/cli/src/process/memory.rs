//! The resident memory of the process.

use procfs::process::Process;

/// Resident memory in bytes, now and at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Memory {
    pub(crate) now: u64,
    pub(crate) peak: u64,
}

impl Memory {
    /// The memory of this process; `None` if the system does not report it.
    pub(crate) fn of_this_process() -> Option<Self> {
        let status = Process::myself().ok()?.status().ok()?;
        // The system reports multiples of 1024 bytes.
        Some(Self { now: 1024 * status.vmrss?, peak: 1024 * status.vmhwm? })
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_process_has_resident_memory_up_to_its_peak() {
        let memory = Memory::of_this_process().unwrap();
        assert!(memory.now > 1 << 20 && memory.now <= memory.peak, "{memory:?}");
    }
}
