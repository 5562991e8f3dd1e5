//! Copying a journal with other records in the place of some.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::ops::Range;
use std::sync::Arc;

use crate::disk::Disk;
use crate::error::Result;
use crate::journal::committer::Committer;
use crate::journal::segments::{SegmentWriter, Segments};
use crate::journal::{FileJournalOptions, KnownEnd, Position, survey_journal};

/// Writes the records of a journal from `from` on to a new one, durably, each at its position; `replaced` returns the bytes of those that
/// are to be others. Nobody may write to the journal meanwhile. Returns the positions of the records.
///
/// # Errors
///
/// [`Error::Corrupt`](crate::Error::Corrupt) if a record is damaged, or if `replaced` cannot read it.
pub fn rewrite_journal(
    journal: &dyn Disk,
    to: Arc<dyn Disk>,
    from: Position,
    mut replaced: impl FnMut(&[u8]) -> std::result::Result<Option<Vec<u8>>, String>,
) -> Result<Range<Position>> {
    let salt = RandomState::new().build_hasher().finish();
    let options = FileJournalOptions { write_ahead: 0, ..FileJournalOptions::default() };
    let mut writer = SegmentWriter::new(to, options, Segments::default(), salt, None);
    // A journal without records has a segment as well.
    writer.begin_at(from.0).map_err(|failure| failure.error())?;
    let committer = Committer::new(writer, from.0, options.queue_size, salt);
    let mut failure = None;
    let survey = survey_journal(journal, &KnownEnd::default(), |record| {
        if record.position >= from && failure.is_none() {
            let other = replaced(&record.bytes)?;
            failure = committer.append(other.as_deref().unwrap_or(&record.bytes)).err();
        }
        Ok(())
    })?;
    if let Some(error) = failure.or(survey.damage.into_iter().next().map(|damage| damage.error)) {
        return Err(error);
    }
    if survey.end > from {
        committer.sync(survey.end.0 - 1)?;
    }
    Ok(from..survey.end)
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use crate::disk::LocalDisk;
    use crate::journal::{FileJournal, Journal};

    /// The records of the journal in a directory, from a position on.
    fn records(directory: &std::path::Path, from: u64) -> Vec<Vec<u8>> {
        let journal = FileJournal::open(directory).expect("a journal");
        assert_eq!(journal.range().start, Position(from));
        let replay = journal.replay(Position(from)).expect("records");
        replay.map(|record| record.expect("a record").1.to_vec()).collect()
    }

    #[test]
    fn records_keep_their_positions_and_only_some_are_others() {
        let folder = tempfile::tempdir().expect("a folder");
        let (all, copy) = (folder.path().join("all"), folder.path().join("copy"));
        let journal = FileJournal::open(&all).expect("a journal");
        for number in 0..100_u8 {
            journal.append(&[number; 3]).expect("a record");
        }
        journal.sync(Position(99)).expect("a sync");
        drop(journal);
        for from in [40, 100] {
            let disk = LocalDisk::open(&all).expect("a disk");
            let to = Arc::new(LocalDisk::open(&copy).expect("a disk"));
            let replaced =
                |bytes: &[u8]| Ok(bytes[0].is_multiple_of(2).then(|| b"another one".to_vec()));
            let range = rewrite_journal(&disk, to, Position(from), replaced).expect("a copy");
            assert_eq!(range, Position(from)..Position(100));
            let expected = (from as u8..100).map(|number| match number % 2 {
                0 => b"another one".to_vec(),
                _ => vec![number; 3],
            });
            assert_eq!(records(&copy, from), expected.collect::<Vec<_>>());
            std::fs::remove_dir_all(&copy).expect("a folder");
        }
        let disk = LocalDisk::open(&all).expect("a disk");
        let to = Arc::new(LocalDisk::open(&copy).expect("a disk"));
        let refused = rewrite_journal(&disk, to, Position(0), |_| Err("unknown".to_owned()));
        assert!(refused.expect_err("a refusal").to_string().contains("unknown"));
    }
}
