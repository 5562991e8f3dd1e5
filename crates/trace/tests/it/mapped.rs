//! Mapped files, simulated by blobs in memory that record how they are read.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use alluvium_storage::{Advice, Blob, BlobWriter, Error, MemoryStorage, Result, Storage};
use alluvium_trace::memory::{MemoryBudget, StateContext};
use alluvium_trace::page::PageLimits;
use alluvium_trace::{Batch, Cursors, merge};
use bytes::Bytes;
use proptest::prelude::*;
use timely::progress::Antichain;

use crate::cursor::{agrees, any_move};
use crate::outcome::outcome;
use crate::reference::*;

/// A memory storage whose blobs claim to be mapped files.
#[derive(Debug, Default)]
pub struct MappedMemory {
    storage: MemoryStorage,
    /// How many bytes were read, of all of its blobs.
    pub read: Arc<AtomicU64>,
}

/// Such a blob.
#[derive(Debug)]
pub struct MappedBlob {
    blob: Arc<dyn Blob>,
    /// The ranges that were requested.
    pub asked: Mutex<Vec<Range<u64>>>,
    /// The ranges that were read past the mapping.
    pub read: Mutex<Vec<Range<u64>>>,
    /// Bytes from here on cannot be read.
    pub fails_from: AtomicU64,
    /// How many bytes were read, of all blobs of the storage.
    all_read: Arc<AtomicU64>,
}

impl MappedBlob {
    pub fn new(blob: Arc<dyn Blob>) -> Self {
        Self::counted(blob, Arc::default())
    }

    fn counted(blob: Arc<dyn Blob>, all_read: Arc<AtomicU64>) -> Self {
        let fails_from = AtomicU64::new(u64::MAX);
        Self { blob, asked: Mutex::default(), read: Mutex::default(), fails_from, all_read }
    }
}

struct Writer(Box<dyn BlobWriter>, Arc<AtomicU64>);

impl BlobWriter for Writer {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.0.append(bytes)
    }
    fn len(&self) -> u64 {
        self.0.len()
    }
    fn held(&self) -> usize {
        self.0.held()
    }
    fn seal(&mut self) -> Result<Arc<dyn Blob>> {
        Ok(Arc::new(MappedBlob::counted(self.0.seal()?, Arc::clone(&self.1))))
    }
}

impl Storage for MappedMemory {
    fn create(&self, name: &str) -> Result<Box<dyn BlobWriter>> {
        Ok(Box::new(Writer(self.storage.create(name)?, Arc::clone(&self.read))))
    }
    fn open(&self, name: &str) -> Result<Arc<dyn Blob>> {
        Ok(Arc::new(MappedBlob::counted(self.storage.open(name)?, Arc::clone(&self.read))))
    }
    fn list(&self, prefix: &str) -> Result<Vec<String>> {
        self.storage.list(prefix)
    }
    fn delete(&self, name: &str) -> Result<()> {
        self.storage.delete(name)
    }
    fn barrier(&self, names: &[&str]) -> Result<()> {
        self.storage.barrier(names)
    }
}

impl Blob for MappedBlob {
    fn name(&self) -> &str {
        self.blob.name()
    }
    fn place(&self) -> String {
        self.blob.place()
    }
    fn len(&self) -> u64 {
        self.blob.len()
    }
    fn bytes(&self) -> Bytes {
        self.blob.bytes()
    }
    fn is_mapped(&self) -> bool {
        true
    }
    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        self.read.lock().unwrap().push(range.clone());
        self.all_read.fetch_add(range.end - range.start, Ordering::Relaxed);
        self.blob.read(range)
    }
    fn populate(&self, range: Range<u64>) -> Result<()> {
        if range.end > self.fails_from.load(Ordering::Relaxed) {
            let cause = std::io::Error::other("the device fails on command");
            return Err(Error::Io { place: self.place(), operation: "read", cause });
        }
        self.all_read.fetch_add(range.end - range.start, Ordering::Relaxed);
        self.blob.populate(range)
    }
    fn advise(&self, ranges: &[Range<u64>], advice: Advice) -> Result<()> {
        if advice == Advice::WillNeed {
            let full = ranges.iter().filter(|range| !range.is_empty());
            self.asked.lock().unwrap().extend(full.cloned());
        }
        self.blob.advise(ranges, advice)
    }
}

fn key(number: u32) -> Vec<u8> {
    (2 * number).to_be_bytes().to_vec()
}

/// A batch of these numbers, some ten on a page.
fn numbers(numbers: impl Iterator<Item = u32>) -> Batch<u64> {
    numbers_in(&World::in_memory(SMALL), numbers)
}

/// As [`numbers`], in this world.
fn numbers_in(world: &World, numbers: impl Iterator<Item = u32>) -> Batch<u64> {
    let rows: Vec<_> = numbers.map(|number| (key(number), vec![7; 20], 0, 1)).collect();
    batch_in(world, &rows)
}

const SMALL: PageLimits = PageLimits { bytes: 400, updates: 1 << 16 };

/// The file that a batch is written to, as a mapped one.
fn file_of(batch: impl FnOnce(&World) -> Batch<u64>) -> Arc<MappedBlob> {
    let world = World::in_files(SMALL);
    let _written = batch(&world);
    let storage = world.context.storage().unwrap();
    let blob = storage.open(&storage.list("").unwrap()[0]).unwrap();
    Arc::new(MappedBlob::new(blob))
}

/// A mapped file of these numbers, read with so much memory.
fn file_of_numbers(all: impl Iterator<Item = u32>, memory: usize) -> (Arc<MappedBlob>, Batch<u64>) {
    let blob = file_of(|world| numbers_in(world, all));
    let file = Batch::open(blob.clone(), &MemoryBudget::new(memory)).unwrap();
    (blob, file)
}

#[test]
fn a_merge_reads_files_in_sequence_past_their_mappings() {
    let (first, one) = file_of_numbers((0..4000).step_by(2), 1 << 20);
    let (second, other) = file_of_numbers((1..4000).step_by(2), 1 << 20);
    let merged =
        merge(&[one, other], Antichain::new().borrow(), all_times(), &StateContext::default());
    assert_eq!(contents(&merged), contents(&numbers(0..4000)));
    for blob in [first, second] {
        assert!(blob.asked.lock().unwrap().is_empty());
        let read = blob.read.lock().unwrap();
        assert_eq!(read[0].start, 4096);
        assert!(read.windows(2).all(|pair| pair[0].end == pair[1].start), "{read:?}");
        // One part in 32 of the memory that there is, for both.
        assert!(read.iter().all(|range| range.end - range.start <= 16_384), "{read:?}");
        assert!(read.len() < 20, "{} reads", read.len());
    }
}

#[test]
fn a_scan_holds_one_window_at_a_time() {
    let memory = MemoryBudget::new(1 << 20);
    let (blob, _) = file_of_numbers(0..10_000, 0);
    let file = Batch::<u64>::open(blob, &memory).unwrap();
    let before = memory.used();
    let mut cursor = file.scan();
    let mut most = 0;
    while cursor.key().is_some() {
        most = most.max(memory.used() - before);
        cursor.step_key();
    }
    assert!((1..=2 * 32_768).contains(&most), "{most} bytes");
    drop(cursor);
    assert_eq!((memory.used(), memory.resident()), (before, 0));
}

/// A key with most of a collection, as in a join without equal columns. A scan once held all of it in memory.
#[test]
fn a_scan_of_one_key_holds_few_windows_at_a_time() {
    let memory = MemoryBudget::new(1 << 20);
    let rows: Vec<_> = (0..100_000).map(|number| (vec![], key(number), 0, 1)).collect();
    let blob = file_of(|world| batch_in(world, &rows));
    let file = Batch::<u64>::open(blob, &memory).unwrap();
    let before = memory.used();
    let mut cursor = file.scan();
    let windows = memory.used() - before;
    for round in 0..2 {
        let mut number = 0;
        while let Some(value) = cursor.val() {
            assert_eq!(value, key(number));
            number += 1;
            if round == 0 && number % 5 == 3 {
                cursor.seek_val(&key(number));
            } else {
                cursor.step_val();
            }
            // Those of the key, of the value and of the next one.
            let held = memory.used() - before - windows;
            assert!(held <= 3 * 2 * 32_768, "{held} bytes at {number}");
        }
        assert_eq!(number, 100_000);
        assert_eq!(cursor.key(), Some(&[][..]));
        cursor.rewind_vals();
    }
    cursor.step_key();
    assert_eq!(cursor.key(), None);
}

#[test]
fn a_page_that_the_device_cannot_read_is_an_error_that_names_the_file() {
    let (blob, file) = file_of_numbers(0..1000, usize::MAX);
    blob.fails_from.store(9000, Ordering::Relaxed);
    let mut cursor = file.cursor();
    cursor.seek_key(&key(10));
    assert_eq!(cursor.key(), Some(&*key(10)));
    let error = outcome(|| cursor.seek_key(&key(900))).unwrap_err();
    assert!(error.contains("cannot read mem:batch-") && error.ends_with("on command"), "{error}");
}

#[test]
fn the_headers_of_pages_are_counted_also_after_an_eviction() {
    let memory = MemoryBudget::new(1 << 20);
    let (blob, _) = file_of_numbers(0..10_000, 0);
    let file = Batch::<u64>::open(blob, &memory).unwrap();
    let before = memory.used();
    for _ in 0..2 {
        let mut cursor = file.cursor();
        while cursor.key().is_some() {
            cursor.step_key();
        }
        let known = memory.used() - before;
        let pages = file.pages();
        assert!((64 * pages..=256 * pages).contains(&known), "{known} bytes of {pages} pages");
    }
    drop(file);
    assert_eq!(memory.used(), 0);
}

#[test]
fn a_scan_of_a_damaged_page_is_an_error_that_names_file_and_offset() {
    let world = World::in_files(SMALL);
    let _written = numbers_in(&world, 0..1000);
    let storage = world.context.storage().unwrap();
    let blob = storage.open(&storage.list("").unwrap()[0]).unwrap();
    let mut bytes = blob.bytes().to_vec();
    bytes[9000] ^= 4;
    let mut writer = MemoryStorage::new().create("damaged").unwrap();
    writer.append(&bytes).unwrap();
    let blob = Arc::new(MappedBlob::new(writer.seal().unwrap()));
    let file = Batch::<u64>::open(blob, &MemoryBudget::unlimited()).unwrap();
    let error = outcome(|| {
        merge(
            std::slice::from_ref(&file),
            Antichain::new().borrow(),
            all_times(),
            &StateContext::default(),
        )
    })
    .unwrap_err();
    assert!(error.contains("mem:damaged is damaged at byte"), "{error}");
}

#[test]
fn pages_of_hinted_keys_are_requested_before_they_are_sought() {
    let (blob, file) = file_of_numbers(0..10_000, usize::MAX);
    let delta = numbers((0..10_000).step_by(97));
    let mut cursors = Cursors::new([file.clone()]);
    let mut seen = blob.asked.lock().unwrap().len();
    cursors.prefetch_hint(Cursors::new([delta.clone()]));
    let mut asked_at = Vec::new();
    for (seek, number) in (0..10_000).step_by(97).enumerate() {
        cursors.seek_key(&key(number));
        assert_eq!(cursors.key(), Some(key(number).as_slice()));
        let asked = blob.asked.lock().unwrap().len();
        if asked > seen {
            asked_at.push(seek);
        }
        seen = asked;
    }
    assert!(asked_at.len() < 10, "for many keys at once: {asked_at:?}");
    // All pages are in memory now: none is requested again.
    let mut cursors = Cursors::new([file]);
    cursors.prefetch_hint(Cursors::new([delta]));
    (0..10_000).step_by(97).for_each(|number| cursors.seek_key(&key(number)));
    assert_eq!(blob.asked.lock().unwrap().len(), seen);
}

#[test]
fn pages_are_requested_also_where_their_neighbours_were_accessed() {
    let (blob, file) = file_of_numbers(0..10_000, usize::MAX);
    let mut cursor = file.cursor();
    (0..10_000).step_by(500).for_each(|number| cursor.seek_key(&key(number)));
    let delta = numbers((250..10_000).step_by(500));
    let mut cursors = Cursors::new([file]);
    cursors.prefetch_hint(Cursors::new([delta]));
    blob.asked.lock().unwrap().clear();
    cursors.seek_key(&key(250));
    assert!(blob.asked.lock().unwrap().len() > 10, "for keys that are not sought yet");
}

/// Each file alone stays below the threshold.
#[test]
fn the_resident_pages_of_all_files_together_are_bounded() {
    let memory = MemoryBudget::new(8 << 20);
    let files = (0..8).map(|_| {
        let (blob, _) = file_of_numbers(0..10_000, 0);
        Batch::<u64>::open(blob, &memory).unwrap()
    });
    let mut cursors: Vec<_> = files.map(|file| file.cursor()).collect();
    let (mut most, mut all) = (0, 0);
    for number in 0..10_000 {
        for cursor in &mut cursors {
            let before = memory.resident();
            assert_eq!(cursor.key(), Some(&*key(number)));
            cursor.step_key();
            most = most.max(memory.resident());
            all += memory.resident().saturating_sub(before);
        }
    }
    // An eighth of the budget, and the last access.
    assert!(most <= (1 << 20) + (64 << 10) && all > 2 << 20, "{most} of {all}");
    drop(cursors);
    assert_eq!(memory.resident(), 0);
}

/// A thread once evicted what another had just read, before that was in the sum, which then fell below zero.
#[test]
fn workers_may_read_files_and_evict_those_of_others_at_once() {
    let memory = MemoryBudget::new(8);
    let files = [(); 2].map(|()| {
        let (blob, _) = file_of_numbers(0..10_000, 0);
        Batch::<u64>::open(blob, &memory).unwrap()
    });
    std::thread::scope(|scope| {
        for file in files {
            let memory = &memory;
            scope.spawn(move || {
                for _ in 0..5 {
                    let mut cursor = file.cursor();
                    while cursor.key().is_some() {
                        assert!(memory.resident() <= 1 << 20, "{} bytes", memory.resident());
                        cursor.step_key();
                    }
                }
            });
        }
    });
    assert_eq!(memory.resident(), 0);
}

#[test]
fn neighbouring_pages_are_requested_with_one_call() {
    let (blob, file) = file_of_numbers(0..10_000, usize::MAX);
    let mut cursors = Cursors::new([file]);
    cursors.prefetch_hint(Cursors::new([numbers(2000..2016)]));
    blob.asked.lock().unwrap().clear();
    (2000..2016).for_each(|number| cursors.seek_key(&key(number)));
    assert_eq!(blob.asked.lock().unwrap().len(), 1);
}

proptest! {
    #[test]
    fn cursors_with_hints_move_as_the_model(
        batches in prop::collection::vec((any_updates(30), any_world()), 1..4),
        expected in any_updates(20),
        moves in prop::collection::vec(any_move(), 0..60),
    ) {
        let built = batches.iter().map(|(updates, world)| batch_in::<u64>(world, updates));
        let references: Vec<_> = batches.iter().map(|(updates, _)| reference(updates)).collect();
        let mut cursors = Cursors::new(built);
        // The hints need not come true.
        cursors.prefetch_hint(Cursors::new([batch(&expected, PageLimits::default())]));
        agrees(&mut cursors, &references, &moves);
    }

    #[test]
    fn scans_move_as_the_model(
        batches in prop::collection::vec((any_updates(30), any_world()), 0..5),
        moves in prop::collection::vec(any_move(), 0..60),
    ) {
        let built = batches.iter().map(|(updates, world)| batch_in::<u64>(world, updates));
        let references: Vec<_> = batches.iter().map(|(updates, _)| reference(updates)).collect();
        agrees(&mut Cursors::scan(built), &references, &moves);
    }
}
