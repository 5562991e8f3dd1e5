//! DataFusion, set up for one query at a time.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use alluvium_sql::planner::{
    BoundedSimplifier, CrossJoinElimination, DisjointLists, EquijoinExtraction, ExactNumbers,
    FilterPushDown, IntervalsByLength, Microseconds, OneNan, TextToInterval,
};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::error::DataFusionError;
use datafusion::execution::TaskContext;
use datafusion::execution::context::SessionState;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::{
    GreedyMemoryPool, MemoryConsumer, MemoryPool, MemoryReservation,
};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::{Optimizer, OptimizerRule};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_plan::{displayable, execute_stream};
use datafusion::prelude::SessionConfig;
use futures::StreamExt;
use tokio::runtime::{Builder, Handle};
use tokio::task::unconstrained;

use super::checked::CheckedArithmetic;
use super::combined::Combined;
use super::conditions::ConditionsInTurn;
use super::deep::DeepExpressions;
use super::distinct_rows::DistinctRows;
use super::grouping_sets::HiddenGroups;
use super::interruptible::interruptible;
use super::key_order::KeyOrder;
use super::sequence::Sequences;
use super::{Answer, Plan, batch_size, simple, windows};
use crate::error::{Error, Result};
use crate::interrupt;
use crate::transaction::bytes_of;

/// Optimises and runs plans whose scans can be read.
pub(crate) struct QueryEngine {
    /// The memory for rows that all queries hold together.
    memory: Arc<dyn MemoryPool>,
    /// Made when first needed: a program without queries starts without it.
    usual: OnceLock<Planning>,
    /// For [simple](simple::is_simple) plans.
    simple: OnceLock<Planning>,
}

/// The rules, functions and options for a plan, and what it runs in.
#[derive(Clone)]
struct Planning {
    state: SessionState,
    task: Arc<TaskContext>,
}

impl Planning {
    fn new(state: SessionState) -> Self {
        Self { task: Arc::new(TaskContext::from(&state)), state }
    }
}

/// Rows that count among those that queries hold, until it is dropped.
pub(crate) struct Held {
    memory: MemoryReservation,
}

impl Held {
    /// Counts these rows. Fails if there is no room for them.
    pub(crate) fn add(&self, rows: &RecordBatch) -> Result<()> {
        Ok(self.memory.try_grow(bytes_of(rows))?)
    }
}

impl QueryEngine {
    /// An engine whose queries hold at most `bytes` of rows together.
    pub(crate) fn new(bytes: usize) -> Self {
        let memory = Arc::new(GreedyMemoryPool::new(bytes));
        Self { memory, usual: OnceLock::new(), simple: OnceLock::new() }
    }

    /// Runs a plan. Its result counts among the rows that queries hold, until it is returned.
    pub(crate) fn run(&self, plan: Plan) -> Result<Answer> {
        let held = self.hold();
        self.collect(plan, |rows| held.add(rows))
    }

    /// Runs a plan whose result the engine itself needs, however large.
    pub(crate) fn run_all(&self, plan: Plan) -> Result<Answer> {
        self.collect(plan, |_| Ok(()))
    }

    fn collect(
        &self,
        plan: Plan,
        mut hold: impl FnMut(&RecordBatch) -> Result<()> + Send,
    ) -> Result<Answer> {
        let (mut batches, mut combined) = (Vec::new(), Combined::default());
        let mut keep = |rows: Option<RecordBatch>| {
            rows.iter().try_for_each(&mut hold)?;
            batches.extend(rows);
            Ok(())
        };
        let schema = self.run_each(plan, &mut |rows| keep(combined.add(rows)?))?;
        keep(combined.finish()?)?;
        Ok(Answer { schema, batches })
    }

    /// Passes the result of a plan to `take`, batch by batch; ends at its first error. Returns the columns of the result.
    pub(super) fn run_each(
        &self,
        plan: Plan,
        take: &mut (dyn FnMut(RecordBatch) -> Result<()> + Send),
    ) -> Result<SchemaRef> {
        let Planning { state, task } = &*self.planning(&plan.logical)?;
        block_on(async {
            let planned = match plan.is_optimized {
                true => state.query_planner().create_physical_plan(&plan.logical, state).await,
                false => state.create_physical_plan(&plan.logical).await,
            };
            let plan = windows::counted(interruptible(planned?)?)?;
            let schema = plan.schema();
            let mut batches = execute_stream(plan, Arc::clone(task))?;
            while let Some(rows) = batches.next().await {
                if let Err(error) = take(rows?) {
                    return Ok(Err(error));
                }
            }
            Ok(Ok(schema))
        })?
    }

    /// The columns of the result of a plan.
    pub(super) fn columns(&self, plan: LogicalPlan) -> Result<SchemaRef> {
        let Planning { state, .. } = &*self.planning(&plan)?;
        block_on(async { Ok(state.create_physical_plan(&plan).await?.schema()) })
    }

    /// Counts rows among those that queries hold.
    pub(super) fn hold(&self) -> Held {
        Held { memory: MemoryConsumer::new("result").register(&self.memory) }
    }

    /// The optimised plan, if the plan is [simple](simple::is_simple).
    pub(super) fn optimize_simple(&self, plan: LogicalPlan) -> Result<Option<LogicalPlan>> {
        match simple::is_simple(&plan)? {
            true => Ok(Some(self.simple().state.optimize(&plan)?)),
            false => Ok(None),
        }
    }

    pub(super) fn explain(&self, plan: LogicalPlan) -> Result<String> {
        let Planning { state, .. } = &*self.planning(&plan)?;
        block_on(async {
            let plan = state.create_physical_plan(&plan).await?;
            Ok(displayable(plan.as_ref()).indent(false).to_string())
        })
    }

    /// The rules, functions and options for a plan.
    fn planning(&self, plan: &LogicalPlan) -> Result<Cow<'_, Planning>> {
        let planning = match simple::is_simple(plan)? {
            true => self.simple(),
            false => self.usual(),
        };
        let rows = batch_size::of(plan)?;
        if rows == batch_size::MOST {
            return Ok(Cow::Borrowed(planning));
        }
        let config = planning.state.config().clone().with_batch_size(rows);
        let state = SessionStateBuilder::new_from_existing(planning.state.clone());
        Ok(Cow::Owned(Planning::new(state.with_config(config).build())))
    }

    fn simple(&self) -> &Planning {
        self.simple.get_or_init(|| Planning::new(simple::state(&self.usual().state)))
    }

    fn usual(&self) -> &Planning {
        self.usual.get_or_init(|| {
            // The plan runs on one thread: partitions would only cost.
            let config = SessionConfig::new().with_target_partitions(1);
            let mut config = config.with_batch_size(batch_size::MOST);
            config.options_mut().sql_parser.map_string_types_to_utf8view = false;
            // DataFusion's logical and physical plans disagree on whether `x IS TRUE` can be NULL.
            config.options_mut().execution.skip_physical_aggregate_schema_check = true;
            let runtime = RuntimeEnvBuilder::new()
                .with_memory_pool(Arc::clone(&self.memory))
                .with_disk_manager_builder(
                    DiskManagerBuilder::default().with_mode(DiskManagerMode::Disabled),
                )
                .build_arc();
            let state = SessionStateBuilder::new()
                .with_config(config)
                .with_runtime_env(runtime.expect("a runtime without files needs nothing"))
                .with_default_features()
                .with_optimizer_rules(rules())
                .with_physical_optimizer_rules(physical_rules())
                .with_analyzer_rule(Arc::new(ExactNumbers))
                .with_analyzer_rule(Arc::new(Microseconds))
                .with_analyzer_rule(Arc::new(TextToInterval))
                .with_analyzer_rule(Arc::new(IntervalsByLength))
                .with_analyzer_rule(Arc::new(DisjointLists))
                .with_analyzer_rule(Arc::new(CheckedArithmetic))
                .with_analyzer_rule(Arc::new(DistinctRows))
                .with_analyzer_rule(Arc::new(OneNan))
                .with_analyzer_rule(Arc::new(DeepExpressions))
                .build();
            Planning::new(state)
        })
    }
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

/// DataFusion's own rules behind [`Sequences`] and [`KeyOrder`], but those that push filters further than [`FilterPushDown`] lets
/// them pass: into sources, which here take none, and below outer joins where they do not stay above.
fn physical_rules() -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let first: [Arc<dyn PhysicalOptimizerRule + Send + Sync>; 2] =
        [Arc::new(Sequences), Arc::new(KeyOrder)];
    let rules = PhysicalOptimizer::new().rules.into_iter();
    let rules = rules.filter(|rule| !rule.name().starts_with("FilterPushdown"));
    first.into_iter().chain(rules).collect()
}

/// Runs to the end on a runtime of its own; from inside another runtime on a thread of its own, because
/// runtimes do not nest.
fn block_on<R: Send>(
    future: impl Future<Output = std::result::Result<R, DataFusionError>> + Send,
) -> Result<R> {
    let future = unconstrained(interrupt::until_requested(future));
    let run = || -> Result<R> {
        let runtime = Builder::new_current_thread().build();
        let runtime =
            runtime.map_err(|error| Error::data(format!("the query cannot be run: {error}")))?;
        Ok(runtime.block_on(future)??)
    };
    if Handle::try_current().is_err() {
        return run();
    }
    let run = interrupt::inherited(run);
    let ran = std::thread::scope(|scope| scope.spawn(run).join());
    ran.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
