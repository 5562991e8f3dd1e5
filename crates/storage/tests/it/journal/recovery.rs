//! Recovery of a journal from the files that it finds.

use std::fs;
use std::sync::Arc;

use alluvium_storage::{Disk, Error, Journal, LocalDisk, Position, SimulatedDisk};
use xxhash_rust::xxh3::xxh3_64;

use super::twins::{SMALL, open, range, record, replay};

/// A journal of 40 records in several segments, each synced, and the names of the segments.
pub fn written() -> (SimulatedDisk, Arc<dyn Disk>, Vec<String>) {
    let simulated = SimulatedDisk::new(7);
    let disk: Arc<dyn Disk> = Arc::new(simulated.clone());
    let journal = open(&disk, SMALL).unwrap();
    for number in 0..40 {
        let position = journal.append(&record(number, 250)).unwrap();
        journal.sync(position).unwrap();
    }
    let names = disk.list().unwrap();
    assert_eq!(names.len(), 4, "{names:?}");
    (simulated, disk, names)
}

/// The records of [`written`].
pub fn expected(range: std::ops::Range<u64>) -> Vec<Vec<u8>> {
    range.map(|number| record(number, 250)).collect()
}

fn says<T>(result: Result<T, Error>) -> String {
    result.err().unwrap().to_string()
}

#[test]
fn segments_are_named_by_their_first_record() {
    let (_, _, names) = written();
    assert_eq!(names[0], "00000000000000000000.journal");
    assert_eq!(names[1], "00000000000000000012.journal");
}

#[test]
fn other_files_are_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let others =
        ["notes", "1.journal", "0000000000000000001x.journal", "99999999999999999999.journal"];
    for other in others {
        fs::write(path.join(other), "mine").unwrap();
    }
    fs::create_dir(path.join("00000000000000000005.journal")).unwrap();
    let nascent = path.join(".00000000000000000000.journal.new");
    fs::write(&nascent, "left by a crash").unwrap();
    let disk: Arc<dyn Disk> = Arc::new(LocalDisk::open(path).unwrap());
    let journal = open(&disk, SMALL).unwrap();
    let position = journal.append(b"a").unwrap();
    journal.sync(position).unwrap();
    journal.release(Position(1)).unwrap();
    for other in others {
        assert_eq!(fs::read(path.join(other)).unwrap(), b"mine");
    }
    assert!(!nascent.exists());
}

#[test]
fn a_segment_that_is_missing_in_the_middle_is_named_when_it_is_needed() {
    let (simulated, disk, names) = written();
    simulated.lose(&names[1]);
    let journal = open(&disk, SMALL).unwrap();
    for from in [0, 12, 23] {
        assert_eq!(
            says(journal.replay(Position(from))),
            format!(
                "simulated:{} is missing, and simulated:{} needs it; put it back, or restore the \
                 directory from a backup",
                names[1], names[2]
            )
        );
    }
    // The records after the gap are there: those before it may have been released.
    assert_eq!(range(&journal), 24..40);
    assert_eq!(replay(&journal, 24).unwrap(), expected(24..40));
    journal.release(Position(24)).unwrap();
    assert_eq!(disk.list().unwrap(), names[2..]);
    let journal = open(&disk, SMALL).unwrap();
    assert!(matches!(journal.replay(Position(0)), Err(Error::NoRecord { .. })));
}

/// A last segment without records was deleted though the one before it was gone. A crash had brought earlier ones back, and
/// the journal continued after those, at positions that it had used already.
#[test]
fn a_segment_without_records_keeps_its_position_if_the_one_before_it_was_released() {
    let (simulated, disk, names) = written();
    let bytes = simulated.bytes(&names[3]).unwrap();
    simulated.replace(&names[3], &bytes[..64]);
    simulated.lose(&names[2]);
    for _ in 0..2 {
        let journal = open(&disk, SMALL).unwrap();
        assert_eq!(range(&journal), 36..36);
    }
    let journal = open(&disk, SMALL).unwrap();
    let position = journal.append(&record(36, 250)).unwrap();
    journal.sync(position).unwrap();
    assert_eq!(replay(&open(&disk, SMALL).unwrap(), 36).unwrap(), expected(36..37));
}

#[test]
fn records_that_are_missing_at_an_end_are_noticed_by_position() {
    let (simulated, disk, names) = written();
    simulated.lose(&names[0]);
    simulated.lose(&names[3]);
    let journal = open(&disk, SMALL).unwrap();
    let kept = range(&journal);
    assert_eq!(replay(&journal, kept.start).unwrap(), expected(kept.clone()));
    for from in [0, kept.start - 1, kept.end + 1, 40] {
        let error = journal.replay(Position(from)).err().unwrap();
        assert!(matches!(error, Error::NoRecord { .. }), "{error}");
    }
}

#[test]
fn a_truncated_segment_in_the_middle_is_named_with_the_place() {
    let (simulated, disk, names) = written();
    let bytes = simulated.bytes(&names[1]).unwrap();
    for length in [0, 10, 63, 64, 100, bytes.len() - 1] {
        simulated.replace(&names[1], &bytes[..length]);
        let error = open(&disk, SMALL).err().unwrap();
        let Error::Corrupt { place, offset, .. } = &error else { panic!("{error}") };
        assert_eq!((place, *offset), (&format!("simulated:{}", names[1]), length as u64));
    }
    let mut longer = bytes.clone();
    longer.push(0);
    simulated.replace(&names[1], &longer);
    let size = bytes.len();
    assert_eq!(
        says(open(&disk, SMALL)),
        format!(
            "simulated:{} is damaged at byte {size}: it has {} bytes and had {size}; restore it \
             from a backup",
            names[1],
            size + 1
        )
    );
}

#[test]
fn a_truncated_last_segment_ends_with_its_last_whole_group() {
    let (simulated, disk, names) = written();
    let bytes = simulated.bytes(&names[3]).unwrap();
    let first: u64 = names[3][..20].parse().unwrap();
    for length in (64..bytes.len()).step_by(13) {
        simulated.replace(&names[3], &bytes[..length]);
        let journal = open(&disk, SMALL).unwrap();
        let whole = (length - 64) as u64 / (48 + 16 + 250);
        let end = (first + whole).min(40);
        assert_eq!(range(&journal), 0..end);
        assert_eq!(replay(&journal, 0).unwrap(), expected(0..end));
        // The rest of the next group is cut off, and a segment without records is deleted.
        let size = simulated.bytes(&names[3]).map(|bytes| bytes.len() as u64);
        assert_eq!(size, (end > first).then_some(64 + (end - first) * 314));
    }
}

#[test]
fn a_journal_goes_on_in_a_new_segment_behind_a_torn_one() {
    let (simulated, disk, names) = written();
    let bytes = simulated.bytes(&names[3]).unwrap();
    let end: u64 = names[3][..20].parse::<u64>().unwrap() + 1;
    simulated.replace(&names[3], &bytes[..64 + 314 + 200]);
    let journal = open(&disk, SMALL).unwrap();
    for number in end..end + 30 {
        let position = journal.append(&record(number, 250)).unwrap();
        assert_eq!(position, Position(number));
        journal.sync(position).unwrap();
    }
    drop(journal);
    let journal = open(&disk, SMALL).unwrap();
    assert_eq!(replay(&journal, 0).unwrap(), expected(0..end + 30));
    assert!(disk.list().unwrap().contains(&format!("{end:020}.journal")));
}

#[test]
fn a_segment_of_a_later_version_is_refused() {
    let (simulated, disk, names) = written();
    for name in names {
        let bytes = simulated.bytes(&name).unwrap();
        let mut newer = bytes.clone();
        newer[8] = 2;
        let checksum = xxh3_64(&newer[..56]);
        newer[56..64].copy_from_slice(&checksum.to_le_bytes());
        simulated.replace(&name, &newer);
        assert_eq!(
            says(open(&disk, SMALL)),
            format!(
                "simulated:{name} has version 2 of its format, and this program reads versions up \
                 to 1; open it with the program that has written it, or a later one"
            )
        );
        assert_eq!(simulated.bytes(&name).unwrap(), newer, "it is left as it is");
        simulated.replace(&name, &bytes);
    }
}

#[test]
fn a_segment_under_the_name_of_another_is_refused() {
    let (simulated, disk, names) = written();
    let bytes = simulated.bytes(&names[2]).unwrap();
    simulated.replace(&names[1], &bytes);
    let error = open(&disk, SMALL).err().unwrap();
    let Error::Corrupt { place, offset: 16, .. } = &error else { panic!("{error}") };
    assert_eq!(place, &format!("simulated:{}", names[1]));
}
