//! Writing a batch file.

use std::sync::atomic::{AtomicU64, Ordering};

use alluvium_storage::BlobWriter;
use differential_dataflow::trace::Description;
use timely::progress::Antichain;
use xxhash_rust::xxh3::xxh3_64;

use super::error::FileError;
use super::format::{self, Metadata, PageEntry, Trailer};
use super::pages::FilePages;
use crate::fences::Fences;
use crate::memory::{Charge, StateContext};
use crate::page::{Page, PageLimits};
use crate::time::{MAXIMUM_LANES, PageTime};

/// A batch file being written, page by page. While the disk is full, calls wait.
pub(crate) struct FileWriter {
    writer: Box<dyn BlobWriter>,
    context: StateContext,
    entries: Vec<PageEntry>,
    fences: Fences,
    updates: u64,
    retractions: u64,
    /// Counts the bytes that wait to be written.
    charge: Charge,
}

/// Numbers the files of this process.
static NEXT: AtomicU64 = AtomicU64::new(0);

impl FileWriter {
    /// A file with a new name in the storage of this context, which has one.
    pub(crate) fn new(context: StateContext) -> Result<Self, FileError> {
        let storage = context.storage().expect("batches go to files where there is storage");
        let name = format!("batch-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let mut writer = context.disk_full().wait_for(|| storage.create(&name))?;
        context.disk_full().wait_for(|| writer.append(&format::header()))?;
        let charge = context.budget().charge(0);
        Ok(Self {
            writer,
            context,
            entries: Vec::new(),
            fences: Fences::default(),
            updates: 0,
            retractions: 0,
            charge,
        })
    }

    /// Adds a page, byte by byte as it is.
    pub(crate) fn push(&mut self, page: &Page) -> Result<(), FileError> {
        let bytes = page.bytes();
        self.entries.push(PageEntry {
            offset: self.writer.len(),
            checksum: xxh3_64(bytes),
            // Set when all pages are known.
            fence: 0,
            length: page.layout().length,
            updates: page.layout().updates,
        });
        self.fences.push(page.key(0));
        self.updates += page.updates() as u64;
        self.retractions += page.retractions() as u64;
        self.context.disk_full().wait_for(|| self.writer.append(bytes))?;
        let entries = self.entries.capacity() * size_of::<PageEntry>();
        self.charge.set(self.writer.held() + entries);
        Ok(())
    }

    /// Completes the file.
    pub(crate) fn finish<T: PageTime>(
        mut self,
        limits: PageLimits,
        description: &Description<T>,
    ) -> Result<FilePages, FileError> {
        for (entry, fence) in self.entries.iter_mut().zip(self.fences.prefixes()) {
            entry.fence = *fence;
        }
        let metadata = Metadata {
            lanes: T::LANES as u32,
            lower: lanes(description.lower()),
            upper: lanes(description.upper()),
            since: lanes(description.since()),
            updates: self.updates,
            retractions: self.retractions,
            page_bytes: limits.bytes as u64,
            page_updates: limits.updates as u64,
            common: self.fences.common().to_vec(),
            pages: self.entries,
        };
        let bytes = rkyv::to_bytes::<rkyv::rancor::Error>(&metadata)
            .expect("numbers and lists of them are archived without an error");
        let trailer = Trailer {
            offset: self.writer.len(),
            length: bytes.len() as u64,
            checksum: xxh3_64(&bytes),
        };
        let (disk_full, writer) = (self.context.disk_full(), &mut self.writer);
        disk_full.wait_for(|| writer.append(&bytes))?;
        disk_full.wait_for(|| writer.append(&trailer.bytes()))?;
        let blob = disk_full.wait_for(|| writer.seal())?;
        Ok(FilePages::written(blob, &self.context, &metadata))
    }
}

/// The elements of a frontier, lane by lane.
fn lanes<T: PageTime>(frontier: &Antichain<T>) -> Vec<u64> {
    let mut all = Vec::with_capacity(frontier.len() * T::LANES);
    let mut lanes = [0; MAXIMUM_LANES];
    for time in frontier.iter() {
        time.store(&mut lanes[..T::LANES]);
        all.extend_from_slice(&lanes[..T::LANES]);
    }
    all
}
