//! Summaries of a column of a batch: which pages have only small values, and an approximate median of all values.
//!
//! A batch that is [pruned](crate::bound) by a column has a summary of it. By its summary a batch is dropped, and by that of
//! its pages they are skipped, without being read.

use std::fmt;

use crate::bound::{Bound, BoundColumn};
use crate::fault::{self, Fault};
use crate::page::Page;

/// How large the values of a column are in a batch.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Summary {
    column: BoundColumn,
    /// The greatest value on each page, or [`ALWAYS`] if there is NULL.
    most: Box<[i64]>,
    /// The greatest of these.
    greatest: i64,
    /// About half of the rows of half of the pages have smaller values.
    middle: i64,
}

/// Summarizes pages.
#[derive(Debug)]
pub(crate) struct Summarizer {
    column: BoundColumn,
    most: Vec<i64>,
    middles: Vec<i64>,
}

/// Stands for NULL, which is always needed. So is the number itself, for no bound is above it.
const ALWAYS: i64 = i64::MAX;

/// How many values of a page are looked at to find about the middle of them.
const SAMPLE: usize = 64;

/// The bytes of a summary in a file, apart from those for each page.
const FIXED: usize = 32;

impl fmt::Debug for Summary {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Summary").field("column", &self.column).finish_non_exhaustive()
    }
}

impl Summarizer {
    pub(crate) fn new(column: BoundColumn) -> Self {
        Self { column, most: Vec::new(), middles: Vec::new() }
    }

    /// Adds the next page.
    pub(crate) fn push(&mut self, page: &Page) {
        let step = page.values().div_ceil(SAMPLE).max(1);
        let mut sample = [0; SAMPLE];
        let (mut taken, mut most) = (0, i64::MIN);
        let mut add = |row: usize, number: Option<i64>| {
            let number = number.unwrap_or(ALWAYS);
            most = most.max(number);
            if row.is_multiple_of(step) {
                sample[taken] = number;
                taken += 1;
            }
        };
        match self.column {
            BoundColumn::Key { .. } => {
                for key in 0..page.keys() {
                    let number = self.column.number(page.key(key), &[]);
                    page.values_of(key).for_each(|value| add(value, number));
                }
            }
            BoundColumn::Value { .. } | BoundColumn::Order { .. } => {
                let number = |value| self.column.number(&[], page.value(value));
                (0..page.values()).for_each(|value| add(value, number(value)));
            }
        }
        self.most.push(most);
        self.middles.push(middle(&mut sample[..taken]));
    }

    pub(crate) fn finish(mut self) -> Summary {
        Summary::new(self.column, self.most.into(), middle(&mut self.middles))
    }
}

/// A number that no more than half of these are below.
fn middle(numbers: &mut [i64]) -> i64 {
    let Some(last) = numbers.len().checked_sub(1) else { return ALWAYS };
    *numbers.select_nth_unstable(last / 2).1
}

impl Summary {
    fn new(column: BoundColumn, most: Box<[i64]>, middle: i64) -> Self {
        let greatest = most.iter().copied().max().unwrap_or(i64::MIN);
        Self { column, most, greatest, middle }
    }

    /// The column.
    pub(crate) fn column(&self) -> BoundColumn {
        self.column
    }

    /// The bytes that it takes.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.most)
    }

    /// Whether no row of the batch is needed.
    pub(crate) fn is_below(&self, bound: &Bound) -> bool {
        let greatest = match fault::armed(Fault::DropHalfBatch) {
            true => self.middle,
            false => self.greatest,
        };
        bound.last == 0 && bound.column == self.column && greatest < bound.least
    }

    /// Whether a quarter of the rows, or more, are below the bound and were not below `before`.
    pub(crate) fn is_partly_below(&self, bound: &Bound, before: Option<i64>) -> bool {
        bound.column == self.column
            && self.middle < bound.least
            && before.is_none_or(|before| self.middle >= before)
    }

    /// The pages that have rows that are needed; `None` if each may have some.
    pub(crate) fn needed(&self, bound: &Bound) -> Option<Box<[usize]>> {
        let is_needed = |most: i64| bound.column != self.column || most >= bound.least;
        if bound.last > 0 || self.most.iter().all(|most| is_needed(*most)) {
            return None;
        }
        let pages = self.most.iter().enumerate();
        Some(pages.filter(|(_, most)| is_needed(**most)).map(|(page, _)| page).collect())
    }

    /// Its bytes in a file.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let (kind, at, width, null) = match self.column {
            BoundColumn::Key { at, width } => (0, at, width, 0),
            BoundColumn::Value { at, width, null } => (1, at, width, null),
            BoundColumn::Order { width, descending } => (2, 0, width, usize::from(descending)),
        };
        let mut bytes = Vec::with_capacity(Self::encoded_length(self.most.len()));
        bytes.extend_from_slice(&(kind | (width as u64) << 8).to_le_bytes());
        bytes.extend_from_slice(&(at as u64).to_le_bytes());
        bytes.extend_from_slice(&(null as u64).to_le_bytes());
        bytes.extend_from_slice(&self.middle.to_le_bytes());
        self.most.iter().for_each(|most| bytes.extend_from_slice(&most.to_le_bytes()));
        bytes.resize(Self::encoded_length(self.most.len()), 0);
        bytes
    }

    /// The bytes that a summary of so many pages has in a file: a multiple of 16, for the sake of the bytes that follow.
    pub(crate) fn encoded_length(pages: usize) -> usize {
        (FIXED + pages * size_of::<i64>()).next_multiple_of(16)
    }

    /// The summary of so many pages that begins these bytes, if they do begin with one.
    pub(crate) fn decode(bytes: &[u8], pages: usize) -> Option<Summary> {
        let bytes = bytes.get(..Self::encoded_length(pages))?;
        let (numbers, _) = bytes.as_chunks::<8>();
        let [kind, at, null, middle, most @ ..] = numbers else { return None };
        let [kind, at, null] = [kind, at, null].map(|bytes| u64::from_le_bytes(*bytes));
        let (at, null) = (usize::try_from(at).ok()?, usize::try_from(null).ok()?);
        let width = usize::try_from(kind >> 8).ok().filter(|width| [2, 4, 8].contains(width))?;
        let column = match kind & 0xff {
            0 if null == 0 => BoundColumn::Key { at, width },
            1 => BoundColumn::Value { at, width, null },
            2 if at == 0 && null < 2 => BoundColumn::Order { width, descending: null == 1 },
            _ => return None,
        };
        let most = most[..pages].iter().map(|bytes| i64::from_le_bytes(*bytes)).collect();
        Some(Summary::new(column, most, i64::from_le_bytes(*middle)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::BatchBuilder;
    use crate::memory::StateContext;
    use crate::page::PageLimits;
    use differential_dataflow::trace::Description;
    use timely::progress::Antichain;

    const COLUMN: BoundColumn = BoundColumn::Value { at: 1, width: 4, null: 0 };

    /// The summary of pages of four rows with these numbers.
    fn summary(numbers: &[Option<i32>]) -> Summary {
        let limits = PageLimits { bytes: 16 << 10, updates: 4 };
        let mut builder = BatchBuilder::with_limits(limits, &StateContext::default());
        for (row, number) in numbers.iter().enumerate() {
            let mut value = vec![u8::from(number.is_none())];
            value.extend(number.unwrap_or_default().to_le_bytes());
            builder.push(&[row as u8], &value, &0_u64, 1);
        }
        let [lower, upper, since] = [0, 1, 0].map(Antichain::from_elem);
        let batch = builder.finish(Description::new(lower, upper, since));
        let mut summarizer = Summarizer::new(COLUMN);
        (0..batch.pages()).for_each(|page| summarizer.push(batch.page(page)));
        summarizer.finish()
    }

    fn below(least: i64) -> Bound {
        Bound::new(COLUMN, least)
    }

    #[test]
    fn a_summary_knows_which_pages_are_needed() {
        let numbers = [1, 2, 3, 4, 50, 60, 70, 80, 5, 6, 7, 8].map(Some);
        let summary = summary(&numbers);
        let needed = |least| summary.needed(&below(least)).map(|pages| pages.to_vec());
        assert_eq!([0, 4].map(needed), [None, None]);
        assert_eq!(needed(5), Some(vec![1, 2]));
        assert_eq!(needed(9), Some(vec![1]));
        assert_eq!(needed(81), Some(vec![]));
        let is_below = |least| summary.is_below(&below(least));
        assert_eq!([80, 81].map(is_below), [false, true]);
        // Two rows of one page of the two that are about the middle.
        let is_partly_below = |least| summary.is_partly_below(&below(least), None);
        assert_eq!([6, 7].map(is_partly_below), [false, true]);
        let other = Bound::new(BoundColumn::Key { at: 0, width: 4 }, i64::MAX);
        assert!(!summary.is_below(&other) && !summary.is_partly_below(&other, None));
        assert!(summary.needed(&other).is_none());
    }

    #[test]
    fn a_page_with_null_is_always_needed() {
        let summary = summary(&[Some(1), Some(1), None, Some(1), Some(2), Some(2)]);
        assert_eq!(summary.needed(&below(i64::MAX)).as_deref(), Some(&[0][..]));
        assert!(!summary.is_below(&below(i64::MAX)));
        assert!(summary.is_partly_below(&below(2), None));
    }

    #[test]
    fn a_summary_is_of_the_column_that_it_was_made_for() {
        let columns = [
            BoundColumn::Key { at: 3, width: 2 },
            COLUMN,
            BoundColumn::Order { width: 8, descending: false },
            BoundColumn::Order { width: 4, descending: true },
        ];
        for column in columns {
            let summary = Summary::new(column, Box::new([1, 2]), 1);
            assert_eq!(Summary::decode(&summary.encode(), 2), Some(summary));
        }
    }

    #[test]
    fn a_summary_is_read_as_it_was_written() {
        for pages in 0..4 {
            let summary = summary(&vec![Some(7); 4 * pages]);
            let bytes = summary.encode();
            assert_eq!((bytes.len(), bytes.len() % 16), (Summary::encoded_length(pages), 0));
            let decode = |bytes: &[u8]| Summary::decode(bytes, pages);
            assert_eq!(decode(&[&bytes[..], b"more"].concat()), Some(summary));
            assert_eq!(decode(&bytes[..bytes.len() - 1]), None);
            for (at, byte) in [(0, 2), (1, 3), (2, 1)] {
                let mut changed = bytes.clone();
                changed[at] = byte;
                assert_eq!(decode(&changed), None, "byte {at}");
            }
        }
    }
}
