//! Planning how a view is maintained.

use std::collections::BTreeSet;
use std::sync::Arc;

use alluvium_sql_planner::catalog::{Catalog, DeclaredRecursion, DeclaredView};
use alluvium_sql_planner::{Extent, LogicalView, Planner};
use alluvium_sql_syntax::error::Result;
use alluvium_sql_syntax::statement::{Lateness, ViewDefinition};
use arrow::datatypes::SchemaRef;
use datafusion_expr::LogicalPlan;

use super::build::{build, build_final, build_in_time, build_recursion};
use super::{IncrementalPlan, LowerBounds, final_rows, lateness};

/// A planned view.
#[derive(Clone, Debug)]
pub struct PlannedView {
    /// Its query, which replaces its name in statements and views if it is not materialized.
    pub logical: Arc<LogicalPlan>,
    /// The size of that plan.
    pub extent: Extent,
    /// Its columns.
    pub schema: SchemaRef,
    /// The column by which its rows are final, if these are all that it has.
    pub emit_final: Option<usize>,
    /// How late its changes may come, by columns that differ.
    pub lateness: Vec<Lateness>,
    /// How it is maintained.
    pub plan: IncrementalPlan,
    /// The lower bounds of its columns.
    pub bounds: Arc<LowerBounds>,
    /// The tables and materialized views that it reads, each once, in alphabetical order; the [`CLOCK`](alluvium_sql_planner::CLOCK) among
    /// them if it uses the time.
    pub reads: Vec<String>,
    /// All relations that its text names, each once, in alphabetical order; none of them may be dropped before it.
    pub depends: Vec<String>,
    /// The functions that its text calls and that SQL defines, in alphabetical order; none of them may be dropped before it.
    pub calls: Vec<String>,
    /// Its part in a recursion, if it was declared.
    pub declared: Option<DeclaredView>,
    /// The views that it reads, itself or through others, and that are declared and not complete. Its plan takes them for empty.
    pub awaits: Vec<String>,
}

impl PlannedView {
    /// Plans a view.
    ///
    /// # Errors
    /// If the query is wrong, or the view cannot be maintained.
    pub fn of(view: &ViewDefinition, planner: &Planner, catalog: &dyn Catalog) -> Result<Self> {
        planner.view(view, catalog, &|logical, calls| Self::built(view, logical, calls))
    }

    /// Says how a view is maintained whose query is planned, and which calls functions that SQL defines.
    ///
    /// # Errors
    /// If it cannot be maintained.
    pub fn built(view: &ViewDefinition, planned: LogicalView, calls: &[String]) -> Result<Self> {
        let LogicalView { logical, extent, shared, landmarks, depends, declared, awaits } = planned;
        let mut plan = match &declared {
            None => build(&shared, &landmarks)?,
            Some(declared) => {
                let (views, limit) = (vec![declared.clone()], view.recursion_limit);
                let recursion = DeclaredRecursion { views, extent, limit };
                build_recursion(&recursion, &view.name, &landmarks)?
            }
        };
        let emit_final = final_rows::column(view, &plan)?;
        if let Some(column) = emit_final {
            plan = build_final(plan, column)?;
        }
        let lateness = lateness::columns(view, &plan.schema)?;
        if !lateness.is_empty() {
            plan = build_in_time(plan, &view.name, &lateness);
        }
        Ok(Self {
            logical,
            extent,
            schema: Arc::clone(&plan.schema),
            emit_final,
            lateness,
            bounds: Arc::new(plan.clone().bound(&[])),
            reads: reads(&plan),
            plan,
            depends,
            calls: calls.to_vec(),
            declared,
            awaits,
        })
    }

    /// The same view in a complete recursion.
    ///
    /// # Errors
    /// If the recursion cannot be maintained.
    pub fn within(
        mut self,
        recursion: &DeclaredRecursion,
        view: &ViewDefinition,
        planner: &Planner,
    ) -> Result<Self> {
        let landmarks = planner.landmarks(view)?;
        let plan = build_recursion(recursion, &view.name, &landmarks);
        self.plan = plan.map_err(|error| error.at(landmarks.start))?;
        self.awaits.clear();
        self.bounds = Arc::new(self.plan.clone().bound(&[]));
        self.reads = reads(&self.plan);
        Ok(self)
    }
}

/// The relations that a plan reads, each once.
fn reads(plan: &IncrementalPlan) -> Vec<String> {
    let mut reads = BTreeSet::new();
    plan.visit_relations(&mut |relation| {
        reads.insert(relation.to_string());
    });
    reads.into_iter().collect()
}
