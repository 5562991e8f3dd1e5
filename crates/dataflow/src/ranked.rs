//! The first rows of each group in some order: MIN, MAX, top-k.
//!
//! A row is kept as an *entry* under its group: bytes that sort as the order asks, then the columns
//! to put out. The values under a key of an arrangement are sorted, so the first rows of a group are
//! its first entries, and no more of the group is read than comes out. Several orders can be asked for
//! at once, each in a *lane* of its own; the answer of a group is then the first row of every lane,
//! side by side, which is how several MIN and MAX make one row.
//!
//! ```text
//! entry   lane (2, big-endian) | order key | output columns | length of the order key (4, little-endian)
//! answer  per lane: length (4, little-endian) | output columns
//! ```

use std::cmp::Ordering;
use std::sync::Arc;

use alluvium_trace::{Batch, Epoch, Nothing, PageTime, RowBuffer, Spine};
use arrow::array::{Array, ArrayRef, BinaryArray, RecordBatch};
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use timely::container::NoopBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::Concatenate;
use timely::dataflow::operators::generic::OutputBuilderSession;
use timely::dataflow::operators::generic::operator::Operator;

use crate::arrangement::{DELTA_ROWS, Stamps, arrange_encoded};
use crate::codec::{CodecError, Encoded, KeyCodec, ValueCodec};
use crate::delta::{Delta, DeltaStream};
use crate::fold::{Answer, Before, Changes, Logic, add, fold, weight_of};
use crate::layout::assemble;

/// Rows in an order.
pub struct Lane<'scope> {
    /// The rows, each on the worker of its group.
    pub rows: DeltaStream<'scope, Epoch>,
    /// Their columns.
    pub schema: SchemaRef,
    /// The columns that name the group; of the same types in every lane.
    pub keys: Vec<usize>,
    /// What they are ordered by. Rows equal in all of it are ordered by the bytes of their output.
    pub order: Vec<(usize, SortOptions)>,
    /// The columns to put out.
    pub output: Vec<usize>,
}

/// The first `limit` rows of each group, by weight, or with several lanes (and `limit` one) the first
/// row of each lane side by side, for groups with a row in every lane.
///
/// Puts out the keys, then each lane's output columns, named by `schema`.
pub fn ranked<'scope>(
    lanes: Vec<Lane<'scope>>,
    limit: u64,
    schema: SchemaRef,
) -> Result<DeltaStream<'scope, Epoch>, CodecError> {
    assert!(lanes.len() == 1 || limit == 1, "several lanes have one row each");
    let count = lanes.len();
    let types = |schema: &SchemaRef, columns: &[usize]| -> Vec<DataType> {
        columns.iter().map(|&column| schema.field(column).data_type().clone()).collect()
    };
    let keys = KeyCodec::new(&types(&lanes[0].schema, &lanes[0].keys))?;
    let outputs = lanes
        .iter()
        .map(|lane| ValueCodec::new(&types(&lane.schema, &lane.output)))
        .collect::<Result<Vec<_>, _>>()?;
    let scope = lanes[0].rows.scope();
    let entries = lanes
        .into_iter()
        .enumerate()
        .map(|(number, lane)| {
            let order = KeyCodec::with_order(
                lane.order
                    .iter()
                    .map(|&(column, options)| {
                        (lane.schema.field(column).data_type().clone(), options)
                    })
                    .collect(),
            )?;
            let encoder = EntryEncoder {
                lane: u16::try_from(number).expect("there are fewer lanes than columns"),
                keys: keys.clone(),
                key_columns: lane.keys,
                order,
                order_columns: lane.order.iter().map(|&(column, _)| column).collect(),
                output: outputs[number].clone(),
                output_columns: lane.output,
            };
            Ok(encoder.encode(lane.rows))
        })
        .collect::<Result<Vec<_>, CodecError>>()?;
    let entries = scope.concatenate(entries);
    let entries = arrange_encoded::<Epoch, Spine<Epoch>>(entries, "ArrangeEntries", push_encoded);
    let logic = Ranked {
        lanes: count,
        limit,
        overlay: Vec::new(),
        old: Vec::new(),
        new: Vec::new(),
        bytes: Vec::new(),
    };
    let answers = fold::<Epoch, _, Nothing<Epoch>, _>(entries, 0, "Ranked", logic);
    drop(answers.trace);
    Ok(answers.stream.unary(Pipeline, "Answers", move |_, _| {
        let mut decoder = AnswerDecoder {
            keys,
            outputs,
            schema,
            groups: Encoded::default(),
            answers: Encoded::default(),
            stamps: Stamps::default(),
        };
        move |input, output: &mut OutputBuilderSession<'_, Epoch, NoopBuilder<Delta<Epoch>>>| {
            input.for_each(|capability, batches: &mut Vec<Batch<Epoch>>| {
                let mut session = output.session_with_builder(&capability);
                for batch in batches.drain(..) {
                    decoder.batch(&batch, |mut delta| session.give_container(&mut delta));
                }
            });
        }
    }))
}

/// Puts keys and values that are encoded already into a buffer.
fn push_encoded<T: PageTime>(delta: &Delta<T>, buffer: &mut RowBuffer<T>) {
    let column = |index: usize| {
        delta
            .rows
            .column(index)
            .as_any()
            .downcast_ref::<BinaryArray>()
            .expect("encoded rows are bytes")
    };
    let (keys, values) = (column(0), column(1));
    for row in 0..delta.len() {
        buffer.push(keys.value(row), values.value(row), delta.time(row), delta.weight(row));
    }
}

/// Turns rows into entries under their groups.
struct EntryEncoder {
    lane: u16,
    keys: KeyCodec,
    key_columns: Vec<usize>,
    order: KeyCodec,
    order_columns: Vec<usize>,
    output: ValueCodec,
    output_columns: Vec<usize>,
}

impl EntryEncoder {
    fn encode<T: PageTime>(self, rows: DeltaStream<'_, T>) -> DeltaStream<'_, T> {
        let schema: SchemaRef = Arc::new(Schema::new(vec![
            Field::new("group", DataType::Binary, false),
            Field::new("entry", DataType::Binary, false),
        ]));
        let mut groups = Encoded::default();
        let mut orders = Encoded::default();
        let mut outputs = Encoded::default();
        rows.unary(Pipeline, "Entries", move |_, _| {
            move |input, output: &mut OutputBuilderSession<'_, T, NoopBuilder<Delta<T>>>| {
                input.for_each(|capability, delta: &mut Delta<T>| {
                    let pick = |columns: &[usize]| -> Vec<ArrayRef> {
                        columns.iter().map(|&column| delta.rows.column(column).clone()).collect()
                    };
                    let count = delta.len();
                    let expectation = "rows have the types their lane was made for";
                    groups.clear();
                    orders.clear();
                    outputs.clear();
                    self.keys
                        .encode(&pick(&self.key_columns), count, &mut groups)
                        .expect(expectation);
                    self.order
                        .encode(&pick(&self.order_columns), count, &mut orders)
                        .expect(expectation);
                    self.output
                        .encode(&pick(&self.output_columns), count, &mut outputs)
                        .expect(expectation);
                    let mut entry = Vec::new();
                    let mut entries = arrow::array::BinaryBuilder::with_capacity(
                        count,
                        orders.bytes().len() + outputs.bytes().len() + 6 * count,
                    );
                    for row in 0..count {
                        let order = orders.get(row);
                        entry.clear();
                        entry.extend_from_slice(&self.lane.to_be_bytes());
                        entry.extend_from_slice(order);
                        entry.extend_from_slice(outputs.get(row));
                        entry.extend_from_slice(&length(order));
                        entries.append_value(&entry);
                    }
                    let groups = BinaryArray::from_iter_values(groups.iter());
                    let columns: Vec<ArrayRef> = vec![Arc::new(groups), Arc::new(entries.finish())];
                    let mut encoded = Delta {
                        rows: RecordBatch::try_new(schema.clone(), columns)
                            .expect("a group and an entry for each row"),
                        times: delta.times.clone(),
                        weights: delta.weights.clone(),
                    };
                    output.session_with_builder(&capability).give_container(&mut encoded);
                });
            }
        })
    }
}

fn length(bytes: &[u8]) -> [u8; 4] {
    u32::try_from(bytes.len()).expect("a row is shorter than 4 GiB").to_le_bytes()
}

fn read_length(bytes: &[u8]) -> usize {
    u32::from_le_bytes(bytes.try_into().expect("a length has four bytes")) as usize
}

/// The bytes of a lane's number.
const LANE: usize = size_of::<u16>();

/// The output columns in an entry.
fn output_of(entry: &[u8]) -> &[u8] {
    let end = entry.len() - 4;
    &entry[LANE + read_length(&entry[end..])..end]
}

/// Keeps the first rows of groups up to date.
struct Ranked {
    lanes: usize,
    limit: u64,
    /// The changes of the group in hand up to the moment in hand, by entry: a row that has the entry,
    /// and the sum of the weights.
    overlay: Vec<(usize, i64)>,
    old: Vec<(Vec<u8>, i64)>,
    new: Vec<(Vec<u8>, i64)>,
    bytes: Vec<u8>,
}

impl<T: PageTime> Logic<T> for Ranked {
    fn fold(
        &mut self,
        changes: &Changes<T>,
        key: usize,
        before: &mut Before<'_, T>,
        answer: &mut Answer<T>,
    ) {
        let mut history = before.input(changes.key(key));
        self.overlay.clear();
        let mut old = std::mem::take(&mut self.old);
        let mut new = std::mem::take(&mut self.new);
        self.first_rows(changes, &mut history, &mut old);
        for moment in changes.moments(key) {
            let time = changes.change(moment.start).time;
            for row in moment {
                let weight = changes.change(row).weight;
                let place = self
                    .overlay
                    .binary_search_by(|&(other, _)| changes.value(other).cmp(changes.value(row)));
                match place {
                    Ok(place) => self.overlay[place].1 = add(self.overlay[place].1, weight),
                    Err(place) => self.overlay.insert(place, (row, weight)),
                }
            }
            self.first_rows(changes, &mut history, &mut new);
            if old != new {
                for (row, count) in old.drain(..) {
                    answer.push(&row, time, -count);
                }
                for (row, count) in &new {
                    answer.push(row, time, *count);
                }
                std::mem::swap(&mut old, &mut new);
            }
        }
        self.old = old;
        self.new = new;
    }
}

impl Ranked {
    /// The answer for what the group held, with the overlay laid over it.
    fn first_rows<T: PageTime>(
        &mut self,
        changes: &Changes<T>,
        history: &mut Option<&mut alluvium_trace::Cursors<T>>,
        rows: &mut Vec<(Vec<u8>, i64)>,
    ) {
        rows.clear();
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        let mut complete = true;
        if let Some(history) = history {
            history.rewind_vals();
        }
        for lane in 0..self.lanes {
            let mut wanted = i64::try_from(self.limit).unwrap_or(i64::MAX);
            let lane = (lane as u16).to_be_bytes();
            if let Some(history) = history {
                history.seek_val(&lane);
            }
            let mut next = self.overlay.partition_point(|&(row, _)| changes.value(row) < &lane[..]);
            while wanted > 0 {
                let kept = history
                    .as_ref()
                    .and_then(|history| history.val())
                    .filter(|entry| entry[..LANE] == lane);
                let changed = self
                    .overlay
                    .get(next)
                    .map(|&(row, weight)| (changes.value(row), weight))
                    .filter(|(entry, _)| entry[..LANE] == lane);
                let order = match (kept, changed) {
                    (None, None) => break,
                    (Some(_), None) => Ordering::Less,
                    (None, Some(_)) => Ordering::Greater,
                    (Some(kept), Some((changed, _))) => kept.cmp(changed),
                };
                let mut weight = 0;
                if order.is_le() {
                    weight = history.as_ref().map_or(0, |history| weight_of(history));
                }
                if order.is_ge() {
                    weight = add(weight, changed.map_or(0, |(_, weight)| weight));
                }
                if weight > 0 {
                    let entry = if order.is_le() { kept } else { changed.map(|(entry, _)| entry) };
                    let row = output_of(entry.expect("one of the two was compared"));
                    bytes.extend_from_slice(&length(row));
                    bytes.extend_from_slice(row);
                    let taken = weight.min(wanted);
                    wanted -= taken;
                    if self.lanes == 1 {
                        rows.push((bytes.clone(), taken));
                        bytes.clear();
                    } else {
                        wanted = 0;
                    }
                }
                if order.is_le()
                    && let Some(history) = history
                {
                    history.step_val();
                }
                if order.is_ge() {
                    next += 1;
                }
            }
            complete &= wanted == 0;
        }
        if self.lanes > 1 && complete {
            rows.push((bytes.clone(), 1));
        }
        self.bytes = bytes;
    }
}

/// Turns answers into rows.
struct AnswerDecoder<T> {
    keys: KeyCodec,
    outputs: Vec<ValueCodec>,
    schema: SchemaRef,
    groups: Encoded,
    answers: Encoded,
    stamps: Stamps<T>,
}

impl<T: PageTime> AnswerDecoder<T> {
    fn batch(&mut self, batch: &Batch<T>, mut give: impl FnMut(Delta<T>)) {
        let mut cursor = batch.cursor();
        while let Some(group) = cursor.key() {
            match cursor.val() {
                None => cursor.step_key(),
                Some(answer) => {
                    for (time, weight) in cursor.updates() {
                        self.groups.push(group);
                        self.answers.push(answer);
                        self.stamps.push(time, weight);
                    }
                    cursor.step_val();
                }
            }
            if self.groups.len() >= DELTA_ROWS {
                give(self.take());
            }
        }
        if !self.groups.is_empty() {
            give(self.take());
        }
    }

    fn take(&mut self) -> Delta<T> {
        let expectation = "a batch holds what its codecs encoded";
        let count = self.groups.len();
        let mut columns = self.keys.decode(self.groups.iter()).expect(expectation);
        let mut rest: Vec<&[u8]> = self.answers.iter().collect();
        let mut rows = Vec::with_capacity(count);
        for output in &self.outputs {
            rows.clear();
            for answer in &mut rest {
                let (row, others) = answer[4..].split_at(read_length(&answer[..4]));
                rows.push(row);
                *answer = others;
            }
            let all: Vec<usize> = (0..output.types().len()).collect();
            columns.extend(output.decode(rows.iter().copied(), &all).expect(expectation));
        }
        let delta = self.stamps.take(assemble(self.schema.clone(), columns, count));
        self.groups.clear();
        self.answers.clear();
        delta
    }
}
