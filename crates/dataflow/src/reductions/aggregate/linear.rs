//! Aggregates that are sums: COUNT, SUM, AVG, and over append-only rows MIN and MAX.
//!
//! The accumulators of a group are the value of its row in the output's trace. No input is kept: a change, an insertion or a
//! deletion, is added to the accumulators.

use alluvium_trace::memory::StateContext;
use alluvium_trace::{Epoch, PageTime, Spine};
use arrow::datatypes::SchemaRef;

use super::Aggregate;
use super::accumulator::{Accumulators, Inputs, State};
use super::distinct_inputs::DistinctInputs;
use crate::map::ErrorRows;
use crate::movement::combine::{self, combine};
use crate::movement::delta::{DeltaStream, EncodedDelta};
use crate::movement::exchange::exchange;
use crate::movement::fuel::Produced;
use crate::reductions::reduce::{Changes, Logic, Output, Prior, Unkept, reduce_decoded};
use crate::rows::codec::{CodecError, KeyCodec};
use crate::rows::columns::Columns;
use crate::rows::key_columns::KeyColumns;
use crate::rows::layout::{Layout, all_columns, assemble, encoded_here, types_of};
use crate::state::arrangement::encode;

/// Accumulated aggregates and where their inputs come from.
#[derive(Clone, Debug)]
pub(crate) struct Spec {
    source: Source,
    /// The keys, then the inputs of the aggregates.
    layout: Layout,
    /// The group of a row of these columns.
    group: KeyColumns,
    combined: combine::Spec,
    accumulators: Accumulators,
    keys: KeyCodec,
    /// The keys, then the results.
    schema: SchemaRef,
}

#[derive(Clone, Debug)]
enum Source {
    /// Each row once.
    Rows(Columns),
    /// Some inputs once per distinct value.
    Distinct(DistinctInputs),
}

impl Spec {
    /// `aggregates` over rows of the schema `input`, grouped by the columns `keys`; `schema` names the keys and the results.
    pub(crate) fn compile(
        input: &SchemaRef,
        keys: &[usize],
        aggregates: &[Aggregate],
        schema: SchemaRef,
    ) -> Result<Self, CodecError> {
        let (source, aggregates) = if aggregates.iter().any(|aggregate| aggregate.distinct) {
            let inputs = DistinctInputs::compile(input, keys, aggregates)?;
            let aggregates = inputs.aggregates().to_vec();
            (Source::Distinct(inputs), aggregates)
        } else {
            let inputs = aggregates.iter().filter_map(|aggregate| aggregate.input);
            let columns = keys.iter().copied().chain(inputs).collect();
            (Source::Rows(Columns::new(input, columns)), aggregates.to_vec())
        };
        let (rows, combined) = match &source {
            Source::Rows(columns) => {
                (columns.schema().clone(), combine::Spec::of_columns(columns.clone())?)
            }
            Source::Distinct(inputs) => {
                (inputs.schema().clone(), combine::Spec::compile(inputs.schema())?)
            }
        };
        let types = types_of(&rows, &all_columns(&rows)[keys.len()..]);
        let grouped: Vec<usize> = (0..keys.len()).collect();
        Ok(Self {
            source,
            group: KeyColumns::new(&rows, &grouped)?,
            combined,
            layout: Layout::grouped(rows, &grouped)?,
            accumulators: Accumulators::new(&aggregates, &types)?,
            keys: KeyCodec::new(&types_of(input, keys))?,
            schema,
        })
    }

    /// The columns of the keys and of the inputs.
    ///
    /// # Panics
    /// If an input counts once per distinct value.
    pub(crate) fn inputs<'scope, T: PageTime>(
        &self,
        rows: &DeltaStream<'scope, T>,
    ) -> DeltaStream<'scope, T> {
        match &self.source {
            Source::Rows(columns) => columns.of(rows),
            Source::Distinct(_) => unreachable!("distinct values are not read from rows"),
        }
    }

    /// How keys and inputs are stored.
    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The inputs among the columns of the layout.
    pub(crate) fn input_columns(&self) -> Vec<usize> {
        all_columns(self.layout.schema())[self.keys.types().len()..].to_vec()
    }

    pub(crate) fn accumulators(&self) -> &Accumulators {
        &self.accumulators
    }

    /// The step that turns accumulators into results.
    pub(crate) fn results(&self) -> Results {
        Results {
            keys: self.keys.clone(),
            accumulators: self.accumulators.clone(),
            schema: self.schema.clone(),
        }
    }
}

/// The results of the groups, and the errors of groups whose total has no result. Exchanges rows by group, few of them where
/// inputs repeat, unless they are where their group is.
pub(super) fn linear<'scope>(
    spec: &Spec,
    stream: &DeltaStream<'scope, Epoch>,
    is_grouped: bool,
    context: &StateContext,
) -> (DeltaStream<'scope, Epoch>, DeltaStream<'scope, Epoch>) {
    let (rows, is_there) = match &spec.source {
        Source::Rows(_) => (stream.clone(), is_grouped),
        Source::Distinct(inputs) => (inputs.of(stream, context), false),
    };
    let mut rows = combine(&spec.combined, rows, context);
    if !is_there {
        rows = exchange(rows, &spec.group, context);
    }
    let layout = &spec.layout;
    let logic = Linear {
        columns: spec.input_columns(),
        layout: layout.clone(),
        inputs: Inputs::default(),
        state: spec.accumulators.fresh(),
        accumulators: spec.accumulators.clone(),
        before: Vec::new(),
        after: Vec::new(),
    };
    let key = layout.key_names();
    let encode = encode(layout, context);
    let (changes, results) = (Unkept { rows, encode }, spec.results());
    let decode = move |encoded: &mut _| results.of(encoded);
    reduce_decoded::<Spine<Epoch>, _>(changes, "Aggregate", key, context, logic, decode)
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

impl Logic for Linear {
    fn prepare(&mut self, changes: &Changes) {
        let columns = self.layout.decode(std::iter::empty(), changes.all_values(), &self.columns);
        self.inputs = self.accumulators.inputs(&columns);
    }

    fn reduce(
        &mut self,
        changes: &Changes,
        key: usize,
        prior: &mut Prior<'_>,
        output: &mut Output,
    ) {
        let mut present = prior.only_output(changes.key(key), &mut self.before);
        if present {
            self.accumulators.decode(&self.before, &mut self.state);
        } else {
            self.state.clear();
        }
        for slice in changes.time_slices(key) {
            let time = changes.change(slice.start).time;
            for row in slice {
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
                    output.push(&self.before, time, -1);
                }
                if remains {
                    output.push(&self.after, time, 1);
                }
            }
            std::mem::swap(&mut self.before, &mut self.after);
            present = remains;
        }
    }
}

/// Turns accumulators into results.
pub(crate) struct Results {
    keys: KeyCodec,
    accumulators: Accumulators,
    schema: SchemaRef,
}

impl Results {
    /// The rows of keys and accumulators, and the errors of groups without a result. Empties `encoded`.
    pub(crate) fn of<T: PageTime>(&self, encoded: &mut EncodedDelta<T>) -> Produced<T> {
        let mut failures = Vec::new();
        let delta = encoded.finish(|groups, states| {
            let mut columns = encoded_here(self.keys.decode(groups.iter()));
            let results;
            (results, failures) = self.accumulators.finish(states.iter());
            columns.extend(results);
            assemble(self.schema.clone(), columns, states.len())
        });
        if failures.is_empty() {
            return Produced::from(delta);
        }
        let count = delta.len();
        let width = self.keys.types().len();
        let key_columns: Vec<usize> = (0..width).collect();
        let mut errors = ErrorRows::default();
        let mut failed = vec![false; count];
        for (row, aggregate, message) in &failures {
            if std::mem::replace(&mut failed[*row], true) {
                // A group has one error, however many of its aggregates fail.
                continue;
            }
            errors.push(
                self.schema.field(width + aggregate).name(),
                &delta.rows.project(&key_columns).expect("the keys are columns"),
                *row,
                message,
                *delta.time(*row),
                delta.weight(*row),
            );
        }
        let kept: Vec<u32> = (0..count as u32).filter(|&row| !failed[row as usize]).collect();
        Produced { rows: delta.take(&kept.into()), errors: Some(errors.finish()) }
    }
}
