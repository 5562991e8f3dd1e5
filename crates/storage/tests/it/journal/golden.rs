//! A journal of every version that can be read.
//!
//! `ALLUVIUM_WRITE_GOLDEN=1` writes the latest again.

use std::fs;
use std::path::Path;

use alluvium_storage::{FileJournal, Journal};

use super::twins::replay;

const NAME: &str = "00000000000000000000.journal";

fn records() -> Vec<Vec<u8>> {
    (0..6).map(|number| vec![number; 100 * usize::from(number)]).collect()
}

#[test]
fn a_golden_journal_is_replayed() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/1.journal");
    let directory = tempfile::tempdir().unwrap();
    if std::env::var_os("ALLUVIUM_WRITE_GOLDEN").is_some() {
        let journal = FileJournal::open(directory.path()).unwrap();
        // Groups of three records.
        for group in records().chunks(3) {
            let positions = group.iter().map(|record| journal.append(record).unwrap());
            journal.sync(positions.last().unwrap()).unwrap();
        }
        drop(journal);
        // This cuts the zeros off.
        FileJournal::open(directory.path()).unwrap();
        fs::copy(directory.path().join(NAME), &golden).unwrap();
    }
    fs::copy(&golden, directory.path().join(NAME)).unwrap();
    let journal = FileJournal::open(directory.path()).unwrap();
    assert_eq!(replay(&journal, 0).unwrap(), records());
    // Nothing had to be cut off.
    let size = fs::metadata(directory.path().join(NAME)).unwrap().len();
    assert_eq!(size, fs::metadata(golden).unwrap().len());
}
