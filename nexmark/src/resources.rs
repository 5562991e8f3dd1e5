//! What the process uses, as the operating system counts it.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

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

/// How often [`sampled`] looks.
const INTERVAL: Duration = Duration::from_millis(10);

/// The most that memory has grown since it was [sampled], in bytes: all that is resident, with pages of mapped files,
/// those of the program among them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Used {
    /// In all.
    pub(crate) most: u64,
    /// Of it, what is of no file.
    pub(crate) anonymous: u64,
    /// The most that was accounted for, at whatever time.
    pub(crate) accounted: u64,
}

/// Does `act`, and looks again and again at how much more memory the process has, on a thread of its own; `accounted` says
/// how many bytes are accounted for.
pub(crate) fn sampled<R>(
    accounted: impl Fn() -> u64 + Send,
    act: impl FnOnce() -> Result<R>,
) -> Result<(R, Used)> {
    let process = Process::myself()?;
    let page = procfs::page_size();
    // Of no file, and in all.
    let now = move || -> Result<(u64, u64)> {
        let memory = process.statm()?;
        Ok((memory.resident.saturating_sub(memory.shared) * page, memory.resident * page))
    };
    let start = now()?;
    let (running, ended) = channel::<()>();
    thread::scope(|scope| {
        let thread = scope.spawn(move || -> Result<Used> {
            let mut used = Used::default();
            while ended.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                let (anonymous, resident) = now()?;
                let most = resident.saturating_sub(start.1);
                if most > used.most {
                    used.most = most;
                    used.anonymous = anonymous.saturating_sub(start.0);
                }
                used.accounted = used.accounted.max(accounted());
            }
            Ok(used)
        });
        let done = act();
        drop(running);
        let used = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok((done?, used?))
    })
}
