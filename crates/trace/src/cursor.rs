//! Reading one batch.

use std::ops::Range;

use crate::batch::Batch;
use crate::bound::Bound;
use crate::page::Page;
use crate::page::view::gallop;
use crate::page_reader::PageReader;
use crate::time::PageTime;

/// A position in a batch: a key, and one of its values.
///
/// A cursor starts at the first key and its first value, and every move to a key ends at its first value. It moves
/// forward only, except with [`rewind_vals`](Cursor::rewind_vals) and [`seek_val_before`](Cursor::seek_val_before). A key whose values span several pages is one key, and
/// a value whose updates span several pages is one value.
///
/// Times are advanced to the `since` of the batch's description, if that is a single time. To read a batch as of a later
/// time, [describe](Batch::described) it with that `since`.
pub struct Cursor<T> {
    pages: PageReader<T>,
    /// Earlier times are advanced to this one: the batch's `since`.
    since: T,
    /// The first page that has the current key; the number of pages when there are no more keys.
    key_page: usize,
    /// The number of the key on that page.
    key: usize,
    /// The first page that has the current value.
    page: usize,
    /// The current value and those of the same key after it, on that page; empty when there are no more
    /// values of the key.
    values: Range<usize>,
    /// How often it has moved to a key that was sought.
    seeks: u64,
}

impl<T> Drop for Cursor<T> {
    fn drop(&mut self) {
        if self.seeks > 0 {
            self.pages.batch().add_seeks(self.seeks);
        }
    }
}

impl<T: PageTime> Cursor<T> {
    /// A cursor at the first key of the batch.
    pub fn new(batch: Batch<T>) -> Self {
        let since = since(&batch);
        Self::over(PageReader::random(batch), since)
    }

    /// A cursor at the first key of the batch, for a reader that goes through it once together with others, `batches`
    /// in all; see [`Batch::scan`].
    pub(crate) fn scan(batch: Batch<T>, batches: usize) -> Self {
        let since = since(&batch);
        Self::over(PageReader::sequential(batch, batches), since)
    }

    /// As [`scan`](Self::scan), but without pages that are known to have only rows below `bound`: they are not read.
    pub(crate) fn scan_above(batch: Batch<T>, batches: usize, bound: Option<&Bound>) -> Self {
        let since = since(&batch);
        Self::over(PageReader::above(batch, batches, bound), since)
    }

    /// A cursor at the first key that is not below `key`. Of the pages it reads only those that may have that key.
    pub(crate) fn seeking(batch: Batch<T>, key: &[u8]) -> Self {
        let since = since(&batch);
        Self::over_from(PageReader::random(batch), since, key)
    }

    /// As [`seeking`](Self::seeking), for a reader that continues as one that [scans](Self::scan).
    pub(crate) fn scan_from(batch: Batch<T>, batches: usize, key: &[u8]) -> Self {
        let since = since(&batch);
        Self::over_from(PageReader::sequential(batch, batches), since, key)
    }

    fn over(pages: PageReader<T>, since: T) -> Self {
        let mut cursor = Self::unplaced(pages, since);
        cursor.rewind_vals();
        cursor
    }

    fn over_from(pages: PageReader<T>, since: T, key: &[u8]) -> Self {
        let mut cursor = Self::unplaced(pages, since);
        cursor.seeks = 1;
        cursor.seek_from(0, key);
        cursor
    }

    fn unplaced(pages: PageReader<T>, since: T) -> Self {
        Cursor { pages, since, key_page: 0, key: 0, page: 0, values: 0..0, seeks: 0 }
    }

    /// The current key; `None` past the last one.
    #[inline]
    pub fn key(&self) -> Option<&[u8]> {
        let page = self.pages.get(self.key_page)?;
        Some(page.key(self.key))
    }

    /// The page and the number of the current key; `None` past the last one.
    #[inline]
    pub(crate) fn key_place(&self) -> Option<(usize, usize)> {
        self.pages.get(self.key_page)?;
        Some((self.key_page, self.key))
    }

    /// The page and the number of the current value; `None` past the last one of the current key.
    #[inline]
    pub(crate) fn val_place(&self) -> Option<(usize, usize)> {
        (!self.values.is_empty()).then_some((self.page, self.values.start))
    }

    /// Moves to the next key.
    pub fn step_key(&mut self) {
        let Some(key) = self.key() else {
            return;
        };
        let pages = &self.pages;
        let mut page = self.page;
        let mut next = self.key_on(page) + 1;
        while next == pages.page(page).keys() {
            page += 1;
            next = match pages.get(page) {
                Some(page) if page.key(0) == key => 1,
                _ => 0,
            };
            if next == 0 {
                break;
            }
        }
        self.place(page, next);
    }

    /// Moves forward to the first key that is not below `key`; stays when the current key is not.
    pub fn seek_key(&mut self, key: &[u8]) {
        match self.key() {
            Some(current) if current < key => {}
            _ => return,
        }
        self.seeks += 1;
        let pages = &self.pages;
        let from = self.key_on(self.page);
        let here = pages.page(self.page).seek_key(from, key);
        if here < pages.page(self.page).keys() {
            let page = self.page;
            return self.place(page, here);
        }
        self.seek_from(self.page + 1, key);
    }

    /// Moves, forward or back, to the first key that is not below `key`. Not for cursors that scan.
    pub(crate) fn seek_anywhere(&mut self, key: &[u8]) {
        self.seeks += 1;
        self.seek_from(0, key);
    }

    /// Moves to the first key that is not below `key`, which is on none of the pages before `from`.
    fn seek_from(&mut self, from: usize, key: &[u8]) {
        // The key is on the last page that starts below it, or starts the page after that.
        let page = self.pages.seek_page(from, key);
        if page > from {
            let before = self.pages.page(page - 1);
            let place = before.seek_key(0, key);
            if place < before.keys() {
                return self.place(page - 1, place);
            }
        }
        self.place(page, 0);
    }

    /// Whether seeking keys may have to wait for a disk.
    pub(crate) fn may_wait(&self) -> bool {
        self.pages.may_wait()
    }

    /// Requests the pages that these keys may be on; the keys ascend and are not below the current one. Whether any of
    /// the pages was not in memory.
    pub(crate) fn prefetch<'a>(&self, keys: impl Iterator<Item = &'a [u8]>) -> bool {
        self.pages.prefetch(self.key_page, keys)
    }

    /// The page whose first update is the current one, if its last row does not continue on the next page.
    #[inline]
    pub(crate) fn whole_page(&self) -> Option<&Page> {
        let pages = &self.pages;
        let page = pages.get(self.key_page)?;
        if self.key > 0 || self.page != self.key_page || self.values != page.values_of(0) {
            return None;
        }
        let last = |page: &Page| (page.keys() - 1, page.values() - 1);
        let goes_on = pages.get(self.page + 1).is_some_and(|next| {
            let (key, value) = last(page);
            next.key(0) == page.key(key) && next.value(0) == page.value(value)
        });
        (!goes_on).then_some(page)
    }

    /// Moves past the [whole page](Cursor::whole_page).
    pub(crate) fn skip_page(&mut self) {
        self.place(self.key_page + 1, 0);
    }

    /// The current value; `None` past the last one of the current key.
    #[inline]
    pub fn val(&self) -> Option<&[u8]> {
        if self.values.is_empty() {
            return None;
        }
        Some(self.pages.page(self.page).value(self.values.start))
    }

    /// Moves to the next value of the current key.
    pub fn step_val(&mut self) {
        if self.values.is_empty() {
            return;
        }
        if self.values.len() > 1 {
            self.values.start += 1;
            return;
        }
        let value = self.pages.page(self.page).value(self.values.start);
        let mut page = self.page;
        while let Some(mut values) = self.continued(page) {
            page += 1;
            if self.pages.page(page).value(values.start) == value {
                values.start += 1;
            }
            if !values.is_empty() {
                return self.go_to(page, values);
            }
        }
        self.go_to(page, 0..0);
    }

    /// Moves forward to the first value of the current key that is not below `val`; stays when the current
    /// value is not.
    pub fn seek_val(&mut self, val: &[u8]) {
        if self.values.is_empty() {
            return;
        }
        let here = self.pages.page(self.page).seek_value(self.values.clone(), val);
        if here < self.values.end {
            self.values.start = here;
            return;
        }
        let mut page = self.last_page_below(self.page, val);
        let mut values = match page > self.page {
            true => self.pages.page(page).values_of(0),
            false => here..here,
        };
        values.start = self.pages.page(page).seek_value(values.clone(), val);
        if values.is_empty()
            && let Some(more) = self.continued(page)
        {
            page += 1;
            values = more;
        }
        self.go_to(page, values);
    }

    /// Moves, forward or back, to the last value of the current key that is below `val`. Without one it moves to the first
    /// value and returns false. Not for a cursor that scans.
    pub fn seek_val_before(&mut self, val: &[u8]) -> bool {
        let Some(mut page) = self.page_before(val) else {
            self.rewind_vals();
            return false;
        };
        let mut values = self.values_on(page);
        values.start = self.pages.page(page).seek_value(values.clone(), val) - 1;
        // Its updates may have begun on a page before.
        while page > self.key_page && values.start == self.values_on(page).start {
            let (before, value) =
                (self.pages.page(page - 1), self.pages.page(page).value(values.start));
            let last = self.values_on(page - 1).end - 1;
            if before.value(last) != value {
                break;
            }
            page -= 1;
            values = last..last + 1;
        }
        self.page = page;
        self.values = values;
        true
    }

    /// The page with the last value of the current key that is below `val`.
    fn page_before(&self, val: &[u8]) -> Option<usize> {
        self.key()?;
        let starts_below = |page: usize| {
            let values = self.values_on(page);
            !values.is_empty() && self.pages.page(page).value(values.start) < val
        };
        // Rows are often read one by one backwards.
        let from = if starts_below(self.page) { self.page } else { self.key_page };
        starts_below(from).then(|| self.last_page_below(from, val))
    }

    /// The last page from `from` on that has the current key and starts below the value `val`; `from` itself if none of the
    /// pages after it does.
    fn last_page_below(&self, from: usize, val: &[u8]) -> usize {
        let Some(key) = self.key() else { return from };
        let starts_below = |page: usize| {
            let page = self.pages.page(page);
            page.key(0) == key && page.value(page.values_of(0).start) < val
        };
        let pages = from + 1..self.pages.batch().pages();
        match self.pages.is_sequential() {
            true => pages.into_iter().take_while(|&page| starts_below(page)).last().unwrap_or(from),
            false => gallop(pages, starts_below) - 1,
        }
    }

    /// All values of the current key on this page, which has it.
    fn values_on(&self, page: usize) -> Range<usize> {
        self.pages.page(page).values_of(self.key_on(page))
    }

    /// Moves back to the first key. Not for a cursor that scans.
    pub(crate) fn rewind_keys(&mut self) {
        self.place(0, 0);
    }

    /// Moves back to the first value of the current key.
    #[inline]
    pub fn rewind_vals(&mut self) {
        self.place(self.key_page, self.key);
    }

    /// The updates of the current key and value, by time; none where there is no value.
    pub fn updates(&self) -> impl Iterator<Item = (T, i64)> + '_ {
        self.runs().flat_map(|(page, updates)| {
            updates.map(|update| (self.time(page, update), page.weight(update)))
        })
    }

    /// Calls `visit` with each of [`updates`](Cursor::updates).
    #[inline]
    pub(crate) fn visit_updates(&self, visit: &mut impl FnMut(T, i64)) {
        if self.values.len() > 1 {
            let page = self.pages.page(self.page);
            for update in page.updates_of(self.values.start) {
                visit(self.time(page, update), page.weight(update));
            }
            return;
        }
        for (page, updates) in self.runs() {
            for update in updates {
                visit(self.time(page, update), page.weight(update));
            }
        }
    }

    /// The time of an update, advanced.
    #[inline]
    fn time(&self, page: &Page, update: usize) -> T {
        page.time::<T>(update).join(&self.since)
    }

    /// The updates of the current key and value, page by page.
    #[inline]
    fn runs(&self) -> impl Iterator<Item = (&Page, Range<usize>)> + '_ {
        let pages = &self.pages;
        let mut next = (!self.values.is_empty()).then(|| (self.page, self.values.clone()));
        std::iter::from_fn(move || {
            let (page, values) = next.take()?;
            let (this, value) = (pages.page(page), values.start);
            if values.len() == 1
                && let Some(more) = self.continued(page)
                && pages.page(page + 1).value(more.start) == this.value(value)
            {
                next = Some((page + 1, more));
            }
            Some((this, this.updates_of(value)))
        })
    }

    /// Moves to a key and its first value.
    #[inline]
    fn place(&mut self, page: usize, key: usize) {
        if page > self.key_page {
            self.pages.release_before(page);
        }
        self.key_page = page;
        self.key = key;
        self.page = page;
        self.values = match self.pages.get(page) {
            Some(page) => page.values_of(key),
            None => 0..0,
        };
    }

    /// Moves forward to these values of the current key, on this page.
    #[inline]
    fn go_to(&mut self, page: usize, values: Range<usize>) {
        if page > self.page {
            self.pages.release_between(self.key_page, self.page, page);
        }
        self.page = page;
        self.values = values;
    }

    /// The number of the current key on this page, which has it.
    #[inline]
    fn key_on(&self, page: usize) -> usize {
        if page == self.key_page { self.key } else { 0 }
    }

    /// The values of the current key on the next page, if the key continues there.
    #[inline]
    fn continued(&self, page: usize) -> Option<Range<usize>> {
        let pages = &self.pages;
        if self.key_on(page) + 1 < pages.page(page).keys() {
            return None;
        }
        let next = pages.get(page + 1)?;
        (next.key(0) == self.key()?).then(|| next.values_of(0))
    }
}

/// The time to which the times of a batch are advanced.
fn since<T: PageTime>(batch: &Batch<T>) -> T {
    match batch.description().since().elements() {
        [since] => *since,
        _ => T::minimum(),
    }
}
