use std::path::Path;
use std::sync::Arc;

use alluvium_storage::{Blob, LocalStorage, MemoryStorage, Storage};
use alluvium_trace::StateTrace;
use alluvium_trace::memory::{MemoryBudget, StateContext};
use alluvium_trace::page::PageLimits;
use alluvium_trace::{Batch, BatchBuilder, BoundColumn, Spine};
use differential_dataflow::trace::{Description, Trace, TraceReader};
use timely::progress::Antichain;

use crate::outcome::outcome;
use crate::pruning::Least;
use crate::reference::*;

/// A context with so many bytes of memory, and mapped files for the rest.
fn on_disk(memory: usize, directory: &Path) -> StateContext {
    with_storage(memory, Arc::new(LocalStorage::open(directory).unwrap()))
}

const SMALL: PageLimits = PageLimits { bytes: 200, updates: 3 };

fn updates() -> Vec<Update<u64>> {
    let numbers = 0..12_u8;
    numbers.map(|number| (vec![number / 3], vec![number; 9], u64::from(number % 2), 1)).collect()
}

/// The bytes of the only file of the context's storage.
pub fn file_of(context: &StateContext) -> Vec<u8> {
    let storage = context.storage().unwrap();
    let names = storage.list("").unwrap();
    let [name] = names.as_slice() else { panic!("there is one file, not {names:?}") };
    storage.open(name).unwrap().bytes().to_vec()
}

pub fn blob(storage: &MemoryStorage, name: &str, bytes: &[u8]) -> Arc<dyn Blob> {
    let mut writer = storage.create(name).unwrap();
    writer.append(bytes).unwrap();
    writer.seal().unwrap()
}

/// All rows of a file, or the error of reading them.
fn read(blob: Arc<dyn Blob>) -> Result<Reference<u64>, String> {
    let budget = MemoryBudget::unlimited();
    let batch = Batch::<u64>::open(blob, &budget).map_err(|error| error.to_string())?;
    outcome(|| contents(&batch))
}

#[test]
fn a_batch_that_exceeds_the_memory_continues_in_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let context = on_disk(40_000, directory.path());
    let mut builder = BatchBuilder::with_page_size(1000, &context);
    let mut all = Vec::new();
    for number in 0..5_000_u64 {
        let (key, value) = (number.to_be_bytes().to_vec(), vec![7; 20]);
        builder.push(&key, &value, &3, 1);
        all.push((key, value, 3, 1));
        // Beside what waits to be written, which is all of so small a file.
        assert!(context.budget().used() as u64 <= 40_000 + 50 * (number + 1));
    }
    let batch = builder.finish(all_times());
    assert!(batch.is_file() && batch.pages() > 100);
    assert!(context.budget().used() < 40_000, "{} bytes", context.budget().used());
    assert_eq!(contents(&batch), reference(&all));
    drop(batch);
    assert_eq!(context.budget().used(), 0);
    assert!(context.storage().unwrap().list("").unwrap().is_empty());
}

#[test]
fn a_file_is_deleted_with_its_last_reader() {
    let world = World::in_files(SMALL);
    let context = &world.context;
    let batch = batch_in(&world, &updates());
    assert!(batch.is_file());
    let cursor = batch.cursor();
    drop(batch);
    assert_eq!(context.storage().unwrap().list("").unwrap().len(), 1);
    assert_eq!(cursor.key(), Some([0].as_slice()));
    drop(cursor);
    assert!(context.storage().unwrap().list("").unwrap().is_empty());
}

#[test]
fn without_storage_everything_stays_in_memory() {
    let context = StateContext::new(MemoryBudget::new(1), None);
    assert!(!batch_in(&World { context, limits: SMALL, erratic: None }, &updates()).is_file());
}

#[test]
fn a_spine_spills_its_largest_layers_while_memory_is_short() {
    let directory = tempfile::tempdir().unwrap();
    let context = on_disk(100_000, directory.path());
    let mut spine = Spine::<u64>::in_context(&context);
    for epoch in 0..20_u64 {
        let rows = 0..(if epoch == 0 { 3_000 } else { 40 });
        let rows: Vec<_> =
            rows.map(|row: u64| (row.to_be_bytes().to_vec(), vec![1; 20], epoch, 1)).collect();
        let since = Antichain::from_elem(0);
        let (lower, upper) = (Antichain::from_elem(epoch), Antichain::from_elem(epoch + 1));
        let mut builder = BatchBuilder::new(&context);
        for (key, value, time, weight) in &rows {
            builder.push(key, value, time, *weight);
        }
        spine.insert(builder.finish(Description::new(lower, upper, since)));
        spine.set_physical_compaction(Antichain::from_elem(epoch + 1).borrow());
    }
    let mut places = Vec::new();
    spine.map_batches(|batch| places.push((batch.is_file(), batch.len())));
    assert!(context.budget().used() <= 100_000, "{} bytes", context.budget().used());
    assert_eq!(places[0], (true, 3_000), "{places:?}");
    assert!(places[1..].iter().any(|(is_file, _)| !is_file), "{places:?}");
}

#[test]
fn a_kept_file_can_be_opened_again() {
    let world = World::in_files(SMALL);
    let written = batch_in(&world, &updates());
    let storage = MemoryStorage::new();
    let blob = blob(&storage, "kept", &file_of(&world.context));
    let opened = Batch::<u64>::open(Arc::clone(&blob), &MemoryBudget::unlimited()).unwrap();
    assert_eq!(opened.description(), written.description());
    assert_eq!((opened.len(), opened.pages()), (written.len(), written.pages()));
    assert_eq!(opened.limits(), SMALL);
    assert_eq!(contents(&opened), reference(&updates()));
    let other = Batch::<timely::order::Product<u64, u64>>::open(blob, &MemoryBudget::unlimited());
    assert!(other.unwrap_err().to_string().contains("its times are of another kind"));
}

#[test]
fn a_flipped_bit_is_an_error_that_names_file_and_offset() {
    a_flipped_bit_is_an_error(&World::in_files(SMALL));
}

#[test]
fn a_flipped_bit_of_a_file_with_a_summary_is_an_error() {
    let by = Least::new(BoundColumn::Value { at: 1, width: 8, null: 7 });
    let world = World::in_files(SMALL);
    let context = world.context.with_pruning(Arc::new(by));
    a_flipped_bit_is_an_error(&World { context, ..world });
}

fn a_flipped_bit_is_an_error(world: &World) {
    let expected = reference(&updates());
    let _batch = batch_in(world, &updates());
    let bytes = file_of(&world.context);
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
fn a_torn_file_is_an_error() {
    let world = World::in_files(SMALL);
    let _batch = batch_in(&world, &updates());
    let bytes = file_of(&world.context);
    let storage = MemoryStorage::new();
    for length in 0..bytes.len() {
        let error = read(blob(&storage, "torn", &bytes[..length])).unwrap_err();
        assert!(error.contains("mem:torn is damaged"), "{length} bytes: {error}");
        storage.delete("torn").unwrap();
    }
}

#[test]
fn an_unknown_feature_is_refused_by_number() {
    let world = World::in_files(SMALL);
    let _batch = batch_in(&world, &updates());
    let mut bytes = file_of(&world.context);
    bytes[8..16].copy_from_slice(&(1_u64 << 5).to_le_bytes());
    let checksum = xxhash_rust::xxh3::xxh3_64(&bytes[..4088]);
    bytes[4088..4096].copy_from_slice(&checksum.to_le_bytes());
    let error = read(blob(&MemoryStorage::new(), "later", &bytes)).unwrap_err();
    assert!(error.contains("needs feature 5 of the format"), "{error}");
}
