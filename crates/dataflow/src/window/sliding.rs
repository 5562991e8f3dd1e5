//! Window functions of which a change is evaluated with the rows that frames reach.
//!
//! The rows of a partition are kept in order. A change is evaluated twice, with the rows around it before and after it, and
//! the results that differ are emitted. Functions that count all rows before a row also need the number of the first row that
//! is read: it is found in the output's trace, which is kept for these functions only.
//!
//! ```text
//! result   entry | kind (1) | rows before (8, big-endian; only if counted) | results, or function (2) and message
//!                | length of all from the kind on (4, little-endian)
//! ```

use std::ops::Range;

use alluvium_trace::memory::{Charge, StateContext};
use alluvium_trace::{Cursors, Epoch, NullTrace, Spine};
use arrow::array::ArrayRef;
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, SchemaRef};

use super::frame::Frame;
use super::function::{Failure, Function};
use super::gather::{Gatherer, Held, Order, Partition};
use super::reach::Reach;
use super::slices::{Slices, Version};
use super::versions::Versions;
use super::{WindowFunction, Windowed, full_order};
use crate::arrangement::arrange_encoded;
use crate::codec::{CodecError, Encoded, ValueCodec};
use crate::decoded::decoded_with_errors;
use crate::delta::{DeltaBuilder, DeltaStream, EncodedDelta};
use crate::exchange::exchange;
use crate::fault::{self, Fault};
use crate::fuel::{Fuel, Produced};
use crate::key_columns::KeyColumns;
use crate::layout::{Layout, all_columns, assemble, encoded_here};
use crate::map::ErrorRows;
use crate::ranked::entry::{EntryEncoder, length, push_entries, read_length, split};
use crate::reduce::{Changes, Output, Prior, Reduction, reduce};
use crate::weight::weight_of;

/// Window functions over one partitioning.
#[derive(Clone, Debug)]
pub struct Sliding {
    /// The partition of a row.
    key: KeyColumns,
    entries: EntryEncoder,
    order: Order,
    functions: Vec<Function>,
    /// The names of the results.
    names: Vec<String>,
    results: ValueCodec,
    /// The columns of the input, then the results.
    output: SchemaRef,
}

impl Sliding {
    /// As [`super::Spec::compile`].
    pub(super) fn compile(
        input: &SchemaRef,
        keys: &[usize],
        order: &[(usize, SortOptions)],
        ties: &[usize],
        functions: &[WindowFunction],
        output: &SchemaRef,
    ) -> Result<Self, CodecError> {
        let layout = Layout::keyed(input.clone(), keys)?;
        let compiled = functions.iter().map(|function| {
            Function::compile(function, input, order).ok_or_else(|| {
                CodecError::Evaluation(format!("{} does not slide", function.function.name()))
            })
        });
        let types: Vec<DataType> =
            functions.iter().map(|function| function.result.data_type().clone()).collect();
        Ok(Self {
            key: KeyColumns::new(input, keys)?,
            entries: EntryEncoder::compile(layout, &full_order(order, ties), Vec::new())?,
            order: Order {
                key: KeyColumns::ordered(input, order)?,
                options: order.iter().map(|&(_, options)| options).collect(),
            },
            functions: compiled.collect::<Result<_, _>>()?,
            names: functions.iter().map(|function| function.result.name().clone()).collect(),
            results: ValueCodec::new(&types)?,
            output: output.clone(),
        })
    }
}

/// The rows of `stream` with the results of window functions. Exchanges rows by partition.
pub(super) fn window<'scope>(
    spec: &Sliding,
    stream: DeltaStream<'scope, Epoch>,
    context: &StateContext,
) -> Windowed<'scope> {
    let layout = spec.entries.layout().clone();
    let key = layout.key_names();
    let entries = arrange_encoded::<Epoch, Spine<Epoch>>(
        spec.entries.clone().encode(exchange(stream, &spec.key, context), context),
        "ArrangePartitions",
        key.clone(),
        context,
        push_entries,
    );
    let reach = Reach::of(&spec.functions);
    let counts = reach.counts;
    let logic = Slide {
        versions: Versions::default(),
        gatherer: Gatherer::new(reach, layout.clone(), spec.order.clone(), context),
        evaluator: Evaluator::new(spec, counts, context),
    };
    let results = match counts {
        true => reduce::<_, Spine<Epoch>, _>(entries, "Slide", key, context, logic).stream,
        false => reduce::<_, NullTrace<Epoch>, _>(entries, "Slide", key, context, logic).stream,
    };
    let decoder = Decoder {
        layout,
        results: spec.results.clone(),
        output: spec.output.clone(),
        names: spec.names.clone(),
        counts,
    };
    let (rows, errors) =
        decoded_with_errors(results, context, move |encoded| decoder.decode(encoded));
    Windowed { rows, errors }
}

/// Keeps the results of partitions up to date.
struct Slide {
    versions: Versions,
    gatherer: Gatherer,
    evaluator: Evaluator,
}

impl Reduction for Slide {
    fn reduce_all(
        &mut self,
        changes: &Changes,
        first: usize,
        prior: &mut Prior<'_>,
        output: &mut Output,
        fuel: &mut Fuel,
    ) -> usize {
        let Self { versions, gatherer, evaluator } = self;
        let mut next = first;
        while next < changes.len() && fuel.is_left() {
            let key = changes.key(next);
            versions.clear();
            let (mut rows, mut results) = prior.both(key);
            for slice in changes.time_slices(next) {
                let time = changes.change(slice.start).time;
                versions.advance(changes, slice);
                let partition = Partition { number: next, key, time, changes };
                let held = Held { rows: rows.as_deref_mut(), results: results.as_deref_mut() };
                gatherer.gather(&partition, versions, held, &mut |slices| {
                    evaluator.evaluate(slices, changes, output);
                });
            }
            next += 1;
            if gatherer.is_full() {
                evaluator.evaluate(&mut gatherer.slices, changes, output);
            }
            fuel.consume(std::mem::take(&mut evaluator.bytes));
        }
        evaluator.evaluate(&mut gatherer.slices, changes, output);
        evaluator.finish_key(changes, output);
        fuel.consume(std::mem::take(&mut evaluator.bytes) + output.take_bytes());
        next
    }
}

/// Evaluates slices.
struct Evaluator {
    functions: Vec<Function>,
    /// The frames of all functions, each once.
    frames: Vec<Frame>,
    layout: Layout,
    order: Order,
    codec: ValueCodec,
    /// Whether results have the number of rows before them.
    counts: bool,
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
    bytes: usize,
    /// Counts what evaluation decodes.
    charge: Charge,
}

/// The results of a version.
struct Evaluated {
    results: Encoded,
    /// By place, of each place the first one.
    failures: Vec<(usize, usize, String)>,
    /// What is behind the entries of results, for each emitted place.
    tails: Encoded,
}

/// The first byte of a result.
const ROW: u8 = 0;
const ERROR: u8 = 1;

/// The bytes of the number of rows before a row.
const NUMBER: usize = size_of::<u64>();

impl Evaluator {
    fn new(spec: &Sliding, counts: bool, context: &StateContext) -> Self {
        let mut columns = spec.order.key.columns().to_vec();
        columns.extend(spec.functions.iter().flat_map(Function::columns));
        let mut frames: Vec<Frame> = Vec::new();
        for frame in spec.functions.iter().filter_map(Function::frame) {
            if !frames.contains(&frame) {
                frames.push(frame);
            }
        }
        let evaluated = || Evaluated {
            results: Encoded::counted(context),
            failures: Vec::new(),
            tails: Encoded::counted(context),
        };
        Self {
            functions: spec.functions.clone(),
            frames,
            layout: spec.entries.layout().clone(),
            order: spec.order.clone(),
            codec: spec.results.clone(),
            counts,
            columns,
            old: evaluated(),
            new: evaluated(),
            value: Vec::new(),
            sorted: Vec::new(),
            open: None,
            bytes: 0,
            charge: context.budget().charge(0),
        }
    }

    /// Emits how the results of the emitted rows change, and clears the slices.
    fn evaluate(&mut self, slices: &mut Slices, changes: &Changes, output: &mut Output) {
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
            let targets: Vec<_> = self.frames.iter().map(|frame| frame.targets(&orders)).collect();
            self.evaluate_version(&old, slices, &columns, &targets, true);
            self.evaluate_version(&new, slices, &columns, &targets, false);
            self.emit(slices, [&old, &new], changes, output);
            self.charge.set(0);
        }
        slices.clear();
    }

    fn evaluate_version(
        &mut self,
        version: &Version,
        slices: &Slices,
        columns: &[ArrayRef],
        targets: &[Option<[Encoded; 2]>],
        is_old: bool,
    ) {
        let evaluated = if is_old { &mut self.old } else { &mut self.new };
        evaluated.clear();
        let emitted = version.emitted();
        if emitted == 0 {
            return;
        }
        let wanted = &self.columns;
        let column = |column: usize| {
            let place = wanted.iter().position(|&wanted| wanted == column);
            columns[place.expect("the columns of all functions are read")].clone()
        };
        let frames = self.frames.iter().zip(targets);
        let places: Vec<_> = frames
            .map(|(frame, targets)| frame.places(version, &slices.entries, targets.as_ref()))
            .collect();
        let mut results = Vec::with_capacity(self.functions.len());
        let mut failed: Vec<Failure> = Vec::new();
        for (number, function) in self.functions.iter().enumerate() {
            let frame = function.frame();
            let frame = self.frames.iter().position(|other| Some(other) == frame.as_ref());
            let places = frame.map_or(&[][..], |frame| &places[frame]);
            results.push(function.results(version, places, &column, &mut failed));
            let failed = failed.drain(..);
            evaluated.failures.extend(failed.map(|(place, message)| (place, number, message)));
        }
        evaluated.failures.sort_by_key(|&(place, ..)| place);
        evaluated.failures.dedup_by_key(|&mut (place, ..)| place);
        self.codec
            .encode(&results, emitted, &mut evaluated.results)
            .expect("results have the types their codec was made for");
        evaluated.make_tails(version, self.counts);
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
            value.clear();
            value.extend_from_slice(entry);
            value.extend_from_slice(tail);
            value.extend_from_slice(&length(tail));
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
    fn finish_key(&mut self, changes: &Changes, output: &mut Output) {
        if let Some(open) = self.open.take() {
            output.finish_key(changes.key(open));
        }
    }
}

impl Evaluated {
    fn clear(&mut self) {
        self.results.clear();
        self.failures.clear();
        self.tails.clear();
    }

    fn make_tails(&mut self, version: &Version, counts: bool) {
        let mut failures = self.failures.iter().peekable();
        let mut number = 0;
        let mut tail = Vec::new();
        for span in &version.spans {
            // The first copy of the row.
            let mut first = span.emitted.start;
            for place in span.emitted.clone() {
                if version.rows[place] != version.rows[first] {
                    first = place;
                }
                let failure = failures.next_if(|&&(failed, ..)| failed == number);
                tail.clear();
                tail.push(if failure.is_some() { ERROR } else { ROW });
                if counts {
                    let before = span.before + (first - span.all.start) as i64;
                    tail.extend_from_slice(&before.to_be_bytes());
                }
                match failure {
                    Some((_, function, message)) => {
                        tail.extend_from_slice(&(*function as u16).to_le_bytes());
                        tail.extend_from_slice(message.as_bytes());
                    }
                    None => tail.extend_from_slice(self.results.get(number)),
                }
                self.tails.push(&tail);
                number += 1;
            }
        }
    }
}

/// The entry and the tail of a result.
fn parts(result: &[u8]) -> (&[u8], &[u8]) {
    let (result, tail) = result.split_at(result.len() - size_of::<u32>());
    result.split_at(result.len() - read_length(tail))
}

/// How many rows are before a row, as the results under the current key say. Nothing if they do not have it.
pub(super) fn number_before(results: &mut Cursors<Epoch>, entry: &[u8]) -> i64 {
    results.rewind_vals();
    results.seek_val(entry);
    while let Some(result) = results.val().filter(|result| result.starts_with(entry)) {
        let (of, tail) = parts(result);
        if of == entry && weight_of(results) > 0 {
            let number = tail[1..=NUMBER].try_into().expect("a number has eight bytes");
            return i64::from_be_bytes(number);
        }
        results.step_val();
    }
    0
}

/// Turns results into rows and errors.
struct Decoder {
    layout: Layout,
    results: ValueCodec,
    output: SchemaRef,
    names: Vec<String>,
    counts: bool,
}

impl Decoder {
    fn decode(&self, encoded: &mut EncodedDelta<Epoch>) -> Produced<Epoch> {
        let (keys, results, updates) = encoded.parts();
        let mut row_keys: Vec<&[u8]> = Vec::with_capacity(results.len());
        let mut rows: Vec<&[u8]> = Vec::with_capacity(results.len());
        let mut row_results: Vec<&[u8]> = Vec::with_capacity(results.len());
        let mut row_updates = DeltaBuilder::default();
        let mut errors = ErrorRows::default();
        for (at, (key, result)) in keys.iter().zip(results.iter()).enumerate() {
            let (time, weight) = updates.update(at);
            let (entry, tail) = parts(result);
            let row = split(entry, 0).1;
            let body = &tail[if self.counts { 1 + NUMBER } else { 1 }..];
            if tail[0] == ROW {
                row_keys.push(key);
                rows.push(row);
                row_results.push(body);
                row_updates.push(time, weight);
                continue;
            }
            let (function, message) = body.split_at(size_of::<u16>());
            let function = u16::from_le_bytes(function.try_into().expect("a number has two bytes"));
            let message = std::str::from_utf8(message).expect("a message is text");
            let schema = self.layout.schema();
            let columns = self.layout.decode([key], [row], &all_columns(schema));
            let row = assemble(schema.clone(), columns, 1);
            errors.push(&self.names[usize::from(function)], &row, 0, message, time, weight);
        }
        let mut columns =
            self.layout.decode(row_keys, rows.iter().copied(), &all_columns(self.layout.schema()));
        let all: Vec<usize> = (0..self.names.len()).collect();
        columns.extend(encoded_here(self.results.decode(row_results, &all)));
        let rows = assemble(self.output.clone(), columns, rows.len());
        encoded.clear();
        let errors = (!errors.is_empty()).then(|| errors.finish());
        Produced { rows: row_updates.finish(rows), errors }
    }
}
