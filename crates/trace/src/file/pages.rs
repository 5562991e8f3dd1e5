//! The pages of a batch file, read in place through its mapping.
//!
//! # Residency
//!
//! The system decides which parts of a mapping are in memory. So that the budget can bound them, [`FilePages`] keeps
//! track: the first access to a page checks it against its checksum and counts the parts of the mapping that the
//! access makes resident. To evict a file is to start a new *generation*: every page of an earlier generation is taken
//! to be on the disk, and is checked again when it is accessed again.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use alluvium_storage::{Advice, Blob, FAULT_AROUND, TemporaryBlob};
use bytes::Bytes;
use parking_lot::Mutex;
use xxhash_rust::xxh3::xxh3_64;

use super::error::FileError;
use super::format::{Metadata, PageEntry};
use super::open;
use crate::failure::Failure;
use crate::fences::Fences;
use crate::memory::{Charge, Mapping, MemoryBudget, StateContext};
use crate::pack::BlobRange;
use crate::page::{Layout, Page};
use crate::summary::Summary;

/// The pages of a batch file.
pub(crate) struct FilePages {
    blob: Arc<dyn Blob>,
    /// Deletes the file with its last reader, if the file is not one to keep.
    owner: Option<BlobRange>,
    bytes: Bytes,
    slots: Box<[Slot]>,
    lanes: u32,
    /// The common prefix of the first keys of all pages.
    common: Box<[u8]>,
    /// Of the column by which the batch is pruned, until it is taken.
    summary: Option<Summary>,
    updates: usize,
    retractions: usize,
    budget: MemoryBudget,
    /// The present generation. Evictions start new ones.
    generation: AtomicU32,
    /// How many pages were accessed in this generation.
    resident_pages: AtomicUsize,
    /// For each part of the mapping, of [`FAULT_AROUND`] bytes, the generation in which it was last accessed.
    windows: Box<[AtomicU32]>,
    /// The bytes of the windows of this generation.
    resident: AtomicUsize,
    /// Counts the memory beside the mapping.
    charge: Mutex<Charge>,
}

/// A page of the file.
struct Slot {
    entry: PageEntry,
    page: OnceLock<Box<Page>>,
    /// [Requested](requested) or [resident](resident) in some generation. If that is not the present one, the page is
    /// taken to be on the disk.
    state: AtomicU32,
}

/// The generation that a file starts with; new slots and windows have an earlier one.
const FIRST: u32 = 1;

/// The state of a page that was asked for.
fn requested(generation: u32) -> u32 {
    generation << 1
}

/// The state of a page that is in memory, and checked.
#[inline]
fn resident(generation: u32) -> u32 {
    generation << 1 | 1
}

impl fmt::Debug for FilePages {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("FilePages").field("blob", &self.blob).finish_non_exhaustive()
    }
}

impl FilePages {
    /// The pages of a file just written, which is deleted with its last reader.
    pub(super) fn written(
        blob: Arc<dyn Blob>,
        context: &StateContext,
        metadata: &Metadata,
        summary: Option<Summary>,
    ) -> Self {
        let owner = context.storage().map(|storage| BlobRange {
            blob: TemporaryBlob::new(Arc::clone(storage), Arc::clone(&blob)),
            range: 0..blob.len(),
        });
        Self::new(blob, owner, context.budget(), metadata, summary)
    }

    /// The pages of a file, and its metadata. `owner` is the part of a blob that the file is, if that is deleted with its
    /// last reader.
    pub(crate) fn open(
        blob: Arc<dyn Blob>,
        owner: Option<BlobRange>,
        budget: &MemoryBudget,
    ) -> Result<(Self, Metadata), FileError> {
        let (metadata, summary) = open::metadata(&*blob)?;
        Ok((Self::new(blob, owner, budget, &metadata, summary), metadata))
    }

    fn new(
        blob: Arc<dyn Blob>,
        owner: Option<BlobRange>,
        budget: &MemoryBudget,
        metadata: &Metadata,
        summary: Option<Summary>,
    ) -> Self {
        if owner.is_some() {
            budget.add_file(blob.len());
        }
        let slot = |&entry| Slot { entry, page: OnceLock::new(), state: AtomicU32::new(0) };
        let slots: Box<[Slot]> = metadata.pages.iter().map(slot).collect();
        let count = if blob.is_mapped() { blob.bytes().len().div_ceil(FAULT_AROUND) } else { 0 };
        let windows: Box<[AtomicU32]> = (0..count).map(|_| AtomicU32::new(0)).collect();
        // And a fence of each page.
        let mut held =
            size_of_val(&*slots) + size_of_val(&*windows) + slots.len() * size_of::<u64>();
        held += summary.as_ref().map_or(0, Summary::bytes);
        if !blob.is_mapped() {
            held += usize::try_from(blob.len()).unwrap_or(usize::MAX);
        }
        Self {
            bytes: blob.bytes(),
            blob,
            owner,
            slots,
            lanes: metadata.lanes,
            common: metadata.common.as_slice().into(),
            summary,
            updates: metadata.updates as usize,
            retractions: metadata.retractions as usize,
            budget: budget.clone(),
            generation: AtomicU32::new(FIRST),
            resident_pages: AtomicUsize::new(0),
            windows,
            resident: AtomicUsize::new(0),
            charge: Mutex::new(budget.charge(held)),
        }
    }

    /// The same pages, shared by all readers, and known to the budget if they are mapped.
    pub(crate) fn shared(self) -> Arc<Self> {
        let pages = Arc::new(self);
        if pages.is_mapped() {
            let mapping: Arc<dyn Mapping> = Arc::<Self>::clone(&pages);
            pages.budget.mappings().add(Arc::downgrade(&mapping));
        }
        pages
    }

    /// The number of pages.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// The number of updates on all pages.
    pub(crate) fn updates(&self) -> usize {
        self.updates
    }

    /// The number of updates with negative weights.
    pub(crate) fn retractions(&self) -> usize {
        self.retractions
    }

    /// Where the pages begin.
    pub(crate) fn fences(&self) -> Fences {
        let prefixes = self.slots.iter().map(|slot| slot.entry.fence).collect();
        Fences::new(self.common.to_vec(), prefixes)
    }

    /// The file's summary of the column by which the batch is pruned. The caller keeps it.
    pub(crate) fn take_summary(&mut self) -> Option<Summary> {
        self.summary.take()
    }

    /// Whether the pages are read through a mapping.
    pub(crate) fn is_mapped(&self) -> bool {
        self.blob.is_mapped()
    }

    /// The budget that counts the memory of the pages.
    pub(crate) fn budget(&self) -> &MemoryBudget {
        &self.budget
    }

    /// The part of a blob that the file is, if that is deleted with its last reader.
    pub(crate) fn owner(&self) -> Option<&BlobRange> {
        self.owner.as_ref()
    }

    /// The length of the file.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.blob.len()
    }

    /// A page.
    ///
    /// # Panics
    ///
    /// If there is no such page, or if it cannot be read or is not what was written. The message names the file and, in
    /// the latter case, the offset of the page.
    #[inline]
    pub(crate) fn page(&self, index: usize) -> &Page {
        let slot = &self.slots[index];
        if slot.state.load(Ordering::Relaxed) == resident(self.generation.load(Ordering::Relaxed))
            && let Some(page) = slot.page.get()
        {
            return page;
        }
        self.load(slot)
    }

    /// Makes a page resident, and checks it.
    #[cold]
    fn load<'a>(&'a self, slot: &'a Slot) -> &'a Page {
        let PageEntry { offset, length, .. } = slot.entry;
        let start = offset as usize;
        let bytes = self.bytes.slice(start..start + length as usize);
        // An eviction may begin meanwhile. Then the page is of the old generation, and taken to be on the disk.
        let generation = self.generation.load(Ordering::Acquire);
        if slot.state.load(Ordering::Relaxed) < requested(generation) {
            // Without this the system reads its own, smaller pages one after the other.
            self.request(offset..offset + u64::from(length));
        }
        let populated = self.blob.populate(offset..offset + u64::from(length));
        let layout = populated
            .map_err(FileError::from)
            .and_then(|()| self.check(&slot.entry, &bytes))
            .unwrap_or_else(|error| Failure::raise(error));
        let page = slot.page.get_or_init(|| {
            self.charge.lock().add(size_of::<Page>());
            Box::new(Page::mapped(bytes, layout))
        });
        let state = resident(generation);
        if slot.state.swap(state, Ordering::Relaxed) != state && self.blob.is_mapped() {
            self.resident_pages.fetch_add(1, Ordering::Relaxed);
            let around = start / FAULT_AROUND..(start + length as usize).div_ceil(FAULT_AROUND);
            let is_new =
                |window: &&AtomicU32| window.swap(generation, Ordering::Relaxed) != generation;
            let bytes = self.windows[around].iter().filter(is_new).count() * FAULT_AROUND;
            self.budget.mappings().add_resident(bytes, &self.resident);
        }
        page
    }

    /// The header of a page of these bytes, if they are those that were written.
    fn check(&self, entry: &PageEntry, bytes: &[u8]) -> Result<Layout, FileError> {
        let damaged = |reason| open::damaged(&*self.blob, entry.offset, reason);
        if xxh3_64(bytes) != entry.checksum {
            return Err(damaged("the page is not what was written"));
        }
        let layout = Layout::read(bytes).map_err(damaged)?;
        if layout.updates != entry.updates || layout.lanes != self.lanes {
            return Err(damaged("the page is not the one that the metadata names"));
        }
        layout.check(bytes).map_err(damaged)?;
        Ok(layout)
    }

    /// Whether all pages are resident, as far as is known.
    pub(crate) fn is_resident(&self) -> bool {
        !self.blob.is_mapped() || self.resident_pages.load(Ordering::Relaxed) >= self.len()
    }

    /// Asks the system for those of these pages, in ascending order, that are not resident, without waiting for them:
    /// for neighbours with one call, and for no more than [`MemoryPolicy::prefetch`] bytes. Whether there were any.
    ///
    /// [`MemoryPolicy::prefetch`]: crate::memory::MemoryPolicy::prefetch
    pub(crate) fn prefetch(&self, pages: impl IntoIterator<Item = usize>) -> bool {
        if !self.blob.is_mapped() {
            return false;
        }
        let most = self.budget.policy().prefetch as u64;
        let requested = requested(self.generation.load(Ordering::Relaxed));
        let (mut bytes, mut run) = (0, 0..0);
        for page in pages {
            let Slot { entry, state, .. } = &self.slots[page];
            if bytes >= most {
                break;
            }
            if state.fetch_max(requested, Ordering::Relaxed) >= requested {
                continue;
            }
            let end = entry.offset + u64::from(entry.length);
            if entry.offset != run.end {
                self.request(std::mem::replace(&mut run, entry.offset..entry.offset));
            }
            run.end = end;
            bytes += u64::from(entry.length);
        }
        self.request(run);
        bytes > 0
    }

    /// Asks the system for a range of the file. It is advice: without it pages are read when they are accessed.
    fn request(&self, range: Range<u64>) {
        let _ = self.blob.advise(std::slice::from_ref(&range), Advice::WillNeed);
    }

    /// Reads all pages, one after the other and past the mapping, and returns what is wrong with any.
    pub(crate) fn verify(&self) -> Vec<FileError> {
        (0..self.len()).filter_map(|page| self.read(page..page + 1).err()).collect()
    }

    /// Reads pages to the heap, past the mapping. Returns them with the sum of their bytes.
    pub(crate) fn read(&self, range: Range<usize>) -> Result<(Box<[Page]>, usize), FileError> {
        let slots = &self.slots[range];
        let (Some(first), Some(last)) = (slots.first(), slots.last()) else {
            return Ok((Box::default(), 0));
        };
        let (start, end) = (first.entry.offset, last.entry.offset + u64::from(last.entry.length));
        let bytes = self.blob.read(start..end)?;
        let page = |slot: &Slot| {
            let at = (slot.entry.offset - start) as usize;
            let bytes = bytes.slice(at..at + slot.entry.length as usize);
            let layout = self.check(&slot.entry, &bytes)?;
            Ok(Page::mapped(bytes, layout))
        };
        let pages: Result<_, FileError> = slots.iter().map(page).collect();
        Ok((pages?, bytes.len()))
    }
}

impl Mapping for FilePages {
    fn resident(&self) -> usize {
        self.resident.load(Ordering::Relaxed)
    }

    fn evict(&self) {
        self.budget.mappings().subtract_resident(&self.resident);
        self.generation.fetch_add(1, Ordering::AcqRel);
        // Advice: without it the pages stay a little longer.
        let all = 0..self.blob.len();
        let _ = self.blob.advise(std::slice::from_ref(&all), Advice::DontNeed);
        // Pages that others have accessed meanwhile may be gone again.
        self.generation.fetch_add(1, Ordering::AcqRel);
        self.resident_pages.store(0, Ordering::Relaxed);
    }
}

impl Drop for FilePages {
    fn drop(&mut self) {
        self.budget.mappings().subtract_resident(&self.resident);
        if self.owner.is_some() {
            self.budget.remove_file(self.blob.len());
        }
    }
}
