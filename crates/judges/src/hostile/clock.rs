//! The time that something takes, independent of the rest of the machine.

use std::time::{Duration, Instant};

/// How often a clock has to be [read](Clock::read).
pub(super) const LOOK: Duration = Duration::from_millis(20);

/// Measures what a process would take on a processor of its own: its processor time, all threads together, and the time
/// that it only waits, with no thread that runs, is ready to, or waits for a disk.
///
/// Beside other work a process has the same processor time, later, and its threads are ready for longer. So a limit on this
/// holds on a busy machine as it does on an idle one, and also ends what waits for something that never happens.
pub(super) struct Clock {
    process: Process,
    /// The processor time when the clock began.
    began: Duration,
    waited: Duration,
    last: Instant,
}

impl Clock {
    /// A clock for this process, read by one of its threads.
    pub(super) fn here() -> Self {
        Self::new(Process { id: None })
    }

    /// A clock for another process.
    pub(super) fn of(id: u32) -> Self {
        Self::new(Process { id: Some(id) })
    }

    fn new(process: Process) -> Self {
        let began = process.processor_time();
        Self { process, began, waited: Duration::ZERO, last: Instant::now() }
    }

    /// The time since the clock began. Waiting counts only if the clock is read every [`LOOK`], and up to twice as much
    /// from one time to the next: the thread that reads it may have waited for a processor, too.
    pub(super) fn read(&mut self) -> Duration {
        let since = self.last.elapsed();
        if since >= LOOK / 2 {
            self.last = Instant::now();
            if self.process.is_waiting() {
                self.waited += since.min(2 * LOOK);
            }
        }
        self.process.processor_time().saturating_sub(self.began) + self.waited
    }
}

/// This process, or the one with an id.
struct Process {
    id: Option<u32>,
}

#[cfg(target_os = "linux")]
impl Process {
    fn open(&self) -> procfs::ProcResult<procfs::process::Process> {
        use procfs::process::Process;
        self.id.map_or_else(Process::myself, |id| Process::new(id as i32))
    }

    /// The processor time until now, of threads that have ended too; zero once the process has ended.
    fn processor_time(&self) -> Duration {
        let stat = self.open().and_then(|process| process.stat());
        let ticks = stat.map_or(0, |stat| stat.utime + stat.stime);
        Duration::from_secs(ticks) / procfs::ticks_per_second() as u32
    }

    /// Whether no thread runs, is ready to, or waits for a disk, but the one that reads the clock of its own process.
    fn is_waiting(&self) -> bool {
        let Ok(threads) = self.open().and_then(|process| process.tasks()) else { return true };
        let stats = threads.flatten().filter_map(|thread| thread.stat().ok());
        let busy = stats.filter(|stat| matches!(stat.state, 'R' | 'D')).count();
        busy <= usize::from(self.id.is_none())
    }
}

/// Without threads to look at, a process waits whenever it does not run.
#[cfg(not(target_os = "linux"))]
impl Process {
    fn processor_time(&self) -> Duration {
        Duration::ZERO
    }

    fn is_waiting(&self) -> bool {
        true
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::{Child, Command};
    use std::thread::sleep;

    use super::*;

    /// A shell that runs a program until this is dropped.
    struct Shell(Child);

    impl Shell {
        fn run(program: &str) -> Self {
            Self(Command::new("sh").args(["-c", program]).spawn().expect("there is a shell"))
        }

        fn clock(&self) -> Clock {
            Clock::of(self.0.id())
        }
    }

    impl Drop for Shell {
        fn drop(&mut self) {
            // It may have ended.
            let _ = self.0.kill().and_then(|()| self.0.wait());
        }
    }

    const WORK: &str = "while :; do :; done";
    const WAIT: &str = "exec sleep 1000";

    #[test]
    fn work_and_waits_count() {
        for program in [WORK, WAIT] {
            let shell = Shell::run(program);
            let mut clock = shell.clock();
            // If they did not, this would not end.
            while clock.read() < Duration::from_millis(100) {
                sleep(LOOK);
            }
        }
    }

    #[test]
    fn a_wait_for_a_processor_does_not_count() {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let shells: Vec<Shell> = (0..4 * processors).map(|_| Shell::run(WORK)).collect();
        let (mut clock, start) = (shells[0].clock(), Instant::now());
        while start.elapsed() < Duration::from_millis(500) {
            clock.read();
            sleep(LOOK);
        }
        // A quarter of the time was its own, or less.
        let (shown, passed) = (clock.read(), start.elapsed());
        assert!(shown < passed * 7 / 10, "{shown:?} of {passed:?}");
    }
}
