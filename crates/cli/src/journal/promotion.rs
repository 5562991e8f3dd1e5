//! Promotion of a standby: `alluvium promote` asks for it by a file in the state directory, and the server of that directory looks for the file.
//!
//! The file has one line. A promotion that is asked for has the process that asks. The standby answers by replacing the line: with the epoch, and
//! why sources have not started if they have not, or with what is wrong. Who asks removes the file.

use std::fs::{File, TryLockError};
use std::path::Path;
#[cfg(feature = "serve")]
use std::sync::Arc;
#[cfg(feature = "serve")]
use std::sync::atomic::{AtomicBool, Ordering};
#[cfg(feature = "serve")]
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};
use std::{fs, io, process, thread};

#[cfg(feature = "serve")]
use alluvium::Engine;
#[cfg(feature = "serve")]
use alluvium::unstable::{EngineParts, Promoted};

use crate::console;
use crate::process::status::Status;
use crate::shell;

/// The file's name in the state directory.
const NAME: &str = "promote";

/// The file that an engine which uses the directory holds locked.
const LOCK: &str = "lock";

/// How often both sides look at it.
const PULSE: Duration = Duration::from_millis(20);

/// How long a standby has to notice that it is asked.
const UNNOTICED: Duration = Duration::from_secs(10);

/// What a line begins with.
const ASKED: &str = "asked by ";
const TAKEN: &str = "taken by ";
const DONE: &str = "promoted after epoch ";
const REFUSED: &str = "refused: ";

/// Asks the standby of a state directory to take the place of the engine that it follows, and waits until it has.
pub(crate) fn promote(directory: &Path) -> Status {
    match ask(directory) {
        Ok(after) => {
            console::report(format_args!("the standby is promoted, after epoch {after}"));
            Status::SUCCESS
        }
        Err(what) => shell::status(Err(shell::failed(None, what))),
    }
}

fn ask(directory: &Path) -> Result<String, String> {
    let (path, shown) = (directory.join(NAME), directory.display());
    let failed = |error: io::Error| format!("the standby of \"{shown}\" cannot be asked: {error}");
    if !directory.join(LOCK).is_file() {
        return Err(format!("\"{shown}\" is no state directory"));
    }
    replace(directory, &format!("{ASKED}{}", process::id())).map_err(failed)?;
    let begun = Instant::now();
    loop {
        let line = fs::read_to_string(&path).map_err(failed)?;
        let answer = match (line.strip_prefix(DONE), line.strip_prefix(REFUSED)) {
            (Some(after), _) => Some(Ok(after.to_owned())),
            (_, Some(what)) => Some(Err(what.to_owned())),
            _ if line.starts_with(ASKED) && begun.elapsed() > UNNOTICED => Some(Err(format!(
                "no standby looks at \"{shown}\": start one, as alluvium serve --state {shown} --journal URL --follow NAME"
            ))),
            _ if line.starts_with(TAKEN)
                && !is_used(directory).map_err(failed)?
                && fs::read_to_string(&path).map_err(failed)? == line =>
            {
                Some(Err(format!(
                    "the standby of \"{shown}\" has ended before it was promoted, or before it could say so: start it without --follow to take the \
                     place of the writer, or with it to follow on"
                )))
            }
            _ => None,
        };
        if let Some(answer) = answer {
            fs::remove_file(&path).map_err(failed)?;
            return answer;
        }
        thread::sleep(PULSE);
    }
}

/// Whether a process uses a state directory.
fn is_used(directory: &Path) -> io::Result<bool> {
    let lock = File::open(directory.join(LOCK))?;
    match lock.try_lock_shared() {
        // It is let go of at once.
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn replace(directory: &Path, line: &str) -> io::Result<()> {
    let nascent = directory.join(format!(".{NAME}.{}.new", process::id()));
    fs::write(&nascent, line)?;
    fs::rename(nascent, directory.join(NAME))
}

/// Looks whether a standby is to be promoted, until this is dropped.
#[cfg(feature = "serve")]
pub(crate) struct Watching {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

#[cfg(feature = "serve")]
impl Watching {
    /// Says what is not there that a promotion needs, and begins to look.
    ///
    /// # Errors
    /// If a request that nobody waits for cannot be removed, or there is no thread.
    pub(crate) fn begin(engine: &Engine, directory: &Path) -> io::Result<Watching> {
        match fs::remove_file(directory.join(NAME)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        for what in engine.lacking() {
            console::report(format_args!(
                "warning: the standby could not read on if it were promoted now: {what}"
            ));
        }
        let is_over = Arc::<AtomicBool>::default();
        let run = {
            let (engine, directory) = (engine.clone(), directory.to_owned());
            let is_over = is_over.clone();
            move || watch(&engine, &directory, &is_over)
        };
        let thread = Builder::new().name("promotion".to_owned()).spawn(run)?;
        Ok(Watching { is_over, thread: Some(thread) })
    }
}

#[cfg(feature = "serve")]
impl Drop for Watching {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It has nothing to report.
            let _ = thread.join();
        }
    }
}

#[cfg(feature = "serve")]
fn watch(engine: &Engine, directory: &Path, is_over: &AtomicBool) {
    let is_asked =
        || fs::read_to_string(directory.join(NAME)).is_ok_and(|line| line.starts_with(ASKED));
    while !is_over.load(Ordering::Relaxed) {
        if is_asked() {
            // Who asks waits for as long as it takes. If the file cannot be written, the log tells.
            let _ = replace(directory, &format!("{TAKEN}{}", process::id()));
            let answer = match engine.promote() {
                Ok(Promoted { epoch, not_started: Some(error), .. }) => {
                    format!("{DONE}{epoch}, but its sources have not started: {error}")
                }
                Ok(Promoted { epoch, .. }) => format!("{DONE}{epoch}"),
                Err(error) => format!("{REFUSED}{error}"),
            };
            let _ = replace(directory, &answer);
        }
        thread::sleep(PULSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promotion_whose_standby_ends_is_waited_for_no_longer() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        let lock = File::create(directory.join(LOCK)).unwrap();
        lock.lock().unwrap();
        assert!(is_used(directory).unwrap());
        let answer = thread::scope(|scope| {
            let asked = scope.spawn(|| ask(directory));
            while !directory.join(NAME).exists() {
                thread::sleep(PULSE);
            }
            replace(directory, &format!("{TAKEN}1")).unwrap();
            thread::sleep(5 * PULSE);
            assert!(!asked.is_finished());
            lock.unlock().unwrap();
            asked.join().unwrap()
        });
        let what = answer.unwrap_err();
        assert!(what.contains("has ended before it was promoted"), "{what}");
        assert!(!directory.join(NAME).exists());
    }
}
