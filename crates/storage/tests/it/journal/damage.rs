//! Damaged bytes, and bytes that were never a journal.

use std::sync::Arc;

use alluvium_storage::{Disk, Error, Journal, SimulatedDisk};
use proptest::prelude::*;
use xxhash_rust::xxh3::xxh3_64;

use super::recovery::{expected, written};
use super::twins::{SMALL, open, range, record, replay};

/// The records of a journal, opened again.
fn read(disk: &Arc<dyn Disk>) -> Result<Vec<Vec<u8>>, Error> {
    let journal = open(disk, SMALL)?;
    replay(&journal, range(&journal).start)
}

#[test]
fn a_flipped_bit_is_an_error_with_its_place_or_ends_the_last_group() {
    let (simulated, disk, names) = written();
    let mut random = fastrand::Rng::with_seed(1);
    let all = expected(0..40);
    let mut errors = 0;
    for (number, name) in names.iter().enumerate() {
        let bytes = simulated.bytes(name).unwrap();
        let is_last = number == names.len() - 1;
        let first: usize = name[..20].parse().unwrap();
        let records = (40 - first).min(12);
        let end = 64 + records * 314;
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << random.u8(..8);
            simulated.replace(name, &damaged);
            match read(&disk) {
                Err(error) => {
                    let Error::Corrupt { place, offset, .. } = &error else { panic!("{error}") };
                    assert_eq!(place, &format!("simulated:{name}"));
                    // Where the damaged header, group or record begins.
                    assert!((*offset..offset + 314).contains(&(at as u64)), "{at}: {error}");
                    assert_eq!(simulated.bytes(name).unwrap(), damaged, "it is left as it is");
                    errors += 1;
                }
                // No later group says that the last one was durable.
                Ok(records) if is_last && (end - 314..end).contains(&at) => {
                    assert!(records == all[..39], "{at}");
                }
                Ok(records) => {
                    assert!(is_last && at >= end, "bit {at} of {name} is not noticed");
                    assert!(records == all);
                }
            }
        }
        simulated.replace(name, &bytes);
    }
    assert!(errors > 12_000, "{errors} errors");
}

#[test]
fn zeros_before_what_is_durable_are_an_error() {
    let (simulated, disk, names) = written();
    let name = &names[3];
    let bytes = simulated.bytes(name).unwrap();
    // The last of the four groups is whole, and vouches for the others.
    for start in (64..64 + 3 * 314 - 512).step_by(10) {
        let mut damaged = bytes.clone();
        damaged[start..start + 512].fill(0);
        simulated.replace(name, &damaged);
        let error = read(&disk).err().unwrap();
        assert!(matches!(error, Error::Corrupt { .. }), "{error}");
    }
}

/// Damage that happens while the journal is open.
#[test]
fn a_replay_ends_with_its_first_error() {
    let (simulated, disk, names) = written();
    let journal = open(&disk, SMALL).unwrap();
    let mut bytes = simulated.bytes(&names[1]).unwrap();
    bytes[64 + 314 + 100] ^= 1;
    simulated.replace(&names[1], &bytes);
    let mut replay = journal.replay(alluvium_storage::Position(5)).unwrap();
    for number in 5..13 {
        assert_eq!(replay.next().unwrap().unwrap().1, record(number, 250));
    }
    let error = replay.next().unwrap().unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "simulated:{} is damaged at byte {}: the checksum of a record does not match; restore \
             it from a backup",
            names[1],
            64 + 314 + 48
        )
    );
    assert!(replay.next().is_none());
}

/// A record whose bytes are those of the segment it is in, so that they look like groups.
#[test]
fn records_that_look_like_groups_are_not_taken_for_them() {
    let simulated = SimulatedDisk::new(3);
    let disk: Arc<dyn Disk> = Arc::new(simulated.clone());
    let journal = open(&disk, SMALL).unwrap();
    for _ in 0..5 {
        let position = journal.append(b"first").unwrap();
        journal.sync(position).unwrap();
    }
    let copy = simulated.bytes("00000000000000000000.journal").unwrap();
    let position = journal.append(&copy[64..600]).unwrap();
    journal.sync(position).unwrap();
    drop(journal);
    // The header of the last group is torn: what it holds must not vouch for it.
    let mut bytes = simulated.bytes("00000000000000000000.journal").unwrap();
    let last = 64 + 5 * (48 + 16 + 5);
    bytes[last] ^= 1;
    simulated.replace("00000000000000000000.journal", &bytes);
    assert_eq!(read(&disk).unwrap().len(), 5);
}

/// A header with a right checksum, so that arbitrary bytes after it are read.
fn header(first: u64) -> Vec<u8> {
    let mut header = [0; 64];
    header[..8].copy_from_slice(b"alluvjnl");
    header[8] = 1;
    header[16..24].copy_from_slice(&first.to_le_bytes());
    header[32..40].fill(0xFF);
    let checksum = xxh3_64(&header[..56]);
    header[56..].copy_from_slice(&checksum.to_le_bytes());
    header.into()
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(
        bytes in prop::collection::vec(any::<u8>(), 0..2000),
        with_header: bool,
        first in prop_oneof![Just(0), Just(12), any::<u64>()],
        is_last: bool,
    ) {
        let (simulated, disk, names) = written();
        let bytes = if with_header { [header(first), bytes].concat() } else { bytes };
        let name = match is_last {
            true => format!("{first:020}.journal"),
            false => names[1].clone(),
        };
        simulated.replace(&name, &bytes);
        // It ends, and no record is one that was never appended.
        if let Ok(records) = read(&disk) {
            prop_assert!(records.iter().all(|record| expected(0..40).contains(record)));
        }
    }

    #[test]
    fn any_change_is_noticed_or_ends_the_last_segment(
        bytes in prop::collection::vec(any::<u8>(), 1..200),
        segment in 0..4_usize,
        at in 0..4000_usize,
    ) {
        let (simulated, disk, names) = written();
        let mut changed = simulated.bytes(&names[segment]).unwrap();
        let at = at.min(changed.len());
        let end = (at + bytes.len()).min(changed.len());
        changed[at..end].copy_from_slice(&bytes[..end - at]);
        simulated.replace(&names[segment], &changed);
        match read(&disk) {
            Ok(records) => prop_assert!(records == expected(0..40)[..records.len()]),
            Err(error) => prop_assert!(matches!(error, Error::Corrupt { .. }), "{error}"),
        }
    }
}
