//! Names of blobs.

use alluvium_storage::Error;

use crate::twins::{each, write};

fn invalid<T>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::InvalidName { .. }))
}

#[test]
fn letters_digits_hyphens_underscores_and_dots_name_a_blob() {
    each(|storage| {
        let long = storage.longest_name();
        for name in ["a", "Z", "0", "-", "_", "a.", "a..b", "batch-0_1.A", "a.unsealed", &long] {
            assert_eq!(write(&*storage, name, name.as_bytes()).name(), storage.whole(name));
            assert_eq!(storage.open(name).unwrap().bytes(), name);
            assert_eq!(storage.open(name).unwrap().name(), storage.whole(name));
        }
    });
}

#[test]
fn other_names_are_refused_by_every_method() {
    each(|storage| {
        let long = storage.longest_name() + "x";
        for name in
            ["", ".", "..", ".a", "a/b", "/a", "../a", "a\\b", "a b", "a\0", "ä", "a\n", &long]
        {
            assert!(invalid(storage.create(name)), "{name:?}");
            assert!(invalid(storage.open(name)), "{name:?}");
            assert!(invalid(storage.delete(name)), "{name:?}");
        }
    });
}

#[test]
fn a_name_that_is_sealed_or_being_written_is_refused() {
    each(|storage| {
        let mut writer = storage.create("a").unwrap();
        assert!(matches!(storage.create("a"), Err(Error::Exists { .. })));
        writer.seal().unwrap();
        assert!(matches!(storage.create("a"), Err(Error::Exists { .. })));
        assert_eq!(storage.open("a").unwrap().len(), 0);
        storage.delete("a").unwrap();
        assert_eq!(write(&*storage, "a", b"anew").bytes(), "anew");
    });
}

#[test]
fn names_are_listed_by_prefix_in_order() {
    each(|storage| {
        assert!(storage.list("").unwrap().is_empty());
        for name in ["b-10", "a", "b-2", "B", "b", "c.b"] {
            write(&*storage, name, b"");
        }
        let _unsealed = storage.create("b-3").unwrap();
        assert_eq!(storage.list("").unwrap(), ["B", "a", "b", "b-10", "b-2", "c.b"]);
        assert_eq!(storage.list("b").unwrap(), ["b", "b-10", "b-2"]);
        assert_eq!(storage.list("b-2").unwrap(), ["b-2"]);
        assert!(storage.list("/").unwrap().is_empty());
        assert!(storage.list(".").unwrap().is_empty());
    });
}
