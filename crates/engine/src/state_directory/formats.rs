//! The versions of the formats in a state directory.

use std::collections::BTreeSet;
use std::fmt::{self, Display, Formatter};

use alluvium_storage::survey_journal;

use super::checkpoints::retained;
use super::{StateDirectory, failed};
use crate::durable::directory::JOURNAL;
use crate::durable::record::Record;
use crate::durable::{checkpoint, damage, known_end, record};
use crate::error::Result;

/// The versions of the checkpoints that are kept, and of the records of the journal that the oldest of them does not have.
///
/// An engine reads older versions, and writes the newest one: once it has taken as many checkpoints as are kept, all are of
/// that version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Formats {
    /// The versions of checkpoints, in order.
    pub checkpoints: BTreeSet<u8>,
    /// The versions of records, in order.
    pub records: BTreeSet<u8>,
}

impl Formats {
    /// Whether there is nothing of an older version.
    pub fn are_newest(&self) -> bool {
        self.checkpoints.iter().all(|version| *version == checkpoint::VERSION)
            && self.records.iter().all(|version| *version == record::VERSION)
    }
}

impl Display for Formats {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        let versions = |versions: &BTreeSet<u8>| match versions.is_empty() {
            true => "none".to_owned(),
            false => versions.iter().map(u8::to_string).collect::<Vec<_>>().join(", "),
        };
        let (checkpoints, records) = (versions(&self.checkpoints), versions(&self.records));
        write!(to, "versions of checkpoints: {checkpoints}; of records of the journal: {records}")
    }
}

/// Reads the versions in a directory.
pub(super) fn read(directory: &StateDirectory) -> Result<Formats> {
    let storage = |error: alluvium_storage::Error| failed(damage::of_storage(&error));
    let (_, retained) = retained(directory).map_err(storage)?;
    let mut formats = Formats::default();
    formats.checkpoints.extend(retained.iter().map(|retained| retained.version));
    // The records of a journal that is elsewhere are not counted.
    if directory.elsewhere()?.is_some() {
        return Ok(formats);
    }
    let replay = retained.iter().map(|retained| retained.checkpoint.replay).min().unwrap_or(0);
    let known = known_end::of(&directory.path);
    let survey = survey_journal(&directory.disk(JOURNAL), &known, |record| {
        if record.position.0 >= replay {
            formats.records.insert(Record::version(&record.bytes)?);
        }
        Ok(())
    });
    match survey.map_err(storage)?.damage.into_iter().next() {
        Some(damaged) => Err(storage(damaged.error)),
        None => Ok(formats),
    }
}
