//! Reading the pages of a batch file once, from front to back.
//!
//! A sequential reader such as a merge would fault the mapping in piece by piece, and evict pages that others look up.
//! So it reads past the mapping, one window of pages at a time.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::pages::FilePages;
use crate::failure::Failure;
use crate::memory::{Charge, MemoryBudget};
use crate::page::Page;

/// The pages of a batch file, read in windows that are released again.
pub(crate) struct FileScan {
    file: Arc<FilePages>,
    windows: Box<[OnceLock<Window>]>,
    /// The pages per window, but for the last, as a power of two.
    pages: u32,
    /// The first window that was not released for good.
    first: usize,
    _charge: Charge,
}

struct Window {
    pages: Box<[Page]>,
    _charge: Charge,
}

/// The most bytes of a window: small beside the caches of a processor, large beside the cost of a system call.
const WINDOW: usize = 256 << 10;

/// The number of files that may be scanned together however small the budget is.
const LEAST_TOGETHER: usize = 8;

impl FileScan {
    /// How many files may be scanned together, so that a page of `page_bytes` bytes of each fits into
    /// [`MemoryPolicy::scan_windows`].
    ///
    /// [`MemoryPolicy::scan_windows`]: crate::memory::MemoryPolicy::scan_windows
    pub(crate) fn most_together(budget: &MemoryBudget, page_bytes: usize) -> usize {
        (budget.policy().scan_windows / page_bytes.max(1)).max(LEAST_TOGETHER)
    }

    /// The pages of a file that is scanned together with others, `files` in all.
    pub(crate) fn new(file: &Arc<FilePages>, files: usize) -> Self {
        let file = Arc::clone(file);
        let bytes = WINDOW.min(file.budget().policy().scan_windows / files.max(1));
        let length = usize::try_from(file.file_bytes()).unwrap_or(usize::MAX) / file.len().max(1);
        let pages = (bytes / length.max(1)).max(1).ilog2();
        let windows: Box<[_]> =
            (0..file.len().div_ceil(1 << pages)).map(|_| OnceLock::new()).collect();
        let charge = file.budget().charge(size_of_val(&*windows));
        Self { file, windows, pages, first: 0, _charge: charge }
    }

    /// A page that was not released for good.
    ///
    /// # Panics
    ///
    /// If there is no such page, or as [`FilePages::page`] does; also if the file cannot be read.
    #[inline]
    pub(crate) fn page(&self, index: usize) -> &Page {
        let number = index >> self.pages;
        let window = match self.windows[number].get() {
            Some(window) => window,
            None => self.windows[number].get_or_init(|| self.read(number)),
        };
        &window.pages[index - (number << self.pages)]
    }

    #[cold]
    fn read(&self, window: usize) -> Window {
        assert!(window >= self.first, "a page that was released is not read again");
        let pages = self.file.len();
        let range: Range<usize> = window << self.pages..pages.min((window + 1) << self.pages);
        let (pages, bytes) = self.file.read(range).unwrap_or_else(|error| Failure::raise(error));
        let charge = self.file.budget().charge(bytes + pages.len() * size_of::<Page>());
        Window { pages, _charge: charge }
    }

    /// Releases the windows from the one that has the page `from` up to the one that has `page`, but for that of
    /// `key_page`. They are read again if needed.
    #[inline]
    pub(crate) fn release_between(&mut self, key_page: usize, from: usize, page: usize) {
        let window = |page: usize| page >> self.pages;
        for number in window(from).max(window(key_page) + 1)..window(page).min(self.windows.len()) {
            self.windows[number].take();
        }
    }

    /// Releases the windows before the one that has this page, for good.
    #[inline]
    pub(crate) fn release_before(&mut self, page: usize) {
        let end = (page >> self.pages).min(self.windows.len());
        while self.first < end {
            self.windows[self.first].take();
            self.first += 1;
        }
    }
}
