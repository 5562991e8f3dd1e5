use std::path::Path;
use std::sync::Arc;

use alluvium_storage::{Blob, LocalStorage, MemoryStorage, Storage};
use alluvium_trace::StateTrace;
use alluvium_trace::memory::{MemoryBudget, StateContext, context};
use alluvium_trace::page::PageLimits;
use alluvium_trace::{Batch, BatchBuilder, Spine};
use differential_dataflow::trace::{Description, Trace, TraceReader};
use timely::progress::Antichain;

use crate::outcome::outcome;
use crate::reference::*;

/// As [`surround`], with files that are mapped.
fn surround_on_disk(memory: usize, directory: &Path) -> StateContext {
    surround_with(memory, Arc::new(LocalStorage::open(directory).unwrap()))
}

const SMALL: PageLimits = PageLimits { bytes: 200, updates: 3 };

fn updates() -> Vec<Update<u64>> {
    let numbers = 0..12_u8;
    numbers.map(|number| (vec![number / 3], vec![number; 9], u64::from(number % 2), 1)).collect()
}

/// The bytes of the file that a batch is in, which is the only one of its storage.
pub fn file_of(around: &StateContext) -> Vec<u8> {
    let storage = around.storage().unwrap();
    let names = storage.list("").unwrap();
    let [name] = names.as_slice() else { panic!("there is one file, not {names:?}") };
    storage.open(name).unwrap().bytes().to_vec()
}

pub fn blob(storage: &MemoryStorage, name: &str, bytes: &[u8]) -> Arc<dyn Blob> {
    let mut writer = storage.create(name).unwrap();
    writer.append(bytes).unwrap();
    writer.seal().unwrap()
}

/// What reading all of a file comes to: the rows, or why they cannot be had.
fn read(blob: Arc<dyn Blob>) -> Result<Reference<u64>, String> {
    let budget = MemoryBudget::unlimited();
    let batch = Batch::<u64>::open(blob, &budget).map_err(|error| error.to_string())?;
    outcome(|| contents(&batch))
}

#[test]
fn a_batch_goes_to_a_file_when_memory_is_used_up_in_the_middle_of_it() {
    let directory = tempfile::tempdir().unwrap();
    let around = surround_on_disk(40_000, directory.path());
    let mut builder = BatchBuilder::with_page_size(1000, &context::current());
    let mut all = Vec::new();
    for number in 0..5_000_u64 {
        let (key, value) = (number.to_be_bytes().to_vec(), vec![7; 20]);
        builder.push(&key, &value, &3, 1);
        all.push((key, value, 3, 1));
        // Beside what waits to be written, which is all of so small a file.
        assert!(around.budget().used() as u64 <= 40_000 + 50 * (number + 1));
    }
    let batch = builder.finish(all_times());
    assert!(batch.is_file() && batch.pages() > 100);
    assert!(around.budget().used() < 40_000, "{} bytes", around.budget().used());
    assert_eq!(contents(&batch), reference(&all));
    drop(batch);
    assert_eq!(around.budget().used(), 0);
    assert!(around.storage().unwrap().list("").unwrap().is_empty());
}

#[test]
fn a_file_goes_with_its_last_reader() {
    let around = surround(1);
    let batch = batch(&updates(), SMALL);
    assert!(batch.is_file());
    let cursor = batch.cursor();
    drop(batch);
    assert_eq!(around.storage().unwrap().list("").unwrap().len(), 1);
    assert_eq!(cursor.key(), Some([0].as_slice()));
    drop(cursor);
    assert!(around.storage().unwrap().list("").unwrap().is_empty());
}

#[test]
fn without_storage_all_stays_in_memory() {
    context::enter(StateContext::new(MemoryBudget::new(1), None));
    assert!(!batch(&updates(), SMALL).is_file());
}

#[test]
fn a_spine_moves_its_largest_layers_to_files_until_there_is_room() {
    let directory = tempfile::tempdir().unwrap();
    let around = surround_on_disk(100_000, directory.path());
    let mut spine = Spine::<u64>::in_context(&context::current());
    for epoch in 0..20_u64 {
        let rows = 0..(if epoch == 0 { 3_000 } else { 40 });
        let rows: Vec<_> =
            rows.map(|row: u64| (row.to_be_bytes().to_vec(), vec![1; 20], epoch, 1)).collect();
        let since = Antichain::from_elem(0);
        let (lower, upper) = (Antichain::from_elem(epoch), Antichain::from_elem(epoch + 1));
        let mut builder = BatchBuilder::new(&context::current());
        for (key, value, time, weight) in &rows {
            builder.push(key, value, time, *weight);
        }
        spine.insert(builder.finish(Description::new(lower, upper, since)));
        spine.set_physical_compaction(Antichain::from_elem(epoch + 1).borrow());
    }
    let mut places = Vec::new();
    spine.map_batches(|batch| places.push((batch.is_file(), batch.len())));
    assert!(around.budget().used() <= 100_000, "{} bytes", around.budget().used());
    assert_eq!(places[0], (true, 3_000), "{places:?}");
    assert!(places[1..].iter().any(|(is_file, _)| !is_file), "{places:?}");
}

#[test]
fn a_file_that_is_kept_is_opened_again() {
    let around = surround(1);
    let written = batch(&updates(), SMALL);
    let storage = MemoryStorage::new();
    let blob = blob(&storage, "kept", &file_of(&around));
    let opened = Batch::<u64>::open(Arc::clone(&blob), &MemoryBudget::unlimited()).unwrap();
    assert_eq!(opened.description(), written.description());
    assert_eq!((opened.len(), opened.pages()), (written.len(), written.pages()));
    assert_eq!(opened.limits(), SMALL);
    assert_eq!(contents(&opened), reference(&updates()));
    let other = Batch::<timely::order::Product<u64, u64>>::open(blob, &MemoryBudget::unlimited());
    assert!(other.unwrap_err().to_string().contains("its times are of another kind"));
}

#[test]
fn a_flipped_bit_is_an_error_with_file_and_place_or_changes_nothing() {
    let around = surround(1);
    let expected = reference(&updates());
    let _batch = batch(&updates(), SMALL);
    let bytes = file_of(&around);
    let storage = MemoryStorage::new();
    let (mut errors, quiet) = (0, std::panic::take_hook());
    std::panic::set_hook(Box::new(|_| {}));
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        match read(blob(&storage, "flipped", &flipped)) {
            Ok(rows) => assert_eq!(rows, expected, "bit {bit}"),
            Err(error) => {
                assert!(error.contains("mem:flipped"), "bit {bit}: {error}");
                assert!(error.contains("at byte"), "bit {bit}: {error}");
                errors += 1;
            }
        }
        storage.delete("flipped").unwrap();
    }
    std::panic::set_hook(quiet);
    // All bytes are under a checksum or are looked at.
    assert_eq!(errors, bytes.len() * 8);
}

#[test]
fn a_file_that_was_torn_is_an_error() {
    let around = surround(1);
    let _batch = batch(&updates(), SMALL);
    let bytes = file_of(&around);
    let storage = MemoryStorage::new();
    for length in 0..bytes.len() {
        let error = read(blob(&storage, "torn", &bytes[..length])).unwrap_err();
        assert!(error.contains("mem:torn is damaged"), "{length} bytes: {error}");
        storage.delete("torn").unwrap();
    }
}

#[test]
fn a_feature_that_is_not_known_is_refused_by_number() {
    let around = surround(1);
    let _batch = batch(&updates(), SMALL);
    let mut bytes = file_of(&around);
    bytes[8..16].copy_from_slice(&(1_u64 << 5).to_le_bytes());
    let checksum = xxhash_rust::xxh3::xxh3_64(&bytes[..4088]);
    bytes[4088..4096].copy_from_slice(&checksum.to_le_bytes());
    let error = read(blob(&MemoryStorage::new(), "later", &bytes)).unwrap_err();
    assert!(error.contains("needs feature 5 of the format"), "{error}");
}
