//! The first rows of each group: LIMIT, DISTINCT ON, `ROW_NUMBER() <= k` and its relatives.
//!
//! Of a group only the selected rows and the first one that is not selected are read; a change after that one is ignored.
//! The output is the difference between the previous and the present selection, so a change rewrites only the rows whose
//! number shifts.

use std::sync::Arc;

use alluvium_trace::memory::StateContext;
use alluvium_trace::{Cursors, Epoch, NullTrace, Spine};
use arrow::array::{ArrayRef, UInt64Array};
use arrow::compute::SortOptions;
use arrow::datatypes::SchemaRef;

use super::append_only::AppendOnly;
use super::entry::{EntryEncoder, push_entries, split};
use super::pre_aggregation::{PreAggregation, pre_aggregate};
use super::selection::{Selection, difference};
use crate::movement::delta::{DeltaStream, EncodedDelta};
use crate::movement::exchange::{exchange, exchange_in_partitions, partition_of};
use crate::movement::fuel::Produced;
use crate::reductions::reduce::{Changes, Logic, Output, Prior, Unkept, reduce_decoded};
use crate::rows::codec::{CodecError, Encoded, has_maps};
use crate::rows::key_columns::KeyColumns;
use crate::rows::layout::{Layout, all_columns, assemble};
use crate::state::arrangement::arrange_encoded;
use crate::state::overlay::Overlay;
use crate::state::states::{self, Placement};

/// How the rows of a group are numbered, from one on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Numbering {
    /// Each row has a number of its own.
    Row,
    /// Rows equal in the order have the number of the first of them.
    Rank,
    /// Rows equal in the order have one number, and the next row has the next.
    DenseRank,
}

/// Which rows of a group are selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Top {
    /// How they are numbered.
    pub numbering: Numbering,
    /// The last number before the selected ones.
    pub skip: u64,
    /// How many numbers are selected; `None` for all that follow.
    pub take: Option<u64>,
    /// Whether the number is a column of the output.
    pub numbered: bool,
}

impl Top {
    /// The last selected number.
    pub fn last(&self) -> u64 {
        self.take.map_or(u64::MAX, |take| self.skip.saturating_add(take))
    }
}

/// A ranking: groups, their order, and the rows to return.
#[derive(Clone, Debug)]
pub struct Spec {
    pre_aggregation: Option<PreAggregation>,
    /// Without groups: selects of each partition first, of rows partitioned by all columns. There is one for each of the
    /// workers that the dataflow was first built for.
    local: Option<Stage>,
    stage: Stage,
}

/// One selection.
#[derive(Clone, Debug)]
struct Stage {
    /// The columns by which rows are exchanged.
    key: KeyColumns,
    entries: EntryEncoder,
    which: Top,
    /// Whether rows are never deleted, and the selection is all that has to be kept.
    append_only: bool,
    output: SchemaRef,
}

impl Spec {
    /// Ranks rows of the schema `input` within groups of equal columns `keys`, in `order`, and within that by the bytes of
    /// the row.
    ///
    /// `append_only`: rows are never deleted. `output` names the columns of the input, and the number, a `UInt64`, if `which`
    /// asks for it. Fails if a column cannot be a key or be stored.
    pub fn compile(
        input: &SchemaRef,
        keys: &[usize],
        order: &[(usize, SortOptions)],
        which: Top,
        append_only: bool,
        output: SchemaRef,
    ) -> Result<Self, CodecError> {
        let entries =
            || EntryEncoder::compile(Layout::keyed(input.clone(), keys)?, order, Vec::new());
        let stage = |key, which: Top, append_only: bool, output| {
            // Skipped rows would have to be kept as well.
            let append_only = append_only && which.skip == 0 && which.take.is_some();
            Ok::<_, CodecError>(Stage { key, entries: entries()?, which, append_only, output })
        };
        let first = append_only && which.last() == 1;
        let mut local = None;
        if keys.is_empty() && which.take.is_some() {
            let mut columns = all_columns(input);
            columns.retain(|&column| !has_maps(input.field(column).data_type()));
            let which = Top { skip: 0, take: Some(which.last()), numbered: false, ..which };
            let key = KeyColumns::new(input, &columns)?;
            local = Some(stage(key, which, append_only, input.clone())?);
        }
        Ok(Self {
            pre_aggregation: first
                .then(|| PreAggregation::compile(input, keys, order))
                .transpose()?,
            local,
            stage: stage(KeyColumns::new(input, keys)?, which, append_only, output)?,
        })
    }
}

/// The rows of each group that the spec selects. Exchanges rows by group.
pub fn top<'scope>(
    spec: &Spec,
    rows: DeltaStream<'scope, Epoch>,
    context: &StateContext,
) -> DeltaStream<'scope, Epoch> {
    let rows = match &spec.pre_aggregation {
        Some(pre_aggregation) => pre_aggregate(pre_aggregation, rows, context),
        None => rows,
    };
    let partitions = states::partitions(rows.scope().peers());
    match &spec.local {
        // The first rows of all are among the first rows of each partition, so that no worker has to keep all rows.
        Some(local) if partitions > 1 => {
            let rows = states::placed(Placement::Partition, || {
                let encoded = in_partitions(local, rows, partitions, context);
                select_entries(local, encoded, context)
            });
            // A selection changes by deletions too.
            select_of_groups(&Stage { append_only: false, ..spec.stage.clone() }, rows, context)
        }
        _ => select_of_groups(&spec.stage, rows, context),
    }
}

/// Exchanges rows by group and selects.
fn select_of_groups<'scope>(
    stage: &Stage,
    rows: DeltaStream<'scope, Epoch>,
    context: &StateContext,
) -> DeltaStream<'scope, Epoch> {
    let entries = stage.entries.clone();
    let entries = entries.encode(exchange(rows, &stage.key, context), context);
    select_entries(stage, entries, context)
}

/// Exchanges rows by partition. The groups of the entries are the numbers of the partitions.
fn in_partitions<'scope>(
    stage: &Stage,
    rows: DeltaStream<'scope, Epoch>,
    partitions: usize,
    context: &StateContext,
) -> DeltaStream<'scope, Epoch> {
    let (worker, workers) = (rows.scope().index(), rows.scope().peers());
    let rows = exchange_in_partitions(rows, &stage.key, partitions, context);
    let (key, mut keys) = (stage.key.clone(), Encoded::counted(context));
    stage.entries.clone().encode_under(rows, context, move |rows, groups| {
        if partitions == workers {
            (0..rows.num_rows()).for_each(|_| groups.push(&number_of(worker)));
            return;
        }
        keys.clear();
        key.encode(rows, &mut keys);
        keys.iter().for_each(|key| groups.push(&number_of(partition_of(key, partitions))));
    })
}

/// The number of a partition, as the key of its rows. There are not more partitions with rows than shards.
fn number_of(partition: usize) -> [u8; 1] {
    [partition as u8]
}

/// Selects of entries on each worker.
fn select_entries<'scope>(
    stage: &Stage,
    encoded: DeltaStream<'scope, Epoch>,
    context: &StateContext,
) -> DeltaStream<'scope, Epoch> {
    let Stage { entries, which, append_only, output, .. } = stage.clone();
    let layout = entries.layout().clone();
    let key = layout.key_names();
    let decode = move |encoded: &mut EncodedDelta<Epoch>| {
        Produced::from(encoded.finish(|groups, rows| {
            let columns = decode(&layout, which.numbered, append_only, groups, rows);
            assemble(output.clone(), columns, rows.len())
        }))
    };
    let rows = if append_only {
        let (name, logic) = ("AppendOnlyTop", AppendOnly::new(which, context));
        let changes = Unkept { rows: encoded, encode: push_entries };
        reduce_decoded::<Spine<Epoch>, _>(changes, name, key, context, logic, decode)
    } else {
        let entries = arrange_encoded::<Epoch, Spine<Epoch>>(
            encoded,
            "ArrangeEntries",
            key.clone(),
            context,
            push_entries,
        );
        let logic = First {
            which,
            overlay: Overlay::default(),
            old: Selection::new(context),
            new: Selection::new(context),
            value: Vec::new(),
        };
        reduce_decoded::<NullTrace<Epoch>, _>(entries, "Top", key, context, logic, decode)
    };
    rows.0
}

/// The columns of selected rows, which are values or `entries`, followed by their number if they are numbered.
fn decode(
    layout: &Layout,
    numbered: bool,
    entries: bool,
    groups: &Encoded,
    rows: &Encoded,
) -> Vec<ArrayRef> {
    let number = if numbered { NUMBER } else { 0 };
    let values = rows.iter().map(|row| {
        let row = &row[..row.len() - number];
        if entries { split(row, 0).1 } else { row }
    });
    let mut columns = layout.decode(groups.iter(), values, &all_columns(layout.schema()));
    if numbered {
        let numbers = rows.iter().map(|row| {
            let bytes = row[row.len() - NUMBER..].try_into();
            u64::from_be_bytes(bytes.expect("a number has eight bytes"))
        });
        columns.push(Arc::new(UInt64Array::from_iter_values(numbers)));
    }
    columns
}

/// The bytes of a number at the end of a selected row.
pub(super) const NUMBER: usize = size_of::<u64>();

/// Keeps the first rows of groups up to date.
struct First {
    which: Top,
    overlay: Overlay,
    old: Selection,
    new: Selection,
    value: Vec<u8>,
}

impl Logic for First {
    fn reduce(
        &mut self,
        changes: &Changes,
        key: usize,
        prior: &mut Prior<'_>,
        output: &mut Output,
    ) {
        let mut history = prior.input(changes.key(key));
        self.overlay.clear();
        select(&mut self.old, self.which, &self.overlay, changes, history.as_deref_mut());
        for slice in changes.time_slices(key) {
            let time = changes.change(slice.start).time;
            // Rows of a time slice are in order: if the first is past the selection, all are.
            let behind = match self.old.rejected() {
                Some(rejected) => changes.value(slice.start) >= rejected,
                None => false,
            };
            self.overlay.apply(changes, slice);
            if behind {
                continue;
            }
            select(&mut self.new, self.which, &self.overlay, changes, history.as_deref_mut());
            let numbered = self.which.numbered;
            let value = &mut self.value;
            difference(&self.old, &self.new, |entry, number, weight| {
                value.clear();
                value.extend_from_slice(split(entry, 0).1);
                if numbered {
                    value.extend_from_slice(&number.to_be_bytes());
                }
                output.push(value, time, weight);
            });
            std::mem::swap(&mut self.old, &mut self.new);
        }
    }
}

/// Selects from the history of a group with the overlay applied.
fn select(
    selection: &mut Selection,
    which: Top,
    overlay: &Overlay,
    changes: &Changes,
    history: Option<&mut Cursors<Epoch>>,
) {
    let mut selecting = selection.select(which);
    overlay.visit(changes, history, &[], |entry, weight| selecting.take(entry, weight));
}
