//! Fuzzed files: reading any bytes terminates, with rows or with an error.
//!
//! `PROPTEST_CASES=1000000 cargo test -p alluvium-trace fuzz` tries more of them.

use alluvium_storage::MemoryStorage;
use alluvium_trace::Batch;
use alluvium_trace::memory::MemoryBudget;
use alluvium_trace::page::{Layout, PageLimits};
use proptest::prelude::*;
use proptest::sample::Index;
use timely::order::Product;
use xxhash_rust::xxh3::xxh3_64;

use crate::file::{blob, file_of};
use crate::outcome::outcome;
use crate::reference::*;

/// Reads all there is, forward and by seeking, and counts the updates.
///
/// # Panics
///
/// If reading panics with anything but an error that names the file.
fn read<T: TestTime>(bytes: &[u8]) -> Result<usize, String> {
    let blob = blob(&MemoryStorage::new(), "fuzzed", bytes);
    let batch = Batch::<T>::open(blob, &MemoryBudget::unlimited()).map_err(|e| e.to_string())?;
    let read = outcome(|| {
        let mut count = 0;
        let mut cursor = batch.cursor();
        while let Some(key) = cursor.key().map(<[u8]>::to_vec) {
            while cursor.val().is_some() {
                count += cursor.updates().count();
                cursor.step_val();
            }
            cursor.step_key();
            batch.cursor().seek_key(&key);
        }
        count
    });
    read.inspect_err(|error| {
        assert!(error.contains("mem:fuzzed is damaged at byte"), "{error}");
    })
}

/// A change to the bytes of a file.
#[derive(Clone, Debug)]
enum Change {
    Flip(Index, u8),
    /// Writes a number that is plausible as a count, an offset or a length.
    Number(Index, u32),
    Cut(Index),
    Repeat(Index, Index),
}

fn any_change() -> impl Strategy<Value = Change> {
    let number = prop_oneof![0..100_u32, Just(u32::MAX), Just(1 << 31), 4000..6000_u32];
    prop_oneof![
        4 => (any::<Index>(), 1..=255_u8).prop_map(|(at, bits)| Change::Flip(at, bits)),
        8 => (any::<Index>(), number).prop_map(|(at, number)| Change::Number(at, number)),
        1 => any::<Index>().prop_map(Change::Cut),
        1 => (any::<Index>(), any::<Index>()).prop_map(|(from, to)| Change::Repeat(from, to)),
    ]
}

fn change(bytes: &mut Vec<u8>, change: &Change) {
    if bytes.len() < 8 {
        return;
    }
    match change {
        Change::Flip(at, bits) => *at.get_mut(bytes) ^= bits,
        Change::Number(at, number) => {
            let at = at.index(bytes.len() - 4) / 4 * 4;
            bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
        }
        Change::Cut(at) => bytes.truncate(at.index(bytes.len())),
        Change::Repeat(from, to) => {
            let (from, to) = (from.index(bytes.len()), to.index(bytes.len()));
            bytes.copy_within(from.min(to)..from.max(to), 0);
        }
    }
}

const TRAILER: usize = 48;

fn number(bytes: &[u8], at: usize) -> usize {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize
}

/// Changes the only page of a file, or its metadata, and corrects all checksums.
fn change_inside(bytes: &mut Vec<u8>, in_page: bool, changes: &[Change]) {
    let trailer = bytes.split_off(bytes.len() - TRAILER);
    let (start, length) = (number(&trailer, 0), number(&trailer, 8));
    let mut metadata = bytes.split_off(start);
    assert_eq!(metadata.len(), length);
    let mut page = bytes.split_off(4096);
    let old = xxh3_64(&page).to_le_bytes();
    let place = metadata.windows(8).position(|window| window == old).unwrap();
    for one in changes {
        // The page stays where it is.
        let (part, length) =
            if in_page { (&mut page, start - 4096) } else { (&mut metadata, length) };
        change(part, one);
        part.resize(length, 0);
    }
    if in_page {
        metadata[place..place + 8].copy_from_slice(&xxh3_64(&page).to_le_bytes());
    }
    let mut trailer: Vec<u8> = trailer[..16].to_vec();
    trailer.extend(xxh3_64(&metadata).to_le_bytes());
    trailer.extend([0; 8]);
    trailer.extend(xxh3_64(&trailer).to_le_bytes());
    trailer.extend(b"alluvium");
    bytes.extend(page);
    bytes.extend(metadata);
    bytes.extend(trailer);
}

/// The file of a batch that is on one page.
fn one_page<T: TestTime>(updates: &[Update<T>]) -> Option<Vec<u8>> {
    let world = World::in_files(PageLimits { bytes: 1 << 20, updates: 1 << 16 });
    let batch = batch_in(&world, updates);
    batch.is_file().then(|| file_of(&world.context))
}

fn a_changed_file_is_read_or_refused<T: TestTime>(
    updates: &[Update<T>],
    in_page: bool,
    changes: &[Change],
) {
    let Some(mut bytes) = one_page(updates) else { return };
    assert_eq!(read::<T>(&bytes), Ok(reference(updates).len()));
    change_inside(&mut bytes, in_page, &[]);
    assert_eq!(read::<T>(&bytes), Ok(reference(updates).len()), "this alone changes nothing");
    change_inside(&mut bytes, in_page, changes);
    let _ = read::<T>(&bytes);
}

proptest! {
    #[test]
    fn any_bytes_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..6000)) {
        read::<u64>(&bytes).unwrap_err();
    }

    #[test]
    fn a_changed_file_is_refused(
        updates in any_updates::<u64>(20), changes in prop::collection::vec(any_change(), 1..4),
    ) {
        let Some(mut bytes) = one_page(&updates) else { return Ok(()) };
        let before = bytes.clone();
        changes.iter().for_each(|one| change(&mut bytes, one));
        if bytes == before {
            return Ok(());
        }
        read::<u64>(&bytes).unwrap_err();
    }

    #[test]
    fn a_corrupt_page_of_epochs_is_read_or_refused(
        updates in any_updates::<u64>(20), changes in prop::collection::vec(any_change(), 1..4),
    ) {
        a_changed_file_is_read_or_refused(&updates, true, &changes);
    }

    #[test]
    fn a_corrupt_page_of_iterations_is_read_or_refused(
        updates in any_updates::<Product<u64, u64>>(20),
        changes in prop::collection::vec(any_change(), 1..4),
    ) {
        a_changed_file_is_read_or_refused(&updates, true, &changes);
    }

    #[test]
    fn corrupt_metadata_is_read_or_refused(
        updates in any_updates::<u64>(20), changes in prop::collection::vec(any_change(), 1..4),
    ) {
        a_changed_file_is_read_or_refused(&updates, false, &changes);
    }

    #[test]
    fn a_header_of_any_fields_is_checked(
        fields in prop::array::uniform17(prop_oneof![0..400_u32, any::<u32>()]),
        bytes in prop::collection::vec(any::<u8>(), 72..400),
    ) {
        let mut bytes = bytes;
        bytes[..4].copy_from_slice(&[1, 0, 1, 0]);
        for (at, field) in (4..).step_by(4).zip(fields) {
            bytes[at..at + 4].copy_from_slice(&field.to_le_bytes());
        }
        let _ = Layout::read(&bytes).unwrap().check(&bytes);
    }
}
