//! The contents of a relation, pinned and read on any thread: all rows, or those in ranges of keys.

use std::sync::Arc;

use alluvium_trace::memory::StateContext;
use alluvium_trace::{Batch, Cursors, Epoch, Version};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use crate::movement::delta::{DELTA_ROWS, EncodedDelta};
use crate::rows::layout::Layout;
use crate::rows::weight::add;
use crate::state::key_ranges::KeyRanges;

/// The rows of the first batch that a reader returns; each further one may have twice as many.
const FIRST_ROWS: usize = 128;

/// Ranges of more updates than this are scanned rather than looked up: files are then read in large pieces.
const SCANNED: usize = 1 << 15;

/// A pinned version of the batches. Clones share all of it.
#[derive(Clone)]
pub struct Snapshot {
    inner: Arc<Inner>,
}

struct Inner {
    version: Version<Epoch>,
    layout: Layout,
    context: StateContext,
}

impl Snapshot {
    pub(crate) fn new(version: Version<Epoch>, layout: Layout, context: StateContext) -> Self {
        Self { inner: Arc::new(Inner { version, layout, context }) }
    }

    /// The rows in these batches, of this layout.
    pub fn of(batches: Vec<Batch<Epoch>>, layout: Layout, context: &StateContext) -> Self {
        Self::new(Version::new(batches), layout, context.clone())
    }

    /// The columns of the rows.
    pub fn schema(&self) -> &SchemaRef {
        self.inner.layout.schema()
    }

    /// How rows lie in keys and values.
    pub fn layout(&self) -> &Layout {
        &self.inner.layout
    }

    /// The number of updates at all epochs: at least the number of rows.
    pub fn updates(&self) -> usize {
        self.batches().map(Batch::len).sum()
    }

    /// About how many updates have keys in these ranges. Reads no pages.
    pub fn updates_in(&self, ranges: &KeyRanges) -> usize {
        let batch = |batch: &Batch<Epoch>| -> usize {
            ranges.iter().map(|(low, high)| batch.updates_between(low, high)).sum()
        };
        self.batches().map(batch).sum()
    }

    /// The bytes of the updates, in memory and in files.
    pub fn bytes(&self) -> usize {
        self.batches().map(Batch::bytes).sum()
    }

    /// The rows as of the end of `epoch`, each as often as its weight says, in batches of bounded
    /// size, by key. `columns` selects and orders the columns.
    pub fn read(&self, epoch: Epoch, columns: &[usize]) -> Rows {
        let cursors = Cursors::scan(self.batches().cloned());
        Rows::new(cursors, None, self, epoch, columns)
    }

    /// The rows of all these snapshots together whose keys are in `ranges`, as of the end of `epoch` and by key; else as
    /// [`Snapshot::read`]. The snapshots are of one relation, pinned on each worker; `None` if there is none.
    ///
    /// Reads the pages that may have such keys, and no others.
    pub fn read_ranges(
        snapshots: &[Self],
        epoch: Epoch,
        columns: &[usize],
        ranges: &KeyRanges,
    ) -> Option<Rows> {
        let first = snapshots.first()?;
        let batches = snapshots.iter().flat_map(Self::batches).cloned();
        let cursors = match ranges.get(0) {
            None => Cursors::new([]),
            Some((low, _)) => {
                let updates: usize = snapshots.iter().map(|part| part.updates_in(ranges)).sum();
                match updates > SCANNED {
                    true => Cursors::scan_from(batches, low),
                    false => Cursors::seeking(batches, low),
                }
            }
        };
        let ranges = RangesLeft { ranges: ranges.clone(), number: 0 };
        let mut rows = Rows::new(cursors, Some(ranges), first, epoch, columns);
        rows.enter_range();
        Some(rows)
    }

    /// The context of the snapshot.
    pub(crate) fn context(&self) -> &StateContext {
        &self.inner.context
    }

    pub(crate) fn batches(&self) -> impl Iterator<Item = &Batch<Epoch>> {
        self.inner.version.batches()
    }
}

/// The rows of snapshots as they are read.
pub struct Rows {
    cursors: Cursors<Epoch>,
    /// The ranges to read; everything without.
    ranges: Option<RangesLeft>,
    /// How many copies of the current row are still to be emitted.
    copies: i64,
    output: EncodedDelta<Epoch>,
    /// How many rows the next batch may have.
    batch_rows: usize,
    /// How many rows may still be emitted.
    left: usize,
    snapshot: Snapshot,
    columns: Vec<usize>,
    epoch: Epoch,
}

/// Reads of a few rows each, of the same snapshots. They share cursors, so that a read touches nothing that other threads do.
pub struct Lookups {
    snapshots: Vec<Snapshot>,
    epoch: Epoch,
    /// Those of the last read.
    rows: Option<Rows>,
}

impl Lookups {
    /// Of these snapshots, pinned on each worker, as of the end of `epoch`.
    pub fn new(snapshots: Vec<Snapshot>, epoch: Epoch) -> Self {
        Self { snapshots, epoch, rows: None }
    }

    /// The epoch.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// As [`Snapshot::read_ranges`], for ranges of few rows.
    pub fn read(
        &mut self,
        ranges: &KeyRanges,
        columns: &[usize],
    ) -> Option<impl Iterator<Item = RecordBatch> + '_> {
        let Self { snapshots, epoch, rows } = self;
        let (first, low) = (snapshots.first()?, ranges.get(0).map_or(&[][..], |(low, _)| low));
        let rows = match rows {
            Some(rows) => {
                rows.cursors.seek_anywhere(low);
                rows.columns.clear();
                rows.columns.extend_from_slice(columns);
                rows
            }
            None => {
                let batches = snapshots.iter().flat_map(Snapshot::batches).cloned();
                rows.insert(Rows::new(Cursors::seeking(batches, low), None, first, *epoch, columns))
            }
        };
        rows.output.clear();
        (rows.copies, rows.batch_rows, rows.left) = (0, FIRST_ROWS, usize::MAX);
        rows.ranges = Some(RangesLeft { ranges: ranges.clone(), number: 0 });
        rows.enter_range();
        Some(rows)
    }
}

/// Ranges of keys that are being read, one after the other.
struct RangesLeft {
    ranges: KeyRanges,
    /// The one that the cursors are in, or come to next.
    number: usize,
}

impl Rows {
    fn new(
        cursors: Cursors<Epoch>,
        ranges: Option<RangesLeft>,
        snapshot: &Snapshot,
        epoch: Epoch,
        columns: &[usize],
    ) -> Self {
        Self {
            cursors,
            ranges,
            copies: 0,
            output: EncodedDelta::new(&snapshot.inner.context),
            batch_rows: FIRST_ROWS,
            left: usize::MAX,
            snapshot: snapshot.clone(),
            columns: columns.to_vec(),
            epoch,
        }
    }

    /// The first `rows` of these rows.
    pub fn limited_to(mut self, rows: usize) -> Self {
        self.left = self.left.min(rows);
        self
    }

    /// Moves to the next row with a positive weight; returns whether there is one.
    fn advance(&mut self) -> bool {
        while self.left > 0
            && let Some(_key) = self.cursors.key()
        {
            if self.cursors.val().is_none() {
                self.cursors.step_key();
                self.enter_range();
                continue;
            }
            if self.copies > 0 {
                return true;
            }
            let (mut weight, epoch) = (0, self.epoch);
            self.cursors.updates(|time, change| {
                if time <= epoch {
                    weight = add(weight, change);
                }
            });
            if weight > 0 {
                self.copies = weight;
                return true;
            }
            self.cursors.step_val();
        }
        false
    }

    /// Moves forward to the first key that is in a range. Without one nothing is left.
    fn enter_range(&mut self) {
        let Some(RangesLeft { ranges, number }) = &mut self.ranges else { return };
        while let Some(key) = self.cursors.key() {
            let Some((low, high)) = ranges.get(*number) else {
                self.left = 0;
                return;
            };
            if high.is_some_and(|high| high <= key) {
                *number += 1;
            } else if key < low {
                self.cursors.seek_key(low);
            } else {
                return;
            }
        }
    }
}

impl Iterator for Rows {
    type Item = RecordBatch;

    fn next(&mut self) -> Option<RecordBatch> {
        while self.left > 0
            && self.output.len() < self.batch_rows
            && !self.output.is_full()
            && self.advance()
        {
            if let (Some(key), Some(value)) = (self.cursors.key(), self.cursors.val()) {
                self.output.push(key, value, self.epoch, 1);
            }
            self.left -= 1;
            self.copies -= 1;
            if self.copies == 0 {
                self.cursors.step_val();
            }
        }
        self.batch_rows = DELTA_ROWS.min(2 * self.batch_rows);
        Some(self.output.decode(&self.snapshot.inner.layout, &self.columns)?.rows)
    }
}
