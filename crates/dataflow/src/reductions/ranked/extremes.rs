//! The first or last rows of several lanes, side by side.
//!
//! MIN and MAX of one column are the two ends of one lane, whose rows are kept once.
//!
//! ```text
//! entry   lane (2, big-endian) | as in `entry`
//! row     per end that is read: length (4, little-endian) | value
//! ```

use std::cell::Cell;
use std::ops::ControlFlow;

use alluvium_trace::memory::StateContext;
use alluvium_trace::{Epoch, NullTrace, Spine};
use arrow::array::ArrayRef;
use arrow::compute::SortOptions;
use arrow::datatypes::SchemaRef;

use super::entry::{EntryEncoder, length, push_entries, read_length, split};
use crate::fault::{self, Fault};
use crate::movement::delta::{DeltaStream, EncodedDelta, concatenated};
use crate::movement::fuel::Produced;
use crate::reductions::reduce::{Changes, Logic, Output, Prior, reduce_decoded};
use crate::rows::codec::{CodecError, Encoded};
use crate::rows::layout::{Layout, all_columns, assemble};
use crate::state::arrangement::arrange_encoded;
use crate::state::overlay::Overlay;

/// The columns of a lane and their order.
#[derive(Clone, Debug, PartialEq)]
pub struct Lane {
    /// The columns.
    pub schema: SchemaRef,
    /// The order of the rows. Rows that are equal in it are ordered by their bytes.
    pub order: Vec<(usize, SortOptions)>,
}

/// A row of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The first one.
    First,
    /// The last one in which the first column of the order, whose NULLs come last, is not NULL; the first one where it is NULL in
    /// all.
    Last,
}

/// The lanes of groups.
#[derive(Clone, Debug)]
pub struct Spec {
    lanes: Vec<EntryEncoder>,
    /// The rows that are read: the number of a lane, and which of its rows.
    ends: Vec<(usize, End)>,
    /// The number of key columns.
    keys: usize,
    schema: SchemaRef,
}

impl Spec {
    /// At least one lane. The first `keys` columns of a lane name the group and are of the same types in every lane.
    /// `ends`: which rows are read of which lanes. `schema` names the keys, then the other columns of each of these rows.
    pub fn compile(
        lanes: &[Lane],
        ends: &[(usize, End)],
        keys: usize,
        schema: SchemaRef,
    ) -> Result<Self, CodecError> {
        let groups: Vec<usize> = (0..keys).collect();
        let lanes = lanes
            .iter()
            .zip(0u16..)
            .map(|(lane, number)| {
                let layout = Layout::grouped(lane.schema.clone(), &groups)?;
                EntryEncoder::compile(layout, &lane.order, number.to_be_bytes().to_vec())
            })
            .collect::<Result<Vec<_>, CodecError>>()?;
        Ok(Self { lanes, ends: ends.to_vec(), keys, schema })
    }
}

/// The rows at the ends of lanes side by side, for groups with a row in every lane.
///
/// `lanes` has the rows of each lane, each on the worker of its group.
pub fn extremes<'scope>(
    spec: &Spec,
    lanes: Vec<DeltaStream<'scope, Epoch>>,
    context: &StateContext,
) -> DeltaStream<'scope, Epoch> {
    let layouts: Vec<Layout> = spec.lanes.iter().map(|lane| lane.layout().clone()).collect();
    let entries =
        spec.lanes.iter().zip(lanes).map(|(lane, rows)| lane.clone().encode(rows, context));
    let entries = concatenated(entries).expect("there are lanes");
    let key = layouts[0].key_names();
    let entries = arrange_encoded::<Epoch, Spine<Epoch>>(
        entries,
        "ArrangeEntries",
        key.clone(),
        context,
        push_entries,
    );
    let layouts: Vec<Layout> = spec.ends.iter().map(|(lane, _)| layouts[*lane].clone()).collect();
    let logic = Extremes {
        ends: spec.ends.iter().map(|(lane, end)| (*lane as u16, *end)).collect(),
        overlay: Overlay::default(),
        old: Vec::new(),
        new: Vec::new(),
    };
    let (keys, schema) = (spec.keys, spec.schema.clone());
    let decode = move |encoded: &mut EncodedDelta<Epoch>| {
        Produced::from(encoded.finish(|groups, rows| {
            let columns = decode(&layouts, keys, groups, rows);
            assemble(schema.clone(), columns, rows.len())
        }))
    };
    reduce_decoded::<NullTrace<Epoch>, _>(entries, "Extremes", key, context, logic, decode).0
}

/// The columns of encoded rows, whose parts have these layouts.
fn decode(layouts: &[Layout], keys: usize, groups: &Encoded, rows: &Encoded) -> Vec<ArrayRef> {
    let mut columns = Vec::new();
    let mut rest: Vec<&[u8]> = rows.iter().collect();
    let mut values = Vec::with_capacity(rows.len());
    for (part, layout) in layouts.iter().enumerate() {
        values.clear();
        for row in &mut rest {
            let (value, others) = row[4..].split_at(read_length(&row[..4]));
            values.push(value);
            *row = others;
        }
        let mut wanted = all_columns(layout.schema());
        // All lanes have the same groups.
        wanted.drain(..if part == 0 { 0 } else { keys });
        columns.extend(layout.decode(groups.iter(), values.iter().copied(), &wanted));
    }
    columns
}

/// The bytes of a lane's number.
const LANE: usize = size_of::<u16>();

/// The first byte of an order key that is NULL, where NULLs come last; no other order key begins with it.
const NULL_LAST: u8 = 0xff;

/// Keeps the rows at the ends of lanes up to date.
struct Extremes {
    ends: Vec<(u16, End)>,
    overlay: Overlay,
    old: Vec<u8>,
    new: Vec<u8>,
}

impl Logic for Extremes {
    fn reduce(
        &mut self,
        changes: &Changes,
        key: usize,
        prior: &mut Prior<'_>,
        output: &mut Output,
    ) {
        let Self { ends, overlay, old, new } = self;
        let mut history = prior.input(changes.key(key));
        // The rows at all ends; nothing unless there is one at each.
        let mut read = |overlay: &Overlay, rows: &mut Vec<u8>| {
            rows.clear();
            for (lane, end) in &*ends {
                let lane = lane.to_be_bytes();
                let found = Cell::new(false);
                let mut take = |entry: &[u8], _| {
                    if entry[..LANE] == lane {
                        let value = split(entry, LANE).1;
                        rows.extend_from_slice(&length(value));
                        rows.extend_from_slice(value);
                        found.set(true);
                    }
                    ControlFlow::Break(())
                };
                if *end == End::Last {
                    let below = match fault::armed(Fault::LastIsNull) {
                        true => [lane[0], lane[1] + 1, 0],
                        false => [lane[0], lane[1], NULL_LAST],
                    };
                    overlay.visit_back(changes, history.as_deref_mut(), &below, &mut take);
                }
                if !found.get() {
                    overlay.visit(changes, history.as_deref_mut(), &lane, take);
                }
                if !found.get() {
                    rows.clear();
                    return;
                }
            }
        };
        overlay.clear();
        read(overlay, old);
        for slice in changes.time_slices(key) {
            let time = changes.change(slice.start).time;
            overlay.apply(changes, slice);
            read(overlay, new);
            if old != new {
                if !old.is_empty() {
                    output.push(old, time, -1);
                }
                if !new.is_empty() {
                    output.push(new, time, 1);
                }
                std::mem::swap(old, new);
            }
        }
    }
}
