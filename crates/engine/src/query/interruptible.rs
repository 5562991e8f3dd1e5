//! Queries that an interrupt ends.
//!
//! A query is [interrupted](interrupt), and lets others [compute](super::slots), where a scan or a join emits rows. A join whose condition holds for hardly any pair
//! emits nothing for a long time; it is interrupted where it evaluates the condition.
//!
//! These fail rather than yield to the runtime. Operators yield for want of tokio's budget, of which every operator on
//! the way to a scan takes some: plans deeper than the budget would never reach it.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, FieldRef, Schema};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{
    CrossJoinExec, HashJoinExec, HashJoinExecBuilder, NestedLoopJoinExec,
    NestedLoopJoinExecBuilder, SortMergeJoinExec,
};
use futures::StreamExt;

use super::combined::combined;
use super::slots::Turns;
use super::wrapped::{Around, Rows, wrapped};
use crate::interrupt;

/// The plan with scans, joins and conditions of joins that fail once they are interrupted.
pub(super) fn interruptible(
    plan: Arc<dyn ExecutionPlan>,
    turns: Option<Arc<Turns>>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let interruptible = plan.transform_up(|node| {
        if node.children().len() == 1 {
            return Ok(Transformed::no(node));
        }
        let node: Arc<dyn ExecutionPlan> =
            if let Some(join) = node.downcast_ref::<NestedLoopJoinExec>() {
                let condition = join.filter().map(watched);
                Arc::new(NestedLoopJoinExecBuilder::from(join).with_filter(condition).build()?)
            } else if let Some(join) = node.downcast_ref::<HashJoinExec>() {
                let condition = join.filter().map(watched);
                Arc::new(HashJoinExecBuilder::from(join).with_filter(condition).build()?)
            } else if let Some(join) = node.downcast_ref::<SortMergeJoinExec>()
                && let Some(condition) = join.filter()
            {
                Arc::new(SortMergeJoinExec::try_new(
                    join.left().clone(),
                    join.right().clone(),
                    join.on().to_vec(),
                    Some(watched(condition)),
                    join.join_type(),
                    join.sort_options().to_vec(),
                    join.null_equality(),
                )?)
            } else {
                node
            };
        Ok(Transformed::yes(wrapped(Interruptible { turns: turns.clone() }, node)))
    })?;
    Ok(interruptible.data)
}

/// Fails if the query is interrupted.
pub(super) fn check() -> Result<()> {
    interrupt::check().map_err(|interrupted| DataFusionError::External(interrupted.into()))
}

fn pause(turns: &Option<Arc<Turns>>) -> Result<()> {
    let paused = turns.as_ref().map_or(Ok(()), |turns| turns.pause());
    paused.map_err(|interrupted| DataFusionError::External(interrupted.into()))
}

/// A scan or join that fails once the query is interrupted.
#[derive(Clone, Debug)]
pub(super) struct Interruptible {
    /// If it computes in turns.
    turns: Option<Arc<Turns>>,
}

impl Around for Interruptible {
    const NAME: &'static str = "Interruptible";

    fn execute(
        &self,
        input: &Arc<dyn ExecutionPlan>,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<Rows> {
        let rows = input.execute(partition, context)?;
        let rows: Rows = match input.is::<CrossJoinExec>() {
            true => Box::pin(combined(rows)),
            false => rows,
        };
        let turns = self.turns.clone();
        Ok(rows.map(move |rows| check().and_then(|()| pause(&turns)).and(rows)).boxed())
    }
}

/// A condition that fails once the query is interrupted.
fn watched(condition: &JoinFilter) -> JoinFilter {
    let expression = Arc::new(Watched(Arc::clone(condition.expression())));
    let columns = condition.column_indices().to_vec();
    JoinFilter::new(expression, columns, Arc::clone(condition.schema()))
}

/// An expression that fails once the query is interrupted.
#[derive(Debug, Eq)]
struct Watched(Arc<dyn PhysicalExpr>);

impl Hash for Watched {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

// Derived, it would move out of the other one.
impl PartialEq for Watched {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_ref() == other.0.as_ref()
    }
}

impl fmt::Display for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl PhysicalExpr for Watched {
    fn evaluate(&self, rows: &RecordBatch) -> Result<ColumnarValue> {
        check()?;
        self.0.evaluate(rows)
    }

    fn return_field(&self, schema: &Schema) -> Result<FieldRef> {
        self.0.return_field(schema)
    }

    fn data_type(&self, schema: &Schema) -> Result<DataType> {
        self.0.data_type(schema)
    }

    fn nullable(&self, schema: &Schema) -> Result<bool> {
        self.0.nullable(schema)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.0]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        match children.pop() {
            Some(expression) => Ok(Arc::new(Watched(expression))),
            None => Ok(self),
        }
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt_sql(f)
    }
}
