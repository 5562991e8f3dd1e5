//! Copying a state directory, also one that an engine uses.
//!
//! # Design
//!
//! A manifest names everything else that belongs to its checkpoint. Blobs never change, so they are linked; the journal is
//! copied [as far as it is whole](copy_journal), after the manifest was read, so that it has everything that was
//! acknowledged before. The engine may take checkpoints meanwhile and give this one up, and files disappear. Then
//! everything is done again with the next checkpoint.
//!
//! The copy is made under another name beside its own, made durable, and renamed.

use std::fmt::{self, Display, Formatter};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::Duration;

use alluvium_storage::disk::platform;
use alluvium_storage::{
    Disk, Error as StorageError, LocalDisk, ManifestFiles, Position, ReadOnlyDisk, copy_journal,
    rewrite_journal,
};

use super::{StateDirectory, failed};
use crate::durable::checkpoint::Checkpoint;
use crate::durable::directory::{BLOBS, JOURNAL, LOCK, MANIFESTS, create};
use crate::durable::record::Record;
use crate::durable::{damage, known_end};
use crate::error::Result;

/// How often a copy is begun, while the engine gives up what is copied.
const ATTEMPTS: u32 = 20;

/// How long the first of them are apart.
const PAUSE: Duration = Duration::from_millis(5);

/// A copy of a state directory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Backup {
    /// Where it is.
    pub path: PathBuf,
    /// The number of the checkpoint that it has; 0 if it has none.
    pub checkpoint: u64,
    /// The records of the journal that it has.
    pub records: Range<u64>,
    /// How many blobs it has.
    pub blobs: usize,
    /// How many of them are shared with the directory by hard links.
    pub linked: usize,
}

impl Display for Backup {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        let Self { path, checkpoint, records, blobs, linked } = self;
        write!(to, "{} has ", path.display())?;
        match checkpoint {
            0 => write!(to, "no checkpoint")?,
            number => {
                write!(to, "checkpoint {number} with {blobs} blobs ({linked} of them hard links)")?;
            }
        }
        let Range { start, end } = records;
        write!(to, ", and the journal from record {start} up to record {end}")?;
        write!(to, "\nfiles of inputs and outputs are not part of it")
    }
}

/// Why a copy was not made.
enum Failed {
    /// A copied file has disappeared, or parts of it were never there.
    Gone(String),
    Final(String),
}

impl From<StorageError> for Failed {
    fn from(error: StorageError) -> Self {
        let is_gone = error.is_missing()
            || matches!(error, StorageError::NoRecord { .. } | StorageError::Lost { .. });
        let message = damage::of_storage(&error);
        if is_gone { Self::Gone(message) } else { Self::Final(message) }
    }
}

/// The error of an operation on a file of the copy.
fn on(operation: &str, path: &Path) -> impl FnOnce(std::io::Error) -> Failed {
    move |error| Failed::Final(format!("cannot {operation} {}: {error}", path.display()))
}

/// Whether a copy has the roles, and their rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OfRoles {
    Kept,
    LeftOut,
}

/// Copies a directory from a checkpoint on, or from the current one.
pub(super) fn backup(
    directory: &StateDirectory,
    checkpoint: Option<u64>,
    roles: OfRoles,
    to: &Path,
) -> Result<Backup> {
    copy_to(directory, checkpoint, roles, &free(directory, to)?)
}

/// As [`backup`], to an absolute path, where nothing else is.
pub(super) fn copy_to(
    directory: &StateDirectory,
    checkpoint: Option<u64>,
    roles: OfRoles,
    to: &Path,
) -> Result<Backup> {
    directory.check_own("copied")?;
    let mut gone = String::new();
    for attempt in 1..=ATTEMPTS {
        let partial = Partial::create(to).map_err(Failed::into_error)?;
        match copy(directory, checkpoint, roles, &partial.path) {
            Ok(copied) => {
                partial.complete(to).map_err(Failed::into_error)?;
                return Ok(Backup { path: to.to_owned(), ..copied });
            }
            Err(Failed::Gone(message)) => gone = message,
            Err(failure) => return Err(failure.into_error()),
        }
        drop(partial);
        sleep(PAUSE * attempt);
    }
    Err(failed(format!("no copy could be made, after {ATTEMPTS} attempts: {gone}")))
}

impl Failed {
    fn into_error(self) -> crate::Error {
        let (Self::Gone(message) | Self::Final(message)) = self;
        failed(message)
    }
}

/// The absolute path of a copy, where nothing else is.
fn free(directory: &StateDirectory, to: &Path) -> Result<PathBuf> {
    let invalid = |what: &dyn Display| failed(format!("the copy \"{}\" {what}", to.display()));
    let absolute = |path: &Path| std::path::absolute(path).map_err(|error| invalid(&error));
    let (to, from) = (absolute(to)?, absolute(&directory.path)?);
    if to.file_name().is_none() {
        return Err(invalid(&"has no name"));
    }
    if to.starts_with(&from) {
        return Err(invalid(&"would be in the directory itself"));
    }
    match fs::read_dir(&to).map(Iterator::count) {
        Ok(1..) => Err(invalid(&"cannot be made: there is something in this directory already")),
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(invalid(&format_args!("cannot be made: {error}")))
        }
        _ => Ok(to),
    }
}

/// A copy that is being made. It is removed if it is not completed.
struct Partial {
    path: PathBuf,
    parent: PathBuf,
}

/// Tells copies of this process apart.
static COPIES: AtomicU64 = AtomicU64::new(0);

impl Partial {
    fn create(to: &Path) -> std::result::Result<Self, Failed> {
        let parent = to.parent().unwrap_or(Path::new("/")).to_owned();
        let name = to.file_name().unwrap_or_default().to_string_lossy();
        let number = COPIES.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!(".{name}.{}-{number}.partial", process::id()));
        create(&parent).map_err(on("create", &parent))?;
        // Left by a process of the same number that was killed.
        match fs::remove_dir_all(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(on("remove", &path)(error));
            }
            _ => {}
        }
        fs::create_dir(&path).map_err(on("create", &path))?;
        Ok(Self { path, parent })
    }

    /// Gives it its name.
    fn complete(self, to: &Path) -> std::result::Result<(), Failed> {
        fs::rename(&self.path, to).map_err(on("create", to))?;
        sync(&self.parent)
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // After it was renamed there is nothing to remove.
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn sync(path: &Path) -> std::result::Result<(), Failed> {
    platform::sync(path).map_err(on("sync", path))
}

/// Makes a copy, durably but for its name.
fn copy(
    directory: &StateDirectory,
    checkpoint: Option<u64>,
    roles: OfRoles,
    to: &Path,
) -> std::result::Result<Backup, Failed> {
    // The end known now stays true, as a journal only grows.
    let known = known_end::of(&directory.path);
    let from = directory.disk(MANIFESTS);
    let files = ManifestFiles::list(&from)?;
    let number = match checkpoint {
        None => files.current(&from)?,
        Some(number) if number == 0 || files.numbers.contains(&number) => number,
        Some(number) => {
            let kept = files.numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
            let message = format!("there is no checkpoint {number}; these are kept: {kept}");
            return Err(Failed::Final(message));
        }
    };
    let mut backup =
        Backup { path: to.to_owned(), checkpoint: number, records: 0..0, blobs: 0, linked: 0 };
    let blobs = to.join(BLOBS);
    fs::create_dir(&blobs).map_err(on("create", &blobs))?;
    let (mut manifest, mut replay, mut end) = (Default::default(), 0, 0);
    if number > 0 {
        manifest = ManifestFiles::read(&from, number)?;
        let mut checkpoint = Checkpoint::decode(&manifest).map_err(|what| {
            let place = ManifestFiles::place(&from, number);
            Failed::Final(damage::of(&format!("{place}: {what}")))
        })?;
        if roles == OfRoles::LeftOut {
            checkpoint.definitions.retain(|(_, definition)| !definition.is_of_roles());
            let encoded = checkpoint.encode().map_err(|error| Failed::Final(error.to_string()))?;
            manifest = encoded.to_vec().into();
        }
        (replay, end) = (checkpoint.replay, checkpoint.end);
        for name in &checkpoint.blobs {
            let is_linked = link(&directory.folder(BLOBS).join(name), &blobs.join(name))?;
            backup.blobs += 1;
            backup.linked += usize::from(is_linked);
        }
    }
    let journal = LocalDisk::open(to.join(JOURNAL))?;
    let mut records = copy_journal(&directory.disk(JOURNAL), &journal, Position(replay), &known)?;
    if records.end.0 < end {
        let place = directory.disk(JOURNAL).place("");
        return Err(Failed::Gone(damage::of(&format!(
            "{place} ends before record {}, and checkpoint {number} has all before record {end}: a segment is missing",
            records.end
        ))));
    }
    if roles == OfRoles::LeftOut {
        records = leave_out_roles(&to.join(JOURNAL), replay)?;
    }
    backup.records = records.start.0..records.end.0;
    ManifestFiles::write(&LocalDisk::open(to.join(MANIFESTS))?, number, &manifest)?;
    known_end::write(to, records.end).map_err(on("write to", to))?;
    let lock = to.join(LOCK);
    let created = File::create(&lock).and_then(|lock| lock.sync_all());
    created.map_err(on("create", &lock))?;
    sync(&blobs)?;
    sync(to)?;
    Ok(backup)
}

/// Takes roles out of the records of a copied journal from a position on; those before are gone.
fn leave_out_roles(journal: &Path, from: u64) -> std::result::Result<Range<Position>, Failed> {
    let all = journal.with_extension("all");
    fs::rename(journal, &all).map_err(on("rename", journal))?;
    let without_roles =
        |bytes: &[u8]| Ok(Record::without_roles(bytes)?.map(|bytes| bytes.to_vec()));
    let to = Arc::new(LocalDisk::open(journal)?);
    let records = rewrite_journal(&ReadOnlyDisk::new(&all), to, Position(from), without_roles)?;
    fs::remove_dir_all(&all).map_err(on("remove", &all))?;
    Ok(records)
}

/// Gives a file that never changes another name as well, or copies it, durably. Whether it is the same file.
fn link(from: &Path, to: &Path) -> std::result::Result<bool, Failed> {
    let gone = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => Failed::Gone(damage::of(&format!("{} is missing", from.display()))),
        _ => on("copy", from)(error),
    };
    match fs::hard_link(from, to) {
        Ok(()) => return Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(gone(error)),
        // Another file system, too many links, or it is not permitted.
        Err(_) => {}
    }
    fs::copy(from, to).map_err(gone)?;
    sync(to)?;
    Ok(false)
}
