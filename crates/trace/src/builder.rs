//! Building a batch from sorted updates.
//!
//! A batch begins on the heap. If a page is full while memory is short, the builder continues in a file: it writes and
//! releases the pages it has, and then writes each further page.

use differential_dataflow::trace::Description;

use crate::batch::Batch;
use crate::failure::Failure;
use crate::file::{FileError, FileWriter};
use crate::memory::StateContext;
use crate::page::{Page, PageBuilder, PageLimits};
use crate::summary::Summarizer;
use crate::time::PageTime;

/// Builds a batch from updates in order of key, value and time.
///
/// Neighbours that are equal in all three are added up, and updates with sum zero are left out.
pub struct BatchBuilder<T> {
    open: PageBuilder<T>,
    full: Full,
    /// Of the pages on the heap, if the batch is pruned.
    summary: Option<Summarizer>,
    limits: PageLimits,
    /// How many bytes the batch is expected to add to the heap if it stays there.
    expected: usize,
    context: StateContext,
}

/// The pages that are full.
enum Full {
    /// On the heap, with the sum of their bytes.
    Heap(Vec<Page>, usize),
    /// In a file.
    File(Box<FileWriter>),
}

impl Default for Full {
    fn default() -> Self {
        Full::Heap(Vec::new(), 0)
    }
}

impl<T: PageTime> BatchBuilder<T> {
    /// A builder of pages of the usual size, 16 KiB at most.
    pub fn new(context: &StateContext) -> Self {
        Self::with_limits(PageLimits::default(), context)
    }

    /// A builder of pages of about `target_bytes` bytes.
    pub fn with_page_size(target_bytes: usize, context: &StateContext) -> Self {
        let limits = PageLimits { bytes: target_bytes, ..PageLimits::default() };
        Self::with_limits(limits, context)
    }

    /// A builder of pages within these limits.
    pub fn with_limits(limits: PageLimits, context: &StateContext) -> Self {
        BatchBuilder {
            open: PageBuilder::new(limits, context.budget()),
            full: Full::default(),
            summary: context.pruning().map(|pruning| Summarizer::new(pruning.column())),
            limits,
            expected: 0,
            context: context.clone(),
        }
    }

    /// The same builder, of a batch that is expected to add `bytes` to the heap if it stays there. If that would exceed the
    /// budget, the batch continues in a file as soon as it is large enough for one.
    pub(crate) fn expecting(mut self, bytes: usize) -> Self {
        self.expected = bytes;
        self
    }

    /// Adds an update, which must not sort before the last one.
    ///
    /// # Panics
    ///
    /// If the weights of one row at one time add up to more than an `i64` holds.
    #[inline]
    pub fn push(&mut self, key: &[u8], val: &[u8], time: &T, weight: i64) {
        if let Some(page) = self.open.push(key, val, time, weight) {
            self.place(page);
        }
    }

    /// Adds a whole page as it is. Its first update does not sort before the last one, and has another row. Whether the
    /// page was taken: not if it is less than a quarter full, or would leave such a page before it.
    pub(crate) fn push_page(&mut self, page: &Page) -> bool {
        let PageLimits { bytes, updates } = self.limits;
        let is_small = page.bytes().len() < bytes / 4 && page.updates() < updates / 4;
        if is_small {
            return false;
        }
        if self.open.is_small() {
            self.open.make_room_for(page);
            return false;
        }
        if let Some(page) = self.open.finish() {
            self.place(page);
        }
        match &mut self.full {
            // A batch on the heap must not keep a file alive.
            Full::Heap(..) => self.place(page.on_heap(self.context.budget())),
            Full::File(file) => written(file.push(page)),
        }
        true
    }

    /// Adds a full page.
    fn place(&mut self, page: Page) {
        match &mut self.full {
            Full::Heap(pages, bytes) => {
                *bytes += page.bytes().len();
                if let Some(summary) = &mut self.summary {
                    summary.push(&page);
                }
                pages.push(page);
                self.consider_file();
            }
            Full::File(file) => written(file.push(&page)),
        }
    }

    /// Continues in a file if that is due.
    fn consider_file(&mut self) {
        let Full::Heap(pages, bytes) = &mut self.full else { return };
        let budget = self.context.budget();
        let is_due = self.context.storage().is_some()
            && budget.would_exceed(self.expected.saturating_sub(*bytes))
            && *bytes >= budget.policy().smallest_file
            && !pages.is_empty();
        if is_due {
            let pages = std::mem::take(pages);
            let mut file = written(FileWriter::new(self.context.clone()));
            for page in pages {
                written(file.push(&page));
            }
            self.full = Full::File(Box::new(file));
        }
    }

    /// Completes the batch. All times must lie in the interval of `description`.
    pub fn finish(mut self, description: Description<T>) -> Batch<T> {
        if let Some(page) = self.open.finish() {
            self.place(page);
        }
        match self.full {
            Full::Heap(mut pages, _) => {
                pages.shrink_to_fit();
                let summary = self.summary.map(Summarizer::finish);
                Batch::from_pages(pages, self.limits, description, summary)
            }
            Full::File(file) => {
                let pages = written(file.finish(self.limits, &description));
                Batch::from_file(pages, self.limits, description)
            }
        }
    }
}

/// The value of a successful write.
///
/// # Unwinds
///
/// With a [`Failure`] if the write has failed.
pub(crate) fn written<R>(result: Result<R, FileError>) -> R {
    result.unwrap_or_else(|error| {
        Failure::raise(format_args!("state cannot be written to a file: {error}"))
    })
}
