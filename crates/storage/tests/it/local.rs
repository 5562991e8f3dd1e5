//! Behaviour of files alone.

use std::env;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use alluvium_storage::{Advice, Blob, Error, FAULT_AROUND as PIECE, LocalStorage, Storage};

use crate::twins::{MIB, assert_reads, bytes, test_process, write};

#[test]
fn files_above_32_kibibytes_are_mapped_and_others_are_not() {
    let directory = tempfile::tempdir().unwrap();
    let storage = LocalStorage::open(directory.path()).unwrap();
    for (length, mapped) in [(0, false), (32 << 10, false), ((32 << 10) + 1, true), (4 * MIB, true)]
    {
        let name = format!("b{length}");
        assert_eq!(write(&storage, &name, &bytes(length, 0)).is_mapped(), mapped);
        assert_eq!(storage.open(&name).unwrap().is_mapped(), mapped);
    }
}

#[test]
fn blobs_are_files_of_the_directory_and_writers_leave_no_others() {
    let directory = tempfile::tempdir().unwrap();
    let storage = LocalStorage::open(directory.path()).unwrap();
    let all = bytes(2 * MIB + 9, 0);
    write(&storage, "a", &all);
    let mut dropped = storage.create("b").unwrap();
    dropped.append(&all).unwrap();
    drop(dropped);
    storage.create("a").map(drop).unwrap_err();
    let files: Vec<_> =
        fs::read_dir(directory.path()).unwrap().map(|f| f.unwrap().file_name()).collect();
    assert_eq!(files, ["a"]);
    assert!(fs::read(directory.path().join("a")).unwrap() == all);
}

#[test]
fn a_blob_sealed_through_one_handle_is_visible_through_another() {
    let directory = tempfile::tempdir().unwrap();
    let one = LocalStorage::open(directory.path().join("not/yet/there")).unwrap();
    let other = LocalStorage::open(one.directory()).unwrap();
    let mut writer = one.create("a").unwrap();
    other.create("a").map(drop).unwrap_err();
    writer.seal().unwrap();
    assert_eq!(other.list("").unwrap(), ["a"]);
    other.delete("a").unwrap();
    one.open("a").unwrap_err();
}

#[test]
fn other_files_and_directories_are_not_listed() {
    let directory = tempfile::tempdir().unwrap();
    let storage = LocalStorage::open(directory.path()).unwrap();
    fs::write(directory.path().join(".hidden"), "").unwrap();
    fs::write(directory.path().join("with space"), "").unwrap();
    fs::create_dir(directory.path().join("directory")).unwrap();
    assert!(storage.list("").unwrap().is_empty());
    storage.create("directory").map(drop).unwrap_err();
    storage.open("directory").unwrap_err();
    storage.delete("directory").unwrap_err();
    assert!(directory.path().join("directory").exists());
}

#[test]
fn a_blob_written_elsewhere_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let all = bytes(3 * MIB, 0);
    fs::write(directory.path().join("a"), &all).unwrap();
    assert_reads(&*LocalStorage::open(directory.path()).unwrap().open("a").unwrap(), &all);
}

/// Since 6.18 Linux maps what one call has written as a whole.
#[cfg(target_os = "linux")]
#[test]
fn an_access_maps_only_the_bytes_around_it() {
    let directory = tempfile::tempdir().unwrap();
    let storage = LocalStorage::open(directory.path()).unwrap();
    let mut writer = storage.create("a").unwrap();
    writer.append(&bytes(1000, 0)).unwrap();
    writer.append(&bytes(16 * MIB, 0)).unwrap();
    let blob = writer.seal().unwrap();
    for number in 0..16 {
        std::hint::black_box(blob.bytes()[number * MIB + 300_000]);
    }
    let (mapped, _) = resident(&*blob);
    assert!(mapped > 0 && mapped <= 16 * PIECE, "{mapped}");
}

/// An access would end the process.
#[cfg(target_os = "linux")]
#[test]
fn populating_bytes_that_the_device_cannot_read_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let storage = LocalStorage::open(directory.path()).unwrap();
    let blob = write(&storage, "a", &bytes(MIB, 0));
    let file = fs::File::options().write(true).open(directory.path().join("a")).unwrap();
    file.set_len(64 << 10).unwrap();
    blob.populate(0..64 << 10).unwrap();
    blob.populate(70_000..70_000).unwrap();
    let error = blob.populate(60_000..70_000).unwrap_err().to_string();
    assert!(error.contains("/a: ") && error.contains("cut short"), "{error}");
    assert!(matches!(blob.populate(0..2 * MIB as u64), Err(Error::OutOfBounds { .. })));
}

#[test]
fn files_grow_by_whole_pieces_until_they_are_sealed() {
    let directory = tempfile::tempdir().unwrap();
    let storage = LocalStorage::open(directory.path()).unwrap();
    let written = || fs::metadata(directory.path().join(".a.unsealed")).unwrap().len();
    let mut writer = storage.create("a").unwrap();
    for size in [1, 4097, PIECE - 1, 3 * PIECE + 1, 10, PIECE, 2 * PIECE - 3, MIB - 1] {
        writer.append(&bytes(size, 0)).unwrap();
        assert_eq!(written(), writer.len() / PIECE as u64 * PIECE as u64);
    }
}

/// The resident bytes of a file's only mapping in this process, and the mapping's flags.
#[cfg(target_os = "linux")]
pub fn resident(blob: &dyn Blob) -> (usize, procfs::process::VmFlags) {
    use procfs::process::{MMapPath, Process};

    let maps = Process::myself().unwrap().smaps().unwrap();
    let path = MMapPath::Path(blob.place().into());
    let map = maps.into_iter().find(|map| map.pathname == path).unwrap();
    (map.extension.map["Rss"] as usize, map.extension.vm_flags)
}

#[test]
#[cfg(target_os = "linux")]
fn advice_reaches_the_pages_it_is_for() {
    let directory = tempfile::tempdir().unwrap();
    let storage = LocalStorage::open(directory.path()).unwrap();
    let blob = write(&storage, "a", &bytes(4 * MIB + 1, 0));
    let touch = || blob.bytes().chunks(512).map(|chunk| u64::from(chunk[0])).sum::<u64>();
    let end = blob.len();
    // Random for life.
    assert!(resident(&*blob).1.contains(procfs::process::VmFlags::RR));
    touch();
    let all = resident(&*blob).0;
    assert!(all > 4 * MIB);
    let mib = MIB as u64;
    // The second and the fourth, neither end at a page's. At most so much stays: where the system maps 2 MiB at
    // once it gives them back at once, and this was once seen with the first beside the second.
    blob.advise(&[mib + 1..2 * mib - 1, 3 * mib + 5..4 * mib - 7], Advice::DontNeed).unwrap();
    assert!(resident(&*blob).0 <= all - 2 * MIB);
    // The last page, of which the file has one byte.
    touch();
    blob.advise(&[end - 1..end, end..end], Advice::DontNeed).unwrap();
    assert!(resident(&*blob).0 < all);
    touch();
    blob.advise(&[0..mib, mib..end], Advice::DontNeed).unwrap();
    assert_eq!(resident(&*blob).0, 0);
    assert!(blob.read(0..end).unwrap() == bytes(4 * MIB + 1, 0));
    assert_eq!(resident(&*blob).0, 0, "a read goes through the mapping");
}

/// A limit to the size of files, in a process of its own, stands for a disk that takes part of a write.
#[test]
fn an_append_that_was_interrupted_has_appended_nothing() {
    let directory = tempfile::tempdir().unwrap();
    // Some 2 MB or 4 MB, as the shell counts in units of 512 or 1024 bytes.
    let mut process =
        test_process("trap '' XFSZ; ulimit -f 4000;", "local::an_append_is_interrupted");
    let output = process.env("ALLUVIUM_TEST_DIRECTORY", directory.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
    let expected = [bytes(MIB + 10, 1), bytes(100, 3)].concat();
    let storage = LocalStorage::open(directory.path()).unwrap();
    assert_reads(&*storage.open("a").unwrap(), &expected);
    assert_eq!(storage.list("").unwrap(), ["a"]);
}

#[test]
#[ignore = "needs a limit to the size of files"]
fn an_append_is_interrupted() {
    let Some(directory) = env::var_os("ALLUVIUM_TEST_DIRECTORY") else { return };
    let storage = LocalStorage::open(&directory).unwrap();
    let mut writer = storage.create("a").unwrap();
    writer.append(&bytes(MIB + 10, 1)).unwrap();
    for _ in 0..2 {
        let error = writer.append(&bytes(6 * MIB, 2)).unwrap_err();
        let Error::Io { cause, .. } = &error else { panic!("{error}") };
        assert_eq!(cause.kind(), ErrorKind::FileTooLarge);
        assert_eq!(writer.len(), MIB as u64 + 10);
    }
    // The written part of it is given back.
    assert_eq!(fs::metadata(Path::new(&directory).join(".a.unsealed")).unwrap().len(), MIB as u64);
    writer.append(&bytes(100, 3)).unwrap();
    writer.seal().unwrap();
}

/// Run it as
/// `unshare -rm sh -c 'mount -t tmpfs -o size=5m none /mnt; ALLUVIUM_TEST_DIRECTORY=/mnt cargo test … -- --ignored full'`.
#[test]
#[ignore = "needs a file system of 5 MiB"]
fn a_full_disk_is_an_error_of_its_own_and_deletions_free_space() {
    let Some(directory) = env::var_os("ALLUVIUM_TEST_DIRECTORY") else { return };
    let full = |error: Error| assert!(matches!(error, Error::Full { .. }), "{error}");
    let storage = LocalStorage::open(&directory).unwrap();
    write(&storage, "old", &bytes(5 * MIB - (64 << 10), 0));

    let mut writer = storage.create("new").unwrap();
    writer.append(&bytes(MIB / 2, 1)).unwrap();
    full(writer.append(&bytes(2 * MIB, 2)).unwrap_err());
    // The written part of it is given back.
    assert_eq!(fs::metadata(Path::new(&directory).join(".new.unsealed")).unwrap().len(), 0);
    // This fits into what waits in memory.
    writer.append(&bytes(MIB / 4, 3)).unwrap();
    let mut small = storage.create("small").unwrap();
    small.append(&bytes(MIB / 4, 4)).unwrap();
    full(small.seal().unwrap_err());
    assert_eq!(storage.list("").unwrap(), ["old"]);

    storage.delete("old").unwrap();
    writer.append(&bytes(2 * MIB, 2)).unwrap();
    let all = [bytes(MIB / 2, 1), bytes(MIB / 4, 3), bytes(2 * MIB, 2)].concat();
    assert_reads(&*writer.seal().unwrap(), &all);
    write(&storage, "small", &bytes(MIB / 4, 4));
    storage.delete("new").unwrap();
    storage.delete("small").unwrap();
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
}
