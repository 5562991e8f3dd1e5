use alluvium_trace::memory::StateContext;
use alluvium_trace::page::{Page, PageLimits};
use alluvium_trace::{BatchBuilder, PageTime};
use proptest::prelude::*;
use timely::order::Product;

use crate::reference::*;

fn a_batch_holds_what_was_pushed<T: TestTime>(updates: Vec<Update<T>>, world: World) {
    let batch = batch_in(&world, &updates);
    assert_eq!(contents(&batch), reference(&updates));
    for page in (0..batch.pages()).map(|page| batch.page(page)) {
        assert!(page.updates() <= world.limits.updates);
        assert_eq!(page.bytes().len(), page.layout().length as usize);
    }
    assert_eq!(batch.is_empty(), batch.pages() == 0);
}

proptest! {
    #[test]
    fn a_batch_of_epochs_holds_what_was_pushed(
        updates in any_updates::<u64>(60), world in any_world(),
    ) {
        a_batch_holds_what_was_pushed(updates, world);
    }

    #[test]
    fn a_batch_of_iterations_holds_what_was_pushed(
        updates in any_updates::<Product<u64, u64>>(60), world in any_world(),
    ) {
        a_batch_holds_what_was_pushed(updates, world);
    }
}

#[test]
fn full_pages_are_about_as_large_as_asked() {
    let mut builder = BatchBuilder::with_page_size(4096, &StateContext::default());
    for number in 0..10_000u64 {
        let key = (number / 3).to_be_bytes();
        builder.push(&key, &number.to_be_bytes(), &(number % 2), 1 + (number as i64 % 2));
    }
    let batch = builder.finish(all_times());
    assert_eq!(batch.len(), 10_000);
    let pages: Vec<&Page> = (0..batch.pages()).map(|page| batch.page(page)).collect();
    let (last, full) = pages.split_last().unwrap();
    assert!(last.bytes().len() <= 4096 + 32);
    for page in full {
        assert!((3072..=4096 + 32).contains(&page.bytes().len()), "{}", page.bytes().len());
    }
    assert!(batch.bytes() >= full.iter().map(|page| page.bytes().len()).sum());
}

#[test]
fn a_row_larger_than_a_page_has_a_page_of_its_own() {
    let large = vec![1; 100_000];
    let updates = [
        (vec![0], vec![0], 0, 1),
        (vec![0], large.clone(), 0, 1),
        (vec![0], vec![2], 0, 1),
        (large.clone(), large, 0, 1),
        (vec![2], vec![0], 0, 1),
    ];
    let batch = batch(&updates, Default::default());
    assert_eq!(batch.pages(), 5);
    assert_eq!(contents(&batch), reference(&updates));
}

#[test]
fn times_are_numbered_in_one_byte_or_in_two() {
    for times in [255, 256, 257, 1000] {
        let updates: Vec<Update<u64>> =
            (0..times).map(|number| (vec![(number % 5) as u8], vec![], number * 7, 1)).collect();
        let batch = batch(&updates, PageLimits { bytes: 1 << 20, updates: 1 << 16 });
        assert_eq!(batch.pages(), 1);
        assert_eq!(u64::from(batch.page(0).layout().times), times);
        assert_eq!(contents(&batch), reference(&updates));
    }
}

#[test]
#[should_panic(expected = "left the range of a 64-bit integer")]
fn a_weight_that_overflows_is_an_error() {
    let mut builder = BatchBuilder::new(&StateContext::default());
    builder.push(b"key", b"val", &0u64, i64::MAX);
    builder.push(b"key", b"val", &0u64, 1);
}

#[test]
fn a_time_is_loaded_as_it_was_stored() {
    let mut lanes = [0; 2];
    Product::new(3u64, u64::MAX).store(&mut lanes);
    assert_eq!(Product::load(&lanes), Product::new(3u64, u64::MAX));
}

#[test]
fn batches_are_read_on_other_threads() {
    let batch = batch(&[(vec![1], vec![2], 3u64, 4)], Default::default());
    let clone = batch.clone();
    let read = std::thread::spawn(move || contents(&clone)).join().unwrap();
    assert_eq!(read, contents(&batch));
}
