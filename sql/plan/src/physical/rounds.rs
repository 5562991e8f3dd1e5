//! The inside of a recursion, over rows that differ by round.
//!
//! The bodies of a recursion are compiled to operators of their own: those of the nodes above the rows that recur. All other rows are
//! the same in all rounds. They are computed outside and [enter](alluvium_dataflow::recursion), as streams or as arrangements.

use std::fmt::Debug;

use alluvium_dataflow::KeyColumns;
use alluvium_dataflow::movement::delta::DeltaStream;
use alluvium_dataflow::movement::exchange::exchange;
use alluvium_dataflow::recursion::{KeptInput, Round, Rounds, Side, enter, replay};
use alluvium_dataflow::rows::layout::{Layout, all_columns};
use alluvium_dataflow::state::arrangement::Kept;
use alluvium_trace::Epoch;
use alluvium_trace::memory::StateContext;
use arrow::datatypes::SchemaRef;

use super::{Arranged, CompileResult, Compiler, Place, Rendering, State};
use crate::node::RoundMap;
use crate::{IncrementalPlan, Retention};

/// The place of an operator among those of a recursion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RoundId(usize);

/// An operator inside of a recursion. Building it on a worker cannot fail.
pub(crate) trait RoundOperator: Debug + Send + Sync {
    /// Builds the operator and returns its rows. Its inputs have been built.
    fn render<'inner>(
        &self,
        rendering: &mut RoundRendering<'_, 'inner, '_>,
    ) -> DeltaStream<'inner, Round>;
}

/// The inside of a recursion, and the rows that enter.
#[derive(Debug)]
pub(crate) struct RoundPlan {
    operators: Vec<Box<dyn RoundOperator>>,
    /// The operators of the rows that recur.
    roots: Vec<RoundId>,
    streams: Vec<Arranged>,
    arranged: Vec<Arranged>,
}

/// The inside of a recursion in the making.
pub(crate) struct RoundCompiler<'a> {
    compiler: &'a mut Compiler,
    /// The names of the relations that recur.
    members: Vec<String>,
    /// The state of the recursion.
    id: String,
    operators: Vec<Box<dyn RoundOperator>>,
    streams: Vec<Arranged>,
    arranged: Vec<Arranged>,
    states: usize,
}

impl RoundPlan {
    /// Compiles the bodies of a recursion with the state `id`, each under the names and with the NULLs of its schema. `members` are
    /// the names of the relations whose bodies they are.
    pub(crate) fn compile<'a>(
        members: Vec<String>,
        bodies: impl Iterator<Item = (&'a IncrementalPlan, &'a SchemaRef)>,
        id: &str,
        compiler: &mut Compiler,
    ) -> CompileResult<Self> {
        let (operators, streams, arranged) = Default::default();
        let id = id.to_owned();
        let mut rounds =
            RoundCompiler { compiler, members, id, operators, streams, arranged, states: 0 };
        let roots = bodies.map(|(body, schema)| rounds.rows_as(body, schema));
        let roots = roots.collect::<CompileResult<_>>()?;
        let RoundCompiler { operators, streams, arranged, .. } = rounds;
        Ok(Self { operators, roots, streams, arranged })
    }

    /// Where the rows are kept that enter as streams.
    pub(crate) fn places(&self) -> impl Iterator<Item = Place> {
        self.streams.iter().map(Arranged::place)
    }
}

impl RoundCompiler<'_> {
    /// The operator of a plan's rows, which are those of each round.
    pub(crate) fn rows(&mut self, plan: &IncrementalPlan) -> CompileResult<RoundId> {
        match plan.node.as_node().in_rounds() {
            Some(node) if plan.recurs() => node.compile_in_rounds(plan, self),
            _ => {
                let id = self.next_id();
                self.streams.push(Arranged::without_keys(
                    plan,
                    false,
                    &Retention::default(),
                    &id,
                    self.compiler,
                )?);
                Ok(self.add(Entering(self.streams.len() - 1)))
            }
        }
    }

    /// As [`RoundCompiler::rows`], under the names and with the NULLs of `schema`.
    pub(crate) fn rows_as(
        &mut self,
        plan: &IncrementalPlan,
        schema: &SchemaRef,
    ) -> CompileResult<RoundId> {
        let rows = self.rows(plan)?;
        if plan.schema == *schema {
            return Ok(rows);
        }
        Ok(self.add(RoundMap::relabel(rows, &plan.schema, schema.clone())))
    }

    /// The rows of a plan, sorted by `keys` and on the worker of their keys; on all workers if they are `broadcast`, and where
    /// they are if others are.
    pub(crate) fn side(
        &mut self,
        plan: &IncrementalPlan,
        keys: &[usize],
        placement: SidePlacement,
    ) -> CompileResult<RoundSide> {
        let id = self.next_id();
        let everything = Retention::default();
        if !plan.recurs() {
            let arranged = match placement {
                SidePlacement::Key => {
                    Arranged::by_keys(plan, keys, &everything, &id, self.compiler)?
                }
                SidePlacement::All => {
                    Arranged::without_keys(plan, true, &everything, &id, self.compiler)?
                }
                SidePlacement::Stay => {
                    Arranged::without_keys(plan, false, &everything, &id, self.compiler)?
                }
            };
            let (schema, columns) = (arranged.schema.clone(), arranged.columns.clone());
            let place = arranged.place();
            self.arranged.push(arranged);
            let source = SideSource::Entering(self.arranged.len() - 1);
            return Ok(RoundSide { source, schema, columns, place });
        }
        let rows = self.rows(plan)?;
        let layout = Layout::keyed(plan.schema.clone(), keys)?;
        let key = match placement {
            SidePlacement::Key => Some(KeyColumns::new(&plan.schema, keys)?),
            SidePlacement::All | SidePlacement::Stay => None,
        };
        let state = State::of(id, "rounds", plan.fingerprint(), keys, &everything);
        let place = Place::Own(state.clone());
        let source = SideSource::Own(Box::new(OwnSide { rows, key, layout, state }));
        let columns = all_columns(&plan.schema);
        Ok(RoundSide { source, schema: plan.schema.clone(), columns, place })
    }

    /// The number of a relation that recurs.
    ///
    /// # Panics
    /// If it does not.
    pub(crate) fn member(&self, name: &str) -> usize {
        let place = self.members.iter().position(|member| member == name);
        place.expect("rows that recur are those of a relation that does")
    }

    /// The state of a node of this plan, by `keys`.
    pub(crate) fn state(&mut self, plan: &IncrementalPlan, keys: &[usize]) -> State {
        let id = self.next_id();
        let state = State::of(id, "rounds", plan.fingerprint(), keys, &Retention::default());
        self.keep(plan, vec![Place::Own(state.clone())]);
        state
    }

    /// Says where a node of this plan keeps its rows.
    pub(crate) fn keep(&mut self, plan: &IncrementalPlan, places: Vec<Place>) {
        self.compiler.keep(plan, places);
    }

    /// Whether errors are reported here.
    pub(crate) fn reports(&self) -> bool {
        self.compiler.reports(0)
    }

    /// Adds an operator.
    pub(crate) fn add(&mut self, operator: impl RoundOperator + 'static) -> RoundId {
        self.operators.push(Box::new(operator));
        RoundId(self.operators.len() - 1)
    }

    /// The id of the next state of the recursion.
    fn next_id(&mut self) -> String {
        self.states += 1;
        format!("{}.{}", self.id, self.states)
    }
}

/// On which workers the rows of a side of a join are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SidePlacement {
    /// On that of their key.
    Key,
    /// On all of them.
    All,
    /// On any.
    Stay,
}

/// A side of a join inside of a recursion.
#[derive(Debug)]
pub(crate) struct RoundSide {
    source: SideSource,
    /// The columns of the arranged rows.
    pub(crate) schema: SchemaRef,
    /// The columns of the plan among them.
    pub(crate) columns: Vec<usize>,
    /// Where the rows are kept.
    pub(crate) place: Place,
}

#[derive(Debug)]
enum SideSource {
    /// The entering rows with this number.
    Entering(usize),
    /// Rows that differ by round.
    Own(Box<OwnSide>),
}

#[derive(Debug)]
struct OwnSide {
    rows: RoundId,
    /// The key by which rows are exchanged; `None` if they stay.
    key: Option<KeyColumns>,
    layout: Layout,
    state: State,
}

impl RoundSide {
    /// The arrangement, on a worker.
    pub(crate) fn render<'outer, 'inner>(
        &self,
        rendering: &RoundRendering<'outer, 'inner, '_>,
    ) -> Side<'outer, 'inner> {
        match &self.source {
            SideSource::Entering(number) => Side::Entered(rendering.arranged[*number].clone()),
            SideSource::Own(own) => {
                let context = rendering.context_of(&own.state);
                let rows = rendering.rows(own.rows);
                let rows = match &own.key {
                    Some(key) => exchange(rows, key, &context),
                    None => rows,
                };
                Side::arrange(rows, &own.layout, &context)
            }
        }
    }
}

/// Rows that are the same in all rounds, by their number.
#[derive(Debug)]
struct Entering(usize);

impl RoundOperator for Entering {
    fn render<'inner>(
        &self,
        rendering: &mut RoundRendering<'_, 'inner, '_>,
    ) -> DeltaStream<'inner, Round> {
        rendering.entered[self.0].clone()
    }
}

/// The rows that enter a recursion, on a worker.
pub(crate) struct Inputs<'outer> {
    streams: Vec<DeltaStream<'outer, Epoch>>,
    arranged: Vec<Kept<'outer>>,
    /// Where the rows of the streams are kept.
    pub(crate) kept: Vec<KeptInput>,
}

impl RoundPlan {
    /// Builds the rows that enter.
    pub(crate) fn inputs<'outer>(&self, rendering: &mut Rendering<'outer, '_>) -> Inputs<'outer> {
        let context = rendering.context();
        let streams = self.streams.iter().map(|rows| replay(rows.render(rendering), &context));
        let (streams, kept) = streams.unzip();
        let arranged = self.arranged.iter().map(|rows| rows.render(rendering)).collect();
        Inputs { streams, arranged, kept }
    }

    /// Builds the bodies over the rows of each relation in the round before. Returns their rows, and the errors.
    pub(crate) fn render<'inner>(
        &self,
        inputs: Inputs<'_>,
        before: Vec<DeltaStream<'inner, Round>>,
        rounds: Rounds<'inner>,
        outside: &Rendering<'_, '_>,
    ) -> (Vec<DeltaStream<'inner, Round>>, Vec<DeltaStream<'inner, Round>>) {
        let entered = inputs.streams.into_iter().map(|rows| enter(rows, rounds)).collect();
        let mut rendering = RoundRendering {
            rounds,
            before,
            entered,
            arranged: inputs.arranged,
            rows: Vec::with_capacity(self.operators.len()),
            errors: Vec::new(),
            outside,
        };
        for operator in &self.operators {
            let rows = operator.render(&mut rendering);
            rendering.rows.push(rows);
        }
        (self.roots.iter().map(|root| rendering.rows(*root)).collect(), rendering.errors)
    }
}

/// The inside of a recursion in the making, on a worker.
pub(crate) struct RoundRendering<'outer, 'inner, 'a> {
    rounds: Rounds<'inner>,
    before: Vec<DeltaStream<'inner, Round>>,
    entered: Vec<DeltaStream<'inner, Round>>,
    arranged: Vec<Kept<'outer>>,
    /// The rows of the operators built so far.
    rows: Vec<DeltaStream<'inner, Round>>,
    errors: Vec<DeltaStream<'inner, Round>>,
    outside: &'a Rendering<'a, 'a>,
}

impl<'inner> RoundRendering<'_, 'inner, '_> {
    /// The scope of the rounds.
    pub(crate) fn rounds(&self) -> Rounds<'inner> {
        self.rounds
    }

    /// The rows of a relation in the round before, by its number among those that recur.
    pub(crate) fn before(&self, member: usize) -> DeltaStream<'inner, Round> {
        self.before[member].clone()
    }

    /// The rows of an operator that has been built.
    pub(crate) fn rows(&self, operator: RoundId) -> DeltaStream<'inner, Round> {
        self.rows[operator.0].clone()
    }

    /// The context of operators without state.
    pub(crate) fn context(&self) -> StateContext {
        self.outside.context()
    }

    /// The context of a state.
    pub(crate) fn context_of(&self, state: &State) -> StateContext {
        self.outside.context_of(state)
    }

    /// Adds errors to those of the view.
    pub(crate) fn report(&mut self, errors: DeltaStream<'inner, Round>) {
        self.errors.push(errors);
    }
}
