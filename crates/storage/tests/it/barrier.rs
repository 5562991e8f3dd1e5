//! Making blobs durable.

use alluvium_storage::{Error, Failing, MemoryStorage, Storage};

use crate::twins::{MIB, assert_reads, bytes, each, write};

#[test]
fn sealed_blobs_are_made_durable_together() {
    each(|storage| {
        for (name, length) in [("a", 0), ("b", 10), ("c", 2 * MIB)] {
            write(&*storage, name, &bytes(length, 1));
        }
        storage.barrier(&[]).unwrap();
        storage.barrier(&["a", "b", "c"]).unwrap();
        assert_reads(&*storage.open("c").unwrap(), &bytes(2 * MIB, 1));
    });
}

#[test]
fn a_name_without_a_sealed_blob_is_refused_and_the_next_call_succeeds() {
    each(|storage| {
        write(&*storage, "a", b"a");
        let _unsealed = storage.create("b").unwrap();
        for name in ["b", "c"] {
            let error = storage.barrier(&["a", name]).unwrap_err();
            assert!(matches!(error, Error::Missing { operation: "sync", .. }), "{error}");
        }
        let error = storage.barrier(&["../a"]).unwrap_err();
        assert!(matches!(error, Error::InvalidName { .. }), "{error}");
        storage.barrier(&["a"]).unwrap();
    });
}

#[test]
fn it_fails_on_command() {
    let storage = Failing::new(MemoryStorage::new());
    write(&storage, "a", b"a");
    storage.fail_from(storage.calls() + 1);
    let error = storage.barrier(&["a"]).unwrap_err().to_string();
    assert!(error.starts_with("cannot sync failing:a: "), "{error}");
}
