//! Taking a state directory back to an epoch, without its last records.
//!
//! # Design
//!
//! 1. The journal says where the epochs after the one that stays begin, and the newest checkpoint without them is chosen.
//! 2. A copy of the directory from this checkpoint on, with all records, is made in its folder [`ASIDE`]: nothing is lost.
//! 3. The file `end` is told of the new end, this checkpoint becomes the current one, and the journal is cut, in this order.
//!
//! A crash leaves a directory that can be opened and has everything or ends at the cut. The caller has the directory locked.

use std::path::{Path, PathBuf};

use alluvium_storage::{
    LocalDisk, ManifestFiles, Position, ReadOnlyDisk, cut_journal, survey_journal,
};

use super::backup::OfRoles;
use super::{StateDirectory, backup, failed};
use crate::durable::checkpoint::Checkpoint;
use crate::durable::directory::{ASIDE, JOURNAL, MANIFESTS};
use crate::durable::record::Record;
use crate::durable::{damage, known_end};
use crate::error::Result;

/// Leaves out the epochs after this one, and definitions after the first of these; if it is the last epoch, the definitions
/// after it. Returns where a copy with all of that is; `None` if nothing was left out.
pub(crate) fn take_back(path: &Path, epoch: u64) -> Result<Option<PathBuf>> {
    let directory = StateDirectory { path: path.to_owned() };
    directory.check_own("taken back")?;
    let manifests = directory.disk(MANIFESTS);
    let chosen = Chosen::find(&manifests, epoch)?;
    let cut = Cut::find(&directory, epoch, &chosen)?;
    if chosen.is_current && cut.at == cut.end {
        return Ok(None);
    }
    let aside = free(&directory, epoch);
    backup::copy_to(&directory, Some(chosen.number), OfRoles::Kept, &aside)?;
    known_end::write(path, Position(cut.at))
        .map_err(|error| failed(format!("cannot write to {}: {error}", path.display())))?;
    let open = |folder: &str| LocalDisk::open(directory.folder(folder));
    let write = || {
        if !chosen.is_current {
            ManifestFiles::take_back(&open(MANIFESTS)?, chosen.number)?;
        }
        cut_journal(&open(JOURNAL)?, Position(cut.at))
    };
    write().map_err(|error| failed(damage::of_storage(&error)))?;
    Ok(Some(aside))
}

/// Where a copy is made.
fn free(directory: &StateDirectory, epoch: u64) -> PathBuf {
    let folder = directory.folder(ASIDE);
    let mut path = folder.join(format!("until-{epoch}"));
    for number in 2.. {
        if !path.exists() {
            break;
        }
        path = folder.join(format!("until-{epoch}-{number}"));
    }
    path
}

/// The checkpoint to resume from.
struct Chosen {
    /// Its number; 0 if it is none.
    number: u64,
    is_current: bool,
    /// As in [`Checkpoint`].
    end: u64,
    /// The epoch of the current one, or 0.
    last: u64,
    /// The epochs of the others, which are all later.
    oldest: Option<u64>,
}

impl Chosen {
    /// The newest one that has no epoch after this one.
    fn find(manifests: &ReadOnlyDisk, epoch: u64) -> Result<Self> {
        let failed_to_read = |error: &_| failed(damage::of_storage(error));
        let files = ManifestFiles::list(manifests).map_err(|error| failed_to_read(&error))?;
        let current = files.current(manifests).map_err(|error| failed_to_read(&error))?;
        let mut chosen =
            Self { number: 0, is_current: current == 0, end: 0, last: 0, oldest: None };
        let kept = files.numbers.iter().rev().filter(|number| **number <= current);
        for number in kept {
            let bytes = ManifestFiles::read(manifests, *number);
            let checkpoint = Checkpoint::decode(&bytes.map_err(|error| failed_to_read(&error))?);
            let checkpoint = checkpoint.map_err(|what| {
                let place = ManifestFiles::place(manifests, *number);
                failed(damage::of(&format!("{place}: {what}")))
            })?;
            chosen.last = chosen.last.max(checkpoint.epoch);
            if checkpoint.epoch <= epoch {
                let (number, is_current) = (*number, *number == current);
                return Ok(Self { number, is_current, end: checkpoint.end, ..chosen });
            }
            chosen.oldest = Some(checkpoint.epoch);
        }
        Ok(chosen)
    }
}

/// The place in the journal after which everything is left out.
struct Cut {
    at: u64,
    /// Where the journal ends so far.
    end: u64,
}

impl Cut {
    fn find(directory: &StateDirectory, epoch: u64, chosen: &Chosen) -> Result<Self> {
        let (mut last, mut behind, mut later) = (chosen.last, 0, None);
        let known = known_end::of(&directory.path);
        let survey = survey_journal(&directory.disk(JOURNAL), &known, |record| {
            let position = record.position.0;
            if let Some(number) = Record::decode(&record.bytes)?.epoch()? {
                last = last.max(number);
                if number <= epoch {
                    behind = position + 1;
                } else if later.is_none() {
                    later = Some(position);
                }
            }
            Ok(())
        });
        let survey = survey.map_err(|error| failed(damage::of_storage(&error)))?;
        if let Some(damage) = survey.damage.first() {
            return Err(failed(damage::of_storage(&damage.error)));
        }
        let (start, end) = (survey.start.0, survey.end.0);
        if chosen.number == 0 && start > 0 {
            let oldest = chosen.oldest.unwrap_or(last);
            return Err(failed(format!(
                "\"{}\" cannot be taken back to epoch {epoch}: what was before epoch {oldest} is in no checkpoint that is kept; \
                 epochs {oldest} to {last} can be opened",
                directory.path.display()
            )));
        }
        // The clock and new columns have epochs of their own, which have no number in the journal.
        if epoch > last + (end - behind.min(end)) {
            return Err(failed(format!(
                "\"{}\" cannot be taken back to epoch {epoch}: it ends with epoch {last}",
                directory.path.display()
            )));
        }
        Ok(Self { at: later.unwrap_or(behind).max(chosen.end).max(start), end })
    }
}
