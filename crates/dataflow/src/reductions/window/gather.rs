//! The slices of a partition that its changes reach.
//!
//! From the first change on, rows are *emitted* until enough rows after the last change are passed that no frame sees it.
//! Rows before and after the emitted ones are read as far as the frames of these reach. A long run of changes is cut into
//! several slices, of which each repeats what its frames reach. So no more is in memory at once than some ten thousand rows
//! or the rows of two frames.

use std::ops::ControlFlow;

use alluvium_trace::memory::StateContext;
use alluvium_trace::{Cursors, Epoch};
use arrow::array::ArrayRef;
use arrow::compute::SortOptions;

use super::frame::{Edge, Orders, is_beyond};
use super::function::Function;
use super::reach::Reach;
use super::results::{Beside, Found};
use super::run::{Run, Tail};
use super::slices::{Carry, Slices};
use super::sliding::Sliding;
use super::versions::{Copies, Versions};
use crate::reductions::ranked::entry::split;
use crate::reductions::reduce::Changes;
use crate::rows::codec::Encoded;
use crate::rows::key_columns::KeyColumns;
use crate::rows::layout::Layout;

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
    /// Whether it changes at a later time of the interval as well.
    pub(super) remembers: bool,
}

/// The sources of the rows of a partition.
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
    /// Whether the orders are needed that rows share with their peers.
    needs_peers: bool,
    beside: Beside,
    /// The end of the partition as of an earlier time of the interval.
    memory: Option<Memory>,
    /// How many rows are evaluated at once, and how many bytes of rows.
    together: usize,
    full: usize,
}

/// The count and the carried state of all rows of a partition at a time.
struct Memory {
    /// All of them are before this.
    end: Vec<u8>,
    rows: i64,
    /// The carried state, if there are any.
    known: Option<Carry>,
}

impl Gatherer {
    pub(super) fn new(spec: &Sliding, context: &StateContext) -> Self {
        let large = context.budget().policy().large_buffer;
        let reach = spec.reach.clone();
        let turned = |edges: &[Edge]| edges.iter().map(Edge::turned).collect();
        Self {
            starts_turned: turned(&reach.starts),
            ends_turned: turned(&reach.ends),
            reach,
            layout: spec.entries.layout().clone(),
            order: spec.order.clone(),
            slices: Slices::new(context),
            kept: Encoded::counted(context),
            needs_peers: spec.functions.iter().any(Function::needs_peers),
            beside: spec.beside,
            memory: None,
            together: (large / 256).clamp(16, TOGETHER),
            full: large.clamp(1 << 12, FULL),
        }
    }

    /// Forgets the state of a partition, because another one follows.
    pub(super) fn forget(&mut self) {
        self.memory = None;
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
                // The remaining rows have been read, up to the end of the partition.
                let _ = self.cut(&mut run, partition, evaluate);
            }
            let end = run.end(self.slices.rows());
            let row = |row: usize| self.slices.entries.get(row).to_vec();
            let last = run.last.map(row).or_else(|| run.reached.clone());
            from = last.unwrap_or(change);
            from.push(0);
            let end_of_all = (self.reach.runs && partition.remembers).then(|| from.clone());
            let is_emitted = run.emitted.is_some_and(|start| start < end);
            floor = is_emitted.then(|| row(end - 1)).or_else(|| run.reached.take()).or(floor);
            let rows = self.slices.rows();
            self.slices.end(run.slice(partition, end, rows, end_of_all.as_ref().map(|_| rows)));
            if self.is_full() || end_of_all.is_some() {
                evaluate(&mut self.slices);
            }
            self.memory = end_of_all.map(|end| {
                let known = self.slices.known[1].take();
                Memory { end, rows: run.passed.new, known }
            });
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
        let mut emit_from =
            back(versions, changes, held.rows.as_deref_mut(), change, self.reach.behind);
        if let Some(lowest) = self.lowest(partition.key, change, &self.ends_turned) {
            emit_from = emit_from.min(lowest);
        }
        if let Some(floor) = floor
            && emit_from[..] <= *floor
        {
            emit_from = [floor, &[0]].concat();
        }
        let mut read = self.read_from(partition, versions, held, &emit_from);
        let mut before = Copies { old: 0, new: 0 };
        let mut known = [None, None];
        if self.reach.runs {
            (before, known) = self.known(partition, versions, held, &mut emit_from, &mut read);
        } else if self.reach.counts {
            before = self.count(partition, versions, held, &mut read);
        }
        let run = Run {
            emit_from,
            first: self.slices.rows(),
            before,
            known,
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

    /// The bytes from which on rows are read, so that those from `emit_from` on can be emitted.
    fn read_from(
        &self,
        partition: &Partition<'_>,
        versions: &Versions,
        held: &mut Held<'_>,
        emit_from: &[u8],
    ) -> Vec<u8> {
        let changes = partition.changes;
        let mut rows = held.rows.as_deref_mut();
        let read = back(versions, changes, rows.as_deref_mut(), emit_from, self.reach.before);
        if self.reach.starts.is_empty() {
            return read;
        }
        let mut first = None;
        versions.visit(changes, rows, emit_from, |visited| {
            first = Some(visited.entry.to_vec());
            ControlFlow::Break(())
        });
        let lowest = first.and_then(|first| self.lowest(partition.key, &first, &self.reach.starts));
        lowest.map_or(read.clone(), |lowest| read.min(lowest))
    }

    /// How many rows are before `read`, which moves back to a row whose number is known.
    fn count(
        &self,
        partition: &Partition<'_>,
        versions: &mut Versions,
        held: &mut Held<'_>,
        read: &mut Vec<u8>,
    ) -> Copies {
        let changes = partition.changes;
        let mut known = Vec::new();
        versions.visit_back(changes, held.rows.as_deref_mut(), read, |visited| {
            if !visited.is_held {
                return ControlFlow::Continue(());
            }
            known.extend_from_slice(visited.entry);
            ControlFlow::Break(())
        });
        *read = known;
        if read.is_empty() {
            return Copies { old: 0, new: 0 };
        }
        let results = held.results.as_deref_mut();
        let found = results.and_then(|results| Found::of(read, results, self.beside));
        let number = found.map_or(0, |found| found.before);
        let (old, new) = versions.rows_before(changes, read);
        Copies { old: number + old, new: number + new }
    }

    /// How many rows are before `read`, and the state carried up to there. Both are known after the last row of an earlier time,
    /// if nothing before it is read, and after the last row before the first one that changes in the interval; what is
    /// read and emitted moves back to there.
    fn known(
        &self,
        partition: &Partition<'_>,
        versions: &Versions,
        held: &mut Held<'_>,
        emit_from: &mut Vec<u8>,
        read: &mut Vec<u8>,
    ) -> (Copies, [Option<Carry>; 2]) {
        let changes = partition.changes;
        if let Some(Memory { end, rows, known }) = &self.memory
            && end <= read
        {
            read.clone_from(end);
            return (Copies { old: *rows, new: *rows }, [known.clone(), known.clone()]);
        }
        if let Some(first) = versions.first(changes)
            && first < &emit_from[..]
        {
            *emit_from = first.to_vec();
            *read = self.read_from(partition, versions, held, emit_from);
        }
        // Rows from here back do not change in the interval.
        let mut last = None;
        versions.visit_back(changes, held.rows.as_deref_mut(), read, |visited| {
            last = Some(visited.entry.to_vec());
            ControlFlow::Break(())
        });
        let nothing = (Copies { old: 0, new: 0 }, [None, None]);
        let Some(last) = last else { return nothing };
        let results = held.results.as_deref_mut();
        let found = results.and_then(|results| Found::of(&last, results, self.beside));
        let Some(found) = found else { return nothing };
        let order = match self.needs_peers {
            true => self.highest(partition.key, &last, &[Edge::Peers]).get(0).to_vec(),
            false => Vec::new(),
        };
        let known = Carry { values: found.carried, order };
        *read = last;
        read.push(0);
        let before = found.before + found.copies;
        (Copies { old: before, new: before }, [Some(known.clone()), Some(known)])
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
        if self.reach.runs {
            return true;
        }
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

    /// The tail after emitted rows that end at row `end`.
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

    /// Ends a slice that is cut, has it evaluated, and continues with the rows of the next one that were read.
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
        let next = self.reach.runs.then_some(first);
        self.slices.end(run.slice(partition, end, rows, next));
        evaluate(&mut self.slices);
        run.known = std::mem::take(&mut self.slices.known);
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
