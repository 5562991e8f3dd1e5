//! Storage that fails on command, and the remains of failures.

use std::sync::Arc;

use alluvium_storage::{
    DiskStorage, Error, Failing, LocalStorage, MemoryStorage, SimulatedDisk, Storage,
};

use crate::twins::{MIB, assert_reads, bytes, write};

/// A run of mutating calls: two blobs, one of which is deleted.
fn run(storage: &dyn Storage) -> Result<(), Error> {
    let mut first = storage.create("first")?;
    first.append(&bytes(MIB / 2, 1))?;
    let mut second = storage.create("second")?;
    second.append(&bytes(2 * MIB, 2))?;
    first.append(&bytes(MIB, 3))?;
    first.seal()?;
    second.seal()?;
    storage.delete("first")
}

fn for_every_call<S: Storage>(new: impl Fn() -> S) {
    let whole = Failing::new(new());
    run(&whole).unwrap();
    assert_eq!(whole.calls(), 8);
    for call in 1..=8 {
        let storage = Failing::new(new());
        storage.fail_from(call);
        let error = run(&storage).unwrap_err();
        assert!(matches!(error, Error::Io { .. }), "{error}");
        assert_eq!(storage.calls(), call);
        // Sealed are those whose seal was not reached by the failure, and nothing else is left.
        let sealed: &[&str] = match call {
            1..=6 => &[],
            7 => &["first"],
            _ => &["first", "second"],
        };
        assert_eq!(storage.list("").unwrap(), sealed);
        assert!(storage.create("third").is_err() && storage.delete("first").is_err());
        if let Ok(first) = storage.open("first") {
            assert_reads(&*first, &[bytes(MIB / 2, 1), bytes(MIB, 3)].concat());
        }
        // Once it is mended, the run can be made again.
        storage.fail_from(u64::MAX);
        for name in sealed {
            storage.delete(name).unwrap();
        }
        run(&storage).unwrap();
    }
}

#[test]
fn a_failure_at_any_call_leaves_whole_blobs_only() {
    for_every_call(MemoryStorage::new);
    for_every_call(|| DiskStorage::open(Arc::new(SimulatedDisk::new(1))).unwrap());
    let directory = tempfile::tempdir().unwrap();
    let number = std::cell::Cell::new(0);
    for_every_call(|| {
        number.set(number.get() + 1);
        LocalStorage::open(directory.path().join(number.get().to_string())).unwrap()
    });
}

#[test]
fn an_append_to_a_full_disk_can_be_repeated_when_there_is_space() {
    let directory = tempfile::tempdir().unwrap();
    let storage = Failing::new(LocalStorage::open(directory.path()).unwrap());
    storage.limit(3 * MIB as u64);
    let pieces = [bytes(2 * MIB + 1, 1), bytes(MIB, 2), bytes(MIB - 1, 3)];
    let mut writer = storage.create("a").unwrap();
    writer.append(&pieces[0]).unwrap();
    for _ in 0..2 {
        let error = writer.append(&pieces[1]).unwrap_err();
        assert!(matches!(error, Error::Full { .. }), "{error}");
    }
    assert_eq!(writer.len(), 2 * MIB as u64 + 1);
    // A piece that still fits is taken.
    writer.append(&pieces[2]).unwrap();
    assert_eq!(storage.used(), 3 * MIB as u64);
    writer.append(b"x").unwrap_err();
    storage.free();
    writer.append(&pieces[1]).unwrap();
    let all = [&pieces[0][..], &pieces[2], &pieces[1]].concat();
    assert_reads(&*writer.seal().unwrap(), &all);
}

#[test]
fn damage_is_visible_to_readers_that_open_the_blob_afterwards() {
    let directory = tempfile::tempdir().unwrap();
    let storage = Failing::new(LocalStorage::open(directory.path()).unwrap());
    let all = bytes(2 * MIB, 1);
    let before = write(&storage, "a", &all);
    write(&storage, "b", &all);
    storage.flip("a", 8 * 5000 + 3);
    storage.flip("a", u64::MAX);

    let mut flipped = all.clone();
    flipped[5000] ^= 0b1000;
    assert_reads(&*storage.open("a").unwrap(), &flipped);
    storage.cut("a", 6000);
    assert_reads(&*storage.open("a").unwrap(), &flipped[..6000]);
    assert_reads(&*storage.open("b").unwrap(), &all);
    assert_reads(&*before, &all);
    storage.mend();
    assert_reads(&*storage.open("a").unwrap(), &all);

    storage.cut("c", 3);
    assert_reads(&*write(&storage, "c", &all), &all[..3]);
}
