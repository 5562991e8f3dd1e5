//! Messages of errors.

use std::fs;

use alluvium_storage::{Error, Failing, LocalStorage, MemoryStorage, Storage};

use crate::twins::write;

fn says<T>(result: Result<T, Error>) -> String {
    result.err().unwrap().to_string()
}

#[test]
fn errors_in_memory_name_the_blob_and_the_operation() {
    let storage = MemoryStorage::new();
    let blob = write(&storage, "a", b"abc");
    assert_eq!(says(storage.create("a")), "cannot create mem:a: it exists, or is being written");
    assert_eq!(says(storage.open("b")), "cannot open mem:b: there is no such blob");
    assert_eq!(says(storage.delete("b")), "cannot delete mem:b: there is no such blob");
    assert_eq!(says(blob.read(1..4)), "cannot read bytes 1 to 4 of mem:a, which has 3");
    assert_eq!(
        says(storage.open("../b")),
        "`../b` cannot name a blob: a name has 1 to 200 ASCII letters, digits, `-`, `_` and `.`, \
         and does not start with a dot"
    );
}

#[test]
fn errors_of_files_name_the_path_the_operation_and_the_cause() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("blobs");
    let storage = LocalStorage::open(&path).unwrap();
    let blob = write(&storage, "a", b"abc");
    let shown = path.display();
    assert_eq!(blob.place(), format!("{shown}/a"));
    assert_eq!(
        says(storage.create("a")),
        format!("cannot create {shown}/a: it exists, or is being written")
    );
    assert_eq!(says(storage.open("b")), format!("cannot open {shown}/b: there is no such blob"));
    assert_eq!(
        says(storage.delete("b")),
        format!("cannot delete {shown}/b: there is no such blob")
    );
    assert_eq!(
        says(blob.read(2..9)),
        format!("cannot read bytes 2 to 9 of {shown}/a, which has 3")
    );

    fs::remove_dir_all(&path).unwrap();
    let gone = "No such file or directory (os error 2)";
    assert_eq!(says(storage.create("c")), format!("cannot create {shown}/c: {gone}"));
    assert_eq!(says(storage.list("")), format!("cannot list {shown}: {gone}"));

    fs::write(&path, "a file").unwrap();
    let error = says(LocalStorage::open(&path));
    assert_eq!(error, format!("cannot open {shown}: File exists (os error 17)"));
}

#[test]
fn a_full_disk_is_an_error_of_its_own() {
    let storage = Failing::new(MemoryStorage::new());
    storage.limit(2);
    let mut writer = storage.create("a").unwrap();
    let error = writer.append(b"abc").unwrap_err();
    assert!(matches!(error, Error::Full { .. }));
    assert_eq!(error.to_string(), "cannot append to failing:a: no room is left (no storage space)");
}
