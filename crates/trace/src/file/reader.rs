//! Reading the pages of a batch file where they lie.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use alluvium_storage::{Advice, Blob, FAULT_AROUND, TemporaryBlob};
use bytes::Bytes;
use parking_lot::Mutex;
use rkyv::rancor;
use rkyv::util::AlignedVec;
use xxhash_rust::xxh3::xxh3_64;

use super::error::FileError;
use super::format::{
    self, ArchivedMetadata, HEADER, INCOMPATIBLE, Metadata, PageEntry, TRAILER, Trailer,
};
use crate::fences::Fences;
use crate::memory::{Charge, Mapping, MemoryBudget, StateContext};
use crate::page::{Layout, Page};
use crate::time::MAXIMUM_LANES;

/// The pages of a batch file.
///
/// A page is checked when it is touched, and then stays in memory until it is [evicted](Mapping::evict).
pub(crate) struct FilePages {
    blob: Arc<dyn Blob>,
    /// Deletes the file with its last reader, if it is one that nobody else knows.
    temporary: Option<TemporaryBlob>,
    bytes: Bytes,
    slots: Box<[Slot]>,
    lanes: u32,
    /// What the first keys of all pages begin with.
    common: Box<[u8]>,
    updates: usize,
    retractions: usize,
    budget: MemoryBudget,
    /// What is in memory is of now; to give all of it back, a new generation begins.
    generation: AtomicU32,
    /// How many pages were touched in it.
    known: AtomicUsize,
    /// The generation in which each part of the mapping, of [`FAULT_AROUND`] bytes, was last touched.
    windows: Box<[AtomicU32]>,
    /// The bytes of the windows that were touched in this generation.
    resident: AtomicUsize,
    /// Of what is held beside the mapping.
    charge: Mutex<Charge>,
}

/// A page, and where it is as far as we know.
struct Slot {
    entry: PageEntry,
    page: OnceLock<Box<Page>>,
    /// [Asked for](asked) or [touched](touched) in some generation. If that is not the present one, it is on the disk.
    state: AtomicU32,
}

/// The first generation; in what is made nothing is of it.
const FIRST: u32 = 1;

/// The state of a page on its way to memory.
fn asked(generation: u32) -> u32 {
    generation << 1
}

/// The state of a page that is in memory, and checked.
#[inline]
fn touched(generation: u32) -> u32 {
    generation << 1 | 1
}

impl fmt::Debug for FilePages {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("FilePages").field("blob", &self.blob).finish_non_exhaustive()
    }
}

impl FilePages {
    /// The pages of a file just written, which goes with its last reader.
    pub(super) fn written(
        blob: Arc<dyn Blob>,
        context: &StateContext,
        metadata: &Metadata,
    ) -> Self {
        let temporary = context
            .storage()
            .map(|storage| TemporaryBlob::new(Arc::clone(storage), Arc::clone(&blob)));
        context.budget().add_file(blob.len());
        Self::new(blob, temporary, context.budget(), metadata)
    }

    /// The pages of a file, and what its metadata says.
    pub(crate) fn open(
        blob: Arc<dyn Blob>,
        budget: &MemoryBudget,
    ) -> Result<(Self, Metadata), FileError> {
        let damaged = |offset: usize, reason| FileError::Damaged {
            place: blob.place(),
            offset: offset as u64,
            reason,
        };
        let bytes = blob.bytes();
        let length = blob.len();
        blob.populate(0..length.min(HEADER as u64))?;
        blob.populate(length.saturating_sub(TRAILER as u64)..length)?;
        let (Some(header), Some(trailer)) =
            (bytes.first_chunk::<HEADER>(), bytes.last_chunk::<TRAILER>())
        else {
            return Err(damaged(0, "it is too short"));
        };
        let features = format::read_header(header).map_err(|reason| damaged(0, reason))?;
        let unknown = features & !INCOMPATIBLE;
        if unknown != 0 {
            let bit = unknown.trailing_zeros();
            return Err(FileError::Feature { place: blob.place(), bit });
        }
        let end = bytes.len() - TRAILER;
        let trailer = Trailer::read(trailer).map_err(|reason| damaged(end, reason))?;
        let start = usize::try_from(trailer.offset).unwrap_or(usize::MAX);
        let within = trailer.offset.checked_add(trailer.length) == Some(end as u64);
        let metadata = match bytes.get(start..end) {
            Some(metadata) if within && start >= HEADER => {
                blob.populate(start as u64..end as u64)?;
                metadata
            }
            _ => return Err(damaged(end, "the metadata is not where the trailer says")),
        };
        if xxh3_64(metadata) != trailer.checksum {
            return Err(damaged(start, "the metadata is not what was written"));
        }
        let mut aligned: AlignedVec = AlignedVec::with_capacity(metadata.len());
        aligned.extend_from_slice(metadata);
        let archived = rkyv::access::<ArchivedMetadata, rancor::Error>(&aligned)
            .map_err(|_| damaged(start, "the metadata cannot be read"))?;
        let metadata = archived.read();
        let lanes = metadata.lanes as usize;
        let frontiers = [&metadata.lower, &metadata.upper, &metadata.since];
        if !(1..=MAXIMUM_LANES).contains(&lanes)
            || frontiers.iter().any(|frontier| frontier.len() % lanes != 0)
            || metadata.lower.is_empty()
            || metadata.retractions > metadata.updates
            || u32::try_from(metadata.page_bytes).is_err()
        {
            return Err(damaged(start, "the metadata contradicts itself"));
        }
        let mut next = HEADER as u64;
        for page in &metadata.pages {
            if page.offset != next || page.updates == 0 {
                return Err(damaged(start, "the metadata contradicts itself"));
            }
            next = next.saturating_add(u64::from(page.length));
        }
        let updates: u64 = metadata.pages.iter().map(|page| u64::from(page.updates)).sum();
        if next != trailer.offset || updates != metadata.updates {
            return Err(damaged(start, "the metadata contradicts itself"));
        }
        Ok((Self::new(blob, None, budget, &metadata), metadata))
    }

    fn new(
        blob: Arc<dyn Blob>,
        temporary: Option<TemporaryBlob>,
        budget: &MemoryBudget,
        metadata: &Metadata,
    ) -> Self {
        let slot = |&entry| Slot { entry, page: OnceLock::new(), state: AtomicU32::new(0) };
        let slots: Box<[Slot]> = metadata.pages.iter().map(slot).collect();
        let count = if blob.is_mapped() { blob.bytes().len().div_ceil(FAULT_AROUND) } else { 0 };
        let windows: Box<[AtomicU32]> = (0..count).map(|_| AtomicU32::new(0)).collect();
        // And a fence of each page.
        let mut held =
            size_of_val(&*slots) + size_of_val(&*windows) + slots.len() * size_of::<u64>();
        if !blob.is_mapped() {
            held += usize::try_from(blob.len()).unwrap_or(usize::MAX);
        }
        Self {
            bytes: blob.bytes(),
            blob,
            temporary,
            generation: AtomicU32::new(FIRST),
            known: AtomicUsize::new(0),
            slots,
            lanes: metadata.lanes,
            common: metadata.common.as_slice().into(),
            updates: metadata.updates as usize,
            retractions: metadata.retractions as usize,
            budget: budget.clone(),
            windows,
            resident: AtomicUsize::new(0),
            charge: Mutex::new(budget.charge(held)),
        }
    }

    /// The same pages, for all who read them.
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

    /// How many of them take copies of rows away.
    pub(crate) fn retractions(&self) -> usize {
        self.retractions
    }

    /// Where the pages begin.
    pub(crate) fn fences(&self) -> Fences {
        let prefixes = self.slots.iter().map(|slot| slot.entry.fence).collect();
        Fences::new(self.common.to_vec(), prefixes)
    }

    /// A page.
    ///
    /// # Panics
    ///
    /// If there is no such page, or if it cannot be read or is not what was written; the message then names the file
    /// and, in the latter case, where in it the page is.
    #[inline]
    pub(crate) fn page(&self, index: usize) -> &Page {
        let slot = &self.slots[index];
        if slot.state.load(Ordering::Relaxed) == touched(self.generation.load(Ordering::Relaxed))
            && let Some(page) = slot.page.get()
        {
            return page;
        }
        self.touch(slot)
    }

    #[cold]
    fn touch<'a>(&'a self, slot: &'a Slot) -> &'a Page {
        let PageEntry { offset, length, .. } = slot.entry;
        let start = offset as usize;
        let bytes = self.bytes.slice(start..start + length as usize);
        // What is touched while a new one begins is of the old one, and so taken to be on the disk.
        let generation = self.generation.load(Ordering::Acquire);
        if slot.state.load(Ordering::Relaxed) < asked(generation) {
            // The system brings what is mapped in by pages of its own, one after the other.
            self.ask(offset..offset + u64::from(length));
        }
        let populated = self.blob.populate(offset..offset + u64::from(length));
        let layout = populated
            .map_err(FileError::from)
            .and_then(|()| self.check(&slot.entry, &bytes))
            .unwrap_or_else(|error| panic!("{error}"));
        let page = slot.page.get_or_init(|| {
            self.charge.lock().add(size_of::<Page>());
            Box::new(Page::mapped(bytes, layout))
        });
        let state = touched(generation);
        if slot.state.swap(state, Ordering::Relaxed) != state && self.blob.is_mapped() {
            self.known.fetch_add(1, Ordering::Relaxed);
            let around = start / FAULT_AROUND..(start + length as usize).div_ceil(FAULT_AROUND);
            let fresh =
                |window: &&AtomicU32| window.swap(generation, Ordering::Relaxed) != generation;
            let more = self.windows[around].iter().filter(fresh).count() * FAULT_AROUND;
            self.budget.mappings().add_resident(more, &self.resident);
        }
        page
    }

    /// Whether all pages are in memory, as far as we know.
    pub(crate) fn is_resident(&self) -> bool {
        !self.blob.is_mapped() || self.known.load(Ordering::Relaxed) >= self.len()
    }

    /// Asks for those of these pages, which ascend, that are not in memory, and does not wait for them. Neighbours
    /// are asked for at once; what exceeds [`MemoryPolicy::prefetch`] is left.
    /// Whether there was anything to ask for.
    pub(crate) fn prefetch(&self, pages: impl IntoIterator<Item = usize>) -> bool {
        if !self.blob.is_mapped() {
            return false;
        }
        let most = self.budget.policy().prefetch as u64;
        let asked = asked(self.generation.load(Ordering::Relaxed));
        let (mut bytes, mut run) = (0, 0..0);
        for page in pages {
            let Slot { entry, state, .. } = &self.slots[page];
            if bytes >= most {
                break;
            }
            if state.fetch_max(asked, Ordering::Relaxed) >= asked {
                continue;
            }
            let end = entry.offset + u64::from(entry.length);
            if entry.offset != run.end {
                self.ask(std::mem::replace(&mut run, entry.offset..entry.offset));
            }
            run.end = end;
            bytes += u64::from(entry.length);
        }
        self.ask(run);
        bytes > 0
    }

    /// Asks the system for a range of the file. It is advice: without it pages come when they are touched.
    fn ask(&self, range: Range<u64>) {
        let _ = self.blob.advise(std::slice::from_ref(&range), Advice::WillNeed);
    }

    /// The header of a page of these bytes, if they are those that were written.
    fn check(&self, entry: &PageEntry, bytes: &[u8]) -> Result<Layout, FileError> {
        let damaged =
            |reason| FileError::Damaged { place: self.blob.place(), offset: entry.offset, reason };
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

    /// Reads pages to the heap, past the mapping and whatever was touched there, with the sum of their bytes.
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

    /// Whether the pages are read through a mapping.
    pub(crate) fn is_mapped(&self) -> bool {
        self.blob.is_mapped()
    }

    /// What the memory of the pages is counted by.
    pub(crate) fn budget(&self) -> &MemoryBudget {
        &self.budget
    }

    /// The length of the file.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.blob.len()
    }
}

impl Mapping for FilePages {
    fn resident(&self) -> usize {
        self.resident.load(Ordering::Relaxed)
    }

    /// Who touches a page again has it read and checked again.
    fn evict(&self) {
        self.budget.mappings().subtract_resident(&self.resident);
        self.generation.fetch_add(1, Ordering::AcqRel);
        // Advice: without it the pages stay a little longer.
        let all = 0..self.blob.len();
        let _ = self.blob.advise(std::slice::from_ref(&all), Advice::DontNeed);
        // What others touched meanwhile may be gone again.
        self.generation.fetch_add(1, Ordering::AcqRel);
        self.known.store(0, Ordering::Relaxed);
    }
}

impl Drop for FilePages {
    fn drop(&mut self) {
        self.budget.mappings().subtract_resident(&self.resident);
        if self.temporary.is_some() {
            self.budget.remove_file(self.blob.len());
        }
    }
}

impl ArchivedMetadata {
    /// The metadata, out of its archive.
    fn read(&self) -> Metadata {
        let numbers = |list: &rkyv::vec::ArchivedVec<rkyv::primitive::ArchivedU64>| {
            list.iter().map(|number| number.to_native()).collect()
        };
        Metadata {
            lanes: self.lanes.to_native(),
            lower: numbers(&self.lower),
            upper: numbers(&self.upper),
            since: numbers(&self.since),
            updates: self.updates.to_native(),
            retractions: self.retractions.to_native(),
            page_bytes: self.page_bytes.to_native(),
            page_updates: self.page_updates.to_native(),
            common: self.common.as_slice().to_vec(),
            pages: self
                .pages
                .iter()
                .map(|page| PageEntry {
                    offset: page.offset.to_native(),
                    checksum: page.checksum.to_native(),
                    fence: page.fence.to_native(),
                    length: page.length.to_native(),
                    updates: page.updates.to_native(),
                })
                .collect(),
        }
    }
}
