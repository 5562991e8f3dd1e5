//! The first row of each of several orders, side by side.
//!
//! ```text
//! entry   lane (2, big-endian) | as in `entry`
//! answer  per lane: length (4, little-endian) | value
//! ```

use std::ops::ControlFlow;

use alluvium_trace::memory::context;
use alluvium_trace::{Epoch, NullTrace, PageTime, Spine};
use arrow::array::ArrayRef;
use arrow::compute::SortOptions;
use arrow::datatypes::SchemaRef;
use timely::dataflow::operators::Concatenate;

use super::entry::{EntryEncoder, length, push_entries, read_length, split};
use crate::answers;
use crate::arrangement::arrange_encoded;
use crate::codec::{CodecError, Encoded};
use crate::delta::DeltaStream;
use crate::fold::{Answer, Before, Changes, Logic, fold};
use crate::layout::{Layout, all_columns, assemble};
use crate::overlay::Overlay;

/// Rows in an order.
pub struct Lane<'scope> {
    /// The rows, each on the worker of its group.
    pub rows: DeltaStream<'scope, Epoch>,
    /// Their columns.
    pub schema: SchemaRef,
    /// What they are ordered by. Rows equal in all of it are ordered by their bytes.
    pub order: Vec<(usize, SortOptions)>,
}

/// The first row of each lane side by side, for groups with a row in every lane.
///
/// The first `keys` columns of a lane name the group and are of the same types in every lane. Puts out
/// the keys, then each lane's other columns, named by `schema`.
pub fn extremes<'scope>(
    lanes: Vec<Lane<'scope>>,
    keys: usize,
    schema: SchemaRef,
) -> Result<DeltaStream<'scope, Epoch>, CodecError> {
    let context = context::current();
    let groups: Vec<usize> = (0..keys).collect();
    let layouts = lanes
        .iter()
        .map(|lane| Layout::grouped(lane.schema.clone(), &groups))
        .collect::<Result<Vec<_>, _>>()?;
    let scope = lanes[0].rows.scope();
    let entries = lanes
        .into_iter()
        .zip(&layouts)
        .enumerate()
        .map(|(number, (lane, layout))| {
            let number = u16::try_from(number).expect("there are fewer lanes than columns");
            let prefix = number.to_be_bytes().to_vec();
            Ok(EntryEncoder::new(layout.clone(), &lane.order, prefix)?.encode(lane.rows, &context))
        })
        .collect::<Result<Vec<_>, CodecError>>()?;
    let entries = scope.concatenate(entries);
    let key = layouts[0].key_names();
    let entries = arrange_encoded::<Epoch, Spine<Epoch>>(
        entries,
        &context,
        "ArrangeEntries",
        key.clone(),
        push_entries,
    );
    let logic = Extremes {
        lanes: layouts.len(),
        overlay: Overlay::default(),
        old: Vec::new(),
        new: Vec::new(),
    };
    let first_rows =
        fold::<Epoch, _, NullTrace<Epoch>, _>(entries, 0, &context, "Extremes", key, logic);
    drop(first_rows.trace);
    Ok(answers::rows(first_rows.stream, &context, move |gathered| {
        gathered.finish(|groups, answers| {
            let columns = decode(&layouts, keys, groups, answers);
            assemble(schema.clone(), columns, answers.len())
        })
    }))
}

/// The columns of answers.
fn decode(layouts: &[Layout], keys: usize, groups: &Encoded, answers: &Encoded) -> Vec<ArrayRef> {
    let mut columns = Vec::new();
    let mut rest: Vec<&[u8]> = answers.iter().collect();
    let mut values = Vec::with_capacity(answers.len());
    for (lane, layout) in layouts.iter().enumerate() {
        values.clear();
        for answer in &mut rest {
            let (value, others) = answer[4..].split_at(read_length(&answer[..4]));
            values.push(value);
            *answer = others;
        }
        let mut wanted = all_columns(layout.schema());
        // All lanes have the same groups.
        wanted.drain(..if lane == 0 { 0 } else { keys });
        let decoded = layout.decode(groups.iter(), values.iter().copied(), &wanted);
        columns.extend(decoded.expect("a batch holds what its layout encoded"));
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

impl<T: PageTime> Logic<T> for Extremes {
    fn fold(
        &mut self,
        changes: &Changes<T>,
        key: usize,
        before: &mut Before<'_, T>,
        answer: &mut Answer<T>,
    ) {
        let Self { lanes, overlay, old, new } = self;
        let mut history = before.input(changes.key(key));
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
        for moment in changes.moments(key) {
            let time = changes.change(moment.start).time;
            overlay.apply(changes, moment);
            first_rows(overlay, new);
            if old != new {
                if !old.is_empty() {
                    answer.push(old, time, -1);
                }
                if !new.is_empty() {
                    answer.push(new, time, 1);
                }
                std::mem::swap(old, new);
            }
        }
    }
}
