//! The rows of each round, from the changes that go around.
//!
//! Changes of a recursion go around until they cancel out. Here they are added up, so that only real differences pass on:
//! each row once, or with so many copies.

use std::sync::Arc;

use alluvium_trace::memory::StateContext;
use alluvium_trace::{Cursors, Epoch, Spine};
use arrow::datatypes::SchemaRef;
use timely::order::Product;

use super::Round;
use super::reduce::{Logic, reduce};
use crate::map::ErrorRows;
use crate::movement::delta::{DeltaStream, EncodedDelta};
use crate::movement::exchange::exchange_by_key;
use crate::movement::fuel::Produced;
use crate::rows::codec::CodecError;
use crate::rows::layout::{Layout, all_columns, assemble};
use crate::rows::weight::{add, consolidate};
use crate::state::arrangement::arrange;

/// The most copies of a row.
///
/// Where each round doubles the copies, their number would soon be larger than a weight can be.
const MOST_COPIES: i64 = i32::MAX as i64;

/// How rows settle.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Rows as keys.
    layout: Layout,
    is_distinct: bool,
    name: Arc<str>,
}

impl Spec {
    /// Rows of `schema`, each once if they are distinct. `name` is what recurs, for messages. Fails if a column cannot be
    /// stored, or not be compared where rows are distinct.
    pub fn compile(schema: SchemaRef, is_distinct: bool, name: &str) -> Result<Self, CodecError> {
        let layout = match is_distinct {
            true => Layout::distinct(schema)?,
            false => Layout::rows(schema)?,
        };
        Ok(Self { layout, is_distinct, name: name.into() })
    }

    /// How many copies of a row there are whose weights add up to `weight`.
    fn copies(&self, weight: i64) -> i64 {
        weight.clamp(0, if self.is_distinct { 1 } else { MOST_COPIES })
    }

    /// Whether there should be more.
    fn are_too_many(&self, weight: i64) -> bool {
        !self.is_distinct && weight > MOST_COPIES
    }
}

/// The rows of each round, and the rows of which there are too many copies as errors.
///
/// Exchanges rows by all columns.
pub fn settle<'scope>(
    spec: &Spec,
    rows: DeltaStream<'scope, Round>,
    context: &StateContext,
) -> (DeltaStream<'scope, Round>, DeltaStream<'scope, Round>) {
    let rows = exchange_by_key(rows, &spec.layout, context);
    let arranged = arrange::<Round, Spine<Round>>(rows, &spec.layout, "ArrangeRounds", context);
    reduce("Settle", arranged, Settle { spec: spec.clone(), grid: Grid::default() }, context)
}

/// The value of a row of which there are too many copies. One that is there has none.
const EXCESS: &[u8] = &[1];

/// Adds up the changes of rows.
struct Settle {
    spec: Spec,
    grid: Grid,
}

impl Logic for Settle {
    fn differences(
        &mut self,
        history: &mut Cursors<Round>,
        floor: Epoch,
        emit: &mut dyn FnMut(Round, &[u8], i64),
    ) -> usize {
        let Self { spec, grid } = self;
        grid.updates.clear();
        while history.val().is_some() {
            history.updates(|mut time, weight| {
                time.outer = time.outer.max(floor);
                grid.updates.push((time, weight));
            });
            history.step_val();
        }
        let read = grid.updates.len() * size_of::<Round>();
        grid.differences(spec, |time, copies, excess| {
            if copies != 0 {
                emit(time, &[], copies);
            }
            if excess != 0 {
                emit(time, EXCESS, excess);
            }
        });
        read
    }

    fn decode(&self, encoded: &mut EncodedDelta<Round>) -> Produced<Round> {
        let layout = &self.spec.layout;
        let is_excess: Vec<bool> =
            encoded.parts().1.iter().map(|value| !value.is_empty()).collect();
        let all = encoded.finish(|rows, _| {
            let no_values = std::iter::repeat_n(&[][..], rows.len());
            let columns = layout.decode(rows.iter(), no_values, &all_columns(layout.schema()));
            assemble(layout.schema().clone(), columns, rows.len())
        });
        if !is_excess.contains(&true) {
            return all.into();
        }
        let mut errors = ErrorRows::default();
        let message = format!(
            "the recursion makes more than {MOST_COPIES} copies of this row: UNION instead of UNION ALL makes each row once"
        );
        for row in (0..all.len()).filter(|row| is_excess[*row]) {
            let (time, weight) = (*all.time(row), all.weight(row));
            errors.push(&self.spec.name, &all.rows, row, &message, time, weight);
        }
        let kept: Vec<u32> =
            (0..all.len() as u32).filter(|row| !is_excess[*row as usize]).collect();
        Produced { rows: all.take(&kept.into()), errors: Some(errors.finish()) }
    }
}

/// The changes of one row by epoch and round.
#[derive(Default)]
struct Grid {
    updates: Vec<(Round, i64)>,
    rounds: Vec<u64>,
    /// For each round what has changed in it, up to the present epoch.
    sums: Vec<i64>,
    /// For each round how many copies it has more than the one before, at the epoch before; and the same of errors.
    before: Vec<(i64, i64)>,
}

impl Grid {
    /// Calls `visit` with the times at which the number of copies changes, by how much, and by how much it changes whether
    /// there should be more.
    fn differences(&mut self, spec: &Spec, mut visit: impl FnMut(Round, i64, i64)) {
        consolidate(&mut self.updates);
        self.rounds.clear();
        self.rounds.extend(self.updates.iter().map(|(time, _)| time.inner));
        self.rounds.sort_unstable();
        self.rounds.dedup();
        self.sums.clear();
        self.sums.resize(self.rounds.len(), 0);
        self.before.clear();
        self.before.resize(self.rounds.len(), (0, 0));
        // Updates are in the order of their epochs.
        for updates in self.updates.chunk_by(|one, other| one.0.outer == other.0.outer) {
            for (time, weight) in updates {
                if let Ok(place) = self.rounds.binary_search(&time.inner) {
                    self.sums[place] = add(self.sums[place], *weight);
                }
            }
            let (mut weight, mut last) = (0, (0, 0));
            for (place, round) in self.rounds.iter().enumerate() {
                weight = add(weight, self.sums[place]);
                let here = (spec.copies(weight), i64::from(spec.are_too_many(weight)));
                let more = (here.0 - last.0, here.1 - last.1);
                let before = std::mem::replace(&mut self.before[place], more);
                if more != before {
                    let time = Product::new(updates[0].0.outer, *round);
                    visit(time, more.0 - before.0, more.1 - before.1);
                }
                last = here;
            }
        }
    }
}
