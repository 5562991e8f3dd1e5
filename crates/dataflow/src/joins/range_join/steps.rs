//! Right rows as steps of a function along the values.
//!
//! ```text
//! step   length of the payload (4, big-endian) | payload | place
//! ```
//!
//! A place is the least bytes of the entries from which on the step counts. Entries begin with their value, whose encoding is no
//! beginning of another one: those from a value on begin at its bytes, and those after it at the next bytes that do not begin
//! with them. The empty place is before all entries, also those of NULL, which begin with 0. A step that goes up has the weight of its row, and one that goes down the
//! opposite.

use alluvium_trace::memory::StateContext;
use alluvium_trace::{Epoch, RowBuffer};
use arrow::array::{Array, RecordBatch};
use arrow::buffer::NullBuffer;

use super::{End, Right};
use crate::movement::delta::Delta;
use crate::rows::codec::{CodecError, Encoded};
use crate::rows::key_columns::KeyColumns;
use crate::rows::layout::{Layout, project};
use crate::rows::weight::multiply;

/// Turns right rows into steps.
#[derive(Clone, Debug)]
pub(super) struct StepEncoder {
    key: Layout,
    payload: Layout,
    payload_columns: Vec<usize>,
    low: Option<Edge>,
    high: Option<Edge>,
}

/// An end, and its place.
#[derive(Clone, Debug)]
struct Edge {
    value: KeyColumns,
    /// Whether rows with this value are before the place.
    is_behind: bool,
}

impl StepEncoder {
    pub(super) fn compile(right: &Right<'_>) -> Result<Self, CodecError> {
        let edge = |end: Option<End>, is_high: bool| {
            let value = end.map(|end| KeyColumns::new(right.schema, &[end.column])).transpose()?;
            let is_behind = end.is_some_and(|end| end.is_included == is_high);
            Ok::<_, CodecError>(value.map(|value| Edge { value, is_behind }))
        };
        Ok(Self {
            key: Layout::keyed(right.schema.clone(), right.keys)?,
            payload: Layout::keyed(project(right.schema, right.payload), &[])?,
            payload_columns: right.payload.to_vec(),
            low: edge(right.ends.low, false)?,
            high: edge(right.ends.high, true)?,
        })
    }

    /// The layout of the payload, which has no key.
    pub(super) fn payload(&self) -> &Layout {
        &self.payload
    }

    /// The names of the columns that are the key of a right row.
    pub(super) fn key_names(&self) -> String {
        self.key.key_names()
    }

    /// Adds the steps of right rows to a buffer.
    pub(super) fn encode(
        self,
        context: &StateContext,
    ) -> impl FnMut(&Delta<Epoch>, &mut RowBuffer<Epoch>) + 'static {
        let counted = || Encoded::counted(context);
        let (mut keys, mut payloads) = (counted(), counted());
        let (mut lows, mut highs) = (Places::new(context), Places::new(context));
        let mut step = Vec::new();
        move |delta, buffer| {
            let rows = &delta.rows;
            keys.clear();
            self.key.encode_keys(rows, &mut keys);
            payloads.clear();
            let payload = rows.project(&self.payload_columns).expect("the payload is of the rows");
            self.payload.encode_values_of(&payload, &mut payloads);
            lows.fill(rows, self.low.as_ref());
            highs.fill(rows, self.high.as_ref());
            for row in 0..delta.len() {
                let (key, time, weight) = (keys.get(row), delta.time(row), delta.weight(row));
                step.clear();
                step.extend_from_slice(&length(payloads.get(row)));
                step.extend_from_slice(payloads.get(row));
                let payload = step.len();
                let (low, high) = (lows.get(row), highs.get(row));
                // Without a low end the function rises before all values, without a high one it never falls.
                let first = if high.is_some() { FIRST_VALUE } else { &[] };
                step.extend_from_slice(low.unwrap_or(first));
                buffer.push(key, &step, time, weight);
                if let Some(high) = high {
                    step.truncate(payload);
                    step.extend_from_slice(high);
                    buffer.push(key, &step, time, multiply(weight, -1));
                }
            }
        }
    }
}

/// The place of the least value.
const FIRST_VALUE: &[u8] = &[1];

/// The places of an end of some rows; none if there is no such end.
struct Places {
    values: Encoded,
    places: Encoded,
    nulls: Option<NullBuffer>,
}

impl Places {
    fn new(context: &StateContext) -> Self {
        let (values, places) = (Encoded::counted(context), Encoded::counted(context));
        Self { values, places, nulls: None }
    }

    fn fill(&mut self, rows: &RecordBatch, edge: Option<&Edge>) {
        self.values.clear();
        self.places.clear();
        let Some(edge) = edge else { return };
        edge.value.encode(rows, &mut self.values);
        self.nulls = edge.value.columns().first().and_then(|at| rows.column(*at).logical_nulls());
        if !edge.is_behind {
            return std::mem::swap(&mut self.values, &mut self.places);
        }
        let mut place = Vec::new();
        for value in self.values.iter() {
            place.clear();
            place.extend_from_slice(value);
            step_behind(&mut place);
            self.places.push(&place);
        }
    }

    fn get(&self, row: usize) -> Option<&[u8]> {
        let is_null = self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
        (!self.places.is_empty() && !is_null).then(|| self.places.get(row))
    }
}

/// Turns bytes into the least ones that are greater than all that begin with them. Their first one is not 255.
fn step_behind(bytes: &mut Vec<u8>) {
    while bytes.last() == Some(&u8::MAX) {
        bytes.pop();
    }
    if let Some(last) = bytes.last_mut() {
        *last += 1;
    }
}

fn length(payload: &[u8]) -> [u8; 4] {
    u32::try_from(payload.len()).expect("a row is shorter than 4 GiB").to_be_bytes()
}

/// The part of a step that is the same for all steps with its payload, and the place.
pub(super) fn split(step: &[u8]) -> (&[u8], &[u8]) {
    let (length, rest) = step.split_first_chunk().expect("a step begins with a length");
    let payload = length.len() + u32::from_be_bytes(*length) as usize;
    debug_assert!(payload <= length.len() + rest.len());
    step.split_at(payload)
}

/// The payload in the first part of a step.
pub(super) fn payload(group: &[u8]) -> &[u8] {
    &group[size_of::<u32>()..]
}

/// The least bytes of steps with a greater payload than this one.
pub(super) fn behind_group(group: &[u8], into: &mut Vec<u8>) {
    into.clear();
    into.extend_from_slice(group);
    step_behind(into);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_behind_a_value_is_behind_all_that_begin_with_it() {
        for (value, next) in [(&[1, 7][..], &[1, 8][..]), (&[1, 255, 255], &[2]), (&[0], &[1])] {
            let mut place = value.to_vec();
            step_behind(&mut place);
            assert_eq!(place, next);
            for last in [0, 1, 255] {
                assert!([value, &[last, 255]].concat() < place);
            }
        }
    }

    #[test]
    fn steps_come_apart_into_payload_and_place() {
        let step = [&length(b"abc")[..], b"abc", b"place"].concat();
        let (group, place) = split(&step);
        assert_eq!((payload(group), place), (&b"abc"[..], &b"place"[..]));
        let mut behind = Vec::new();
        behind_group(group, &mut behind);
        assert!(behind > step && behind <= [&length(b"abd")[..], b"abd"].concat());
    }
}
