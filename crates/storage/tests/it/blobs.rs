//! Reading blobs.

use std::slice::from_ref;
use std::sync::Arc;

use alluvium_storage::{Advice, Blob, Error};

use crate::twins::{MIB, assert_reads, bytes, each, write};

const LENGTHS: [usize; 6] = [0, 1, 4096, MIB, MIB + 1, 3 * MIB + 5];

#[test]
fn every_range_within_a_blob_can_be_read() {
    each(|storage| {
        for length in LENGTHS {
            let all = bytes(length, 1);
            let blob = write(&*storage, &format!("b{length}"), &all);
            let positions = [0, 1, 4095, 4096, 4097, length / 2, length.saturating_sub(1), length];
            for start in positions {
                for end in positions.into_iter().filter(|&end| start <= end && end <= length) {
                    let read = blob.read(start as u64..end as u64).unwrap();
                    assert!(read == all[start..end], "{start}..{end} of {length}");
                }
            }
        }
    });
}

#[test]
fn a_range_that_leaves_a_blob_is_refused() {
    each(|storage| {
        for length in LENGTHS {
            let blob = write(&*storage, &format!("b{length}"), &bytes(length, 1));
            let end = length as u64;
            #[expect(clippy::reversed_empty_ranges, reason = "these must be refused")]
            for range in
                [0..end + 1, end..end + 1, end + 1..end + 1, 1..0, end + 1..end, 0..u64::MAX]
            {
                let read = blob.read(range.clone());
                assert!(matches!(read, Err(Error::OutOfBounds { .. })), "{range:?} of {length}");
                let advised = blob.advise(&[0..end, range.clone()], Advice::DontNeed);
                assert!(matches!(advised, Err(Error::OutOfBounds { .. })), "{range:?} of {length}");
            }
        }
    });
}

#[test]
fn advice_of_any_alignment_changes_no_bytes() {
    each(|storage| {
        for length in LENGTHS {
            let all = bytes(length, 2);
            let blob = write(&*storage, &format!("b{length}"), &all);
            let end = length as u64;
            let middle = end / 2;
            let ranges =
                [0..0, 0..end, end..end, middle..end, end.saturating_sub(1)..end, middle..middle];
            let held = blob.bytes();
            for advice in [Advice::DontNeed, Advice::WillNeed, Advice::WillNeed, Advice::DontNeed] {
                blob.advise(&ranges, advice).unwrap();
                blob.advise(&[], advice).unwrap();
                assert_reads(&*blob, &all);
                assert!(held == all);
            }
        }
    });
}

#[test]
fn an_open_blob_survives_its_deletion() {
    each(|storage| {
        for length in LENGTHS {
            let (old, new) = (bytes(length, 3), bytes(length, 4));
            let sealed = write(&*storage, "a", &old);
            let opened = storage.open("a").unwrap();
            let held = opened.bytes();
            storage.delete("a").unwrap();
            assert!(matches!(storage.delete("a"), Err(Error::Missing { .. })));
            let other = write(&*storage, "a", &new);
            assert_reads(&*sealed, &old);
            assert_reads(&*opened, &old);
            opened.advise(from_ref(&(0..opened.len())), Advice::DontNeed).unwrap();
            drop((sealed, opened));
            assert!(held == old);
            assert_reads(&*other, &new);
            storage.delete("a").unwrap();
        }
    });
}

#[test]
fn blobs_are_read_from_several_threads() {
    each(|storage| {
        let all = bytes(2 * MIB, 5);
        let blob: Arc<dyn Blob> = write(&*storage, "a", &all);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..4 {
                        assert_reads(&*blob, &all);
                        blob.advise(from_ref(&(0..blob.len())), Advice::DontNeed).unwrap();
                    }
                });
            }
        });
    });
}
