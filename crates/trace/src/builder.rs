//! Making a batch from sorted updates.

use differential_dataflow::trace::Description;

use crate::batch::Batch;
use crate::page::{Page, PageBuilder, PageLimits};
use crate::time::PageTime;

/// Makes a batch from updates that come sorted by key, value and time.
///
/// Neighbours equal in all three are added up, and what comes to zero is left out.
pub struct BatchBuilder<T> {
    open: PageBuilder<T>,
    full: Vec<Page>,
    limits: PageLimits,
}

impl<T: PageTime> Default for BatchBuilder<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: PageTime> BatchBuilder<T> {
    /// A builder of pages of the usual size, 16 KiB.
    pub fn new() -> Self {
        Self::with_limits(PageLimits::default())
    }

    /// A builder of pages of about `target_bytes` bytes.
    pub fn with_page_size(target_bytes: usize) -> Self {
        Self::with_limits(PageLimits { bytes: target_bytes, ..PageLimits::default() })
    }

    /// A builder of pages within these limits.
    pub fn with_limits(limits: PageLimits) -> Self {
        BatchBuilder { open: PageBuilder::new(limits), full: Vec::new(), limits }
    }

    /// Adds an update, which must not sort before the last one.
    ///
    /// # Panics
    ///
    /// If the weights of one row at one time add up to more than an `i64` holds.
    #[inline]
    pub fn push(&mut self, key: &[u8], val: &[u8], time: &T, weight: i64) {
        if let Some(page) = self.open.push(key, val, time, weight) {
            self.full.push(page);
        }
    }

    /// Adds a whole page as it is, whose first update does not sort before the last one and is of another row.
    /// Whether it was taken: it is not if it is small, or would leave a small page before it, because what is
    /// less than a quarter full is better filled up.
    pub(crate) fn push_page(&mut self, page: &Page) -> bool {
        let PageLimits { bytes, updates } = self.limits;
        let is_small = page.bytes().len() < bytes / 4 && page.updates() < updates / 4;
        if is_small || self.open.is_small() {
            return false;
        }
        self.full.extend(self.open.finish());
        self.full.push(page.clone());
        true
    }

    /// Completes the batch. All times pushed must lie in the interval that `description` says.
    pub fn finish(mut self, description: Description<T>) -> Batch<T> {
        self.full.extend(self.open.finish());
        self.full.shrink_to_fit();
        Batch::from_pages(self.full, self.limits, description)
    }
}
