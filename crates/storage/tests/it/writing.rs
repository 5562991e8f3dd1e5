//! Writing blobs.

use alluvium_storage::{Error, FAULT_AROUND as PIECE};

use crate::twins::{MIB, assert_reads, bytes, each};

#[test]
fn appends_of_any_size_are_read_back() {
    let runs: &[&[usize]] = &[
        &[],
        &[0],
        &[1],
        &[PIECE - 1],
        &[PIECE],
        &[PIECE + 1],
        &[PIECE, 1],
        &[1, PIECE],
        &[PIECE - 1, 1, 1],
        &[3, PIECE - 4, 0, 2, 5 * PIECE + 7, 11],
        &[2 * PIECE, PIECE, 3 * PIECE],
        &[4097; 700],
    ];
    each(|storage| {
        for (run, sizes) in runs.iter().enumerate() {
            let name = format!("run-{run}");
            let all = bytes(sizes.iter().sum(), run as u64);
            let mut writer = storage.create(&name).unwrap();
            assert!(writer.is_empty());
            let mut rest = &all[..];
            for &size in *sizes {
                let piece;
                (piece, rest) = rest.split_at(size);
                writer.append(piece).unwrap();
                assert_eq!(writer.len(), (all.len() - rest.len()) as u64);
                assert!(writer.held() <= PIECE.min(all.len() - rest.len()));
            }
            assert_reads(&*writer.seal().unwrap(), &all);
            assert_reads(&*storage.open(&name).unwrap(), &all);
        }
    });
}

#[test]
fn a_blob_is_not_visible_before_it_is_sealed() {
    each(|storage| {
        let mut writer = storage.create("a").unwrap();
        writer.append(&bytes(3 * MIB, 0)).unwrap();
        assert!(storage.list("").unwrap().is_empty());
        assert!(matches!(storage.open("a"), Err(Error::Missing { .. })));
        assert!(matches!(storage.delete("a"), Err(Error::Missing { .. })));
        writer.seal().unwrap();
        assert_eq!(storage.list("").unwrap(), ["a"]);
        storage.delete("a").unwrap();
        assert!(storage.list("").unwrap().is_empty());
    });
}

#[test]
fn a_sealed_blob_cannot_be_written_any_more() {
    each(|storage| {
        let mut writer = storage.create("a").unwrap();
        writer.append(&bytes(10, 0)).unwrap();
        let blob = writer.seal().unwrap();
        for error in [writer.append(&bytes(3 * MIB, 1)).unwrap_err(), writer.seal().unwrap_err()] {
            assert!(matches!(error, Error::Sealed { .. }), "{error}");
        }
        drop(writer);
        assert_reads(&*blob, &bytes(10, 0));
        assert_reads(&*storage.open("a").unwrap(), &bytes(10, 0));
    });
}

#[test]
fn a_writer_that_is_dropped_leaves_nothing() {
    each(|storage| {
        for length in [0, 10, 3 * MIB] {
            let mut writer = storage.create("a").unwrap();
            writer.append(&bytes(length, 0)).unwrap();
            drop(writer);
            assert!(storage.list("").unwrap().is_empty());
            assert!(matches!(storage.open("a"), Err(Error::Missing { .. })));
        }
        storage.create("a").unwrap().seal().unwrap();
    });
}
