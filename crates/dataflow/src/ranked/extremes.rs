//! The first rows of several lanes, side by side.
//!
//! ```text
//! entry   lane (2, big-endian) | as in `entry`
//! row     per lane: length (4, little-endian) | value
//! ```

use std::ops::ControlFlow;

use alluvium_trace::memory::StateContext;
use alluvium_trace::{Epoch, NullTrace, Spine};
use arrow::array::ArrayRef;
use arrow::compute::SortOptions;
use arrow::datatypes::SchemaRef;
use timely::dataflow::operators::Concatenate;

use super::entry::{EntryEncoder, length, push_entries, read_length, split};
use crate::arrangement::arrange_encoded;
use crate::codec::{CodecError, Encoded};
use crate::decoded::decoded;
use crate::delta::DeltaStream;
use crate::layout::{Layout, all_columns, assemble};
use crate::overlay::Overlay;
use crate::reduce::{Changes, Logic, Output, Prior, reduce};

/// The columns of a lane and their order.
#[derive(Clone, Debug)]
pub struct Lane {
    /// The columns.
    pub schema: SchemaRef,
    /// The order of the rows. Rows that are equal in it are ordered by their bytes.
    pub order: Vec<(usize, SortOptions)>,
}

/// The lanes of groups.
#[derive(Clone, Debug)]
pub struct Spec {
    lanes: Vec<EntryEncoder>,
    /// The number of key columns.
    keys: usize,
    schema: SchemaRef,
}

impl Spec {
    /// At least one lane. The first `keys` columns of a lane name the group and are of the same types in every lane.
    /// `schema` names the keys, then the other columns of each lane.
    pub fn compile(lanes: &[Lane], keys: usize, schema: SchemaRef) -> Result<Self, CodecError> {
        let groups: Vec<usize> = (0..keys).collect();
        let lanes = lanes
            .iter()
            .zip(0u16..)
            .map(|(lane, number)| {
                let layout = Layout::grouped(lane.schema.clone(), &groups)?;
                EntryEncoder::compile(layout, &lane.order, number.to_be_bytes().to_vec())
            })
            .collect::<Result<Vec<_>, CodecError>>()?;
        Ok(Self { lanes, keys, schema })
    }
}

/// The first row of each lane side by side, for groups with a row in every lane.
///
/// `lanes` has the rows of each lane, each on the worker of its group.
pub fn extremes<'scope>(
    spec: &Spec,
    lanes: Vec<DeltaStream<'scope, Epoch>>,
    context: &StateContext,
) -> DeltaStream<'scope, Epoch> {
    let scope = lanes[0].scope();
    let layouts: Vec<Layout> = spec.lanes.iter().map(|lane| lane.layout().clone()).collect();
    let entries =
        spec.lanes.iter().zip(lanes).map(|(lane, rows)| lane.clone().encode(rows, context));
    let entries = scope.concatenate(entries);
    let key = layouts[0].key_names();
    let entries = arrange_encoded::<Epoch, Spine<Epoch>>(
        entries,
        "ArrangeEntries",
        key.clone(),
        context,
        push_entries,
    );
    let logic = Extremes {
        lanes: layouts.len(),
        overlay: Overlay::default(),
        old: Vec::new(),
        new: Vec::new(),
    };
    let first_rows = reduce::<_, NullTrace<Epoch>, _>(entries, "Extremes", key, context, logic);
    let (keys, schema) = (spec.keys, spec.schema.clone());
    decoded(first_rows.stream, context, move |encoded| {
        encoded.finish(|groups, rows| {
            let columns = decode(&layouts, keys, groups, rows);
            assemble(schema.clone(), columns, rows.len())
        })
    })
}

/// The columns of encoded rows.
fn decode(layouts: &[Layout], keys: usize, groups: &Encoded, rows: &Encoded) -> Vec<ArrayRef> {
    let mut columns = Vec::new();
    let mut rest: Vec<&[u8]> = rows.iter().collect();
    let mut values = Vec::with_capacity(rows.len());
    for (lane, layout) in layouts.iter().enumerate() {
        values.clear();
        for row in &mut rest {
            let (value, others) = row[4..].split_at(read_length(&row[..4]));
            values.push(value);
            *row = others;
        }
        let mut wanted = all_columns(layout.schema());
        // All lanes have the same groups.
        wanted.drain(..if lane == 0 { 0 } else { keys });
        columns.extend(layout.decode(groups.iter(), values.iter().copied(), &wanted));
    }
    columns
}

/// The bytes of a lane's number.
const LANE: usize = size_of::<u16>();

/// Keeps the first rows of lanes up to date.
struct Extremes {
    lanes: usize,
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
        let Self { lanes, overlay, old, new } = self;
        let mut history = prior.input(changes.key(key));
        // The first rows of all lanes; nothing unless there is one in each.
        let mut first_rows = |overlay: &Overlay, rows: &mut Vec<u8>| {
            rows.clear();
            for lane in 0..*lanes as u16 {
                let lane = lane.to_be_bytes();
                let mut found = false;
                overlay.visit(changes, history.as_deref_mut(), &lane, |entry, _| {
                    if entry[..LANE] == lane {
                        let value = split(entry, LANE).1;
                        rows.extend_from_slice(&length(value));
                        rows.extend_from_slice(value);
                        found = true;
                    }
                    ControlFlow::Break(())
                });
                if !found {
                    rows.clear();
                    return;
                }
            }
        };
        overlay.clear();
        first_rows(overlay, old);
        for slice in changes.time_slices(key) {
            let time = changes.change(slice.start).time;
            overlay.apply(changes, slice);
            first_rows(overlay, new);
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
