//! DataFusion, set up for one query at a time.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use alluvium_sql::planner::{
    BoundedSimplifier, CrossJoinElimination, DisjointLists, EquijoinExtraction, ExactNumbers,
    FilterPushDown, IntervalsByLength, Microseconds, OneNan, OneZero, TextToInterval,
};
use alluvium_storage::Storage;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::common::DFSchema;
use datafusion::execution::context::SessionState;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::{Optimizer, OptimizerRule};
use datafusion::physical_expr::{PhysicalExpr, create_physical_expr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::SessionConfig;

use super::checked::CheckedArithmetic;
use super::conditions::ConditionsInTurn;
use super::deep::DeepExpressions;
use super::distinct_rows::DistinctRows;
use super::explain::measured::Measures;
use super::grouping_sets::HiddenGroups;
use super::interruptible::interruptible;
use super::key_order::KeyOrder;
use super::memory::QueryMemory;
use super::merge_joins::{self, MergeJoins};
use super::running::{Again, Running, wait};
use super::sequence::Sequences;
use super::slots::{Slots, Turns};
use super::spill::Spills;
use super::{Answer, Explanation, Plan, batch_size, explain, recursions, simple, windows};
use crate::changes::bytes_of;
use crate::error::Result;
use crate::poison::Poison;

/// Optimises and runs plans whose scans can be read.
pub(crate) struct QueryEngine {
    memory: Arc<QueryMemory>,
    slots: Arc<Slots>,
    /// For rows that there is no memory for.
    storage: Option<Arc<dyn Storage>>,
    /// Made when first needed: a program without queries starts without it.
    usual: OnceLock<Planning>,
    /// For [simple](simple::is_simple) plans.
    simple: OnceLock<Planning>,
    /// For plans that have run out of memory.
    merging: OnceLock<Planning>,
}

/// The most that a sort sets aside for its merges, in bytes.
const SORT_RESERVATION: usize = 10 << 20;

/// How many sorted files are merged at once, at most.
const MERGED: usize = 128;

/// The rules, functions and options for a plan, and its runtime.
#[derive(Clone)]
struct Planning {
    state: SessionState,
    task: Arc<TaskContext>,
    /// Whether operators may hold rows.
    holds: bool,
}

impl Planning {
    fn new(state: SessionState, holds: bool) -> Self {
        Self { task: Arc::new(TaskContext::from(&state)), state, holds }
    }

    fn physical(&self, plan: &Plan) -> Result<Arc<dyn ExecutionPlan>> {
        let (state, logical) = (&self.state, &plan.logical);
        Ok(wait(async {
            let optimized = match plan.is_optimized {
                true => Cow::Borrowed(logical),
                false => Cow::Owned(state.optimize(logical)?),
            };
            let logical = recursions::with_nulls(&optimized)?;
            state.query_planner().create_physical_plan(&logical, state).await
        })??)
    }

    /// The context that a plan runs in, with an account of its own if it needs one.
    fn task(&self, memory: &Arc<QueryMemory>) -> Arc<TaskContext> {
        if !self.holds {
            return self.task.clone();
        }
        let runtime = self.task.runtime_env();
        let runtime = RuntimeEnv { memory_pool: memory.account(), ..(*runtime).clone() };
        let (session, config) = (self.task.session_id(), self.task.session_config().clone());
        // Plans have their functions.
        let task = TaskContext::new(
            None,
            session,
            config,
            Default::default(),
            Default::default(),
            Default::default(),
            Default::default(),
            Arc::new(runtime),
        );
        Arc::new(task)
    }
}

/// Rows that count among those that queries hold, until it is dropped.
pub(crate) struct Held {
    memory: MemoryReservation,
}

impl Held {
    pub(super) fn new(memory: &Arc<dyn MemoryPool>) -> Self {
        Self { memory: MemoryConsumer::new("result").register(memory) }
    }

    /// Counts these rows. Fails if there is no room for them.
    pub(crate) fn add(&self, rows: &RecordBatch) -> Result<()> {
        Ok(self.memory.try_grow(bytes_of(rows))?)
    }
}

impl QueryEngine {
    /// An engine whose queries share memory of so many bytes and then `storage`, and of which `slots` compute at once.
    pub(crate) fn new(
        bytes: usize,
        storage: Option<Arc<dyn Storage>>,
        slots: usize,
        poison: &Arc<Poison>,
    ) -> Self {
        Self {
            memory: QueryMemory::new(bytes),
            slots: Slots::new(slots, poison.clone()),
            storage,
            usual: OnceLock::new(),
            simple: OnceLock::new(),
            merging: OnceLock::new(),
        }
    }

    /// Runs a plan. Its result counts among the rows that queries hold, until it is returned.
    pub(crate) fn run(self: &Arc<Self>, plan: Plan) -> Result<Answer> {
        let running = self.start(plan)?;
        let held = Held::new(running.memory());
        collect(running, |rows| held.add(rows))
    }

    /// Runs a plan whose result the engine itself needs, however large.
    pub(crate) fn run_all(self: &Arc<Self>, plan: Plan) -> Result<Answer> {
        collect(self.start(plan)?, |_| Ok(()))
    }

    /// Begins to run a plan, whose rows are computed as they are pulled.
    pub(crate) fn start(self: &Arc<Self>, plan: Plan) -> Result<Running> {
        self.start_with(plan, None, None)
    }

    /// As [`QueryEngine::start`]; the plan computes in its turns, unless it is of a point read.
    pub(crate) fn start_in_turns(self: &Arc<Self>, plan: Plan) -> Result<Running> {
        let turns = (!plan.is_optimized).then(|| self.slots.turns());
        self.start_with(plan, turns, None)
    }

    /// As [`QueryEngine::start`], of a plan that computes in its turns if it `takes_turns`; its operators are measured.
    pub(super) fn start_measured(
        self: &Arc<Self>,
        plan: Plan,
        takes_turns: bool,
        measures: &Measures,
    ) -> Result<Running> {
        let turns = takes_turns.then(|| self.slots.turns());
        self.start_with(plan, turns, Some(measures))
    }

    fn start_with(
        self: &Arc<Self>,
        plan: Plan,
        turns: Option<Arc<Turns>>,
        measures: Option<&Measures>,
    ) -> Result<Running> {
        let planning = self.planning(&plan.logical)?;
        let planned = planning.physical(&plan)?;
        let again = match merge_joins::has_mergeable(&planned)? {
            true => Some(Again { engine: self.clone(), plan, measures: measures.cloned() }),
            false => None,
        };
        let task = planning.task(&self.memory);
        let rows = execute(planned, &task, turns.clone(), measures)?;
        Ok(Running::new(rows, task.memory_pool().clone(), turns, again))
    }

    /// Begins to run a query whose rows are computed without operators.
    pub(super) fn start_rows(
        &self,
        schema: SchemaRef,
        rows: impl Iterator<Item = datafusion::error::Result<RecordBatch>> + Send + 'static,
    ) -> Running {
        let rows = RecordBatchStreamAdapter::new(schema, futures::stream::iter(rows));
        let memory = self.simple().task.memory_pool().clone();
        Running::new(Box::pin(rows), memory, None, None)
    }

    /// An expression of an optimised plan, over rows of these columns.
    pub(super) fn expression(
        &self,
        expression: &Expr,
        columns: &DFSchema,
    ) -> datafusion::error::Result<Arc<dyn PhysicalExpr>> {
        let properties = self.simple().state.execution_props();
        create_physical_expr(expression, columns, properties, &PhysicalPlanningContext::default())
    }

    /// As [`QueryEngine::start`], for a plan that has run out of memory: with joins that need less.
    pub(super) fn start_merging(
        &self,
        plan: &Plan,
        turns: Option<Arc<Turns>>,
        measures: Option<&Measures>,
    ) -> Result<SendableRecordBatchStream> {
        let merging = self.merging.get_or_init(|| self.make(MergeJoins::all()));
        let planning = self.sized(merging, &plan.logical)?;
        execute(planning.physical(plan)?, &planning.task(&self.memory), turns, measures)
    }

    /// The columns of the result of a plan.
    pub(super) fn columns(&self, plan: LogicalPlan) -> Result<SchemaRef> {
        Ok(self.planning(&plan)?.physical(&plan.into())?.schema())
    }

    /// The columns of the result of a plan, which may have open parameters with types.
    pub(super) fn described(&self, plan: LogicalPlan) -> Result<SchemaRef> {
        // Operators are chosen for values only.
        if plan.get_parameter_names()?.is_empty() {
            return self.columns(plan);
        }
        let Planning { state, .. } = &*self.planning(&plan)?;
        Ok(Arc::clone(state.optimize(&plan)?.schema().inner()))
    }

    /// Counts rows among those that queries hold.
    pub(super) fn hold(&self) -> Held {
        let memory: Arc<dyn MemoryPool> = self.memory.account();
        Held::new(&memory)
    }

    /// The memory of one more query.
    pub(crate) fn memory(&self) -> Arc<dyn MemoryPool> {
        self.memory.account()
    }

    /// The optimised plan, if the plan is [simple](simple::is_simple).
    pub(super) fn optimize_simple(&self, plan: LogicalPlan) -> Result<Option<LogicalPlan>> {
        match simple::is_simple(&plan)? {
            true => Ok(Some(self.simple().state.optimize(&plan)?)),
            false => Ok(None),
        }
    }

    /// The operators of a plan.
    pub(super) fn explain(&self, plan: LogicalPlan) -> Result<Explanation> {
        Ok(explain::query::explain(&self.planning(&plan)?.physical(&plan.into())?))
    }

    /// The rules, functions and options for a plan.
    fn planning(&self, plan: &LogicalPlan) -> Result<Cow<'_, Planning>> {
        let planning = match simple::is_simple(plan)? {
            true => self.simple(),
            false => self.usual(),
        };
        self.sized(planning, plan)
    }

    /// The same with the size of batches that a plan needs.
    fn sized<'a>(&self, planning: &'a Planning, plan: &LogicalPlan) -> Result<Cow<'a, Planning>> {
        let rows = batch_size::of(plan, self.memory.bytes())?;
        if rows == batch_size::MOST {
            return Ok(Cow::Borrowed(planning));
        }
        let config = planning.state.config().clone().with_batch_size(rows);
        let state = SessionStateBuilder::new_from_existing(planning.state.clone());
        Ok(Cow::Owned(Planning::new(state.with_config(config).build(), planning.holds)))
    }

    fn simple(&self) -> &Planning {
        self.simple.get_or_init(|| Planning::new(simple::state(&self.usual().state), false))
    }

    fn usual(&self) -> &Planning {
        self.usual.get_or_init(|| self.make(MergeJoins::above(self.memory.clone())))
    }

    fn make(&self, joins: MergeJoins) -> Planning {
        // The plan runs on one thread: partitions would only cost.
        let config = SessionConfig::new().with_target_partitions(1);
        let mut config = config.with_batch_size(batch_size::MOST);
        config.options_mut().sql_parser.map_string_types_to_utf8view = false;
        // DataFusion's logical and physical plans disagree on whether `x IS TRUE` can be NULL.
        config.options_mut().execution.skip_physical_aggregate_schema_check = true;
        // A sort sets it aside for its merges, and has to leave memory for rows.
        config.options_mut().execution.sort_spill_reservation_bytes =
            (self.memory.bytes() / 16).min(SORT_RESERVATION);
        let files = match &self.storage {
            Some(storage) => DiskManagerMode::Custom(Arc::new(Spills::new(storage.clone()))),
            None => DiskManagerMode::Disabled,
        };
        let files = DiskManagerBuilder::default().with_mode(files);
        let memory: Arc<dyn MemoryPool> = self.memory.account();
        let runtime = RuntimeEnvBuilder::new()
            .with_memory_pool(memory)
            .with_disk_manager_builder(files.with_max_spill_merge_fan_in(MERGED))
            .build_arc();
        let state = SessionStateBuilder::new()
            .with_config(config)
            .with_runtime_env(runtime.expect("a runtime without files needs nothing"))
            .with_default_features()
            .with_optimizer_rules(rules())
            .with_physical_optimizer_rules(physical_rules(joins))
            .with_analyzer_rule(Arc::new(ExactNumbers))
            .with_analyzer_rule(Arc::new(Microseconds))
            .with_analyzer_rule(Arc::new(TextToInterval))
            .with_analyzer_rule(Arc::new(IntervalsByLength))
            .with_analyzer_rule(Arc::new(DisjointLists))
            .with_analyzer_rule(Arc::new(CheckedArithmetic))
            .with_analyzer_rule(Arc::new(DistinctRows))
            .with_analyzer_rule(Arc::new(OneNan))
            .with_analyzer_rule(Arc::new(OneZero::of_queries()))
            .with_analyzer_rule(Arc::new(DeepExpressions))
            .build();
        Planning::new(state, true)
    }
}

fn execute(
    plan: Arc<dyn ExecutionPlan>,
    task: &Arc<TaskContext>,
    turns: Option<Arc<Turns>>,
    measures: Option<&Measures>,
) -> Result<SendableRecordBatchStream> {
    let plan = windows::counted(interruptible(plan, turns)?)?;
    let plan = match measures {
        Some(measures) => measures.of(plan)?,
        None => plan,
    };
    Ok(execute_stream(plan, task.clone())?)
}

fn collect(
    mut running: Running,
    mut hold: impl FnMut(&RecordBatch) -> Result<()>,
) -> Result<Answer> {
    let mut batches = Vec::new();
    while let Some(rows) = running.pull_combined()? {
        hold(&rows)?;
        batches.push(rows);
    }
    Ok(Answer { schema: running.schema().clone(), batches })
}

/// DataFusion's own rules, with joins and filters as views have them, and rules that correct its errors.
fn rules() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    let last: [Arc<dyn OptimizerRule + Send + Sync>; 2] =
        [Arc::new(HiddenGroups), Arc::new(ConditionsInTurn)];
    let own: [Arc<dyn OptimizerRule + Send + Sync>; 4] = [
        Arc::new(CrossJoinElimination::default()),
        Arc::new(EquijoinExtraction::default()),
        Arc::new(FilterPushDown::careful()),
        Arc::new(BoundedSimplifier::default()),
    ];
    // They may give two columns the same name, and only help to read single fields of files.
    let left_out = ["extract_leaf_expressions", "push_down_leaf_projections"];
    let rules = Optimizer::new().rules.into_iter();
    let rules = rules
        .filter(|rule| !left_out.contains(&rule.name()))
        .map(|rule| own.iter().find(|own| own.name() == rule.name()).cloned().unwrap_or(rule));
    rules.chain(last).collect()
}

/// DataFusion's own rules after [`Sequences`] and [`KeyOrder`], with [`MergeJoins`] once joins have their sides, but those that
/// push filters further than [`FilterPushDown`] lets them pass: into sources, which here take none, and below outer joins where
/// they do not stay above.
fn physical_rules(joins: MergeJoins) -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let first: [Arc<dyn PhysicalOptimizerRule + Send + Sync>; 2] =
        [Arc::new(Sequences), Arc::new(KeyOrder)];
    let rules = PhysicalOptimizer::new().rules.into_iter();
    let rules = rules.filter(|rule| !rule.name().starts_with("FilterPushdown"));
    let mut rules: Vec<_> = first.into_iter().chain(rules).collect();
    let sides = rules.iter().position(|rule| rule.name() == "join_selection");
    rules.insert(sides.map_or(rules.len(), |sides| sides + 1), Arc::new(joins));
    rules
}
