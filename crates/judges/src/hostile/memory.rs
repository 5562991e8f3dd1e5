//! Resident memory, as the system reports it.

use std::fs;

/// The resident memory of a process in bytes, now; `None` if it has ended.
pub(super) fn resident(process: &str) -> Option<u64> {
    field(process, "VmRSS:")
}

/// The most that has been resident since [`forget_peak`].
pub(super) fn peak() -> Option<u64> {
    field("self", "VmHWM:")
}

/// Begins to measure a new peak.
pub(super) fn forget_peak() {
    // Where the system does not have this, the peak is that of the process.
    let _ = fs::write("/proc/self/clear_refs", "5");
}

fn field(process: &str, name: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    // The system reports multiples of 1024 bytes.
    line.trim().trim_end_matches(" kB").parse::<u64>().ok().map(|kib| kib << 10)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_at_least_what_is_resident() {
        forget_peak();
        assert!(resident("self").is_some_and(|now| now > 1 << 20));
        assert!(peak() > Some(1 << 20));
    }
}
