//! Aggregates that add up: COUNT, SUM, AVG, and over rows that only come MIN and MAX.
//!
//! A group's accumulators are the value of its row in the output's trace. No input is kept: a change
//! is added to what the accumulators were, whatever its sign.

use alluvium_trace::memory::context;
use alluvium_trace::{Epoch, PageTime, Spine};
use arrow::datatypes::SchemaRef;

use super::accumulator::{Accumulators, Inputs, State};
use crate::answers::rows_and_errors;
use crate::arrangement::{Gathered, Passing};
use crate::codec::KeyCodec;
use crate::delta::DeltaStream;
use crate::fold::{Answer, Before, Changes, Logic, fold};
use crate::layout::{Layout, assemble};
use crate::map::ErrorRows;
use crate::pieces::Piece;

/// What the groups of `input` come to, and the errors of groups whose total has no result.
///
/// The columns of `input` are `keys` key columns, then the inputs of the accumulators in order; the
/// output's are the keys and one column per aggregate, as `schema` says. `names` tell the aggregates
/// apart in errors.
pub(super) fn linear<'scope>(
    input: Passing<'scope, Epoch>,
    keys: KeyCodec,
    accumulators: Accumulators,
    schema: SchemaRef,
    names: Vec<String>,
) -> (DeltaStream<'scope, Epoch>, DeltaStream<'scope, Epoch>) {
    let first = keys.types().len();
    let columns: Vec<usize> = (first..input.layout.schema().fields().len()).collect();
    let key = input.layout.key_names();
    let logic = Linear {
        layout: input.layout,
        columns,
        inputs: Inputs::default(),
        state: accumulators.fresh(),
        accumulators: accumulators.clone(),
        before: Vec::new(),
        after: Vec::new(),
    };
    let (arranged, as_of) = (input.arranged, input.as_of);
    let context = context::current();
    let states =
        fold::<Epoch, _, Spine<Epoch>, _>(arranged, as_of, &context, "Aggregate", key, logic);
    drop(states.trace);
    let finish = Finish { keys, accumulators, schema, names };
    rows_and_errors(states.stream, &context, move |gathered| finish.finish(gathered))
}

/// Adds changes to accumulators.
struct Linear {
    layout: Layout,
    columns: Vec<usize>,
    inputs: Inputs,
    accumulators: Accumulators,
    state: State,
    before: Vec<u8>,
    after: Vec<u8>,
}

impl<T: PageTime> Logic<T> for Linear {
    fn prepare(&mut self, changes: &Changes<T>) {
        let columns = self
            .layout
            .decode(std::iter::empty(), changes.all_values(), &self.columns)
            .expect("a batch holds what its layout encoded");
        self.inputs = self.accumulators.inputs(&columns);
    }

    fn fold(
        &mut self,
        changes: &Changes<T>,
        key: usize,
        before: &mut Before<'_, T>,
        answer: &mut Answer<T>,
    ) {
        let mut present = before.only_output(changes.key(key), &mut self.before);
        if present {
            self.accumulators.decode(&self.before, &mut self.state);
        } else {
            self.state.clear();
        }
        for moment in changes.moments(key) {
            let time = changes.change(moment.start).time;
            for row in moment {
                self.accumulators.add(
                    &mut self.state,
                    &self.inputs,
                    row,
                    changes.change(row).weight,
                );
            }
            self.after.clear();
            let remains = self.state.rows() != 0;
            if remains {
                self.accumulators.encode(&self.state, &mut self.after);
            }
            if present != remains || self.before != self.after {
                if present {
                    answer.push(&self.before, time, -1);
                }
                if remains {
                    answer.push(&self.after, time, 1);
                }
            }
            std::mem::swap(&mut self.before, &mut self.after);
            present = remains;
        }
    }
}

/// Turns accumulators into results.
struct Finish {
    keys: KeyCodec,
    accumulators: Accumulators,
    schema: SchemaRef,
    names: Vec<String>,
}

impl Finish {
    fn finish(&self, gathered: &mut Gathered<Epoch>) -> Piece<Epoch> {
        let mut failures = Vec::new();
        let delta = gathered.finish(|groups, states| {
            let mut columns =
                self.keys.decode(groups.iter()).expect("a batch holds what its layout encoded");
            let results;
            (results, failures) = self.accumulators.finish(states.iter());
            columns.extend(results);
            assemble(self.schema.clone(), columns, states.len())
        });
        if failures.is_empty() {
            return Piece::from(delta);
        }
        let count = delta.len();
        let mut errors = ErrorRows::default();
        let mut failed = vec![false; count];
        for (row, aggregate, message) in &failures {
            if std::mem::replace(&mut failed[*row], true) {
                // One error is enough to have no answer.
                continue;
            }
            let key_columns: Vec<usize> = (0..self.keys.types().len()).collect();
            errors.push(
                &self.names[*aggregate],
                &delta.rows.project(&key_columns).expect("keys come first"),
                *row,
                message,
                *delta.time(*row),
                delta.weight(*row),
            );
        }
        let kept: Vec<u32> = (0..count as u32).filter(|&row| !failed[row as usize]).collect();
        Piece { rows: delta.take(&kept.into()), errors: Some(errors.finish()) }
    }
}
