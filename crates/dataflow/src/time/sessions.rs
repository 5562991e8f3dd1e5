//! Sessions: runs of rows of one key, each less than a gap after the one before.
//!
//! The output's trace has each row with the bounds of its session; no input is kept. A change at some time touches the sessions
//! that end after it and start less than the gap later, and no others. So these are read and rebuilt with the changed rows, and
//! the differences are emitted.
//!
//! Where the rows of a session need not be told apart and none is taken back, they are *counted*: what comes later reaches a
//! session by its first or its last row, so all rows in between are kept as so many of its first. A change then touches two rows
//! of a session, however many there are.
//!
//! A session *ends* the gap after its last row. From a waterline on no change touches a session that ends at or before it, so
//! its rows can be pruned by their end: all rows of a session have the same.
//!
//! ```text
//! value   end (8, sorted) | start (8, sorted) | time (8, sorted) | whether there is no end (1) | end (8, little-endian) | row
//! ```

use alluvium_trace::memory::{Charge, StateContext};
use alluvium_trace::{BoundColumn, Cursors, Epoch, RowBuffer, Spine};
use arrow::array::{ArrayRef, AsArray, Int64Array, UInt32Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type, SchemaRef};

use crate::fault::{self, Fault};
use crate::map::ErrorRows;
use crate::movement::delta::{Delta, DeltaStream, EncodedDelta};
use crate::movement::exchange::exchange;
use crate::movement::fuel::Produced;
use crate::reductions::reduce::{Changes, Logic, Output, Prior, Unkept, reduce_decoded};
use crate::rows::codec::{CodecError, Encoded};
use crate::rows::key_columns::KeyColumns;
use crate::rows::layout::{Layout, all_columns, assemble, project};
use crate::rows::weight::{add, weight_of};

/// Where the end of a session is in a value, as what prunes it finds it.
pub const END: BoundColumn = BoundColumn::Value { at: 25, width: 8, null: 8 * NO_END + 1 };

/// The places of the parts of a value.
const START: usize = 8;
const TIME: usize = 16;
const NO_END: usize = 24;
const ROW: usize = 33;

/// The bytes of rows for which memory is kept from one key to the next.
const MOST_KEPT: usize = 1 << 20;

/// A bound of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionBound {
    /// The time of its first row.
    Start,
    /// The gap after the time of its last row.
    End,
}

/// Which sessions rows are in.
#[derive(Clone, Debug)]
pub struct Spec {
    key: KeyColumns,
    layout: Layout,
    /// The columns of the input that are kept and passed on.
    columns: Vec<usize>,
    time: usize,
    gap: i64,
    bounds: Vec<SessionBound>,
    output: SchemaRef,
    counted: bool,
}

impl Spec {
    /// Rows of the schema `input`, with sessions of those that agree on the columns `keys`. `time` is a timestamp that is never
    /// NULL, and `gap` in its unit. `output` has all columns and then the `bounds`.
    ///
    /// If they are `counted`, `output` has of the columns only those of the key, in the input's order. Then rows are only ever
    /// inserted, there is a key, and it has no floats, because equal keys must have equal bytes.
    ///
    /// Fails if a column has a type that cannot be stored, or a key one that cannot be a key.
    pub fn compile(
        input: &SchemaRef,
        keys: &[usize],
        (time, gap): (usize, i64),
        bounds: &[SessionBound],
        counted: bool,
        output: &SchemaRef,
    ) -> Result<Self, CodecError> {
        let mut columns = all_columns(input);
        columns.retain(|column| !counted || keys.contains(column));
        let key = KeyColumns::new(input, keys)?;
        let layout = Layout::keyed(project(input, &columns), &places(&key, &columns))?;
        let (bounds, output) = (bounds.to_vec(), output.clone());
        Ok(Self { key, layout, columns, time, gap, bounds, output, counted })
    }
}

/// The rows of `stream` with the bounds of their sessions, and the errors of sessions that end out of range. Exchanges rows by
/// key.
///
/// `kept` is the context of the rows that are kept; it may prune them by [`END`].
pub fn sessions<'scope>(
    spec: &Spec,
    stream: DeltaStream<'scope, Epoch>,
    context: &StateContext,
    kept: &StateContext,
) -> (DeltaStream<'scope, Epoch>, DeltaStream<'scope, Epoch>) {
    let Spec { layout, columns, time, gap, counted, .. } = spec.clone();
    let (mut keys, mut values) = (Encoded::counted(context), Encoded::counted(context));
    let (encoding, mut entry) = (layout.clone(), Vec::new());
    let encode = move |delta: &Delta<Epoch>, buffer: &mut RowBuffer<Epoch>| {
        keys.clear();
        values.clear();
        let rows = delta.rows.project(&columns).expect("the columns are of the input");
        encoding.encode(&rows, &mut keys, &mut values);
        let times =
            cast(delta.rows.column(time), &DataType::Int64).expect("a timestamp is a number");
        let times = times.as_primitive::<Int64Type>();
        for row in 0..delta.len() {
            entry.clear();
            entry.extend_from_slice(&sorted(times.value(row)));
            entry.extend_from_slice(values.get(row));
            buffer.push(keys.get(row), &entry, delta.time(row), delta.weight(row));
        }
    };
    let charge = kept.budget().charge(0);
    let (rows, bytes, entry) = Default::default();
    let logic = Sessions { gap, counted, rows, bytes, entry, charge };
    let rows = exchange(stream, &spec.key, context);
    let key = layout.key_names();
    let (changes, spec) = (Unkept { rows, encode }, spec.clone());
    let decode = move |encoded: &mut _| spec.decode(encoded);
    reduce_decoded::<Spine<Epoch>, _>(changes, "Sessions", key, kept, logic, decode)
}

/// The places of the key among these columns.
fn places(key: &KeyColumns, columns: &[usize]) -> Vec<usize> {
    let place = |key: &usize| columns.iter().position(|column| column == key);
    key.columns().iter().map(|key| place(key).expect("the key is passed on")).collect()
}

/// Bytes that sort as numbers do.
fn sorted(number: i64) -> [u8; 8] {
    let mut bytes = number.to_be_bytes();
    bytes[0] ^= 0x80;
    bytes
}

fn number(bytes: &[u8], at: usize) -> i64 {
    let mut number: [u8; 8] = bytes[at..at + 8].try_into().expect("a number has eight bytes");
    number[0] ^= 0x80;
    i64::from_be_bytes(number)
}

/// The bounds of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Session {
    start: i64,
    /// `None` if it is out of range.
    end: Option<i64>,
}

/// A row, and how it changes.
struct Row {
    time: i64,
    /// Where its bytes are.
    place: std::ops::Range<usize>,
    weight: i64,
    /// The session last emitted for it.
    emitted: Option<(Session, i64)>,
}

/// Makes sessions of rows.
struct Sessions {
    gap: i64,
    /// Whether rows between the first and the last of a session count as further ones of the first.
    counted: bool,
    /// By time, and then by their bytes.
    rows: Vec<Row>,
    bytes: Vec<u8>,
    entry: Vec<u8>,
    /// Accounts for them.
    charge: Charge,
}

impl Logic for Sessions {
    fn reduce(
        &mut self,
        changes: &Changes,
        key: usize,
        prior: &mut Prior<'_>,
        output: &mut Output,
    ) {
        self.rows.clear();
        self.bytes.clear();
        let times = changes.rows_of(key).map(|row| number(changes.value(row), 0));
        let (first, last) = times
            .fold((i64::MAX, i64::MIN), |(least, most), time| (least.min(time), most.max(time)));
        if let Some(held) = prior.output(changes.key(key)) {
            self.load(held, first, last);
        }
        for slice in changes.time_slices(key) {
            let epoch = changes.change(slice.start).time;
            for change in slice {
                self.change(changes.value(change), changes.change(change).weight);
            }
            self.charge.set(self.bytes.capacity() + self.rows.capacity() * size_of::<Row>());
            self.emit(epoch, output);
        }
        if self.bytes.len() > MOST_KEPT {
            (self.rows, self.bytes) = (Vec::new(), Vec::new());
            self.charge.set(0);
        }
    }
}

impl Sessions {
    /// Loads the sessions that changes from `first` to `last` can touch.
    fn load(&mut self, held: &mut Cursors<Epoch>, first: i64, last: i64) {
        // Sessions do not overlap, so they lie in order.
        held.seek_val(&sorted(first.saturating_add(1)));
        while let Some(value) = held.val() {
            let start = number(value, START);
            let weight = weight_of(held);
            // Sessions that were retracted can still be there.
            if weight > 0 {
                if start.checked_sub(last).is_some_and(|apart| apart >= self.gap) {
                    break;
                }
                let end = (value[NO_END] == 0).then(|| number(value, 0));
                let place = self.bytes.len()..self.bytes.len() + value.len() - ROW;
                self.bytes.extend_from_slice(&value[ROW..]);
                let emitted = Some((Session { start, end }, weight));
                self.rows.push(Row { time: number(value, TIME), place, weight, emitted });
            }
            held.step_val();
        }
    }

    /// Changes the weight of a row, which comes with its time.
    fn change(&mut self, value: &[u8], weight: i64) {
        let (time, row) = (number(value, 0), &value[8..]);
        let Self { rows, bytes, .. } = self;
        let order =
            |other: &Row| other.time.cmp(&time).then_with(|| bytes[other.place.clone()].cmp(row));
        // Mostly they come in order.
        let found = match rows.last() {
            Some(last) if order(last).is_ge() => rows.binary_search_by(order),
            _ => Err(rows.len()),
        };
        match found {
            Ok(place) => rows[place].weight = add(rows[place].weight, weight),
            Err(at) => {
                let place = bytes.len()..bytes.len() + row.len();
                bytes.extend_from_slice(row);
                rows.insert(at, Row { time, place, weight, emitted: None });
            }
        }
    }

    /// Emits the changes.
    fn emit(&mut self, epoch: Epoch, output: &mut Output) {
        let Self { gap, counted, rows, bytes, entry, .. } = self;
        // The last time at which the session of this row is known to have one: an end that was emitted tells it.
        let reach = |row: &Row| match row.emitted {
            Some((session, _)) if *counted => session.end.map_or(i64::MAX, |end| end - *gap),
            _ => row.time,
        };
        let mut next = 0;
        while next < rows.len() {
            let (begin, start) = (next, rows[next].time);
            let mut last: Option<i64> = None;
            // Rows that are gone lie in between.
            while let Some(row) = rows.get(next) {
                let is_there = row.weight > 0;
                let is_near = |last: i64| {
                    row.time <= last || row.time.checked_sub(last).is_some_and(|by| by < *gap)
                };
                if is_there && !last.is_none_or(is_near) {
                    break;
                }
                last = if is_there { last.max(Some(reach(row))) } else { last };
                next += 1;
            }
            let start =
                rows[begin..next].iter().find(|row| row.weight > 0).map_or(start, |row| row.time);
            let session = last.map(|last| Session { start, end: last.checked_add(*gap) });
            if *counted {
                gather(&mut rows[begin..next]);
            }
            for row in &mut rows[begin..next] {
                let now = session.filter(|_| row.weight > 0).map(|session| (session, row.weight));
                if now == row.emitted {
                    continue;
                }
                for (state, sign) in [(row.emitted, -1), (now, 1)] {
                    let Some((session, weight)) = state else { continue };
                    encode(entry, session, row.time, &bytes[row.place.clone()]);
                    output.push(entry, epoch, sign * weight);
                }
                row.emitted = now;
            }
        }
    }
}

/// Moves the rows of a session that are neither the first nor the last to the first.
fn gather(session: &mut [Row]) {
    let is_there = |row: &Row| row.weight > 0;
    let first = session.iter().position(is_there);
    let (Some(first), Some(last)) = (first, session.iter().rposition(is_there)) else { return };
    for place in first + 1..last {
        let weight = std::mem::take(&mut session[place].weight);
        if !fault::armed(Fault::ForgetBetween) {
            session[first].weight = add(session[first].weight, weight);
        }
    }
}

fn encode(entry: &mut Vec<u8>, session: Session, time: i64, row: &[u8]) {
    let end = session.end.unwrap_or(i64::MAX);
    entry.clear();
    entry.extend_from_slice(&sorted(end));
    entry.extend_from_slice(&sorted(session.start));
    entry.extend_from_slice(&sorted(time));
    entry.push(u8::from(session.end.is_none()));
    entry.extend_from_slice(&end.to_le_bytes());
    entry.extend_from_slice(row);
}

impl Spec {
    fn decode(&self, encoded: &mut EncodedDelta<Epoch>) -> Produced<Epoch> {
        let mut failed = Vec::new();
        let width = self.layout.schema().fields().len();
        let delta = encoded.finish(|keys, values| {
            let columns = all_columns(self.layout.schema());
            let rows = values.iter().map(|value| &value[ROW..]);
            let mut columns = self.layout.decode(keys.iter(), rows, &columns);
            failed.extend(values.iter().map(|value| value[NO_END] != 0));
            for (number_of, bound) in self.bounds.iter().enumerate() {
                let at = match bound {
                    SessionBound::Start => START,
                    SessionBound::End => 0,
                };
                let bounds =
                    Int64Array::from_iter_values(values.iter().map(|value| number(value, at)));
                let data_type = self.output.field(width + number_of).data_type();
                let bounds: ArrayRef = cast(&bounds, data_type).expect("a number is a timestamp");
                columns.push(bounds);
            }
            assemble(self.output.clone(), columns, values.len())
        });
        if !failed.contains(&true) {
            return Produced::from(delta);
        }
        let keys = places(&self.key, &self.columns);
        let mut errors = ErrorRows::default();
        let name = self.output.fields().get(width).map_or("session", |field| field.name());
        for row in (0..delta.len()).filter(|row| failed[*row]) {
            let rows = delta.rows.project(&keys).expect("the keys are columns");
            let message = "overflow: a session ends outside the range of timestamps";
            errors.push(name, &rows, row, message, *delta.time(row), delta.weight(row));
        }
        let kept = (0..delta.len() as u32).filter(|row| !failed[*row as usize]);
        let kept = UInt32Array::from_iter_values(kept);
        Produced { rows: delta.take(&kept), errors: Some(errors.finish()) }
    }
}

#[cfg(test)]
mod tests;
