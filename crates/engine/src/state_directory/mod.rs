//! A state directory as its owner sees it: checking it, listing its checkpoints, and copying it.
//!
//! - this file: the directory;
//! - [`check`]: reading everything in it; [`finding`]: findings about files;
//! - [`checkpoints`]: the contents of its checkpoints;
//! - [`formats`]: the versions of its files;
//! - [`backup`]: a copy of it, also while an engine uses it;
//! - [`cut`]: taking it back to an epoch.

mod backup;
mod blobs;
mod check;
mod checkpoints;
mod cut;
mod finding;
mod formats;

use std::path::{Path, PathBuf};

use alluvium_storage::ReadOnlyDisk;

pub use backup::Backup;
use backup::OfRoles;
pub use check::Check;
pub use checkpoints::{CheckpointInfo, DataflowInfo, InputInfo, OutputInfo};
pub(crate) use cut::take_back;
pub use finding::{Finding, Severity};
pub use formats::Formats;

use crate::durable::directory::{BLOBS, JOURNAL, MANIFESTS};
use crate::durable::elsewhere::Note;
use crate::error::{Error, Result};

/// A directory with the state of an engine. Nothing of it is changed.
#[derive(Clone, Debug)]
pub struct StateDirectory {
    path: PathBuf,
}

impl StateDirectory {
    /// The state directory at this path: of `Builder::state("file:DIR")`, it is `DIR`.
    ///
    /// # Errors
    ///
    /// [`Error::State`] if there is none.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        let has = |folder: &&str| path.join(folder).is_dir();
        match [JOURNAL, MANIFESTS, BLOBS].iter().any(has) {
            true => Ok(Self { path }),
            false if !path.exists() => {
                Err(failed(format!("there is no directory \"{}\"", path.display())))
            }
            false => Err(failed(format!(
                "\"{}\" is no state directory: it has no folders {JOURNAL}, {MANIFESTS} and {BLOBS}",
                path.display()
            ))),
        }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads everything in it, compares it with its checksums, and looks for missing and leftover files. No
    /// engine can use the directory meanwhile.
    ///
    /// # Errors
    ///
    /// [`Error::State`] if an engine uses it, or if a folder cannot be listed. Damage of files is no error, but a
    /// [`Finding`].
    pub fn check(&self) -> Result<Check> {
        check::check(self)
    }

    /// The checkpoints that are kept, the oldest first. An engine may use the directory.
    ///
    /// # Errors
    ///
    /// [`Error::State`] if one of them is damaged.
    pub fn checkpoints(&self) -> Result<Vec<CheckpointInfo>> {
        checkpoints::list(self)
    }

    /// The versions of the formats of its files, which no engine may be writing to meanwhile.
    ///
    /// # Errors
    ///
    /// [`Error::State`] if something in it is damaged, or is of a later version than this program knows.
    pub fn formats(&self) -> Result<Formats> {
        formats::read(self)
    }

    /// Copies the last checkpoint, and all later commits, to a directory that is new or empty. The copy is a state
    /// directory that an engine can be opened on. It has all transactions that were acknowledged before the call; those that
    /// are committed meanwhile are there or not, each as a whole, and none without those before it.
    ///
    /// An engine may use the directory meanwhile, also of another process. Files of batches, which never change, are shared
    /// with the copy by hard links, where the file system can.
    ///
    /// Files that inputs are read from and outputs are written to are not part of it.
    ///
    /// # Errors
    ///
    /// [`Error::State`]; then there is no copy.
    pub fn backup(&self, to: impl AsRef<Path>) -> Result<Backup> {
        backup::backup(self, None, OfRoles::Kept, to.as_ref())
    }

    /// As [`backup`](Self::backup), with an older checkpoint, or with none if the number is 0, and everything that was
    /// committed since: a way back if a later checkpoint is damaged, as [`check`](Self::check) says.
    pub fn backup_from(&self, checkpoint: u64, to: impl AsRef<Path>) -> Result<Backup> {
        backup::backup(self, Some(checkpoint), OfRoles::Kept, to.as_ref())
    }

    /// As [`backup`](Self::backup), without roles: no role, verifier of a password, grant or owner is in the copy, for whoever is given the
    /// rows alone. The names of roles may be left in the keys of transactions.
    pub fn backup_without_roles(&self, to: impl AsRef<Path>) -> Result<Backup> {
        backup::backup(self, None, OfRoles::LeftOut, to.as_ref())
    }

    /// Where its journal is, if that is not in it.
    fn elsewhere(&self) -> Result<Option<Note>> {
        Note::read(&self.path).map_err(failed)
    }

    /// Fails if its journal is not in it.
    fn check_own(&self, done: &str) -> Result<()> {
        self.elsewhere()?.map_or(Ok(()), |note| {
            let (path, url) = (self.path.display(), note.url);
            Err(failed(format!("\"{path}\" cannot be {done}: its journal is not in it, but {url}")))
        })
    }

    /// A folder in it.
    fn folder(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// A folder in it, as a disk.
    fn disk(&self, name: &str) -> ReadOnlyDisk {
        ReadOnlyDisk::new(self.folder(name))
    }
}

fn failed(message: impl Into<String>) -> Error {
    Error::State { message: message.into() }
}
