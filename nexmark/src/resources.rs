//! Resources of the process, as reported by the operating system.

use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use procfs::process::{MMapPath, Process};

use crate::error::Result;

/// Memory of the process, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// The peak of resident memory.
    pub peak: u64,
    /// Anonymous resident memory.
    pub anonymous: u64,
    /// Resident pages of files.
    pub file: u64,
}

/// The processor time of the process so far, in seconds.
pub fn processor_time() -> Result<f64> {
    let stat = Process::myself()?.stat()?;
    Ok((stat.utime + stat.stime) as f64 / procfs::ticks_per_second() as f64)
}

/// The memory of the process.
pub fn memory() -> Result<Memory> {
    let status = Process::myself()?.status()?;
    let bytes = |kibibytes: Option<u64>| kibibytes.unwrap_or(0) * 1024;
    Ok(Memory {
        peak: bytes(status.vmhwm),
        anonymous: bytes(status.rssanon),
        file: bytes(status.rssfile),
    })
}

/// The sampling interval of [`sampled`].
const INTERVAL: Duration = Duration::from_millis(10);

/// The largest growth of resident memory while it was [sampled], in bytes: anonymous memory, and pages of files
/// mapped since the start.
#[derive(Clone, Copy, Debug, Default)]
pub struct Used {
    /// The growth in total.
    pub most: u64,
    /// The anonymous part of it.
    pub anonymous: u64,
    /// The largest number of bytes accounted for, not necessarily at the same time.
    pub accounted: u64,
}

/// Calls `act`, while a separate thread samples the growth of the process's memory, and the number of bytes that
/// `accounted` returns.
pub fn sampled<R>(
    accounted: impl Fn() -> u64 + Send,
    act: impl FnOnce() -> Result<R>,
) -> Result<(R, Used)> {
    let process = Process::myself()?;
    let page = procfs::page_size();
    // Anonymous, and in total.
    let now = move || -> Result<(u64, u64)> {
        let memory = process.statm()?;
        Ok((memory.resident.saturating_sub(memory.shared) * page, memory.resident * page))
    };
    let program = Program::now()?;
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
        let (done, mut used) = (done?, used?);
        // Pages of the program that became resident after the peak count as well: rather too little than too much.
        used.most = used.most.saturating_sub(program.grown()?);
        Ok((done, used))
    })
}

/// The pages of the program and its libraries, which become resident when first used.
struct Program {
    process: Process,
    files: Vec<PathBuf>,
    /// The bytes of them that were resident at the start.
    first: u64,
}

impl Program {
    /// All files mapped now belong to the program.
    fn now() -> Result<Self> {
        let process = Process::myself()?;
        let maps = process.maps()?;
        let file = |path| if let MMapPath::Path(path) = path { Some(path) } else { None };
        let files = maps.into_iter().filter_map(|map| file(map.pathname)).collect();
        let mut program = Self { process, files, first: 0 };
        program.first = program.resident()?;
        Ok(program)
    }

    /// The growth in bytes. The system looks at all pages of the process, ten milliseconds per gigabyte, and no thread
    /// gets memory meanwhile: this is not for the time in which latency is measured.
    fn grown(&self) -> Result<u64> {
        Ok(self.resident()?.saturating_sub(self.first))
    }

    fn resident(&self) -> Result<u64> {
        let mut bytes = 0;
        for map in self.process.smaps()? {
            if matches!(&map.pathname, MMapPath::Path(path) if self.files.contains(path)) {
                let of = |name| map.extension.map.get(name).copied().unwrap_or(0);
                // Pages that were written to are no longer pages of the file.
                bytes += of("Rss").saturating_sub(of("Anonymous"));
            }
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn allocated_memory_is_sampled_and_the_accounted_bytes_are_recorded() {
        let samples = AtomicU64::new(0);
        let accounted = || {
            samples.fetch_add(1, Ordering::SeqCst);
            7
        };
        let allocate = || {
            let bytes = vec![1u8; 64 << 20];
            // The second sample from now on starts after the allocation.
            let enough = samples.load(Ordering::SeqCst) + 2;
            while samples.load(Ordering::SeqCst) < enough {
                thread::yield_now();
            }
            Ok(bytes.len())
        };
        let (allocated, used) = sampled(accounted, allocate).expect("the system reports memory");
        // Other tests may release some memory at the same time.
        let least = allocated as u64 / 2;
        assert!(used.most >= least && used.anonymous >= least, "{used:?}");
        assert_eq!(used.accounted, 7);
    }

    #[test]
    fn the_program_has_pages() {
        let program = Program::now().expect("the system reports mappings");
        assert!(program.first > 0);
        let grown = program.grown().expect("the system reports mappings");
        assert!(grown < program.resident().expect("the system reports mappings"));
    }
}
