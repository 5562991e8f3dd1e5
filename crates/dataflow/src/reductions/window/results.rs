//! The results of rows as bytes.
//!
//! ```text
//! result   entry | kind (1) | rows before (8, big-endian; only if counted)
//!                | length (4, little-endian) and values of what is carried (only if functions are running)
//!                | results, or function (2) and message | length of all from the kind on (4, little-endian)
//! ```

use alluvium_trace::memory::StateContext;
use alluvium_trace::{Cursors, Epoch};
use arrow::datatypes::SchemaRef;

use super::slices::Version;
use crate::map::ErrorRows;
use crate::movement::delta::{DeltaBuilder, EncodedDelta};
use crate::movement::fuel::Produced;
use crate::reductions::ranked::entry::{length, read_length, split};
use crate::rows::codec::{Encoded, ValueCodec};
use crate::rows::layout::{Layout, all_columns, assemble, encoded_here};
use crate::rows::weight::weight_of;

/// The first byte of a result.
const ROW: u8 = 0;
const ERROR: u8 = 1;

/// The bytes of the number of rows before a row.
const NUMBER: usize = size_of::<u64>();

/// The parts of results beside their values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beside {
    /// The number of rows before a row.
    pub(super) counts: bool,
    /// Whether results carry the state after a row with all of its copies.
    pub(super) carries: bool,
}

impl Beside {
    /// The carried state of a tail, and its results or its error.
    fn body(self, tail: &[u8]) -> (&[u8], &[u8]) {
        let rest = &tail[if self.counts { 1 + NUMBER } else { 1 }..];
        if !self.carries {
            return (&[], rest);
        }
        let (length, rest) = rest.split_at(size_of::<u32>());
        rest.split_at(read_length(length))
    }
}

/// The results of a version.
pub(super) struct Evaluated {
    pub(super) results: Encoded,
    /// The carried state of the results, if they have one.
    pub(super) carried: Encoded,
    /// By place, of each place the first one.
    pub(super) failures: Vec<(usize, usize, String)>,
    /// The bytes after the entries of results, for each emitted place.
    pub(super) tails: Encoded,
}

impl Evaluated {
    pub(super) fn new(context: &StateContext) -> Self {
        Self {
            results: Encoded::counted(context),
            carried: Encoded::counted(context),
            failures: Vec::new(),
            tails: Encoded::counted(context),
        }
    }

    pub(super) fn clear(&mut self) {
        self.results.clear();
        self.carried.clear();
        self.failures.clear();
        self.tails.clear();
    }

    /// Makes the tails of the results.
    pub(super) fn make_tails(&mut self, version: &Version, beside: Beside) {
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
                if beside.counts {
                    let before = span.before + (first - span.all.start) as i64;
                    tail.extend_from_slice(&before.to_be_bytes());
                }
                if beside.carries {
                    let carried = self.carried.get(number);
                    tail.extend_from_slice(&length(carried));
                    tail.extend_from_slice(carried);
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

/// Makes a result of an entry and its tail.
pub(super) fn make(entry: &[u8], tail: &[u8], result: &mut Vec<u8>) {
    result.clear();
    result.extend_from_slice(entry);
    result.extend_from_slice(tail);
    result.extend_from_slice(&length(tail));
}

/// The entry and the tail of a result.
fn parts(result: &[u8]) -> (&[u8], &[u8]) {
    let (result, tail) = result.split_at(result.len() - size_of::<u32>());
    result.split_at(result.len() - read_length(tail))
}

/// The result for a row among those under a key.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// How many rows are before it, if results say that.
    pub(super) before: i64,
    /// How many copies it has.
    pub(super) copies: i64,
    /// The carried state of its results.
    pub(super) carried: Vec<u8>,
}

impl Found {
    /// The result for the row with this entry under the current key; `None` if there is none.
    pub(super) fn of(entry: &[u8], results: &mut Cursors<Epoch>, beside: Beside) -> Option<Self> {
        results.rewind_vals();
        results.seek_val(entry);
        let mut found: Option<Self> = None;
        while let Some(result) = results.val().filter(|result| result.starts_with(entry)) {
            let (of, tail) = parts(result);
            let weight = weight_of(results);
            if of == entry && weight > 0 {
                let found = found.get_or_insert_default();
                found.copies += weight;
                if beside.counts {
                    let number = tail[1..=NUMBER].try_into().expect("a number has eight bytes");
                    found.before = i64::from_be_bytes(number);
                }
                found.carried.clear();
                found.carried.extend_from_slice(beside.body(tail).0);
            }
            results.step_val();
        }
        found
    }
}

/// Turns results into rows and errors.
pub(super) struct Decoder {
    pub(super) layout: Layout,
    pub(super) results: ValueCodec,
    /// The columns of the layout, then the results.
    pub(super) output: SchemaRef,
    /// The names of the functions in errors.
    pub(super) names: Vec<String>,
    /// The parts of results beside their values.
    pub(super) beside: Beside,
}

impl Decoder {
    pub(super) fn decode(&self, encoded: &mut EncodedDelta<Epoch>) -> Produced<Epoch> {
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
            let (_, body) = self.beside.body(tail);
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
