//! The first rows of each group: LIMIT, DISTINCT ON, `ROW_NUMBER() <= k` and its relatives.
//!
//! Of a group no more is read than the rows that come out and the first one that does not; a change behind
//! that one is not looked at. What is put out is the difference between the rows that came out before and
//! those that do now, so that a number that shifts rewrites the rows it shifts and no others.

use std::sync::Arc;

use alluvium_trace::memory::context;
use alluvium_trace::{Cursors, Epoch, NullTrace, PageTime, Spine};
use arrow::array::{ArrayRef, UInt64Array};
use arrow::compute::SortOptions;
use arrow::datatypes::SchemaRef;

use super::entry::{EntryEncoder, push_entries, split};
use super::growing::Growing;
use super::selection::{Selection, difference};
use super::shortlist::shortlist;
use crate::arrangement::arrange_encoded;
use crate::codec::{CodecError, Encoded, KeyCodec, has_maps};
use crate::delta::DeltaStream;
use crate::exchange::exchange;
use crate::fold::{Answer, Before, Changes, Logic, fold};
use crate::layout::{Layout, all_columns, assemble, types_of};
use crate::overlay::Overlay;

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

/// Which rows of a group come out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Top {
    /// How they are numbered.
    pub numbering: Numbering,
    /// The last number that does not come out yet.
    pub skip: u64,
    /// How many numbers come out; `None` for all that follow.
    pub take: Option<u64>,
    /// Whether the number is put out.
    pub numbered: bool,
}

impl Top {
    /// The last number that comes out.
    pub fn last(&self) -> u64 {
        self.take.map_or(u64::MAX, |take| self.skip.saturating_add(take))
    }
}

/// The rows of each group of `rows`, whose columns are `input`, that `which` chooses.
///
/// Groups have equal columns `keys`, and are ordered by `order`; rows equal in that are ordered by the bytes
/// of the row. Exchanges rows by group. The columns that are put out are named by `output`: all of the
/// input's, and the number, a `UInt64`, if it is asked for. `append_only` says that rows only ever come: then no
/// more is kept than what comes out.
pub fn top<'scope>(
    rows: DeltaStream<'scope, Epoch>,
    input: &SchemaRef,
    keys: &[usize],
    order: &[(usize, SortOptions)],
    which: Top,
    append_only: bool,
    output: SchemaRef,
) -> Result<DeltaStream<'scope, Epoch>, CodecError> {
    let (mut rows, mut append_only) = (rows, append_only);
    if append_only && which.last() == 1 {
        rows = shortlist(rows, input, keys, order, &context::current())?;
    }
    if keys.is_empty() && which.take.is_some() && rows.scope().peers() > 1 {
        // The first rows of all are among the first rows of each worker: one of them need not keep all.
        let mut every = all_columns(input);
        every.retain(|column| !has_maps(input.field(*column).data_type()));
        rows = exchange(rows, &every, KeyCodec::new(&types_of(input, &every))?);
        let first = Top { skip: 0, take: Some(which.last()), numbered: false, ..which };
        rows = on_workers(rows, input, keys, order, first, append_only, input.clone())?;
        append_only = false;
    }
    let rows = exchange(rows, keys, KeyCodec::new(&types_of(input, keys))?);
    on_workers(rows, input, keys, order, which, append_only, output)
}

/// As [`top`], of the rows that each worker has.
fn on_workers<'scope>(
    rows: DeltaStream<'scope, Epoch>,
    input: &SchemaRef,
    keys: &[usize],
    order: &[(usize, SortOptions)],
    which: Top,
    append_only: bool,
    output: SchemaRef,
) -> Result<DeltaStream<'scope, Epoch>, CodecError> {
    let layout = Layout::keyed(input.clone(), keys)?;
    let encoder = EntryEncoder::new(layout.clone(), order, Vec::new())?;
    let context = context::current();
    let encoded = encoder.encode(rows, &context);
    let key = layout.key_names();
    // What is skipped would have to be kept as well.
    let append_only = append_only && which.skip == 0 && which.take.is_some();
    let answers = if append_only {
        let entries = arrange_encoded::<Epoch, NullTrace<Epoch>>(
            encoded,
            &context,
            "ArrangeEntries",
            key.clone(),
            push_entries,
        );
        let logic = Growing::new(which, &context);
        fold::<Epoch, _, Spine<Epoch>, _>(entries, 0, &context, "GrowingTop", key, logic).stream
    } else {
        let entries = arrange_encoded::<Epoch, Spine<Epoch>>(
            encoded,
            &context,
            "ArrangeEntries",
            key.clone(),
            push_entries,
        );
        let logic = First {
            which,
            overlay: Overlay::default(),
            old: Selection::new(&context),
            new: Selection::new(&context),
            value: Vec::new(),
        };
        fold::<Epoch, _, NullTrace<Epoch>, _>(entries, 0, &context, "Top", key, logic).stream
    };
    Ok(crate::answers::rows(answers, &context, move |gathered| {
        gathered.finish(|groups, answers| {
            let columns = decode(&layout, which.numbered, append_only, groups, answers);
            assemble(output.clone(), columns, answers.len())
        })
    }))
}

/// The rows of answers, which are values, or `entries`, with their numbers if they have one.
fn decode(
    layout: &Layout,
    numbered: bool,
    entries: bool,
    groups: &Encoded,
    answers: &Encoded,
) -> Vec<ArrayRef> {
    let number = if numbered { NUMBER } else { 0 };
    let values = answers.iter().map(|answer| {
        let answer = &answer[..answer.len() - number];
        if entries { split(answer, 0).1 } else { answer }
    });
    let mut columns = layout
        .decode(groups.iter(), values, &all_columns(layout.schema()))
        .expect("a batch holds what its layout encoded");
    if numbered {
        let numbers = answers.iter().map(|answer| {
            let bytes = answer[answer.len() - NUMBER..].try_into();
            u64::from_be_bytes(bytes.expect("a number has eight bytes"))
        });
        columns.push(Arc::new(UInt64Array::from_iter_values(numbers)));
    }
    columns
}

/// The bytes of a number at the end of an answer.
pub(super) const NUMBER: usize = size_of::<u64>();

/// Keeps the first rows of groups up to date.
struct First {
    which: Top,
    overlay: Overlay,
    old: Selection,
    new: Selection,
    value: Vec<u8>,
}

impl<T: PageTime> Logic<T> for First {
    fn fold(
        &mut self,
        changes: &Changes<T>,
        key: usize,
        before: &mut Before<'_, T>,
        answer: &mut Answer<T>,
    ) {
        let mut history = before.input(changes.key(key));
        self.overlay.clear();
        select(&mut self.old, self.which, &self.overlay, changes, history.as_deref_mut());
        for moment in changes.moments(key) {
            let time = changes.change(moment.start).time;
            // Rows of a moment are in order: if the first is behind what comes out, all are.
            let behind = match self.old.rejected() {
                Some(rejected) => changes.value(moment.start) >= rejected,
                None => false,
            };
            self.overlay.apply(changes, moment);
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
                answer.push(value, time, weight);
            });
            std::mem::swap(&mut self.old, &mut self.new);
        }
    }
}

/// Selects of what the group held, with the overlay laid over it.
fn select<T: PageTime>(
    selection: &mut Selection,
    which: Top,
    overlay: &Overlay,
    changes: &Changes<T>,
    history: Option<&mut Cursors<T>>,
) {
    let mut selecting = selection.select(which);
    overlay.visit(changes, history, &[], |entry, weight| selecting.take(entry, weight));
}
