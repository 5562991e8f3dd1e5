//! From a plan to a physical plan.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::mem;
use std::sync::Arc;

use alluvium_dataflow::KeyColumns;
use alluvium_dataflow::rows::codec::ValueCodec;
use alluvium_dataflow::rows::layout::{Layout, all_columns, types_of};
use alluvium_dataflow::state::errors;
use alluvium_sql_syntax::error::{Error, Result};
use alluvium_trace::BoundColumn;
use arrow::datatypes::SchemaRef;

use super::pruning::PrunedBy;
use super::{Arranged, CompileResult, Operator, OperatorId, Place, State};
use crate::node::{RowMap, Side};
use crate::{Fingerprint, IncrementalPlan, Index, LowerBound, Retention, Shared, SharedIndex};

/// A plan over shared indexes, ready to be rendered.
#[derive(Debug)]
pub struct Compiled {
    /// The plan that the dataflow computes.
    pub plan: Arc<PhysicalPlan>,
    /// The indexes it reads, each once, and before those that are made of it.
    pub indexes: Vec<CompiledIndex>,
    /// The incremental plan over the indexes.
    pub(crate) shared: IncrementalPlan,
}

/// An index, ready to be rendered.
#[derive(Debug)]
pub struct CompiledIndex {
    /// Identifies it: equal rows under equal keys.
    pub fingerprint: Fingerprint,
    /// The plan that its dataflow computes.
    pub plan: Arc<PhysicalPlan>,
    /// The indexes it reads itself.
    pub parts: Vec<Fingerprint>,
    /// Whether the plan reports the errors of its rows; those inside a view are reported by the view.
    pub reported: bool,
}

/// The use of a plan's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Their changes are sent to a sink.
    Changes,
    /// They are kept as well, to be read.
    Rows,
}

/// How a plan runs. All workers render the same.
#[derive(Debug)]
pub struct PhysicalPlan {
    pub(super) steps: Vec<Step>,
    pub(super) root: OperatorId,
    pub(super) kept: Option<KeptRows>,
    pub(super) errors: (errors::Spec, State),
    relations: Vec<String>,
    streams: Vec<String>,
    places: HashMap<Fingerprint, Vec<Place>>,
    leasts: Vec<LowerBound>,
    pruned: BTreeSet<String>,
}

/// An operator of a plan and its surroundings.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) operator: Box<dyn Operator>,
    /// The node of the plan that it is part of.
    pub(super) node: Arc<NodeLabel>,
    /// The identity of the operator's own state.
    pub(super) state: Option<State>,
    /// How that is pruned.
    pub(super) pruning: Option<PrunedBy>,
    /// Whether errors are reported here. Inside a view, the view reports them.
    pub(super) reports: bool,
}

/// A node of a plan, for people.
#[derive(Debug, Default)]
pub(super) struct NodeLabel {
    /// Its operation, as EXPLAIN VIEW writes it.
    pub(super) name: String,
    /// The fingerprint of its rows, in hexadecimal digits.
    pub(super) fingerprint: String,
}

impl NodeLabel {
    fn of(plan: &IncrementalPlan, rows: Fingerprint) -> Self {
        let mut name = String::new();
        // A string takes any text.
        let _ = plan.node.as_node().explain(&plan.schema, &mut name);
        Self { name, fingerprint: rows.to_string() }
    }
}

/// How the rows of a plan are kept.
#[derive(Debug)]
pub(super) struct KeptRows {
    /// The worker of a row; `None` if it stays where it is.
    pub(super) key: Option<KeyColumns>,
    pub(super) layout: Layout,
    pub(super) name: &'static str,
    pub(super) state: State,
}

impl KeptRows {
    /// The rows of a view, where they are, sorted by its shortest unique key so that they can be found by it. Without such a
    /// key they are in no order.
    fn of(plan: &IncrementalPlan) -> CompileResult<Self> {
        let key = plan.properties.shortest_key().unwrap_or_default();
        let (layout, key) = match Layout::keyed(plan.schema.clone(), key) {
            Ok(layout) if !key.is_empty() => (layout, key),
            // There is none, or it has a column of a type that does not sort.
            _ => (Layout::rows(plan.schema.clone())?, &[][..]),
        };
        let state =
            State::of("rows".to_owned(), "rows", plan.fingerprint(), key, &Retention::default());
        Ok(Self { key: None, layout, name: "Contents", state })
    }
}

impl PhysicalPlan {
    /// The tables and materialized views it reads, but not those of its indexes.
    pub fn relations(&self) -> &[String] {
        &self.relations
    }

    /// The tables it reads that do not keep their rows.
    pub fn streams(&self) -> &[String] {
        &self.streams
    }

    /// The bounds of its state that are the least of several waterlines.
    pub fn leasts(&self) -> &[LowerBound] {
        &self.leasts
    }

    /// Identifies the meaning of its rows, and so of all of its state.
    pub fn fingerprint(&self) -> Fingerprint {
        self.errors.1.fingerprint
    }

    /// All state of the dataflow.
    pub fn states(&self) -> impl Iterator<Item = &State> {
        let of_operators = self.places.values().flatten().filter_map(|place| match place {
            Place::Own(state) => Some(state),
            Place::Index(_) | Place::Table(_) => None,
        });
        let of_steps = self.steps.iter().filter_map(|step| step.state.as_ref());
        of_operators.chain(of_steps).chain(self.kept()).chain([&self.errors.1])
    }

    /// The state that keeps the rows, if they are kept.
    pub(crate) fn kept(&self) -> Option<&State> {
        self.kept.as_ref().map(|kept| &kept.state)
    }

    /// Whether the state with this id is pruned.
    pub(crate) fn is_pruned(&self, id: &str) -> bool {
        self.pruned.contains(id)
    }

    /// Where the operators of a node with these rows keep or find their state.
    pub(crate) fn places(&self, rows: Fingerprint) -> &[Place] {
        self.places.get(&rows).map_or(&[], Vec::as_slice)
    }
}

/// Compiles a plan and the indexes that it shares with others. Of those with all columns of a relation it uses the ones that
/// are `there`.
///
/// # Errors
/// If a column has a type that the operator it goes through cannot store, compare or compute.
pub fn compile(
    plan: &IncrementalPlan,
    output: Output,
    there: &dyn Fn(Fingerprint) -> bool,
) -> Result<Compiled> {
    compile_all(plan, output, there).map_err(|error| Error::new(error.to_string(), None))
}

fn compile_all(
    plan: &IncrementalPlan,
    output: Output,
    there: &dyn Fn(Fingerprint) -> bool,
) -> CompileResult<Compiled> {
    let Shared { plan, indexes } = plan.clone().share(there);
    let kept = match output {
        Output::Changes => None,
        Output::Rows => Some(KeptRows::of(&plan)?),
    };
    let physical = Compiler::compile(&plan, kept)?;
    let indexes = indexes
        .iter()
        .map(|SharedIndex { index, reported, .. }| compile_shared(index, *reported))
        .collect::<CompileResult<_>>()?;
    Ok(Compiled { plan: Arc::new(physical), indexes, shared: plan })
}

/// Compiles an index.
///
/// # Errors
/// If a column has a type that cannot be stored, or one that rows cannot be sorted by.
pub fn compile_index(index: &Index) -> Result<CompiledIndex> {
    compile_shared(index, false).map_err(|error| Error::new(error.to_string(), None))
}

fn compile_shared(index: &Index, reported: bool) -> CompileResult<CompiledIndex> {
    let (rows, keys, fingerprint) = (&index.rows, &index.keys, index.fingerprint());
    let kept = KeptRows {
        key: Some(KeyColumns::new(&rows.schema, keys)?),
        layout: Layout::keyed(rows.schema.clone(), keys)?,
        name: "Index",
        state: State { id: "rows".to_owned(), fingerprint },
    };
    let plan = Arc::new(Compiler::compile(rows, Some(kept))?);
    Ok(CompiledIndex { fingerprint, plan, parts: index.parts(), reported })
}

/// A physical plan in the making.
#[derive(Default)]
pub(crate) struct Compiler {
    steps: Vec<Step>,
    /// The operators that are built once for all equal nodes, by rows and by whether they report errors.
    shared: HashMap<(Fingerprint, bool), OperatorId>,
    /// How many states of each kind there are.
    numbers: BTreeMap<&'static str, usize>,
    places: HashMap<Fingerprint, Vec<Place>>,
    /// The ids of the states that are pruned.
    pruned: BTreeSet<String>,
    streams: Vec<String>,
    /// The bounds of states that are the least of several waterlines, each once.
    leasts: Vec<LowerBound>,
    /// The number of views around the present node.
    depth_in_views: usize,
    /// The present node.
    node: Arc<NodeLabel>,
}

impl Compiler {
    fn compile(plan: &IncrementalPlan, kept: Option<KeptRows>) -> CompileResult<PhysicalPlan> {
        let mut compiler = Self::default();
        let root = compiler.rows(plan)?;
        let state = State::of(
            "errors".to_owned(),
            "errors",
            plan.fingerprint(),
            &[],
            &Retention::default(),
        );
        let mut relations = Vec::new();
        plan.visit_relations(&mut |relation| relations.push(relation.to_owned()));
        Ok(PhysicalPlan {
            steps: compiler.steps,
            root,
            kept,
            errors: (errors::Spec::compile()?, state),
            relations,
            streams: compiler.streams,
            places: compiler.places,
            leasts: compiler.leasts,
            pruned: compiler.pruned,
        })
    }

    /// The operator of a plan's rows, which is the same for equal plans.
    pub(crate) fn rows(&mut self, plan: &IncrementalPlan) -> CompileResult<OperatorId> {
        ValueCodec::new(&types_of(&plan.schema, &all_columns(&plan.schema)))?;
        self.passing_rows(plan)
    }

    /// As [`Compiler::rows`], for rows that no operator above stores as they are.
    pub(crate) fn passing_rows(&mut self, plan: &IncrementalPlan) -> CompileResult<OperatorId> {
        let node = plan.node.as_node();
        let (rows, reports) = (plan.fingerprint(), self.reports(0));
        let is_shared = node.is_shared();
        if is_shared && let Some(&built) = self.shared.get(&(rows, reports)) {
            return Ok(built);
        }
        let outer = mem::replace(&mut self.node, Arc::new(NodeLabel::of(plan, rows)));
        let id = node.compile(plan, self);
        self.node = outer;
        let id = id?;
        if is_shared {
            self.shared.insert((rows, reports), id);
        }
        Ok(id)
    }

    /// As [`Compiler::rows`], under the names and with the NULLs of `schema`.
    pub(crate) fn rows_as(
        &mut self,
        plan: &IncrementalPlan,
        schema: &SchemaRef,
    ) -> CompileResult<OperatorId> {
        let rows = self.rows(plan)?;
        if plan.schema == *schema {
            return Ok(rows);
        }
        Ok(self.add(RowMap::relabel(rows, &plan.schema, schema.clone())))
    }

    /// The rows of a plan inside of some more views, which report its errors themselves.
    pub(crate) fn rows_in_views(
        &mut self,
        views: usize,
        plan: &IncrementalPlan,
    ) -> CompileResult<OperatorId> {
        self.depth_in_views += views;
        let rows = self.rows(plan);
        self.depth_in_views -= views;
        rows
    }

    /// Whether the plan reports errors of a node inside of some more views.
    pub(crate) fn reports(&self, views: usize) -> bool {
        self.depth_in_views + views == 0
    }

    /// Both sides of a join, sorted by the pairs of columns `on`, and put where equal keys meet. `broadcast` is the side
    /// that goes to all workers, if there are no keys and one does.
    pub(crate) fn sides(
        &mut self,
        (left, right): (&IncrementalPlan, &IncrementalPlan),
        on: &[(usize, usize)],
        broadcast: Option<Side>,
        retention: &(Retention, Retention),
        id: &str,
    ) -> CompileResult<(Arranged, Arranged)> {
        let (left_id, right_id) = (format!("{id}.left"), format!("{id}.right"));
        if let Some(side) = broadcast {
            return Ok((
                Arranged::without_keys(left, side == Side::Left, &retention.0, &left_id, self)?,
                Arranged::without_keys(right, side == Side::Right, &retention.1, &right_id, self)?,
            ));
        }
        let (left_keys, right_keys): (Vec<usize>, Vec<usize>) = on.iter().copied().unzip();
        Ok((
            Arranged::by_keys(left, &left_keys, &retention.0, &left_id, self)?,
            Arranged::by_keys(right, &right_keys, &retention.1, &right_id, self)?,
        ))
    }

    /// As [`Compiler::sides`], without other columns than those of the inputs.
    pub(crate) fn whole_sides(
        &mut self,
        (left, right): (&IncrementalPlan, &IncrementalPlan),
        on: &[(usize, usize)],
        retention: &(Retention, Retention),
        id: &str,
    ) -> CompileResult<(Arranged, Arranged)> {
        let (left_keys, right_keys): (Vec<usize>, Vec<usize>) = on.iter().copied().unzip();
        Ok((
            Arranged::whole(left, &left_keys, &retention.0, &format!("{id}.left"), self)?,
            Arranged::whole(right, &right_keys, &retention.1, &format!("{id}.right"), self)?,
        ))
    }

    /// The id of the next state of this kind.
    pub(crate) fn next_id(&mut self, kind: &'static str) -> String {
        let number = self.numbers.entry(kind).or_default();
        *number += 1;
        format!("{kind}.{number}")
    }

    /// Notes that the plan reads a table that does not keep its rows.
    pub(crate) fn read_stream(&mut self, relation: &str) {
        if !self.streams.iter().any(|known| known == relation) {
            self.streams.push(relation.to_owned());
        }
    }

    /// Adds an operator without state of its own.
    pub(crate) fn add(&mut self, operator: impl Operator + 'static) -> OperatorId {
        self.push(Box::new(operator), None)
    }

    /// Adds the operator of `plan`, which finds state in `places` and keeps more of it if it has an `id`.
    pub(crate) fn add_stateful(
        &mut self,
        plan: &IncrementalPlan,
        operator: impl Operator + 'static,
        mut places: Vec<Place>,
        id: Option<String>,
    ) -> OperatorId {
        let state =
            id.map(|id| State::of(id, "operator", plan.fingerprint(), &[], &Retention::default()));
        places.extend(state.clone().map(Place::Own));
        self.keep(plan, places);
        self.push(Box::new(operator), state)
    }

    /// Says where the operators of `plan` find state, or keep it.
    pub(crate) fn keep(&mut self, plan: &IncrementalPlan, places: Vec<Place>) {
        self.places.insert(plan.fingerprint(), places);
    }

    /// Has the state that the last operator keeps itself pruned. All of it is sorted by keys of this layout, of which the column
    /// of `retention` is one.
    pub(crate) fn prune(&mut self, retention: &Retention, layout: &Layout) {
        let column = retention.column().and_then(|column| layout.bound_column(column));
        self.prune_by(retention, column);
    }

    /// As [`Compiler::prune`], of state whose rows have the column of `retention` in this place.
    pub(crate) fn prune_by(&mut self, retention: &Retention, column: Option<BoundColumn>) {
        let state = self.steps.last().and_then(|step| step.state.as_ref());
        let Some(id) = state.map(|state| state.id.clone()) else { return };
        let pruning = self.pruning(&id, retention, column);
        if let Some(step) = self.steps.last_mut() {
            step.pruning = pruning;
        }
    }

    /// How the state with this id is pruned, whose rows have the column of `retention` in this place.
    pub(crate) fn pruning(
        &mut self,
        id: &str,
        retention: &Retention,
        column: Option<BoundColumn>,
    ) -> Option<PrunedBy> {
        let pruning = PrunedBy::new(retention, column?)?;
        self.pruned.insert(id.to_owned());
        let bound = pruning.bound();
        if bound.terms().len() > 1 && !self.leasts.contains(bound) {
            self.leasts.push(bound.clone());
        }
        Some(pruning)
    }

    fn push(&mut self, operator: Box<dyn Operator>, state: Option<State>) -> OperatorId {
        let (node, reports) = (self.node.clone(), self.reports(0));
        self.steps.push(Step { operator, node, state, pruning: None, reports });
        OperatorId(self.steps.len() - 1)
    }
}
