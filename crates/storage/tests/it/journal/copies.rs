//! Looking at a journal and copying it, also while it is written.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use alluvium_storage::{
    Disk, Error, FileJournal, FileJournalOptions, Journal, KnownEnd, LocalDisk, Position,
    ReadOnlyDisk, copy_journal, survey_journal,
};

use super::recovery::written;
use super::twins::{SMALL, open, record, replay};

/// It is unknown how far a journal goes.
fn unknown() -> KnownEnd {
    KnownEnd::default()
}

#[test]
fn a_survey_finds_every_flipped_bit_goes_on_behind_it_and_changes_nothing() {
    let (simulated, disk, names) = written();
    let whole = survey_journal(&*disk, &unknown(), |_| Ok(())).unwrap();
    assert!(whole.damage.is_empty() && whole.gaps.is_empty() && whole.torn.is_none(), "{whole:?}");
    assert_eq!((whole.records, whole.segments), (40, names.len()));
    let mut random = fastrand::Rng::with_seed(1);
    for name in &names {
        let bytes = simulated.bytes(name).unwrap();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << random.u8(..8);
            simulated.replace(name, &damaged);
            let mut read = 0;
            let survey = survey_journal(&*disk, &unknown(), |record| {
                assert!(record.place.contains("simulated:"));
                read += 1;
                Ok(())
            });
            let survey = survey.unwrap();
            let place = format!("simulated:{name}");
            let is_torn = survey.torn.as_ref().is_some_and(|(torn, ..)| *torn == place);
            let is_damaged = survey.damage.iter().any(
                |damage| matches!(&damage.error, Error::Corrupt { place: damaged, .. } if *damaged == place),
            );
            assert!(is_damaged || is_torn, "byte {at} of {name}: {survey:?}");
            // At most the records of one segment are lost by it, and mostly those of one group.
            assert!(read >= 28, "{read} at byte {at} of {name}");
            assert_eq!(simulated.bytes(name).unwrap(), damaged);
        }
        simulated.replace(name, &bytes);
    }
}

#[test]
fn a_survey_names_a_missing_segment_and_records_that_are_wrong() {
    let (_, disk, names) = written();
    let survey = survey_journal(&*disk, &unknown(), |record| match record.position {
        Position(7) => Err("it is the seventh".to_owned()),
        _ => Ok(()),
    });
    let damage = survey.unwrap().damage;
    assert_eq!(damage.len(), 1);
    assert!(damage[0].error.to_string().contains("it is the seventh"), "{}", damage[0].error);
    disk.remove(&names[1]).unwrap();
    let survey = survey_journal(&*disk, &unknown(), |_| Ok(())).unwrap();
    assert!(survey.damage.is_empty() && survey.start.0 > 0, "{survey:?}");
    assert!(survey.gaps[0].to_string().contains(&names[1]), "{:?}", survey.gaps);
}

#[test]
fn a_copy_has_the_records_from_a_position_on_and_refuses_damage() {
    let (simulated, disk, names) = written();
    let copies = tempfile::tempdir().unwrap();
    let copy = |name: &str, from: u64| {
        let to = LocalDisk::open(copies.path().join(name)).unwrap();
        let range = copy_journal(&*disk, &to, Position(from), &unknown())?;
        let to: Arc<dyn Disk> = Arc::new(to);
        let journal = open(&to, SMALL)?;
        assert_eq!(journal.range(), range);
        replay(&journal, from)
    };
    assert_eq!(copy("all", 0).unwrap().len(), 40);
    assert_eq!(copy("end", 40).unwrap().len(), 0);
    let some = copy("some", 30).unwrap();
    assert_eq!((some.len(), &some[0]), (10, &record(30, 250)));
    let error = copy("beyond", 41).unwrap_err();
    assert!(matches!(error, Error::NoRecord { position: 41, .. }), "{error}");
    for name in &names[..names.len() - 1] {
        let bytes = simulated.bytes(name).unwrap();
        for at in (0..bytes.len()).step_by(97) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 4;
            simulated.replace(name, &damaged);
            let error = copy("damaged", 0).unwrap_err();
            assert!(matches!(error, Error::Corrupt { .. }), "byte {at} of {name}: {error}");
        }
        simulated.replace(name, &bytes);
    }
}

#[test]
fn a_journal_is_copied_while_it_is_written_and_released() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let disk = Arc::new(LocalDisk::open(&path).unwrap());
    let options = FileJournalOptions { segment_size: 20_000, write_ahead: 4096, queue_size: 2000 };
    let journal = FileJournal::open_with(disk, options).unwrap();
    let (durable, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(Ordering::SeqCst) {
                    let position = journal.append(&[7; 300]).unwrap();
                    journal.sync(position).unwrap();
                    durable.fetch_max(position.0 + 1, Ordering::SeqCst);
                    journal.release(Position(position.0.saturating_sub(3000))).unwrap();
                }
            });
        }
        for number in 0..60 {
            let least = durable.load(Ordering::SeqCst);
            let to = LocalDisk::open(folder.path().join(number.to_string())).unwrap();
            let from = Position(least.saturating_sub(200));
            let range = copy_journal(&ReadOnlyDisk::new(&path), &to, from, &unknown());
            if range.is_err() {
                is_over.store(true, Ordering::SeqCst);
            }
            let range = range.unwrap();
            assert!(range.start <= from && range.end.0 >= least, "{range:?} and {least}");
            let survey = survey_journal(&to, &unknown(), |_| Ok(())).unwrap();
            assert!(survey.damage.is_empty() && survey.torn.is_none(), "{survey:?}");
            assert_eq!((survey.start, survey.end), (range.start, range.end));
        }
        is_over.store(true, Ordering::SeqCst);
    });
}

#[test]
fn a_journal_that_is_known_to_go_on_is_damaged_and_not_torn() {
    let folder = tempfile::tempdir().unwrap();
    let journal = FileJournal::open(folder.path()).unwrap();
    for number in 0..3 {
        let position = journal.append(&record(number, 250)).unwrap();
        journal.sync(position).unwrap();
    }
    drop(journal);
    let known = KnownEnd { position: Position(3), known_by: "somebody".to_owned() };
    let disk = ReadOnlyDisk::new(folder.path());
    let path = folder.path().join(&disk.list().unwrap()[0]);
    let bytes = std::fs::read(&path).unwrap();
    let refused = |place: &str| {
        let opened = FileJournal::open_known(folder.path(), &known).err().unwrap().to_string();
        let copy = tempfile::tempdir().unwrap();
        let to = LocalDisk::open(copy.path()).unwrap();
        let copied = copy_journal(&disk, &to, Position(0), &known).unwrap_err().to_string();
        let survey = survey_journal(&disk, &known, |_| Ok(())).unwrap();
        let surveyed = survey.damage[0].error.to_string();
        for message in [opened, copied, surveyed] {
            assert!(message.contains(place), "{message}");
        }
    };
    // The last group, which nothing else vouches for.
    let group = 64 + 2 * (48 + 16 + 250);
    for at in (group..group + 48 + 16 + 250).step_by(3) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 32;
        std::fs::write(&path, &damaged).unwrap();
        refused("0.journal is damaged at byte ");
        assert_eq!(std::fs::read(&path).unwrap(), damaged, "it is left as it is");
    }
    std::fs::write(&path, &bytes[..group]).unwrap();
    refused("with record 2 is missing, and somebody needs it");
    std::fs::remove_file(&path).unwrap();
    refused("with record 2 is missing, and somebody needs it");
    std::fs::write(&path, &bytes).unwrap();
    let journal = FileJournal::open_known(folder.path(), &known).unwrap();
    assert_eq!(replay(&journal, 0).unwrap().len(), 3);
}
