//! GROUP BY inside of a recursion.
//!
//! The inputs of a group are kept, with the epochs and rounds of their changes. The accumulators of each round are those of
//! the round before with the rows that have come and gone. MIN and MAX are accumulated again in a round in which an input goes.
//! Accumulators that differ in their results are emitted.

use alluvium_trace::memory::StateContext;
use alluvium_trace::{Cursors, Epoch, Spine};
use arrow::datatypes::SchemaRef;
use timely::order::Product;

use super::Round;
use super::reduce::{Logic, reduce};
use crate::fault::{self, Fault};
use crate::movement::delta::{DeltaStream, EncodedDelta};
use crate::movement::exchange::exchange;
use crate::movement::fuel::Produced;
use crate::reductions::aggregate::accumulator::{Inputs, State};
use crate::reductions::aggregate::{Aggregate, linear};
use crate::rows::codec::{CodecError, Encoded};
use crate::rows::key_columns::KeyColumns;
use crate::rows::weight::{add, consolidate};
use crate::state::arrangement::arrange;

/// A GROUP BY inside of a recursion.
#[derive(Clone, Debug)]
pub struct Spec {
    key: KeyColumns,
    groups: linear::Spec,
}

impl Spec {
    /// `aggregates`, which are COUNT, SUM, AVG, MIN and MAX without DISTINCT, over rows of the schema `input`, grouped by the
    /// columns `keys`; `schema` names the keys and the results.
    ///
    /// Fails as [`aggregate::Spec::compile`](crate::reductions::aggregate::Spec::compile) does.
    pub fn compile(
        input: &SchemaRef,
        keys: &[usize],
        aggregates: &[Aggregate],
        schema: SchemaRef,
    ) -> Result<Self, CodecError> {
        let groups = linear::Spec::compile(input, keys, aggregates, schema)?;
        Ok(Self { key: KeyColumns::new(input, keys)?, groups })
    }
}

/// The results of the groups in each round, and the errors of groups whose total has no result.
///
/// Exchanges rows by group. `context` counts the inputs.
pub fn aggregate<'scope>(
    spec: &Spec,
    rows: DeltaStream<'scope, Round>,
    context: &StateContext,
) -> (DeltaStream<'scope, Round>, DeltaStream<'scope, Round>) {
    let groups = &spec.groups;
    let inputs = groups.inputs(&exchange(rows, &spec.key, context));
    let arranged =
        arrange::<Round, Spine<Round>>(inputs, groups.layout(), "ArrangeRounds", context);
    let logic = Groups {
        spec: groups.clone(),
        columns: groups.input_columns(),
        results: groups.results(),
        state: groups.accumulators().fresh(),
        inputs: Encoded::counted(context),
        updates: Vec::new(),
        epochs: Vec::new(),
        copies: Vec::new(),
        before: Encoded::counted(context),
        here: Encoded::counted(context),
        encoded: Vec::new(),
    };
    reduce("AggregateRounds", arranged, logic, context)
}

/// A change of an input: its round, the number of the input, and its epoch.
type Change = (u64, usize, Epoch);

/// Aggregates groups.
struct Groups {
    spec: linear::Spec,
    columns: Vec<usize>,
    results: linear::Results,
    state: State,
    /// The inputs of the present group.
    inputs: Encoded,
    /// Their changes.
    updates: Vec<(Change, i64)>,
    /// The epochs of these, each once.
    epochs: Vec<Epoch>,
    /// How often each input is there, in the present round and epoch.
    copies: Vec<i64>,
    /// The accumulators of each round at the epoch before; nothing for a round without rows.
    before: Encoded,
    /// The same at the present epoch.
    here: Encoded,
    encoded: Vec<u8>,
}

impl Logic for Groups {
    fn differences(
        &mut self,
        history: &mut Cursors<Round>,
        floor: Epoch,
        emit: &mut dyn FnMut(Round, &[u8], i64),
    ) -> usize {
        self.read(history, floor);
        let columns =
            self.spec.layout().decode(std::iter::empty(), self.inputs.iter(), &self.columns);
        let inputs = self.spec.accumulators().inputs(&columns);
        self.before.clear();
        for place in 0..self.epochs.len() {
            self.accumulate(&inputs, self.epochs[place]);
            self.emit_differences(self.epochs[place], emit);
            std::mem::swap(&mut self.before, &mut self.here);
        }
        self.inputs.bytes().len() + self.updates.len() * size_of::<(Change, i64)>()
    }

    fn decode(&self, encoded: &mut EncodedDelta<Round>) -> Produced<Round> {
        self.results.of(encoded)
    }
}

impl Groups {
    /// Reads the changes of a group, in the order of their rounds.
    fn read(&mut self, history: &mut Cursors<Round>, floor: Epoch) {
        let Self { inputs, updates, epochs, .. } = self;
        inputs.clear();
        updates.clear();
        while let Some(input) = history.val() {
            let number = inputs.len();
            inputs.push(input);
            history.updates(|time, weight| {
                updates.push(((time.inner, number, time.outer.max(floor)), weight));
            });
            history.step_val();
        }
        consolidate(updates);
        epochs.clear();
        epochs.extend(updates.iter().map(|((_, _, epoch), _)| *epoch));
        epochs.sort_unstable();
        epochs.dedup();
    }

    /// Accumulates the inputs of each round at an epoch.
    fn accumulate(&mut self, inputs: &Inputs, epoch: Epoch) {
        let accumulators = self.spec.accumulators();
        let Self { updates, copies, here, state, encoded, .. } = self;
        copies.clear();
        copies.resize(self.inputs.len(), 0);
        here.clear();
        state.clear();
        for round in updates.chunk_by(is_of_round) {
            let mut is_stale = false;
            for ((_, input, of), weight) in round {
                if *of > epoch {
                    continue;
                }
                let before = copies[*input].max(0);
                copies[*input] = add(copies[*input], *weight);
                let more = copies[*input].max(0) - before;
                if more < 0 && !accumulators.can_subtract() {
                    is_stale = !fault::armed(Fault::KeepExtreme);
                } else if more != 0 && !is_stale {
                    accumulators.add(state, inputs, *input, more);
                }
            }
            if is_stale {
                state.clear();
                let there = copies.iter().enumerate().filter(|(_, copies)| **copies > 0);
                there.for_each(|(input, copies)| accumulators.add(state, inputs, input, *copies));
            }
            encoded.clear();
            if state.rows() != 0 {
                accumulators.encode_shown(state, encoded);
            }
            here.push(encoded);
        }
    }

    /// Emits how the accumulators of each round change at an epoch.
    fn emit_differences(&self, epoch: Epoch, emit: &mut dyn FnMut(Round, &[u8], i64)) {
        let rounds = self.updates.chunk_by(is_of_round).map(|round| round[0].0.0);
        for (place, round) in rounds.enumerate() {
            let last = place.checked_sub(1);
            let mut terms = [
                (accumulated(&self.here, Some(place)), 1),
                (accumulated(&self.here, last), -1),
                (accumulated(&self.before, Some(place)), -1),
                (accumulated(&self.before, last), 1),
            ];
            if fault::armed(Fault::KeepOldRound) {
                terms[1].1 = 0;
            }
            for term in 1..terms.len() {
                let (others, rest) = terms.split_at_mut(term);
                if let Some(same) = others.iter_mut().find(|other| other.0 == rest[0].0) {
                    same.1 += std::mem::take(&mut rest[0].1);
                }
            }
            for (accumulated, weight) in terms {
                if weight != 0 && !accumulated.is_empty() {
                    emit(Product::new(epoch, round), accumulated, weight);
                }
            }
        }
    }
}

fn is_of_round(one: &(Change, i64), other: &(Change, i64)) -> bool {
    one.0.0 == other.0.0
}

/// The accumulators of the round at a place; nothing if there is none.
fn accumulated(rounds: &Encoded, place: Option<usize>) -> &[u8] {
    place.filter(|place| *place < rounds.len()).map_or(&[], |place| rounds.get(place))
}
