//! An immutable run of updates.

use std::fmt;
use std::sync::Arc;

use differential_dataflow::trace::{self, BatchReader, Description};
use timely::progress::{Antichain, Timestamp};

use crate::builder::BatchBuilder;
use crate::cursor::Cursor;
use crate::merge::BatchMerger;
use crate::page::view::gallop;
use crate::page::{Page, PageLimits};
use crate::prefix::prefix;
use crate::time::PageTime;

/// An immutable run of updates, sorted by key, value and time, in pages.
///
/// The description says which interval of times the updates come from, and since when their times may have
/// been advanced. A clone shares the pages.
pub struct Batch<T> {
    description: Arc<Description<T>>,
    contents: Arc<Contents>,
}

/// What a batch holds, whatever interval it is said to describe.
struct Contents {
    pages: Vec<Page>,
    /// For each page the first eight bytes of its first key: most of a search needs no more.
    fences: Vec<u64>,
    updates: usize,
    retractions: usize,
    bytes: usize,
    limits: PageLimits,
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

    /// The bytes that pages and fences take; batches that share their pages each report all of them.
    pub fn bytes(&self) -> usize {
        self.contents.bytes
    }

    /// The pages, in order.
    pub fn pages(&self) -> &[Page] {
        &self.contents.pages
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
        let fences: Vec<u64> = pages.iter().map(|page| prefix(page.key(0))).collect();
        let held: usize = pages.iter().map(|page| page.bytes().len()).sum();
        let contents = Contents {
            updates: pages.iter().map(Page::updates).sum(),
            retractions: pages.iter().map(Page::retractions).sum(),
            bytes: held + pages.len() * (size_of::<Page>() + size_of::<u64>()),
            pages,
            fences,
            limits,
        };
        Batch { description: Arc::new(description), contents: Arc::new(contents) }
    }

    /// The first of the pages `from..` whose first key is not below `target`, or the number of pages.
    pub(crate) fn seek_page(&self, from: usize, target: &[u8]) -> usize {
        let Contents { pages, fences, .. } = &*self.contents;
        let target_prefix = prefix(target);
        gallop(from..pages.len(), |page| match fences[page] {
            fence if fence == target_prefix => pages[page].key(0) < target,
            fence => fence < target_prefix,
        })
    }
}

impl<T: PageTime> Batch<T> {
    /// A cursor at the first key.
    pub fn cursor(&self) -> Cursor<T> {
        Cursor::new(self.clone())
    }

    /// Whether all updates are at one time; so it is if there are none.
    pub(crate) fn has_one_time(&self) -> bool {
        let time = |page: &Page| page.time::<T>(0);
        let mut pages = self.pages().iter();
        match pages.next() {
            Some(first) => {
                first.layout().times == 1
                    && pages.all(|page| page.layout().times == 1 && time(page) == time(first))
            }
            None => true,
        }
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
        BatchBuilder::new().finish(Description::new(lower, upper, since))
    }
}
