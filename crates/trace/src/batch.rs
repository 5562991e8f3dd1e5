//! An immutable run of updates.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use alluvium_storage::Blob;
use differential_dataflow::trace::{self, BatchReader, Description};
use timely::progress::{Antichain, Timestamp};

use crate::builder::written;
use crate::cursor::Cursor;
use crate::fences::Fences;
use crate::file::{FileError, FilePages, FileScan, FileWriter};
use crate::memory::{Block, MemoryBudget, StateContext};
use crate::merge::BatchMerger;
use crate::page::{Page, PageLimits};
use crate::time::PageTime;

/// An immutable run of updates, sorted by key, value and time, in pages on the heap or in a file.
///
/// The description says which interval of times the updates come from, and since when their times may have
/// been advanced. A clone shares the pages.
pub struct Batch<T> {
    description: Arc<Description<T>>,
    contents: Arc<Contents>,
}

/// What a batch holds, whatever interval it is said to describe.
struct Contents {
    pages: Pages,
    /// Most of a search needs no more.
    fences: Arc<Fences>,
    updates: usize,
    retractions: usize,
    bytes: usize,
    limits: PageLimits,
}

/// Where the pages are.
enum Pages {
    Heap(Vec<Page>),
    File(Arc<FilePages>),
    /// In a file that is read once.
    Scan(FileScan),
}

impl Pages {
    fn len(&self) -> usize {
        match self {
            Pages::Heap(pages) => pages.len(),
            Pages::File(pages) => pages.len(),
            Pages::Scan(pages) => pages.len(),
        }
    }

    #[inline]
    fn get(&self, index: usize) -> Option<&Page> {
        match self {
            Pages::Heap(pages) => pages.get(index),
            elsewhere => elsewhere.get_anywhere(index),
        }
    }

    // Kept out of those who ask, so that pages on the heap are at hand in them.
    #[inline(never)]
    fn get_anywhere(&self, index: usize) -> Option<&Page> {
        (index < self.len()).then(|| match self {
            Pages::Heap(pages) => &pages[index],
            Pages::File(pages) => pages.page(index),
            Pages::Scan(pages) => pages.page(index),
        })
    }
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

    /// The number of updates that take copies of rows away.
    pub(crate) fn retractions(&self) -> usize {
        self.contents.retractions
    }

    /// Whether there are no updates.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The interval of times that the updates come from.
    pub fn description(&self) -> &Description<T> {
        &self.description
    }

    /// The bytes that pages and fences take, in memory or in their file; batches that share their pages each report all of them.
    pub fn bytes(&self) -> usize {
        self.contents.bytes
    }

    /// The number of pages.
    pub fn pages(&self) -> usize {
        self.contents.pages.len()
    }

    /// A page.
    ///
    /// # Panics
    ///
    /// If there is no such page, or if it lies in a file that is damaged there: the message says where.
    #[inline]
    pub fn page(&self, index: usize) -> &Page {
        self.get_page(index).expect("a batch has the pages that are read")
    }

    /// The page of this number, if there is one.
    #[inline]
    pub(crate) fn get_page(&self, index: usize) -> Option<&Page> {
        self.contents.pages.get(index)
    }

    /// The file that the pages are in, if they are not on the heap.
    pub(crate) fn file(&self) -> Option<&FilePages> {
        match &self.contents.pages {
            Pages::Heap(_) | Pages::Scan(_) => None,
            Pages::File(pages) => Some(pages),
        }
    }

    /// Whether the pages are in a file.
    pub fn is_file(&self) -> bool {
        self.file().is_some()
    }

    /// How large the pages of this batch were allowed to grow.
    pub fn limits(&self) -> PageLimits {
        self.contents.limits
    }

    /// The same updates, said to describe another interval.
    pub fn described(&self, description: Description<T>) -> Batch<T> {
        Batch { description: Arc::new(description), contents: Arc::clone(&self.contents) }
    }

    /// A batch of these pages.
    pub(crate) fn from_pages(
        pages: Vec<Page>,
        limits: PageLimits,
        description: Description<T>,
    ) -> Batch<T> {
        let mut fences = Fences::default();
        pages.iter().for_each(|page| fences.push(page.key(0)));
        let held: usize = pages.iter().map(|page| Block::memory_of(page.bytes().len())).sum();
        let contents = Contents {
            updates: pages.iter().map(Page::updates).sum(),
            retractions: pages.iter().map(Page::retractions).sum(),
            bytes: held + pages.len() * size_of::<Page>() + fences.bytes(),
            pages: Pages::Heap(pages),
            fences: Arc::new(fences),
            limits,
        };
        Batch { description: Arc::new(description), contents: Arc::new(contents) }
    }

    /// A batch of the pages of a file.
    pub(crate) fn from_file(
        pages: FilePages,
        limits: PageLimits,
        description: Description<T>,
    ) -> Batch<T> {
        let contents = Contents {
            fences: Arc::new(pages.fences()),
            updates: pages.updates(),
            retractions: pages.retractions(),
            bytes: usize::try_from(pages.file_bytes()).unwrap_or(usize::MAX),
            pages: Pages::File(pages.shared()),
            limits,
        };
        Batch { description: Arc::new(description), contents: Arc::new(contents) }
    }

    /// The same updates, to be read once, from front to back, together with other batches, `batches` in all: what is
    /// in a mapped file is read past the mapping.
    fn to_scan(&self, batches: usize) -> Batch<T> {
        let Contents { pages, fences, updates, retractions, bytes, limits } = &*self.contents;
        match pages {
            Pages::File(file) if file.is_mapped() => {
                let contents = Contents {
                    pages: Pages::Scan(FileScan::new(Arc::clone(file), batches)),
                    fences: Arc::clone(fences),
                    updates: *updates,
                    retractions: *retractions,
                    bytes: *bytes,
                    limits: *limits,
                };
                let description = Arc::clone(&self.description);
                Batch { description, contents: Arc::new(contents) }
            }
            _ => self.clone(),
        }
    }

    /// Lets go of pages before this one, if the batch is one [to be scanned](Batch::to_scan) that nobody shares.
    #[inline]
    pub(crate) fn let_go_before(&mut self, page: usize) {
        if let Some(scan) = self.own_scan() {
            scan.let_go_before(page);
        }
    }

    /// As [`let_go_before`](Batch::let_go_before), of pages from `from` on, and not of `key_page`, from which the key is read.
    #[inline]
    pub(crate) fn let_go_between(&mut self, key_page: usize, from: usize, page: usize) {
        if let Some(scan) = self.own_scan() {
            scan.let_go_between(key_page, from, page);
        }
    }

    /// The scan of its file, if it is one that nobody shares.
    #[inline]
    fn own_scan(&mut self) -> Option<&mut FileScan> {
        // Most batches are not scanned, and for them a look is enough.
        if !matches!(self.contents.pages, Pages::Scan(_)) {
            return None;
        }
        match Arc::get_mut(&mut self.contents) {
            Some(Contents { pages: Pages::Scan(scan), .. }) => Some(scan),
            _ => None,
        }
    }

    /// Where a key that is on no page before `from` may be, as far as fences tell: two pages at most, though there
    /// can be more if many keys begin alike.
    pub(crate) fn likely_pages(&self, from: usize, key: &[u8]) -> Range<usize> {
        let (start, is_start) = self.contents.fences.approach(from, key);
        start.saturating_sub(1).max(from)..start + usize::from(is_start)
    }

    /// The first of the pages `from..` whose first key is not below `target`, or the number of pages.
    pub(crate) fn seek_page(&self, from: usize, target: &[u8]) -> usize {
        self.contents.fences.seek(from, target, |page| self.page(page).key(0) < target)
    }
}

impl<T: PageTime> Batch<T> {
    /// A cursor at the first key.
    pub fn cursor(&self) -> Cursor<T> {
        Cursor::new(self.clone())
    }

    /// A cursor at the first key, for who reads all of the batch once: from a mapped file it reads large pieces in
    /// sequence, past the mapping, and neither adds to what is resident of it nor takes from that.
    pub fn scan(&self) -> Cursor<T> {
        self.scan_beside(1)
    }

    /// As [`Batch::scan`], for who reads so many batches together.
    pub(crate) fn scan_beside(&self, batches: usize) -> Cursor<T> {
        Cursor::new(self.to_scan(batches))
    }

    /// The batch in a file, which stays there when nobody reads it any more.
    ///
    /// Pages are looked at when they are needed; until then what is wrong with one is not known.
    pub fn open(blob: Arc<dyn Blob>, budget: &MemoryBudget) -> Result<Batch<T>, FileError> {
        let place = blob.place();
        let (pages, metadata) = FilePages::open(blob, budget)?;
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

    /// The same updates in a file of the storage of this context, which has one.
    pub(crate) fn spilled(&self, context: &StateContext) -> Batch<T> {
        let mut file = written(FileWriter::new(context.clone()));
        for page in 0..self.pages() {
            written(file.push(self.page(page)));
        }
        let pages = written(file.finish(self.limits(), self.description()));
        let description = Description::clone(self.description());
        Batch::from_file(pages, self.limits(), description)
    }

    /// Whether all updates are at one time; so it is if there are none.
    pub(crate) fn has_one_time(&self) -> bool {
        let mut scan = self.to_scan(1);
        let mut only = None;
        (0..self.pages()).all(|number| {
            scan.let_go_before(number);
            let page = scan.page(number);
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

impl<T: PageTime> trace::Batch for Batch<T> {
    type Merger = BatchMerger<T>;

    fn empty(lower: Antichain<T>, upper: Antichain<T>) -> Self {
        let since = Antichain::from_elem(T::minimum());
        Batch::from_pages(Vec::new(), PageLimits::default(), Description::new(lower, upper, since))
    }
}
