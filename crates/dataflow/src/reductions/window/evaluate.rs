//! Evaluating slices, before and after their changes.

use std::ops::Range;

use alluvium_trace::Epoch;
use alluvium_trace::memory::{Charge, StateContext};
use arrow::array::ArrayRef;

use super::frame::{Edge, Frame};
use super::function::{Failure, Function, Known, Start};
use super::gather::Order;
use super::results::{Beside, Evaluated, make};
use super::running::{self, Stops};
use super::slices::{Carry, Slices, Version};
use super::sliding::Sliding;
use crate::fault::{self, Fault};
use crate::reductions::ranked::entry::split;
use crate::reductions::reduce::{Changes, Output};
use crate::rows::codec::{Encoded, ValueCodec};
use crate::rows::layout::{Layout, encoded_here};

/// The rows of slices, decoded.
struct Rows<'a> {
    /// The columns that are read.
    columns: &'a [ArrayRef],
    /// Where the frames of all rows begin and end.
    targets: Vec<Option<[Encoded; 2]>>,
    /// The orders of all rows, which they share with their peers, if a function needs them.
    peers: Encoded,
}

/// Evaluates slices.
pub(super) struct Evaluator {
    functions: Vec<Function>,
    /// The frames of all functions, each once.
    frames: Vec<Frame>,
    layout: Layout,
    order: Order,
    codec: ValueCodec,
    /// The codec of the state that results carry, and the columns of each function in it.
    carried: ValueCodec,
    carried_columns: Vec<Range<usize>>,
    beside: Beside,
    /// Whether a function needs the orders that rows share with their peers.
    needs_peers: bool,
    /// The columns that are read: those of the order, and those of the functions.
    columns: Vec<usize>,
    old: Evaluated,
    new: Evaluated,
    value: Vec<u8>,
    /// Results of the copies of a row, and whether they are new.
    sorted: Vec<(bool, usize)>,
    /// The partition whose results are being emitted.
    open: Option<usize>,
    /// The bytes of rows that were evaluated and did not consume fuel yet.
    pub(super) bytes: usize,
    /// Counts the rows that evaluation decodes.
    charge: Charge,
}

impl Evaluator {
    pub(super) fn new(spec: &Sliding, context: &StateContext) -> Self {
        let mut columns = spec.order.key.columns().to_vec();
        columns.extend(spec.functions.iter().flat_map(Function::columns));
        let mut frames: Vec<Frame> = Vec::new();
        for frame in spec.functions.iter().filter_map(Function::frame) {
            if !frames.contains(&frame) {
                frames.push(frame);
            }
        }
        Self {
            functions: spec.functions.clone(),
            frames,
            layout: spec.entries.layout().clone(),
            order: spec.order.clone(),
            codec: spec.results.clone(),
            carried: spec.carried.clone(),
            carried_columns: spec.carried_columns.clone(),
            beside: spec.beside,
            needs_peers: spec.functions.iter().any(Function::needs_peers),
            columns,
            old: Evaluated::new(context),
            new: Evaluated::new(context),
            value: Vec::new(),
            sorted: Vec::new(),
            open: None,
            bytes: 0,
            charge: context.budget().charge(0),
        }
    }

    /// Emits how the results of the emitted rows change, and clears the slices.
    pub(super) fn evaluate(&mut self, slices: &mut Slices, changes: &Changes, output: &mut Output) {
        if !slices.is_empty() {
            let bytes = slices.entries.bytes().len();
            self.bytes = self.bytes.saturating_add(bytes);
            self.charge.set(bytes.saturating_mul(2));
            let keys =
                slices.iter().flat_map(|slice| slice.rows.clone().map(|_| changes.key(slice.key)));
            let values = slices.entries.iter().map(|entry| split(entry, 0).1);
            let columns = self.layout.decode(keys, values, &self.columns);
            let old = slices.version(|copies| copies.old);
            let new = slices.version(|copies| copies.new);
            let orders = self.order.of(&slices.entries, &columns[..self.order.key.columns().len()]);
            let rows = Rows {
                columns: &columns,
                targets: self.frames.iter().map(|frame| frame.targets(&orders)).collect(),
                peers: match self.needs_peers {
                    true => orders.targets(&Edge::Peers, true),
                    false => Encoded::new(),
                },
            };
            slices.known = [(&old, 0), (&new, 1)]
                .map(|(version, side)| self.evaluate_version(version, slices, &rows, side));
            self.emit(slices, [&old, &new], changes, output);
            self.charge.set(0);
        }
        slices.clear();
    }

    /// Evaluates the rows before or after the changes; returns the carried state before the next row, if that is asked for.
    fn evaluate_version(
        &mut self,
        version: &Version,
        slices: &Slices,
        rows: &Rows<'_>,
        side: usize,
    ) -> Option<Carry> {
        let evaluated = if side == 0 { &mut self.old } else { &mut self.new };
        evaluated.clear();
        let emitted = version.emitted();
        let wanted = &self.columns;
        let column = |column: usize| {
            let place = wanted.iter().position(|&wanted| wanted == column);
            rows.columns[place.expect("the columns of all functions are read")].clone()
        };
        let mut started: Vec<&[u8]> = Vec::new();
        let starts: Vec<Option<Start<'_>>> = slices
            .iter()
            .map(|slice| {
                let known = slice.known[side].as_ref()?;
                started.push(&known.values);
                Some(Start { row: started.len() - 1, order: &known.order })
            })
            .collect();
        let carried = match self.beside.carries {
            true => encoded_here(self.carried.decode(started, &all(&self.carried))),
            false => Vec::new(),
        };
        let known = |number: usize| Known {
            version,
            starts: &starts,
            carried: &carried[self.carried_columns[number].clone()],
            peers: &rows.peers,
            column: &column,
        };
        if emitted > 0 {
            let frames = self.frames.iter().zip(&rows.targets);
            let places: Vec<_> = frames
                .map(|(frame, targets)| frame.places(version, &slices.entries, targets.as_ref()))
                .collect();
            let mut results = Vec::with_capacity(self.functions.len());
            let mut failed: Vec<Failure> = Vec::new();
            for (number, function) in self.functions.iter().enumerate() {
                let frame = function.frame();
                let frame = self.frames.iter().position(|other| Some(other) == frame.as_ref());
                let places = frame.map_or(&[][..], |frame| &places[frame]);
                results.push(function.results(&known(number), places, &mut failed));
                let failed = failed.drain(..);
                evaluated.failures.extend(failed.map(|(place, message)| (place, number, message)));
            }
            evaluated.failures.sort_by_key(|&(place, ..)| place);
            evaluated.failures.dedup_by_key(|&mut (place, ..)| place);
            self.codec
                .encode(&results, emitted, &mut evaluated.results)
                .expect("results have the types their codec was made for");
            if self.beside.carries {
                let stops = Stops::rows(version);
                carry(&self.functions, &self.carried, known, &stops, &mut evaluated.carried);
            }
            evaluated.make_tails(version, self.beside);
        }
        let (slice, span) = (slices.last()?, version.spans.last()?);
        let place = version.place(span, slice.next?);
        let order = match place > span.all.start {
            true => match self.needs_peers {
                true => rows.peers.get(version.rows[place - 1] as usize).to_vec(),
                false => Vec::new(),
            },
            false => slice.known[side].as_ref()?.order.clone(),
        };
        let mut values = Encoded::new();
        let stops = Stops::last(version, place);
        carry(&self.functions, &self.carried, known, &stops, &mut values);
        Some(Carry { values: values.get(0).to_vec(), order })
    }

    /// Emits the differences of the two versions.
    fn emit(
        &mut self,
        slices: &Slices,
        versions: [&Version; 2],
        changes: &Changes,
        output: &mut Output,
    ) {
        // The next result of each version.
        let mut next = [0, 0];
        for (number, slice) in slices.iter().enumerate() {
            if self.open != Some(slice.key) {
                self.finish_key(changes, output);
                self.open = Some(slice.key);
            }
            let mut places = versions.map(|version| version.spans[number].emitted.start);
            for row in slice.emitted.clone() {
                let first = next;
                for side in 0..2 {
                    let (rows, end) =
                        (&versions[side].rows, versions[side].spans[number].emitted.end);
                    while places[side] < end && rows[places[side]] == row as u32 {
                        places[side] += 1;
                        next[side] += 1;
                    }
                }
                let (old, new) = (first[0]..next[0], first[1]..next[1]);
                let is_behind = self.beside.carries && !slices.copies[row].change();
                if is_behind && fault::armed(Fault::KeepTotals) {
                    continue;
                }
                self.emit_row(slices.entries.get(row), old, new, slice.time, output);
            }
        }
    }

    /// Emits the differences of the results of the copies of one row.
    fn emit_row(
        &mut self,
        entry: &[u8],
        old: Range<usize>,
        new: Range<usize>,
        time: Epoch,
        output: &mut Output,
    ) {
        let Self { old: before, new: after, value, sorted, .. } = self;
        let (before, after) = (&before.tails, &after.tails);
        let old = if fault::armed(Fault::ForgetOldResults) { 0..0 } else { old };
        let is_same = |(old, new)| before.get(old) == after.get(new);
        if old.len() == new.len() && old.clone().zip(new.clone()).all(is_same) {
            return;
        }
        let mut push = |tail: &[u8], weight: i64| {
            make(entry, tail, value);
            output.push(value, time, weight);
        };
        if old.len() <= 1 && new.len() <= 1 {
            old.for_each(|old| push(before.get(old), -1));
            new.for_each(|new| push(after.get(new), 1));
            return;
        }
        sorted.clear();
        sorted.extend(old.map(|old| (false, old)).chain(new.map(|new| (true, new))));
        let tail = |&(is_new, place): &(bool, usize)| match is_new {
            true => after.get(place),
            false => before.get(place),
        };
        sorted.sort_unstable_by(|one, other| tail(one).cmp(tail(other)));
        for same in sorted.chunk_by(|one, other| tail(one) == tail(other)) {
            let weight: i64 = same.iter().map(|&(is_new, _)| if is_new { 1 } else { -1 }).sum();
            if weight != 0 {
                push(tail(&same[0]), weight);
            }
        }
    }

    /// Finishes the partition whose results are being emitted.
    pub(super) fn finish_key(&mut self, changes: &Changes, output: &mut Output) {
        if let Some(open) = self.open.take() {
            output.finish_key(changes.key(open));
        }
    }
}

/// Encodes the state that the functions carry at the stops.
fn carry<'a>(
    functions: &[Function],
    codec: &ValueCodec,
    known: impl Fn(usize) -> Known<'a>,
    stops: &Stops,
    carried: &mut Encoded,
) {
    let running = functions.iter().enumerate().filter(|(_, function)| function.is_running());
    let columns: Vec<ArrayRef> = running
        .flat_map(|(number, function)| running::carried(function, &known(number), stops))
        .collect();
    codec
        .encode(&columns, stops.len(), carried)
        .expect("what is carried has the types its codec was made for");
}

/// All columns of a codec.
fn all(codec: &ValueCodec) -> Vec<usize> {
    (0..codec.types().len()).collect()
}
