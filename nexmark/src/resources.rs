//! What the process uses, as the operating system counts it.

use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use procfs::process::{MMapPath, Process};

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

/// When the pages of the program are looked at for the first time: that takes ten milliseconds for a gigabyte that the
/// process has.
const FIRST_LOOK: Duration = Duration::from_secs(1);

/// The most that memory has grown since it was [sampled], in bytes: what is resident of no file, and pages of files that
/// were mapped since.
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
    let mut program = Program::now()?;
    let start = now()?;
    let (running, ended) = channel::<()>();
    thread::scope(|scope| {
        let thread = scope.spawn(move || -> Result<Used> {
            let mut used = Used::default();
            while ended.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                let (anonymous, resident) = now()?;
                let most = resident.saturating_sub(start.1 + program.grown()?);
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

/// The pages of the program and its libraries, more and more of which are resident as they are needed.
struct Program {
    process: Process,
    files: Vec<PathBuf>,
    /// How many bytes of them were resident at first.
    first: u64,
    begun: Instant,
    /// How many more there were at the last look, and how long after the first one the next is due.
    grown: u64,
    due: Duration,
}

impl Program {
    /// The program is what is mapped now.
    fn now() -> Result<Self> {
        let process = Process::myself()?;
        let maps = process.maps()?;
        let file = |path| if let MMapPath::Path(path) = path { Some(path) } else { None };
        let files = maps.into_iter().filter_map(|map| file(map.pathname)).collect();
        let (begun, due) = (Instant::now(), FIRST_LOOK);
        let mut program = Self { process, files, first: 0, begun, grown: 0, due };
        program.first = program.resident()?;
        Ok(program)
    }

    /// By how many bytes it has grown. To look takes time, so this is done at ever longer intervals; in between the
    /// answer is too small rather than too large.
    fn grown(&mut self) -> Result<u64> {
        if self.begun.elapsed() >= self.due {
            self.due *= 4;
            self.grown = self.resident()?.saturating_sub(self.first);
        }
        Ok(self.grown)
    }

    fn resident(&self) -> Result<u64> {
        let mut bytes = 0;
        for map in self.process.smaps()? {
            if matches!(&map.pathname, MMapPath::Path(path) if self.files.contains(path)) {
                let of = |name| map.extension.map.get(name).copied().unwrap_or(0);
                // What was written to is no longer of the file.
                bytes += of("Rss").saturating_sub(of("Anonymous"));
            }
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_allocated_is_seen_and_accounted_for_as_told() {
        let allocate = || {
            let bytes = vec![1u8; 64 << 20];
            thread::sleep(20 * INTERVAL);
            Ok(bytes.len())
        };
        let (allocated, used) =
            sampled(|| 7, allocate).expect("the system tells what a process has");
        // Other tests may let go of some meanwhile.
        let least = allocated as u64 / 2;
        assert!(used.most >= least && used.anonymous >= least, "{used:?}");
        assert_eq!(used.accounted, 7);
    }

    #[test]
    fn the_program_has_pages() {
        let mut program = Program::now().expect("the system tells what is mapped");
        assert!(program.first > 0);
        program.due = Duration::ZERO;
        assert!(program.grown().expect("it still does") < program.resident().expect("and does"));
    }
}
