//! Parts of blobs. That they are read as other blobs are is tested with the twins.

use std::sync::Arc;

use alluvium_storage::{Blob, BlobSlice, Error, MemoryStorage, Storage, TemporaryBlob};

use crate::twins::{assert_reads, bytes, write};

const PAGE: u64 = 4096;

#[test]
fn a_slice_says_which_bytes_of_which_blob_it_is() {
    let blob = write(&MemoryStorage::new(), "pack", &bytes(3 * PAGE as usize, 1));
    assert_eq!(blob.offset(), 0);
    let slice = BlobSlice::new(blob, PAGE..2 * PAGE + 10).unwrap();
    assert_eq!((slice.name(), slice.offset(), slice.len()), ("pack", PAGE, PAGE + 10));
    assert_eq!(slice.place(), "mem:pack (bytes 4096 to 8202)");
    let error = slice.read(0..PAGE + 11).unwrap_err().to_string();
    assert_eq!(
        error,
        "cannot read bytes 0 to 4107 of mem:pack (bytes 4096 to 8202), which has 4106"
    );
    let part = BlobSlice::new(Arc::new(slice), 10..20).unwrap();
    assert_eq!((part.name(), part.offset(), part.len()), ("pack", PAGE + 10, 10));
}

#[test]
fn a_slice_that_leaves_its_blob_is_refused() {
    let blob = write(&MemoryStorage::new(), "pack", &[0; 100]);
    #[expect(clippy::reversed_empty_ranges, reason = "these must be refused")]
    for range in [0..101, 100..101, 101..101, 60..40, 0..u64::MAX] {
        let refused = BlobSlice::new(blob.clone(), range.clone());
        assert!(matches!(refused, Err(Error::OutOfBounds { .. })), "{range:?}");
    }
    for range in [0..100, 100..100, 0..0, 30..31] {
        BlobSlice::new(blob.clone(), range).unwrap();
    }
}

#[test]
fn a_blob_is_deleted_with_the_last_of_its_slices() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let all = bytes(3 * PAGE as usize, 1);
    let blob = write(&*storage, "pack", &all);
    let owner = TemporaryBlob::new(storage.clone(), blob.clone());
    let slices = (0..3).map(|part| {
        let slice = BlobSlice::new(blob.clone(), part * PAGE..(part + 1) * PAGE).unwrap();
        (slice, owner.clone())
    });
    let mut slices: Vec<_> = slices.collect();
    drop((blob, owner));
    let mut held = None;
    while let Some((slice, owner)) = slices.pop() {
        assert_eq!(storage.list("").unwrap(), ["pack"]);
        assert_reads(&slice, &all[slices.len() * PAGE as usize..][..PAGE as usize]);
        held = Some(slice.bytes());
        drop((slice, owner));
    }
    assert!(storage.list("").unwrap().is_empty());
    assert!(held.unwrap() == all[..PAGE as usize]);
}

/// The pages of the mapping that are in memory.
#[cfg(target_os = "linux")]
#[test]
fn advice_and_populating_reach_the_pages_of_the_slice_and_no_others() {
    use std::slice::from_ref;

    use alluvium_storage::{Advice, LocalStorage};

    use crate::local::resident;
    use crate::twins::MIB;

    let directory = tempfile::tempdir().unwrap();
    let storage = LocalStorage::open(directory.path()).unwrap();
    let blob = write(&storage, "pack", &bytes(4 * MIB, 1));
    let mib = MIB as u64;
    let all = 0..blob.len();
    blob.advise(from_ref(&all), Advice::DontNeed).unwrap();
    // It ends within a page.
    let slice = BlobSlice::new(blob.clone(), mib..2 * mib - 100).unwrap();
    assert!(slice.is_mapped());
    assert_eq!(resident(&*blob).0, 0);
    slice.populate(0..slice.len()).unwrap();
    assert_eq!(resident(&*blob).0, MIB);
    blob.populate(all).unwrap();
    let populated = resident(&*blob).0;
    slice.advise(from_ref(&(0..slice.len())), Advice::DontNeed).unwrap();
    assert_eq!(populated - resident(&*blob).0, MIB);
}
