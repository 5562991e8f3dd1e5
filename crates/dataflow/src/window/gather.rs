//! The slices of a partition that its changes reach.
//!
//! From the first change on, rows are *emitted* until enough rows behind the last change are passed that no frame sees it.
//! Rows before and behind the emitted ones are read as far as the frames of these reach. A long run of changes is cut into
//! several slices, of which each repeats what its frames reach. So no more is in memory at once than some ten thousand rows
//! or the rows of two frames.

use std::ops::ControlFlow;

use alluvium_trace::memory::StateContext;
use alluvium_trace::{Cursors, Epoch};
use arrow::array::ArrayRef;
use arrow::compute::SortOptions;

use super::frame::{Edge, Orders, is_behind};
use super::reach::Reach;
use super::results::number_before;
use super::slices::{Slice, Slices};
use super::versions::{Copies, Versions};
use crate::codec::Encoded;
use crate::key_columns::KeyColumns;
use crate::layout::Layout;
use crate::ranked::entry::split;
use crate::reduce::Changes;

/// How many rows are evaluated at once, or more if frames have more; fewer if memory is short.
const TOGETHER: usize = 16_384;

/// How many bytes of rows are.
const FULL: usize = 16 << 20;

/// The changes of a partition at a time.
pub(super) struct Partition<'a> {
    /// Its number among the changed ones.
    pub(super) number: usize,
    pub(super) key: &'a [u8],
    pub(super) time: Epoch,
    pub(super) changes: &'a Changes,
}

/// What the rows of a partition are read from.
pub(super) struct Held<'a> {
    /// The rows at the beginning of the interval.
    pub(super) rows: Option<&'a mut Cursors<Epoch>>,
    /// Their results.
    pub(super) results: Option<&'a mut Cursors<Epoch>>,
}

/// The order of the rows, without what breaks ties.
#[derive(Clone, Debug)]
pub(super) struct Order {
    pub(super) key: KeyColumns,
    pub(super) options: Vec<SortOptions>,
}

impl Order {
    /// The order of rows with these entries and columns.
    pub(super) fn of<'a>(&'a self, entries: &'a Encoded, columns: &'a [ArrayRef]) -> Orders<'a> {
        Orders { entries, columns, order: &self.key, options: &self.options }
    }
}

/// Makes slices.
pub(super) struct Gatherer {
    reach: Reach,
    /// Where rows are whose ranges begin at a row, or end there.
    starts_turned: Vec<Edge>,
    ends_turned: Vec<Edge>,
    layout: Layout,
    order: Order,
    pub(super) slices: Slices,
    /// Rows on their way from one slice to the next.
    kept: Encoded,
    /// How many rows are evaluated at once, and how many bytes of rows.
    together: usize,
    full: usize,
}

/// A slice in the making, and where it stands.
struct Run {
    /// Rows from here on are emitted.
    emit_from: Vec<u8>,
    /// The first row of the slice.
    first: usize,
    /// How many rows of the partition are before it.
    before: Copies,
    /// How many are before the row that comes next, or before the end of what is emitted.
    passed: Copies,
    /// The first row that is emitted.
    emitted: Option<usize>,
    /// The last changed row.
    change: Option<usize>,
    /// Rows behind these do not see the last change. None unless they are known.
    unseen: Option<Encoded>,
    /// How many rows are behind the last change.
    since: u64,
    /// Set while only what is behind the emitted rows is read.
    tail: Option<Tail>,
    /// The slice is cut when it has so many rows, or all slices have so many bytes.
    limit: usize,
    full: usize,
    /// The last row that was looked at.
    last: Option<usize>,
    /// The last row of earlier slices that was emitted.
    reached: Option<Vec<u8>>,
}

/// The rows behind those that are emitted.
struct Tail {
    /// Where these end.
    end: usize,
    /// How many rows were read.
    rows: u64,
    /// Rows behind these are not in the ranges of emitted ones.
    unseen: Encoded,
    /// Whether emitting goes on in the next slice.
    is_cut: bool,
}

impl Gatherer {
    pub(super) fn new(reach: Reach, layout: Layout, order: Order, context: &StateContext) -> Self {
        let large = context.budget().policy().large_buffer;
        let turned = |edges: &[Edge]| edges.iter().map(Edge::turned).collect();
        Self {
            starts_turned: turned(&reach.starts),
            ends_turned: turned(&reach.ends),
            reach,
            layout,
            order,
            slices: Slices::new(context),
            kept: Encoded::counted(context),
            together: (large / 256).clamp(16, TOGETHER),
            full: large.clamp(1 << 12, FULL),
        }
    }

    /// Makes the slices that the changes of `versions` reach. Calls `evaluate`, which has to clear the slices, whenever they
    /// are many or long.
    pub(super) fn gather(
        &mut self,
        partition: &Partition<'_>,
        versions: &mut Versions,
        mut held: Held<'_>,
        evaluate: &mut dyn FnMut(&mut Slices),
    ) {
        let changes = partition.changes;
        let mut from = Vec::new();
        let mut floor: Option<Vec<u8>> = None;
        while let Some(change) = versions.next_change(changes, &from) {
            let change = change.to_vec();
            let (mut run, read) =
                self.start(partition, versions, &mut held, &change, floor.as_deref());
            versions.visit(changes, held.rows.as_deref_mut(), &read, |visited| {
                self.slices.push(visited.entry, visited.copies);
                let mut flow = self.look(&mut run, self.slices.rows() - 1, partition);
                while flow.is_break() && run.is_cut() {
                    flow = self.cut(&mut run, partition, evaluate);
                }
                flow
            });
            while run.is_cut() {
                // What is left has been read, up to the end of the partition.
                let _ = self.cut(&mut run, partition, evaluate);
            }
            let end = run.end(self.slices.rows());
            let row = |row: usize| self.slices.entries.get(row).to_vec();
            let last = run.last.map(row).or_else(|| run.reached.clone());
            from = last.unwrap_or(change);
            from.push(0);
            let is_emitted = run.emitted.is_some_and(|start| start < end);
            floor = is_emitted.then(|| row(end - 1)).or_else(|| run.reached.take()).or(floor);
            self.slices.end(run.slice(partition, end, self.slices.rows()));
            if self.is_full() {
                evaluate(&mut self.slices);
            }
        }
    }

    /// Whether the slices should be evaluated.
    pub(super) fn is_full(&self) -> bool {
        self.slices.rows() >= self.together || self.slices.entries.bytes().len() >= self.full
    }

    /// A slice for a change, and the bytes from which on rows are read. Rows up to `floor` are not emitted.
    fn start(
        &self,
        partition: &Partition<'_>,
        versions: &mut Versions,
        held: &mut Held<'_>,
        change: &[u8],
        floor: Option<&[u8]>,
    ) -> (Run, Vec<u8>) {
        let changes = partition.changes;
        let Held { rows, results } = held;
        let mut emit_from = back(versions, changes, rows.as_deref_mut(), change, self.reach.behind);
        if let Some(lowest) = self.lowest(partition.key, change, &self.ends_turned) {
            emit_from = emit_from.min(lowest);
        }
        if let Some(floor) = floor
            && emit_from[..] <= *floor
        {
            emit_from = [floor, &[0]].concat();
        }
        let mut read = back(versions, changes, rows.as_deref_mut(), &emit_from, self.reach.before);
        if !self.reach.starts.is_empty() {
            let mut first = change.to_vec();
            versions.visit(changes, rows.as_deref_mut(), &emit_from, |visited| {
                first = visited.entry.to_vec();
                ControlFlow::Break(())
            });
            if let Some(lowest) = self.lowest(partition.key, &first, &self.reach.starts) {
                read = read.min(lowest);
            }
        }
        let mut before = Copies { old: 0, new: 0 };
        if self.reach.counts {
            // Counting starts at a row whose number is known.
            let mut known = None;
            versions.visit_back(changes, rows.as_deref_mut(), &read, |visited| {
                if !visited.is_held {
                    return ControlFlow::Continue(());
                }
                known = Some(visited.entry.to_vec());
                ControlFlow::Break(())
            });
            read = known.unwrap_or_default();
            if !read.is_empty() {
                let number = results.as_deref_mut().map_or(0, |held| number_before(held, &read));
                let (old, new) = versions.rows_before(changes, &read);
                before = Copies { old: number + old, new: number + new };
            }
        }
        let first = self.slices.rows();
        let run = Run {
            emit_from,
            first,
            before,
            passed: before,
            emitted: None,
            change: None,
            unseen: None,
            since: 0,
            tail: None,
            limit: self.together,
            full: self.slices.entries.bytes().len() + self.full,
            last: None,
            reached: None,
        };
        (run, read)
    }

    /// Looks at row `at`, which is the next one of the slice; breaks when all has been read that the emitted rows reach.
    fn look(&self, run: &mut Run, at: usize, partition: &Partition<'_>) -> ControlFlow<()> {
        let (entry, copies) = (self.slices.entries.get(at), self.slices.copies[at]);
        run.last = Some(at);
        if run.emitted.is_none() {
            if entry < &run.emit_from[..] {
                run.pass(copies);
                return ControlFlow::Continue(());
            }
            run.emitted = Some(at);
        }
        if let Some(tail) = run.tail.take_if(|tail| copies.change() && !tail.is_cut) {
            self.slices.copies[tail.end..at].iter().for_each(|&copies| run.pass(copies));
        }
        if run.tail.is_none() {
            if copies.change() {
                run.change = Some(at);
                run.unseen = None;
                run.since = 0;
            } else if self.is_seen(run, entry, partition) {
                run.since = run.since.saturating_add(copies.common());
            } else {
                run.tail = Some(self.tail(run, partition, at, false));
            }
        }
        let Some(tail) = &mut run.tail else {
            run.pass(copies);
            let bytes = self.slices.entries.bytes().len();
            if at + 1 - run.first >= run.limit || bytes >= run.full {
                run.tail = Some(self.tail(run, partition, at + 1, true));
            }
            return ControlFlow::Continue(());
        };
        if tail.rows >= self.reach.behind && is_beyond(entry, &tail.unseen) {
            return ControlFlow::Break(());
        }
        tail.rows = tail.rows.saturating_add(copies.common());
        ControlFlow::Continue(())
    }

    /// Whether the results of a row that has not changed may have, as it sees the last change, or as it is to be emitted
    /// before the first one.
    fn is_seen(&self, run: &mut Run, entry: &[u8], partition: &Partition<'_>) -> bool {
        let Some(change) = run.change else { return true };
        if run.since < self.reach.seen_behind()
            || self.reach.counts && run.passed.old != run.passed.new
        {
            return true;
        }
        if self.starts_turned.is_empty() {
            return false;
        }
        let unseen = run.unseen.get_or_insert_with(|| {
            self.highest(partition.key, self.slices.entries.get(change), &self.starts_turned)
        });
        !is_beyond(entry, unseen)
    }

    /// The tail behind emitted rows that end at row `end`.
    fn tail(&self, run: &Run, partition: &Partition<'_>, end: usize, is_cut: bool) -> Tail {
        let unseen = match end > run.first {
            true => {
                let last = self.slices.entries.get(end - 1);
                self.highest(partition.key, last, &self.reach.ends)
            }
            false => Encoded::new(),
        };
        Tail { end, rows: 0, unseen, is_cut }
    }

    /// Ends a slice that is cut, has it evaluated, and goes on with the rows of the next one that were read.
    fn cut(
        &mut self,
        run: &mut Run,
        partition: &Partition<'_>,
        evaluate: &mut dyn FnMut(&mut Slices),
    ) -> ControlFlow<()> {
        let (rows, end) = (self.slices.rows(), run.end(self.slices.rows()));
        run.tail = None;
        if run.unseen.is_none()
            && let Some(change) = run.change
        {
            let change = self.slices.entries.get(change);
            run.unseen = Some(self.highest(partition.key, change, &self.starts_turned));
        }
        let mut first = end;
        let lowest =
            self.lowest(partition.key, self.slices.entries.get(end - 1), &self.reach.starts);
        let (mut before, mut common) = (run.passed, 0);
        while first > run.first {
            let (entry, copies) =
                (self.slices.entries.get(first - 1), self.slices.copies[first - 1]);
            let is_in_range = lowest.as_ref().is_some_and(|lowest| entry >= &lowest[..]);
            if common >= self.reach.before && !is_in_range {
                break;
            }
            common += copies.common();
            before = Copies { old: before.old - copies.old, new: before.new - copies.new };
            first -= 1;
        }
        self.kept.clear();
        (first..rows).for_each(|row| self.kept.push(self.slices.entries.get(row)));
        let copies = self.slices.copies[first..rows].to_vec();
        run.reached = Some(self.slices.entries.get(end - 1).to_vec());
        self.slices.end(run.slice(partition, end, rows));
        evaluate(&mut self.slices);
        for (row, &copies) in copies.iter().enumerate() {
            self.slices.push(self.kept.get(row), copies);
        }
        run.first = 0;
        run.before = before;
        run.emitted = Some(end - first);
        // Only that there was one matters, once it is known who sees it.
        run.change = run.change.map(|_| 0);
        run.limit = self.together.max(2 * copies.len());
        run.full = self.full.max(2 * self.kept.bytes().len());
        run.last = None;
        for row in end - first..copies.len() {
            self.look(run, row, partition)?;
        }
        ControlFlow::Continue(())
    }

    /// The lowest of the ends of ranges around a row; `None` if there are none.
    fn lowest(&self, key: &[u8], entry: &[u8], edges: &[Edge]) -> Option<Vec<u8>> {
        self.ends_of_ranges(key, entry, edges, true).iter().min().map(<[u8]>::to_vec)
    }

    /// The ends of ranges around a row.
    fn highest(&self, key: &[u8], entry: &[u8], edges: &[Edge]) -> Encoded {
        self.ends_of_ranges(key, entry, edges, false)
    }

    fn ends_of_ranges(&self, key: &[u8], entry: &[u8], edges: &[Edge], is_start: bool) -> Encoded {
        let mut ends = Encoded::new();
        if edges.is_empty() {
            return ends;
        }
        let columns = self.layout.decode([key], [split(entry, 0).1], self.order.key.columns());
        let mut entries = Encoded::new();
        entries.push(entry);
        let orders = self.order.of(&entries, &columns);
        for edge in edges {
            ends.push(orders.targets(edge, is_start).get(0));
        }
        ends
    }
}

/// Whether a row is behind all of these ends of ranges.
fn is_beyond(entry: &[u8], ends: &Encoded) -> bool {
    ends.iter().all(|end| is_behind(entry, end))
}

/// The row from which on there are at least `rows` rows before `from`, whether or not the changes are made; nothing, which is
/// before all rows, if there are fewer.
fn back(
    versions: &Versions,
    changes: &Changes,
    held: Option<&mut Cursors<Epoch>>,
    from: &[u8],
    rows: u64,
) -> Vec<u8> {
    if rows == 0 {
        return from.to_vec();
    }
    let mut first = Vec::new();
    let mut common = 0u64;
    versions.visit_back(changes, held, from, |visited| {
        common = common.saturating_add(visited.copies.common());
        if common < rows {
            return ControlFlow::Continue(());
        }
        first.extend_from_slice(visited.entry);
        ControlFlow::Break(())
    });
    first
}

impl Run {
    /// Whether emitting goes on in another slice.
    fn is_cut(&self) -> bool {
        self.tail.as_ref().is_some_and(|tail| tail.is_cut)
    }

    /// Where the emitted rows end, of a slice whose last row is before `rows`.
    fn end(&self, rows: usize) -> usize {
        self.tail.as_ref().map_or(rows, |tail| tail.end)
    }

    fn pass(&mut self, copies: Copies) {
        self.passed.old += copies.old;
        self.passed.new += copies.new;
    }

    /// The slice, with the rows before `rows`, of which those before `end` are emitted.
    fn slice(&self, partition: &Partition<'_>, end: usize, rows: usize) -> Slice {
        Slice {
            key: partition.number,
            time: partition.time,
            rows: self.first..rows,
            emitted: self.emitted.unwrap_or(end).min(end)..end,
            before: self.before,
        }
    }
}
