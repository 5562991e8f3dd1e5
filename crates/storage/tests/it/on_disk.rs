//! Blobs on a simulated disk. The behaviour of all storage is tested with the twins.

use std::sync::Arc;

use alluvium_storage::{Disk, DiskStorage, Error, SimulatedDisk, Storage};

use crate::twins::{MIB, assert_reads, bytes, write};

fn open(disk: &SimulatedDisk) -> DiskStorage {
    DiskStorage::open(Arc::new(disk.clone())).unwrap()
}

/// Also its other sectors may be there or not.
#[test]
fn after_a_crash_a_blob_that_was_not_made_durable_is_there_gone_or_torn() {
    let all = bytes(5000, 1);
    let (mut whole, mut gone, mut torn) = (0, 0, 0);
    for seed in 0..200 {
        let disk = SimulatedDisk::new(seed);
        let storage = open(&disk);
        write(&storage, "durable", &all);
        storage.barrier(&["durable"]).unwrap();
        write(&storage, "other", &all);
        disk.crash();
        let storage = open(&disk);
        assert_reads(&*storage.open("durable").unwrap(), &all);
        match storage.open("other") {
            Ok(blob) if blob.bytes() == all => whole += 1,
            Ok(_) => torn += 1,
            Err(error) => {
                assert!(matches!(error, Error::Missing { .. }), "{error}");
                gone += 1;
            }
        }
    }
    assert!(whole > 10 && gone > 10 && torn > 10, "{whole}, {gone}, {torn}");
}

#[test]
fn after_a_crash_a_deleted_blob_may_be_back_until_the_next_barrier() {
    let mut back = 0;
    for seed in 0..50 {
        let disk = SimulatedDisk::new(seed);
        let storage = open(&disk);
        write(&storage, "a", b"a");
        write(&storage, "b", b"b");
        storage.barrier(&["a", "b"]).unwrap();
        storage.delete("a").unwrap();
        storage.barrier(&["b"]).unwrap();
        storage.delete("b").unwrap();
        disk.crash();
        let left = open(&disk).list("").unwrap();
        assert!(left.is_empty() || left == ["b"], "{left:?}");
        back += left.len();
    }
    assert!((1..50).contains(&back), "{back}");
}

#[test]
fn what_is_left_unsealed_is_deleted_when_the_disk_is_opened() {
    let disk = SimulatedDisk::new(1);
    let storage = open(&disk);
    write(&storage, "a", b"a");
    std::mem::forget(storage.create("b").unwrap());
    assert_eq!(disk.list().unwrap(), [".b.unsealed", "a"]);
    let storage = open(&disk);
    assert_eq!(disk.list().unwrap(), ["a"]);
    write(&storage, "b", b"b");
}

/// The calls of a disk: create, two writes, cutting to size, rename, two syncs, removal.
#[test]
fn a_call_that_fails_leaves_whole_blobs_and_can_be_repeated_unless_it_is_a_sync() {
    let all = [bytes(3000, 1), bytes(700, 2)].concat();
    let run = |storage: &dyn Storage| {
        let mut writer = storage.create("a")?;
        writer.append(&all[..3000]).or_else(|_| writer.append(&all[..3000]))?;
        writer.append(&all[3000..]).or_else(|_| writer.append(&all[3000..]))?;
        let blob = writer.seal().or_else(|_| writer.seal())?;
        assert_reads(&*blob, &all);
        storage.barrier(&["a"])?;
        storage.delete("a")
    };
    for call in 1..=8 {
        let disk = SimulatedDisk::new(call);
        let storage = open(&disk);
        disk.fail_at(call);
        let ran = run(&storage);
        let left = storage.list("").unwrap();
        match call {
            2..=5 => assert!(ran.is_ok() && left.is_empty()),
            _ => {
                let error = ran.unwrap_err().to_string();
                assert!(error.ends_with("fails on command"), "{error}");
                let expected: &[&str] = if call == 1 { &[] } else { &["a"] };
                assert_eq!(left, expected);
            }
        }
        for name in left {
            assert_reads(&*storage.open(&name).unwrap(), &all);
        }
        assert_eq!(storage.barrier(&[]).is_err(), (6..=7).contains(&call));
    }
}

#[test]
fn on_a_full_disk_an_append_can_be_repeated_when_there_is_space() {
    let disk = SimulatedDisk::new(1);
    let storage = open(&disk);
    disk.limit(MIB as u64);
    let mut writer = storage.create("a").unwrap();
    writer.append(&bytes(MIB / 2, 1)).unwrap();
    let error = writer.append(&bytes(MIB, 2)).unwrap_err();
    assert!(matches!(error, Error::Full { .. }), "{error}");
    assert_eq!(writer.len(), MIB as u64 / 2);
    disk.mend();
    writer.append(&bytes(10, 3)).unwrap();
    let all = [bytes(MIB / 2, 1), bytes(10, 3)].concat();
    assert_reads(&*writer.seal().unwrap(), &all);
    assert_reads(&*storage.open("a").unwrap(), &all);
}
