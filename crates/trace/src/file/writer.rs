//! Writing a batch file.

use std::sync::atomic::{AtomicU64, Ordering};

use alluvium_storage::{BlobWriter, Result};
use differential_dataflow::trace::Description;
use timely::progress::Antichain;
use xxhash_rust::xxh3::xxh3_64;

use super::error::FileError;
use super::format::{self, Metadata, PageEntry, Trailer};
use super::pages::FilePages;
use crate::bound::BoundColumn;
use crate::fences::Fences;
use crate::memory::{Charge, DiskFullGate, StateContext};
use crate::page::{Page, PageLimits};
use crate::summary::{Summarizer, Summary};
use crate::time::{MAXIMUM_LANES, PageTime};

/// The parts of a batch file after the bytes already appended to a blob, page by page.
pub(crate) struct Image {
    /// Where the file begins in the blob.
    start: u64,
    entries: Vec<PageEntry>,
    fences: Fences,
    summary: Option<Summarizer>,
    updates: u64,
    retractions: u64,
}

impl Image {
    /// Begins a file at the end of a blob, of a batch that is pruned by this column, if by any. While the disk is full, this
    /// and the other calls wait.
    pub(crate) fn new(
        column: Option<BoundColumn>,
        writer: &mut dyn BlobWriter,
        disk_full: &DiskFullGate,
    ) -> Result<Self> {
        let start = writer.len();
        let compatible = if column.is_some() { format::SUMMARY } else { 0 };
        disk_full.wait_for(|| writer.append(&format::header(compatible)))?;
        let (entries, fences, summary) =
            (Vec::new(), Fences::default(), column.map(Summarizer::new));
        Ok(Self { start, entries, fences, summary, updates: 0, retractions: 0 })
    }

    /// Adds a page, byte by byte as it is.
    pub(crate) fn push(
        &mut self,
        page: &Page,
        writer: &mut dyn BlobWriter,
        disk_full: &DiskFullGate,
    ) -> Result<()> {
        let bytes = page.bytes();
        self.entries.push(PageEntry {
            offset: writer.len() - self.start,
            checksum: xxh3_64(bytes),
            // Set when all pages are known.
            fence: 0,
            length: page.layout().length,
            updates: page.layout().updates,
        });
        self.fences.push(page.key(0));
        if let Some(summary) = &mut self.summary {
            summary.push(page);
        }
        self.updates += page.updates() as u64;
        self.retractions += page.retractions() as u64;
        disk_full.wait_for(|| writer.append(bytes))
    }

    /// The bytes that it holds.
    fn held(&self) -> usize {
        self.entries.capacity() * size_of::<PageEntry>()
    }

    /// Completes the file.
    pub(crate) fn finish<T: PageTime>(
        mut self,
        limits: PageLimits,
        description: &Description<T>,
        writer: &mut dyn BlobWriter,
        disk_full: &DiskFullGate,
    ) -> Result<(Metadata, Option<Summary>)> {
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
        let summary = self.summary.map(Summarizer::finish);
        let mut bytes = summary.as_ref().map(Summary::encode).unwrap_or_default();
        let archive = rkyv::to_bytes::<rkyv::rancor::Error>(&metadata)
            .expect("numbers and lists of them are archived without an error");
        bytes.extend_from_slice(&archive);
        let trailer = Trailer {
            offset: writer.len() - self.start,
            length: bytes.len() as u64,
            checksum: xxh3_64(&bytes),
        };
        disk_full.wait_for(|| writer.append(&bytes))?;
        disk_full.wait_for(|| writer.append(&trailer.bytes()))?;
        Ok((metadata, summary))
    }
}

/// A batch file being written to a blob of its own, page by page. While the disk is full, calls wait.
pub(crate) struct FileWriter {
    writer: Box<dyn BlobWriter>,
    context: StateContext,
    image: Image,
    /// Counts the bytes that wait to be written.
    charge: Charge,
}

/// Numbers the files of this process.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Begins a blob with a new name, which starts with `kind`, in the storage of this context, which has one.
pub(crate) fn create(context: &StateContext, kind: &str) -> Result<Box<dyn BlobWriter>> {
    let storage = context.storage().expect("batches go to files where there is storage");
    let name = format!("{kind}-{}", NEXT.fetch_add(1, Ordering::Relaxed));
    context.disk_full().wait_for(|| storage.create(&name))
}

impl FileWriter {
    /// A file with a new name in the storage of this context, which has one.
    pub(crate) fn new(context: StateContext) -> Result<Self, FileError> {
        let mut writer = create(&context, "batch")?;
        let column = context.pruning().map(|pruning| pruning.column());
        let image = Image::new(column, &mut *writer, context.disk_full())?;
        let charge = context.budget().charge(0);
        Ok(Self { writer, context, image, charge })
    }

    /// Adds a page, byte by byte as it is.
    pub(crate) fn push(&mut self, page: &Page) -> Result<(), FileError> {
        self.image.push(page, &mut *self.writer, self.context.disk_full())?;
        self.charge.set(self.writer.held() + self.image.held());
        Ok(())
    }

    /// Completes the file.
    pub(crate) fn finish<T: PageTime>(
        mut self,
        limits: PageLimits,
        description: &Description<T>,
    ) -> Result<FilePages, FileError> {
        let (disk_full, writer) = (self.context.disk_full(), &mut *self.writer);
        let (metadata, summary) = self.image.finish(limits, description, writer, disk_full)?;
        let blob = disk_full.wait_for(|| writer.seal())?;
        Ok(FilePages::written(blob, &self.context, &metadata, summary))
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
