//! Reading the pages of a batch file where they lie.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use alluvium_storage::{Advice, Blob, TemporaryBlob};
use bytes::Bytes;
use rkyv::rancor;
use rkyv::util::AlignedVec;
use xxhash_rust::xxh3::xxh3_64;

use super::error::FileError;
use super::format::{
    self, ArchivedMetadata, HEADER, INCOMPATIBLE, Metadata, PageEntry, TRAILER, Trailer,
};
use crate::memory::{Charge, MemoryBudget, Surroundings};
use crate::page::{Layout, Page};
use crate::time::MAXIMUM_LANES;

/// The pages of a batch file.
///
/// A page is checked when it is touched, and then stays in memory until it is [given
/// back](FilePages::give_back).
pub(crate) struct FilePages {
    blob: Arc<dyn Blob>,
    /// Deletes the file with its last reader, if it is one that nobody else knows.
    temporary: Option<TemporaryBlob>,
    bytes: Bytes,
    slots: Box<[Slot]>,
    updates: usize,
    retractions: usize,
    budget: MemoryBudget,
    /// Bytes of pages that were touched and not given back.
    touched: AtomicUsize,
    _charge: Charge,
}

/// A file keeps this part of the budget's limit when it is read while more is in memory than should be.
const PATIENCE: usize = 64;

/// A page, and whether it is in memory as far as we know.
struct Slot {
    entry: PageEntry,
    page: OnceLock<Page>,
    touched: AtomicBool,
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
        surroundings: Surroundings,
        metadata: &Metadata,
    ) -> Self {
        let temporary =
            surroundings.storage.map(|storage| TemporaryBlob::new(storage, Arc::clone(&blob)));
        surroundings.budget.add_file(blob.len());
        Self::new(blob, temporary, &surroundings.budget, metadata)
    }

    /// The pages of a file, and what its metadata says.
    pub(crate) fn open(
        blob: Arc<dyn Blob>,
        budget: &MemoryBudget,
    ) -> Result<(Self, Metadata), FileError> {
        let bytes = blob.bytes();
        let damaged = |offset: usize, reason| FileError::Damaged {
            place: blob.place(),
            offset: offset as u64,
            reason,
        };
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
            Some(metadata) if within && start >= HEADER => metadata,
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
        let slot = |&entry| Slot { entry, page: OnceLock::new(), touched: AtomicBool::new(false) };
        let slots: Box<[Slot]> = metadata.pages.iter().map(slot).collect();
        let mut held = slots.len() * size_of::<Slot>();
        if !blob.is_mapped() {
            held += usize::try_from(blob.len()).unwrap_or(usize::MAX);
        }
        Self {
            bytes: blob.bytes(),
            blob,
            temporary,
            slots,
            updates: metadata.updates as usize,
            retractions: metadata.retractions as usize,
            budget: budget.clone(),
            touched: AtomicUsize::new(0),
            _charge: budget.charge(held),
        }
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

    /// The first eight bytes of the first key of each page.
    pub(crate) fn fences(&self) -> impl Iterator<Item = u64> + '_ {
        self.slots.iter().map(|slot| slot.entry.fence)
    }

    /// A page.
    ///
    /// # Panics
    ///
    /// If there is no such page, or if it is not what was written; the message then names the file and where
    /// in it the page is.
    #[inline]
    pub(crate) fn page(&self, index: usize) -> &Page {
        let slot = &self.slots[index];
        if slot.touched.load(Ordering::Relaxed)
            && let Some(page) = slot.page.get()
        {
            return page;
        }
        self.touch(slot)
    }

    #[cold]
    fn touch<'a>(&'a self, slot: &'a Slot) -> &'a Page {
        let PageEntry { offset, length, checksum, .. } = slot.entry;
        let start = offset as usize;
        let bytes = self.bytes.slice(start..start + length as usize);
        let damaged = |reason| -> ! {
            let place = self.blob.place();
            panic!("{}", FileError::Damaged { place, offset, reason })
        };
        if xxh3_64(&bytes) != checksum {
            damaged("the page is not what was written");
        }
        let page = slot.page.get_or_init(|| match Layout::read(&bytes) {
            Ok(layout) if layout.length == length && layout.updates == slot.entry.updates => {
                Page::mapped(bytes, layout)
            }
            Ok(_) => damaged("the page is not the one that the metadata names"),
            Err(reason) => damaged(reason),
        });
        if !slot.touched.swap(true, Ordering::Relaxed) && self.blob.is_mapped() {
            let touched = self.touched.fetch_add(length as usize, Ordering::Relaxed);
            self.budget.touch(length as usize);
            // Who goes through a whole file does not keep it all.
            if self.budget.is_over_touched() && touched > self.budget.limit() / PATIENCE {
                self.give_back();
            }
        }
        page
    }

    /// Gives the memory of all touched pages back: who touches one again has it read and checked again.
    pub(crate) fn give_back(&self) {
        if self.touched.load(Ordering::Relaxed) == 0 {
            return;
        }
        for slot in &self.slots {
            slot.touched.store(false, Ordering::Relaxed);
        }
        self.budget.give_back(self.touched.swap(0, Ordering::Relaxed));
        // Advice: without it the pages stay a little longer.
        let all = 0..self.blob.len();
        let _ = self.blob.advise(std::slice::from_ref(&all), Advice::DontNeed);
    }

    /// The length of the file.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.blob.len()
    }
}

impl Drop for FilePages {
    fn drop(&mut self) {
        self.budget.give_back(self.touched.load(Ordering::Relaxed));
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
