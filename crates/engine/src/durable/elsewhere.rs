//! A journal that is not in the state directory.
//!
//! The file `journal.url` of a state directory says so, with the identity of the journal and its URL in one line. Without that journal, or with
//! another one, the directory is not opened: commits would be missing.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use alluvium_storage::disk::platform;
use alluvium_storage::{Elsewhere, Expected, Followed, Journal, ManifestFiles, ReadOnlyDisk};

use super::directory::{JOURNAL, MANIFESTS};
use super::{damage, known_end};
use crate::error::{Error, Result};

/// The file's name in the directory.
pub(crate) const NOTE: &str = "journal.url";

/// Its name while it is written.
pub(crate) const NASCENT: &str = ".journal.url.new";

/// The journal that a directory belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    identity: String,
    pub(crate) url: String,
}

impl Note {
    /// Reads the file of a directory; `None` if its journal is its own.
    pub(crate) fn read(directory: &Path) -> std::result::Result<Option<Note>, String> {
        let path = directory.join(NOTE);
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text.map_err(|error| format!("cannot read {}: {error}", path.display()))?,
        };
        let line = text.strip_suffix('\n').and_then(|line| line.split_once(' '));
        match line {
            Some((identity, url)) if !identity.is_empty() && !url.is_empty() => {
                Ok(Some(Note { identity: identity.to_owned(), url: url.to_owned() }))
            }
            _ => Err(format!(
                "{} does not say any more which journal the directory belongs to: restore it from a backup",
                path.display()
            )),
        }
    }

    /// Replaces the file, durably.
    fn write(&self, directory: &Path) -> io::Result<()> {
        let nascent = directory.join(NASCENT);
        let mut file = File::create(&nascent)?;
        writeln!(file, "{} {}", self.identity, self.url)?;
        file.sync_all()?;
        fs::rename(&nascent, directory.join(NOTE))?;
        platform::sync(directory)
    }
}

/// Opens the journal that a directory belongs to; `None` if that is its own. The caller has the directory locked.
pub(super) fn open(
    directory: &Path,
    elsewhere: Option<&dyn Elsewhere>,
) -> Result<Option<Arc<dyn Journal>>> {
    let note = Note::read(directory).map_err(start)?;
    let elsewhere = match (elsewhere, &note) {
        (Some(elsewhere), _) => elsewhere,
        (None, None) => return Ok(None),
        (None, Some(Note { url, .. })) => {
            let shown = directory.display();
            return Err(start(format!(
                "the journal of the state directory \"{shown}\" is {url}: open the directory with it (--journal)"
            )));
        }
    };
    let expected = expected(directory, note.as_ref(), elsewhere)?;
    let (identity, journal) =
        elsewhere.open(&expected).map_err(|error| start(error.to_string()))?;
    belongs(directory, note.as_ref(), Note { identity, url: elsewhere.url() })?;
    Ok(Some(journal))
}

/// Follows the journal that a directory belongs to, and returns its identity too. The caller has the directory locked.
pub(super) fn follow(
    directory: &Path,
    elsewhere: &dyn Elsewhere,
    follower: &str,
) -> Result<(String, Arc<dyn Followed>)> {
    let note = Note::read(directory).map_err(start)?;
    let expected = expected(directory, note.as_ref(), elsewhere)?;
    let followed = elsewhere.follow(&expected, follower);
    let (identity, journal) = followed.map_err(|error| start(error.to_string()))?;
    belongs(directory, note.as_ref(), Note { identity: identity.clone(), url: elsewhere.url() })?;
    Ok((identity, journal))
}

/// What a directory needs of a journal elsewhere.
fn expected(directory: &Path, note: Option<&Note>, elsewhere: &dyn Elsewhere) -> Result<Expected> {
    let storage = |error: alluvium_storage::Error| start(damage::of_storage(&error));
    if note.is_none() && has_own(directory).map_err(storage)? {
        let (shown, url) = (directory.display(), elsewhere.url());
        return Err(start(format!(
            "the state directory \"{shown}\" has a journal of its own, and cannot go on in {url}: open it without that, or begin with \
             another directory"
        )));
    }
    let records = Some(known_end::needed(directory));
    Ok(Expected { identity: note.map(|note| note.identity.clone()), records })
}

/// Notes the journal of a directory, if it is not noted.
fn belongs(directory: &Path, note: Option<&Note>, found: Note) -> Result<()> {
    if note == Some(&found) {
        return Ok(());
    }
    let shown = directory.display();
    found.write(directory).map_err(|error| {
        start(format!("the state directory \"{shown}\" cannot be written to: {error}"))
    })
}

fn start(message: String) -> Error {
    Error::Start { message }
}

/// Whether a directory has records or checkpoints that belong to a journal of its own.
fn has_own(directory: &Path) -> alluvium_storage::Result<bool> {
    let disk = ReadOnlyDisk::new(directory.join(JOURNAL));
    let records = alluvium_storage::survey_journal(&disk, &Default::default(), |_| Ok(()))?;
    let manifests = ManifestFiles::list(&ReadOnlyDisk::new(directory.join(MANIFESTS)))?;
    Ok(records.segments > 0 || !manifests.numbers.is_empty())
}
