//! The state directory.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use alluvium_storage::disk::platform;
use alluvium_storage::{
    ClaimedStorage, Elsewhere, FileJournal, FileManifests, Followed, Journal, LocalStorage,
    Manifests,
};

use super::{damage, elsewhere, known_end};
use crate::error::{Error, Result};

/// The file that the engine which uses the directory holds locked. It has the number of its process, and on a second line the address of the
/// server that it is the engine of.
pub(crate) const LOCK: &str = "lock";

/// How long an engine of the same process, whose last thread may be about to end, is waited for.
const ENDING: Duration = Duration::from_secs(2);

/// The folder of the journal.
pub(crate) const JOURNAL: &str = "journal";

/// The folder of manifests.
pub(crate) const MANIFESTS: &str = "manifests";

/// The folder of batches.
pub(crate) const BLOBS: &str = "blobs";

/// The folder of copies that were made before the last records were cut off.
pub(crate) const ASIDE: &str = "aside";

/// A directory with the state of one engine, which no other engine uses meanwhile.
///
/// ```text
/// DIR/lock         the number of the process that uses it
/// DIR/journal/     the journal's segments
/// DIR/manifests/   what belongs to each checkpoint
/// DIR/blobs/       batches, of checkpoints and of the running engine
/// DIR/end          how far the journal goes, left by the last engine
/// DIR/aside/       copies with records that were cut off
/// DIR/journal.url  which journal it belongs to, if that is not in it
/// ```
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    /// The journal of the engine that has started.
    journal: OnceLock<Arc<dyn Journal>>,
    /// Held locked. The operating system releases it when the process ends, however it ends.
    _lock: File,
}

impl Directory {
    /// Takes a directory, which is created if it is missing.
    pub(crate) fn acquire(path: &Path) -> Result<Self> {
        let failed = |what: &str, error: std::io::Error| {
            start(format!("the state directory \"{}\" {what}: {error}", path.display()))
        };
        create(path).map_err(|error| failed("cannot be created", error))?;
        if let Some(other) = foreign(path).map_err(|error| failed("cannot be read", error))? {
            return Err(start(format!(
                "\"{}\" is no state directory, and has other files, such as \"{other}\": name an empty directory, or one that \
                 does not exist",
                path.display()
            )));
        }
        let mut lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(path.join(LOCK))
            .map_err(|error| failed("cannot be locked", error))?;
        take(path, &mut lock, File::try_lock).map_err(start)?;
        let write = |lock: &mut File| {
            lock.set_len(0)?;
            lock.rewind()?;
            writeln!(lock, "{}", process::id())
        };
        write(&mut lock).map_err(|error| failed("cannot be locked", error))?;
        Ok(Self { path: path.to_owned(), journal: OnceLock::new(), _lock: lock })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// An engine has started, which leaves word of how far its journal goes when it ends.
    pub(crate) fn started(&self, journal: Arc<dyn Journal>) {
        // It starts once.
        let _ = self.journal.set(journal);
    }

    /// Opens its contents, with the journal that is there if it is not in the directory.
    pub(crate) fn open(&self, elsewhere: Option<&dyn Elsewhere>) -> Result<Store> {
        let failed = |error: alluvium_storage::Error| start(damage::of_storage(&error));
        let journal = match elsewhere::open(&self.path, elsewhere)? {
            Some(journal) => journal,
            None => {
                let known = known_end::of(&self.path);
                let own = FileJournal::open_known(self.path.join(JOURNAL), &known);
                Arc::new(own.map_err(failed)?)
            }
        };
        self.with(journal)
    }

    /// Opens its contents, with a journal that another engine writes to. Returns that too, with its identity.
    pub(crate) fn follow(
        &self,
        elsewhere: &dyn Elsewhere,
        follower: &str,
    ) -> Result<(Store, String, Arc<dyn Followed>)> {
        let (identity, journal) = elsewhere::follow(&self.path, elsewhere, follower)?;
        Ok((self.with(journal.clone())?, identity, journal))
    }

    fn with(&self, journal: Arc<dyn Journal>) -> Result<Store> {
        let failed = |error: alluvium_storage::Error| start(damage::of_storage(&error));
        let manifests = FileManifests::open(self.path.join(MANIFESTS)).map_err(failed)?;
        let blobs = LocalStorage::open_exclusive(self.path.join(BLOBS)).map_err(failed)?;
        let blobs = ClaimedStorage::open(Arc::new(blobs)).map_err(failed)?;
        Ok(Store { journal, manifests: Arc::new(manifests), blobs: Arc::new(blobs) })
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if let Some(journal) = self.journal.get() {
            known_end::leave(&self.path, &**journal);
        }
    }
}

/// Where an engine keeps everything.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) manifests: Arc<dyn Manifests>,
    pub(crate) blobs: Arc<ClaimedStorage>,
}

/// Keeps engines from using a directory while it is looked at. `None` if it has no lock.
pub(crate) fn share(path: &Path) -> std::result::Result<Option<File>, String> {
    let mut lock = match File::open(path.join(LOCK)) {
        Ok(lock) => lock,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("{} cannot be locked: {error}", path.display())),
    };
    take(path, &mut lock, File::try_lock_shared)?;
    Ok(Some(lock))
}

/// Locks the file of a directory, or says who has it locked.
fn take(
    path: &Path,
    lock: &mut File,
    try_lock: fn(&File) -> std::result::Result<(), fs::TryLockError>,
) -> std::result::Result<(), String> {
    let directory = path.display();
    let until = Instant::now() + ENDING;
    loop {
        match try_lock(lock) {
            Ok(()) => return Ok(()),
            Err(fs::TryLockError::WouldBlock) => {}
            Err(fs::TryLockError::Error(error)) => {
                return Err(format!(
                    "the state directory \"{directory}\" cannot be locked: {error}"
                ));
            }
        }
        // Who only looks at a directory shares the lock, and writes no number.
        let is_shared = lock.try_lock_shared().is_ok() && lock.unlock().is_ok();
        let (owner, address) = owner(lock);
        let is_ours = owner.parse() == Ok(process::id());
        if (is_ours || is_shared) && Instant::now() < until {
            thread::sleep(Duration::from_millis(5));
            continue;
        }
        let owner = match &*owner {
            _ if is_shared => "a program that checks it".to_owned(),
            _ if is_ours => "this process".to_owned(),
            "" => "another process".to_owned(),
            owner => format!("process {owner}"),
        };
        let instead = match &*address {
            address if !is_shared && !address.is_empty() => {
                format!("connect to it with alluvium shell --connect {address}, ")
            }
            _ => String::new(),
        };
        return Err(format!(
            "the state directory \"{directory}\" is used by {owner}: {instead}end it, or use another directory"
        ));
    }
}

/// The owner of the lock and the address of its server, by the file.
fn owner(lock: &mut File) -> (String, String) {
    let mut owner = String::new();
    // Without an answer no owner is named.
    let _ = lock.rewind().and_then(|()| lock.read_to_string(&mut owner));
    let mut lines = owner.lines().map(|line| line.trim().to_owned());
    (lines.next().unwrap_or_default(), lines.next().unwrap_or_default())
}

/// Leaves word in the directory of this process's engine of where a server of it is reached. The next engine removes it.
///
/// # Errors
///
/// If the file cannot be written.
pub fn note_address(directory: &Path, address: &str) -> std::io::Result<()> {
    let mut lock = OpenOptions::new().append(true).open(directory.join(LOCK))?;
    writeln!(lock, "{}", address.replace(['\n', '\r'], " "))
}

/// A file of a directory that is not empty and has no state; `None` of others.
fn foreign(path: &Path) -> std::io::Result<Option<String>> {
    let mut other = None;
    for entry in fs::read_dir(path)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        match name.as_str() {
            LOCK | JOURNAL | MANIFESTS | BLOBS => return Ok(None),
            // The root of a file system has it.
            "lost+found" => {}
            _ => other = Some(name),
        }
    }
    Ok(other)
}

/// Creates a directory, with those it is in, so that it survives a crash.
pub(crate) fn create(path: &Path) -> std::io::Result<()> {
    let path = std::path::absolute(path)?;
    let missing: Vec<&Path> = path.ancestors().take_while(|path| !path.exists()).collect();
    fs::create_dir_all(&path)?;
    // A name is durable once the directory that it is in is synced.
    missing.iter().filter_map(|path| path.parent()).try_for_each(platform::sync)
}

/// The directory that a URL names.
pub(crate) fn directory_of(url: &str) -> Result<&Path> {
    match url.strip_prefix("file:") {
        Some("") => Err(start("the name of the state directory is empty".to_owned())),
        Some(path) => Ok(Path::new(path.strip_prefix("//").unwrap_or(path))),
        _ => Err(start(format!("\"{url}\" is no state directory: write file:DIR"))),
    }
}

fn start(message: String) -> Error {
    Error::Start { message }
}
