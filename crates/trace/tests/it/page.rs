use alluvium_trace::memory::MemoryBudget;
use alluvium_trace::page::{Layout, PageBuilder};
use proptest::prelude::*;
use timely::order::Product;

use crate::reference::*;

/// A page returns the keys, values and updates that were pushed, by number.
fn a_page_holds_what_was_pushed<T: TestTime>(updates: Vec<Update<T>>) {
    let expected = reference(&updates);
    let mut sorted = updates;
    sorted.sort();
    let mut builder = PageBuilder::new(Default::default(), &MemoryBudget::unlimited());
    for (key, val, time, weight) in &sorted {
        assert!(builder.push(key, val, time, *weight).is_none());
    }
    let Some(page) = builder.finish() else {
        return assert!(expected.is_empty());
    };
    let mut found = Reference::new();
    for key in 0..page.keys() {
        for value in page.values_of(key) {
            for update in page.updates_of(value) {
                let row = (page.key(key).to_vec(), page.value(value).to_vec(), page.time(update));
                found.insert(row, page.weight(update));
            }
        }
    }
    assert_eq!(found, expected);
    assert_eq!(page.updates(), expected.len());
    assert_eq!(Layout::read(page.bytes()), Ok(*page.layout()));
    assert!(builder.finish().is_none(), "the next page starts empty");
}

proptest! {
    #[test]
    fn a_page_of_epochs_holds_what_was_pushed(updates in any_updates::<u64>(40)) {
        a_page_holds_what_was_pushed(updates);
    }

    #[test]
    fn a_page_of_iterations_holds_what_was_pushed(updates in any_updates::<Product<u64, u64>>(40)) {
        a_page_holds_what_was_pushed(updates);
    }

    #[test]
    fn a_header_of_any_bytes_is_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        let mut bytes = bytes;
        let _ = Layout::read(&bytes);
        if let Some(start) = bytes.first_chunk_mut() {
            *start = [1, 0, 1, 0];
            let read = Layout::read(&bytes);
            prop_assert_eq!(read.is_ok(), bytes.len() >= 72);
            if let Ok(layout) = read {
                prop_assert_eq!(&layout.header()[..], &bytes[..72]);
            }
        }
    }
}

/// FNV-1a, 64 bits: enough to see that bytes have changed.
fn hash(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

fn bytes_of<T: TestTime>(updates: &[(&str, &str, T, i64)]) -> Vec<u8> {
    let mut builder = PageBuilder::new(Default::default(), &MemoryBudget::unlimited());
    for (key, val, time, weight) in updates {
        assert!(builder.push(key.as_bytes(), val.as_bytes(), time, *weight).is_none());
    }
    builder.finish().unwrap().bytes().to_vec()
}

#[test]
fn constant_columns_are_left_out_of_a_page() {
    let bytes = bytes_of(&[("ab", "x", 7u64, 1), ("cd", "y", 7, 1)]);
    let mut expected = vec![1, 0, 1, 0];
    for field in [1u32, 96, 2, 2, 2, 1, 2, 1, 0, 88, 0, 0, 72, 0, 80, 0, 0] {
        expected.extend(field.to_le_bytes());
    }
    expected.extend(b"xy\0\0\0\0\0\0");
    expected.extend(7u64.to_le_bytes());
    expected.extend(b"abcd\0\0\0\0");
    assert_eq!(bytes, expected);
}

#[test]
fn the_bytes_of_a_page_with_all_columns_have_not_changed() {
    let epochs = bytes_of(&[
        ("", "x", 7u64, 1),
        ("", "yy", 3, -2),
        ("", "yy", 7, 1),
        ("key", "", 9, i64::MIN),
    ]);
    let iterations = bytes_of(&[
        ("a", "x", Product::new(1u64, 2u64), 1),
        ("a", "y", Product::new(1, 3), 1),
        ("b", "z", Product::new(0, 9), 1),
    ]);
    assert_eq!((epochs.len(), hash(&epochs)), (200, 10_455_520_509_890_915_430));
    assert_eq!((iterations.len(), hash(&iterations)), (152, 12_764_879_015_252_604_987));
}
