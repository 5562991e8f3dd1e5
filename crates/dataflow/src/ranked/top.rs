//! The first rows of each group: LIMIT, DISTINCT ON, `ROW_NUMBER() <= k` and its relatives.
//!
//! Of a group no more is read than the rows that come out and the first one that does not; a change behind
//! that one is not looked at. What is put out is the difference between the rows that came out before and
//! those that do now, so that a number that shifts rewrites the rows it shifts and no others.

use std::cmp::Ordering;
use std::ops::ControlFlow;
use std::sync::Arc;

use alluvium_trace::{Batch, Cursors, Epoch, Nothing, PageTime, Spine};
use arrow::array::{ArrayRef, UInt64Array};
use arrow::compute::SortOptions;
use arrow::datatypes::SchemaRef;
use timely::container::NoopBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::OutputBuilderSession;
use timely::dataflow::operators::generic::operator::Operator;

use super::entry::{EntryEncoder, push_entries, split};
use crate::arrangement::{Gathered, arrange_encoded};
use crate::codec::{CodecError, Encoded, KeyCodec};
use crate::delta::{Delta, DeltaStream};
use crate::exchange::exchange;
use crate::fault::{self, Fault};
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
/// input's, and the number, a `UInt64`, if it is asked for.
pub fn top<'scope>(
    rows: DeltaStream<'scope, Epoch>,
    input: &SchemaRef,
    keys: &[usize],
    order: &[(usize, SortOptions)],
    which: Top,
    output: SchemaRef,
) -> Result<DeltaStream<'scope, Epoch>, CodecError> {
    let mut rows = rows;
    if keys.is_empty() && which.take.is_some() && rows.scope().peers() > 1 {
        // The first rows of all are among the first rows of each worker: one of them need not keep all.
        let every = all_columns(input);
        rows = exchange(rows, &every, KeyCodec::new(&types_of(input, &every))?);
        let first = Top { skip: 0, take: Some(which.last()), numbered: false, ..which };
        rows = on_workers(rows, input, keys, order, first, input.clone())?;
    }
    let rows = exchange(rows, keys, KeyCodec::new(&types_of(input, keys))?);
    on_workers(rows, input, keys, order, which, output)
}

/// As [`top`], of the rows that each worker has.
fn on_workers<'scope>(
    rows: DeltaStream<'scope, Epoch>,
    input: &SchemaRef,
    keys: &[usize],
    order: &[(usize, SortOptions)],
    which: Top,
    output: SchemaRef,
) -> Result<DeltaStream<'scope, Epoch>, CodecError> {
    let layout = Layout::keyed(input.clone(), keys)?;
    let encoder = EntryEncoder::new(layout.clone(), order, Vec::new())?;
    let entries = arrange_encoded::<Epoch, Spine<Epoch>>(
        encoder.encode(rows),
        "ArrangeEntries",
        push_entries,
    );
    let logic = First {
        which,
        overlay: Overlay::default(),
        old: Selection::default(),
        new: Selection::default(),
        value: Vec::new(),
    };
    let answers = fold::<Epoch, _, Nothing<Epoch>, _>(entries, 0, "Top", logic);
    drop(answers.trace);
    Ok(answers.stream.unary(Pipeline, "Answers", move |_, _| {
        let mut gathered = Gathered::default();
        move |input,
                  output_session: &mut OutputBuilderSession<
                '_,
                Epoch,
                NoopBuilder<Delta<Epoch>>,
            >| {
                input.for_each(|capability, batches: &mut Vec<Batch<Epoch>>| {
                    let mut session = output_session.session_with_builder(&capability);
                    for batch in batches.drain(..) {
                        let mut cursor = batch.cursor();
                        while gathered.fill(&mut cursor, |time| time) {
                            let mut delta = gathered.finish(|groups, answers| {
                                let columns = decode(&layout, which.numbered, groups, answers);
                                assemble(output.clone(), columns, answers.len())
                            });
                            session.give_container(&mut delta);
                        }
                    }
                });
            }
    }))
}

/// The rows of answers, with their numbers if they have one.
fn decode(layout: &Layout, numbered: bool, groups: &Encoded, answers: &Encoded) -> Vec<ArrayRef> {
    let number = if numbered { NUMBER } else { 0 };
    let values = answers.iter().map(|answer| &answer[..answer.len() - number]);
    let mut columns = layout
        .decode(groups.iter(), values, &all_columns(layout.schema()))
        .expect("a batch holds what its layout encoded");
    if numbered {
        let numbers = answers.iter().map(|answer| {
            let bytes = answer[answer.len() - NUMBER..].try_into();
            u64::from_le_bytes(bytes.expect("a number has eight bytes"))
        });
        columns.push(Arc::new(UInt64Array::from_iter_values(numbers)));
    }
    columns
}

/// The bytes of a number at the end of an answer.
const NUMBER: usize = size_of::<u64>();

/// Keeps the first rows of groups up to date.
struct First {
    which: Top,
    overlay: Overlay,
    old: Selection,
    new: Selection,
    value: Vec<u8>,
}

/// The entries of a group that come out, in order.
#[derive(Default)]
struct Selection {
    entries: Encoded,
    /// Which entry, its number (zero if it is not asked for), and how often it comes out.
    items: Vec<(usize, u64, i64)>,
    /// The first entry that does not come out because enough others do.
    rejected: Option<Vec<u8>>,
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
        self.old.select(self.which, &self.overlay, changes, history.as_deref_mut());
        for moment in changes.moments(key) {
            let time = changes.change(moment.start).time;
            // Rows of a moment are in order: if the first is behind what comes out, all are.
            let behind = match &self.old.rejected {
                Some(rejected) => changes.value(moment.start) >= &rejected[..],
                None => false,
            };
            self.overlay.apply(changes, moment);
            if behind {
                continue;
            }
            self.new.select(self.which, &self.overlay, changes, history.as_deref_mut());
            let numbered = self.which.numbered;
            let value = &mut self.value;
            difference(&self.old, &self.new, |entry, number, weight| {
                value.clear();
                value.extend_from_slice(split(entry, 0).1);
                if numbered {
                    value.extend_from_slice(&number.to_le_bytes());
                }
                answer.push(value, time, weight);
            });
            std::mem::swap(&mut self.old, &mut self.new);
        }
    }
}

impl Selection {
    /// Selects of what the group held, with the overlay laid over it.
    fn select<T: PageTime>(
        &mut self,
        which: Top,
        overlay: &Overlay,
        changes: &Changes<T>,
        history: Option<&mut Cursors<T>>,
    ) {
        self.entries.clear();
        self.items.clear();
        let mut rejected = self.rejected.take().unwrap_or_default();
        let mut full = false;
        let last = which.last();
        // How many rows, and how many different orders, have been passed.
        let (mut rows, mut peers) = (0_u64, 0_u64);
        // The number of those equal in order to the last entry.
        let mut rank = 0_u64;
        let mut order: Vec<u8> = Vec::new();
        overlay.visit(changes, history, &[], |entry, weight| {
            let copies = weight.unsigned_abs();
            if which.numbering != Numbering::Row {
                let this = split(entry, 0).0;
                if rows == 0 || order != this {
                    order.clear();
                    order.extend_from_slice(this);
                    peers += 1;
                    rank = if which.numbering == Numbering::Rank { rows + 1 } else { peers };
                }
            }
            let first = if which.numbering == Numbering::Row { rows + 1 } else { rank };
            if first > last {
                rejected.clear();
                rejected.extend_from_slice(entry);
                full = true;
                return ControlFlow::Break(());
            }
            let at = self.entries.len();
            let items = self.items.len();
            if which.numbering == Numbering::Row {
                let from = first.max(which.skip + 1);
                let to = last.min(rows.saturating_add(copies));
                if which.numbered {
                    self.items.extend((from..=to).map(|number| (at, number, 1)));
                } else if from <= to {
                    self.items.push((at, 0, (to - from) as i64 + 1));
                }
            } else if rank > which.skip {
                self.items.push((at, if which.numbered { rank } else { 0 }, weight));
            }
            if self.items.len() > items {
                self.entries.push(entry);
            }
            rows = rows.saturating_add(copies);
            ControlFlow::Continue(())
        });
        self.rejected = full.then_some(rejected);
    }

    fn item(&self, at: usize) -> Option<(&[u8], u64, i64)> {
        self.items.get(at).map(|&(entry, number, weight)| (self.entries.get(entry), number, weight))
    }
}

/// Calls `give` with what has to change for `old` to become `new`.
fn difference(old: &Selection, new: &Selection, mut give: impl FnMut(&[u8], u64, i64)) {
    if fault::armed(Fault::KeepNumbers) && old.entries.len() == new.entries.len() {
        return;
    }
    let (mut left, mut right) = (0, 0);
    loop {
        let (before, after) = (old.item(left), new.item(right));
        let order = match (before, after) {
            (None, None) => return,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(before), Some(after)) => (before.0, before.1).cmp(&(after.0, after.1)),
        };
        match (before, after) {
            (Some(before), Some(after)) if order.is_eq() => {
                if before.2 != after.2 {
                    give(before.0, before.1, after.2 - before.2);
                }
            }
            (Some(before), _) if order.is_lt() => give(before.0, before.1, -before.2),
            (_, Some(after)) => give(after.0, after.1, after.2),
            (_, None) => {}
        }
        left += usize::from(order.is_le());
        right += usize::from(order.is_ge());
    }
}
