//! The pages of a batch, as one reader gets them.

use timely::progress::Timestamp;

use crate::batch::{Batch, Place};
use crate::bound::Bound;
use crate::fences::Fences;
use crate::file::{FilePages, FileScan};
use crate::page::Page;

/// Gives a reader the pages of a batch: from the heap, through the mapping of its file, or, for a reader that goes
/// through a mapped file once, from a [`FileScan`] past the mapping.
pub(crate) struct PageReader<T> {
    batch: Batch<T>,
    /// Only where the batch is in a mapped file.
    scan: Option<Box<FileScan>>,
    /// The pages of a file that the reader gets, if it does not get all of them.
    some: Option<Box<SomePages>>,
}

/// Some of the pages of a file, numbered from zero, and their fences.
struct SomePages {
    pages: Box<[usize]>,
    fences: Fences,
}

impl<T> PageReader<T> {
    /// For a reader that looks pages up, in any order.
    pub(crate) fn random(batch: Batch<T>) -> Self {
        PageReader { batch, scan: None, some: None }
    }

    /// For a reader that goes through the batch once, together with others, `batches` in all.
    pub(crate) fn sequential(batch: Batch<T>, batches: usize) -> Self {
        let scan = match batch.place() {
            Place::File(file) if file.is_mapped() => Some(Box::new(FileScan::new(file, batches))),
            _ => None,
        };
        PageReader { batch, scan, some: None }
    }

    /// As [`sequential`](Self::sequential), but without pages that are known to have only rows below `bound`.
    pub(crate) fn above(batch: Batch<T>, batches: usize, bound: Option<&Bound>) -> Self
    where
        T: Timestamp,
    {
        let needed = bound.and_then(|bound| batch.summary()?.needed(bound));
        let Some(pages) = needed else { return Self::sequential(batch, batches) };
        if let Place::Heap(all) = batch.place() {
            let kept = pages.iter().map(|page| all[*page].clone()).collect();
            let description = batch.description().clone();
            return Self::random(Batch::from_pages(kept, batch.limits(), description, None));
        }
        let fences = batch.fences();
        let prefixes = pages.iter().map(|page| fences.prefixes()[*page]).collect();
        let fences = Fences::new(fences.common().to_vec(), prefixes);
        let reader = Self::sequential(batch, batches);
        PageReader { some: Some(Box::new(SomePages { pages, fences })), ..reader }
    }

    /// The batch.
    pub(crate) fn batch(&self) -> &Batch<T> {
        &self.batch
    }

    /// Whether pages are read in their order, at some cost otherwise.
    pub(crate) fn is_sequential(&self) -> bool {
        self.scan.is_some()
    }

    /// The page of this number, if there is one.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<&Page> {
        match self.batch.place() {
            Place::Heap(pages) => pages.get(index),
            Place::File(file) => self.get_in_file(file, index),
        }
    }

    // Not inlined: readers of pages on the heap stay small.
    #[inline(never)]
    fn get_in_file<'a>(&'a self, file: &'a FilePages, index: usize) -> Option<&'a Page> {
        let index = self.in_file(index);
        (index < file.len()).then(|| match &self.scan {
            Some(scan) => scan.page(index),
            None => file.page(index),
        })
    }

    /// The page of this number.
    ///
    /// # Panics
    ///
    /// If there is no such page, or if it lies in a file that is damaged there or cannot be read.
    #[inline]
    pub(crate) fn page(&self, index: usize) -> &Page {
        self.get(index).expect("a batch has the pages that are read")
    }

    /// The first of the pages `from..` whose first key is not below `target`, or the number of pages.
    pub(crate) fn seek_page(&self, from: usize, target: &[u8]) -> usize {
        let fences = self.some.as_ref().map_or(self.batch.fences(), |some| &some.fences);
        fences.seek(from, target, |page| self.page(page).key(0) < target)
    }

    /// Releases the pages of a scan before this one, for good.
    #[inline]
    pub(crate) fn release_before(&mut self, page: usize) {
        let page = self.in_file(page);
        if let Some(scan) = &mut self.scan {
            scan.release_before(page);
        }
    }

    /// Releases the pages of a scan from `from` up to `page`, but for `key_page`, which has the current key.
    #[inline]
    pub(crate) fn release_between(&mut self, key_page: usize, from: usize, page: usize) {
        let [key_page, from, page] = [key_page, from, page].map(|page| self.in_file(page));
        if let Some(scan) = &mut self.scan {
            scan.release_between(key_page, from, page);
        }
    }

    /// The number in the file of a page; past the last one the number of pages.
    #[inline]
    fn in_file(&self, index: usize) -> usize {
        match &self.some {
            Some(some) => some.pages.get(index).copied().unwrap_or(self.batch.pages()),
            None => index,
        }
    }

    /// Whether looking up pages may have to wait for a disk.
    pub(crate) fn may_wait(&self) -> bool {
        self.mapped_file().is_some_and(|file| !file.is_resident())
    }

    /// Requests the pages that these keys may be on; the keys ascend, and none is on a page before `from`. Whether any
    /// of the pages was not in memory.
    pub(crate) fn prefetch<'a>(
        &self,
        mut from: usize,
        keys: impl Iterator<Item = &'a [u8]>,
    ) -> bool {
        let Some(file) = self.mapped_file() else { return false };
        file.prefetch(keys.flat_map(|key| {
            let pages = self.batch.fences().likely_pages(from, key);
            from = pages.start;
            pages
        }))
    }

    /// The file, if its pages are looked up through a mapping.
    fn mapped_file(&self) -> Option<&FilePages> {
        if self.scan.is_some() {
            return None;
        }
        self.batch.file()
    }
}
