//! What the process uses, as the operating system counts it.

use procfs::process::Process;

use crate::error::Result;

/// Memory of the process, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    /// The most that was resident at a time.
    pub(crate) peak: u64,
    /// Resident now, and of no file.
    pub(crate) anonymous: u64,
    /// Resident now, and pages of files.
    pub(crate) file: u64,
}

/// Processor time that the process has used so far, in seconds.
pub(crate) fn processor_time() -> Result<f64> {
    let stat = Process::myself()?.stat()?;
    Ok((stat.utime + stat.stime) as f64 / procfs::ticks_per_second() as f64)
}

/// Memory that the process uses.
pub(crate) fn memory() -> Result<Memory> {
    let status = Process::myself()?.status()?;
    let bytes = |kibibytes: Option<u64>| kibibytes.unwrap_or(0) * 1024;
    Ok(Memory {
        peak: bytes(status.vmhwm),
        anonymous: bytes(status.rssanon),
        file: bytes(status.rssfile),
    })
}
