//! Moving a batch to a file.

use differential_dataflow::trace::Description;

use crate::batch::Batch;
use crate::builder::written;
use crate::file::FileWriter;
use crate::memory::StateContext;
use crate::time::PageTime;

/// A batch on its way to a file, page by page.
pub(crate) struct Spill<T> {
    batch: Batch<T>,
    file: FileWriter,
    /// How many pages are written.
    written: usize,
}

impl<T: PageTime> Spill<T> {
    /// Begins a file in the storage of this context, which has one.
    ///
    /// # Unwinds
    ///
    /// This and the other calls, with a [`Failure`](crate::Failure), if the file cannot be written.
    pub(crate) fn new(batch: Batch<T>, context: &StateContext) -> Self {
        let file = written(FileWriter::new(context.clone()));
        Spill { batch, file, written: 0 }
    }

    /// Writes pages of at least `bytes` bytes together, or those that are left. Returns their bytes.
    pub(crate) fn advance(&mut self, bytes: u64) -> u64 {
        let mut sum = 0;
        while sum < bytes && !self.is_done() {
            let page = self.batch.page(self.written);
            written(self.file.push(page));
            sum += page.bytes().len() as u64;
            self.written += 1;
        }
        sum
    }

    /// Whether all pages are written.
    pub(crate) fn is_done(&self) -> bool {
        self.written == self.batch.pages()
    }

    /// The same updates, in the file.
    pub(crate) fn finish(mut self) -> Batch<T> {
        self.advance(u64::MAX);
        let limits = self.batch.limits();
        let pages = written(self.file.finish(limits, self.batch.description()));
        Batch::from_file(pages, limits, Description::clone(self.batch.description()))
    }
}
