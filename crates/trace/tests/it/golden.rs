//! Golden files in `tests/golden`, written by earlier versions: they are read, and the same batches have the same bytes.
//!
//! After a deliberate change of the format, write them again: `ALLUVIUM_WRITE_GOLDEN=1 cargo test -p alluvium-trace golden`.

use std::path::PathBuf;
use std::sync::Arc;

use alluvium_storage::MemoryStorage;
use alluvium_trace::memory::MemoryBudget;
use alluvium_trace::page::{Layout, PageLimits};
use alluvium_trace::{Batch, BoundColumn};
use timely::order::Product;

use crate::file::{blob, file_of};
use crate::pruning::Least;
use crate::reference::*;

/// Checks that the batch of these updates has the bytes of the golden file, and the golden file these updates.
fn is_golden<T: TestTime>(name: &str, updates: &[Update<T>], limits: PageLimits) -> Vec<Layout> {
    is_golden_in(&World::in_files(limits), name, updates)
}

fn is_golden_in<T: TestTime>(world: &World, name: &str, updates: &[Update<T>]) -> Vec<Layout> {
    let written = batch_in(world, updates);
    let bytes = file_of(&world.context);
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("ALLUVIUM_WRITE_GOLDEN").is_some() {
        std::fs::write(&path, &bytes).unwrap();
    }
    let kept = std::fs::read(&path).unwrap();
    let opened =
        Batch::<T>::open(blob(&MemoryStorage::new(), name, &kept), &MemoryBudget::unlimited());
    let opened = opened.unwrap();
    assert_eq!(contents(&opened), reference(updates), "{name} is read");
    assert_eq!(opened.description(), written.description());
    assert!(kept == bytes, "{name} would be written otherwise");
    (0..opened.pages()).map(|page| *opened.page(page).layout()).collect()
}

const LARGE: PageLimits = PageLimits { bytes: 16 << 10, updates: 1 << 16 };

#[test]
fn pages_with_constant_columns() {
    let rows = (0..12_u8).map(|number| (vec![number / 3, number], vec![number; 9], 7_u64, 1));
    let pages =
        is_golden("constant-1", &rows.collect::<Vec<_>>(), PageLimits { bytes: 200, updates: 3 });
    assert_eq!(pages.len(), 4);
    for page in pages {
        let absent = [page.key_offsets, page.value_offsets, page.value_starts, page.update_starts];
        assert_eq!((absent, page.time_indexes, page.weights), ([0; 4], 0, 0));
    }
}

#[test]
fn a_batch_with_a_summary_of_the_column_by_which_it_is_pruned() {
    let world = World::in_files(PageLimits { bytes: 16 << 10, updates: 4 });
    let by = Least::new(BoundColumn::Value { at: 1, width: 4, null: 2 });
    let context = world.context.with_pruning(Arc::new(by));
    let row = |number: u8| {
        let null = if number == 3 { 0b100 } else { 0 };
        (vec![number], vec![null, number, 1, 0, 0], 7_u64, 1)
    };
    let rows: Vec<_> = (0..12).map(row).collect();
    let pages = is_golden_in(&World { context, ..world }, "summary-1", &rows);
    assert_eq!(pages.len(), 3);
}

#[test]
fn a_page_with_all_columns() {
    let updates: Vec<Update<u64>> = vec![
        (vec![], b"x".to_vec(), 7, 1),
        (vec![], b"yy".to_vec(), 3, -2),
        (vec![], b"yy".to_vec(), 7, 1),
        (b"key".to_vec(), vec![], 9, i64::MIN),
    ];
    let [page] = is_golden("all-columns-1", &updates, LARGE)[..] else { panic!("one page") };
    let present = [page.key_offsets, page.value_offsets, page.value_starts, page.update_starts];
    assert!(present.iter().chain([&page.time_indexes, &page.weights]).all(|&at| at > 0));
}

#[test]
fn a_page_whose_times_are_numbered_in_two_bytes() {
    let updates: Vec<Update<u64>> =
        (0..300).map(|number| (vec![(number % 5) as u8], vec![], number * 7, 1)).collect();
    let [page] = is_golden("many-times-1", &updates, LARGE)[..] else { panic!("one page") };
    assert_eq!((page.times, page.lanes), (300, 1));
}

#[test]
fn pages_of_iterations_over_which_a_key_and_a_value_continue() {
    let updates: Vec<Update<Product<u64, u64>>> =
        (0..7).map(|number| (vec![1], vec![2], Product::new(number / 2, number % 2), 1)).collect();
    let pages = is_golden("iterations-1", &updates, PageLimits { bytes: 16 << 10, updates: 2 });
    assert_eq!(pages.len(), 4);
    assert!(pages.iter().all(|page| page.lanes == 2));
}
