//! How much memory the process takes.

use std::fs;

/// What it takes now, and has taken at most, in bytes; `None` where the system does not tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    pub now: u64,
    pub peak: u64,
}

impl Memory {
    /// Asks the system.
    pub fn of_this_process() -> Option<Self> {
        let status = fs::read_to_string("/proc/self/status").ok()?;
        Some(Self { now: field(&status, "VmRSS:")?, peak: field(&status, "VmHWM:")? })
    }
}

/// A figure that is given in kB.
fn field(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    Some(1024 * line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_process_takes_some_memory_and_no_more_than_its_peak() {
        let memory = Memory::of_this_process().unwrap();
        assert!(memory.now > 1 << 20 && memory.now <= memory.peak, "{memory:?}");
    }
}
