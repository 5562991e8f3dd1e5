//! An immutable run of updates.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use alluvium_storage::Blob;
use differential_dataflow::trace::{BatchReader, Description};
use timely::progress::{Antichain, Timestamp};

use crate::cursor::Cursor;
use crate::fences::Fences;
use crate::file::{FileError, FilePages};
use crate::memory::{Block, MemoryBudget};
use crate::pack::BlobRange;
use crate::page::{Page, PageLimits};
use crate::page_reader::PageReader;
use crate::summary::Summary;
use crate::time::PageTime;

/// An immutable run of updates, sorted by key, value and time, in pages on the heap or in a file.
///
/// The description has the interval of times that the updates come from, and the frontier that times may have been
/// advanced to. A clone shares the pages.
pub struct Batch<T> {
    description: Arc<Description<T>>,
    contents: Arc<Contents>,
}

/// The pages of a batch, without its description.
struct Contents {
    place: Place,
    /// The search index.
    fences: Fences,
    /// Of the column by which it is pruned.
    summary: Option<Summary>,
    updates: usize,
    retractions: usize,
    bytes: usize,
    limits: PageLimits,
    /// How often readers have sought a key in it.
    seeks: AtomicU64,
    /// A copy of the pages, if they are on the heap and one was made.
    copy: OnceLock<BlobRange>,
}

/// Where the pages are.
pub(crate) enum Place {
    Heap(Vec<Page>),
    File(Arc<FilePages>),
}

impl<T> Clone for Batch<T> {
    fn clone(&self) -> Self {
        Batch { description: Arc::clone(&self.description), contents: Arc::clone(&self.contents) }
    }
}

impl<T: Timestamp> fmt::Debug for Batch<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Batch")
            .field("description", &self.description)
            .field("updates", &self.contents.updates)
            .field("bytes", &self.contents.bytes)
            .finish()
    }
}

impl<T> Batch<T> {
    /// The number of updates.
    pub fn len(&self) -> usize {
        self.contents.updates
    }

    /// The number of updates with negative weights.
    pub fn retractions(&self) -> usize {
        self.contents.retractions
    }

    /// How often readers that have let go of it have sought a key in it. Batches that share their pages share the count.
    pub(crate) fn seeks(&self) -> u64 {
        self.contents.seeks.load(Ordering::Relaxed)
    }

    /// Counts seeks of a reader.
    pub(crate) fn add_seeks(&self, seeks: u64) {
        self.contents.seeks.fetch_add(seeks, Ordering::Relaxed);
    }

    /// Whether there are no updates.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The interval of times that the updates come from.
    pub fn description(&self) -> &Description<T> {
        &self.description
    }

    /// The bytes of pages and fences, in memory or in the file. Batches that share their pages each report all of them.
    pub fn bytes(&self) -> usize {
        self.contents.bytes
    }

    /// The number of pages.
    pub fn pages(&self) -> usize {
        match &self.contents.place {
            Place::Heap(pages) => pages.len(),
            Place::File(file) => file.len(),
        }
    }

    /// A page.
    ///
    /// # Panics
    ///
    /// If there is no such page, or if it is in a file that is damaged there. The message says where.
    #[inline]
    pub fn page(&self, index: usize) -> &Page {
        match &self.contents.place {
            Place::Heap(pages) => &pages[index],
            Place::File(file) => file.page(index),
        }
    }

    /// Where the pages are.
    #[inline]
    pub(crate) fn place(&self) -> &Place {
        &self.contents.place
    }

    /// About how many updates have keys from `low` on and below `high`, from the fences alone.
    pub fn updates_between(&self, low: &[u8], high: Option<&[u8]>) -> usize {
        let fences = self.fences();
        let end = high.map_or(self.pages(), |high| fences.seek(0, high, |_| false));
        // The page before may have the first keys.
        let start = fences.seek(0, low, |_| false).saturating_sub(1);
        self.len().div_ceil(self.pages().max(1)) * end.saturating_sub(start)
    }

    /// The search index of the pages.
    pub(crate) fn fences(&self) -> &Fences {
        &self.contents.fences
    }

    /// The summary of the column by which it is pruned, if there is one.
    pub(crate) fn summary(&self) -> Option<&Summary> {
        self.contents.summary.as_ref()
    }

    /// The file that the pages are in, if they are not on the heap.
    pub(crate) fn file(&self) -> Option<&FilePages> {
        match &self.contents.place {
            Place::Heap(_) => None,
            Place::File(pages) => Some(pages),
        }
    }

    /// Whether the pages are in a file.
    pub fn is_file(&self) -> bool {
        self.file().is_some()
    }

    /// The part of a blob that has the batch: the file it is in, or a copy. `None` if it is on the heap only.
    pub fn stored(&self) -> Option<&BlobRange> {
        match &self.contents.place {
            Place::Heap(_) => self.contents.copy.get(),
            Place::File(pages) => pages.owner(),
        }
    }

    /// There is a copy of it now.
    pub(crate) fn copied(&self, copy: BlobRange) {
        // The first one is as good.
        let _ = self.contents.copy.set(copy);
    }

    /// The limits that the pages were built within.
    pub fn limits(&self) -> PageLimits {
        self.contents.limits
    }

    /// The same updates with another description.
    pub fn described(&self, description: Description<T>) -> Batch<T> {
        Batch { description: Arc::new(description), contents: Arc::clone(&self.contents) }
    }

    /// A batch without updates in the place of this one.
    pub(crate) fn emptied(&self) -> Batch<T>
    where
        T: Timestamp,
    {
        Batch::from_pages(Vec::new(), self.limits(), Description::clone(&self.description), None)
    }

    /// A batch of these pages.
    pub(crate) fn from_pages(
        pages: Vec<Page>,
        limits: PageLimits,
        description: Description<T>,
        summary: Option<Summary>,
    ) -> Batch<T> {
        let mut fences = Fences::default();
        pages.iter().for_each(|page| fences.push(page.key(0)));
        let held: usize = pages.iter().map(|page| Block::memory_of(page.bytes().len())).sum();
        let contents = Contents {
            updates: pages.iter().map(Page::updates).sum(),
            retractions: pages.iter().map(Page::retractions).sum(),
            bytes: held
                + pages.len() * size_of::<Page>()
                + fences.bytes()
                + summary.as_ref().map_or(0, Summary::bytes),
            place: Place::Heap(pages),
            fences,
            summary,
            limits,
            seeks: AtomicU64::new(0),
            copy: OnceLock::new(),
        };
        Batch { description: Arc::new(description), contents: Arc::new(contents) }
    }

    /// A batch of the pages of a file.
    pub(crate) fn from_file(
        mut pages: FilePages,
        limits: PageLimits,
        description: Description<T>,
    ) -> Batch<T> {
        let contents = Contents {
            fences: pages.fences(),
            summary: pages.take_summary(),
            updates: pages.updates(),
            retractions: pages.retractions(),
            bytes: usize::try_from(pages.file_bytes()).unwrap_or(usize::MAX),
            place: Place::File(pages.shared()),
            limits,
            seeks: AtomicU64::new(0),
            copy: OnceLock::new(),
        };
        Batch { description: Arc::new(description), contents: Arc::new(contents) }
    }
}

impl<T: PageTime> Batch<T> {
    /// The same updates, described as those from `lower` to `upper`, with times advanced to `since`.
    pub fn spanning(
        &self,
        lower: Antichain<T>,
        upper: Antichain<T>,
        since: Antichain<T>,
    ) -> Batch<T> {
        self.described(Description::new(lower, upper, since))
    }

    /// A cursor at the first key.
    pub fn cursor(&self) -> Cursor<T> {
        Cursor::new(self.clone())
    }

    /// A cursor at the first key, for a reader that goes through the batch once. It reads a mapped file sequentially,
    /// in large pieces and past the mapping, and so does not evict what others look up.
    pub fn scan(&self) -> Cursor<T> {
        Cursor::scan(self.clone(), 1)
    }

    /// The batch in a file. The file is not deleted with its last reader.
    ///
    /// Pages are read and checked when they are accessed: damage to one is reported only then.
    pub fn open(blob: Arc<dyn Blob>, budget: &MemoryBudget) -> Result<Batch<T>, FileError> {
        Self::open_owned(blob, None, budget)
    }

    /// As [`open`](Self::open), of a file that is this part of a blob, which is deleted with its last owner.
    pub fn open_owned(
        file: Arc<dyn Blob>,
        owner: impl Into<Option<BlobRange>>,
        budget: &MemoryBudget,
    ) -> Result<Batch<T>, FileError> {
        let place = file.place();
        let (pages, metadata) = FilePages::open(file, owner.into(), budget)?;
        if metadata.lanes as usize != T::LANES {
            let reason = "its times are of another kind";
            return Err(FileError::Damaged { place, offset: 0, reason });
        }
        let frontier =
            |lanes: &[u64]| -> Antichain<T> { lanes.chunks(T::LANES).map(T::load).collect() };
        let since = frontier(&metadata.since);
        let description =
            Description::new(frontier(&metadata.lower), frontier(&metadata.upper), since);
        let limits = PageLimits {
            bytes: metadata.page_bytes as usize,
            updates: metadata.page_updates as usize,
        };
        Ok(Batch::from_file(pages, limits, description))
    }

    /// Reads every page of a batch that is in a file, one after the other, and returns damaged and unreadable ones.
    pub fn verify(&self) -> Vec<FileError> {
        self.file().map(FilePages::verify).unwrap_or_default()
    }

    /// Whether all updates have one time, or there are none.
    pub(crate) fn has_one_time(&self) -> bool {
        let mut pages = PageReader::sequential(self.clone(), 1);
        let mut only = None;
        (0..self.pages()).all(|number| {
            pages.release_before(number);
            let page = pages.page(number);
            page.layout().times == 1 && *only.get_or_insert(page.time::<T>(0)) == page.time(0)
        })
    }
}

impl<T: PageTime> BatchReader for Batch<T> {
    type Time = T;

    fn len(&self) -> usize {
        self.contents.updates
    }

    fn description(&self) -> &Description<T> {
        &self.description
    }
}
