//! INTERSECT and EXCEPT.
//!
//! DataFusion plans them as semi and anti joins of whole rows. These do not count copies, so the ALL forms are wrong:
//! `{1, 1} INTERSECT ALL {1}` returns 1 twice. [`plan`] replaces each such join by a node of our own, which views maintain.
//! For plans that DataFusion runs, [`expand`] replaces the node by a join of numbered copies: the n-th copy of a row on one
//! side matches the n-th on the other.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use alluvium_dataflow::reductions::sets::SetOperation;
use alluvium_sql_functions::FUNCTIONS;
use alluvium_sql_syntax::options::OPTIONS;
use datafusion_common::tree_node::{Transformed, TransformedResult};
use datafusion_common::{
    Column, DFSchema, DFSchemaRef, JoinType, NullEquality, Result, TableReference, internal_err,
    plan_err,
};
use datafusion_expr::expr::WindowFunction;
use datafusion_expr::expr_rewriter::coerce_plan_expr_for_schema;
use datafusion_expr::{
    Expr, ExprFunctionExt, Extension, LogicalPlan, LogicalPlanBuilder, UserDefinedLogicalNodeCore,
    WindowFunctionDefinition, logical_plan as logical,
};
use datafusion_optimizer::analyzer::AnalyzerRule;
use datafusion_optimizer::analyzer::type_coercion::TypeCoercion;

use crate::rules::numbers;

/// A set operation in a logical plan. Its columns are those of the left input.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct SetOperationNode {
    /// Which it is.
    pub operation: SetOperation,
    /// The rows that the result is made of.
    pub left: LogicalPlan,
    /// The rows that they are compared with.
    pub right: LogicalPlan,
    schema: DFSchemaRef,
}

impl PartialOrd for SetOperationNode {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        let key = |node: &Self| (node.operation, node.left.clone(), node.right.clone());
        key(self).partial_cmp(&key(other)).filter(|order| order.is_ne() || self == other)
    }
}

impl SetOperationNode {
    fn new(operation: SetOperation, left: LogicalPlan, right: LogicalPlan) -> SetOperationNode {
        let schema = Arc::clone(left.schema());
        SetOperationNode { operation, left, right, schema }
    }

    /// The same operation of other inputs.
    pub fn of(&self, left: LogicalPlan, right: LogicalPlan) -> LogicalPlan {
        let node = Arc::new(SetOperationNode::new(self.operation, left, right));
        LogicalPlan::Extension(Extension { node })
    }
}

/// The name of an operation in SQL.
pub fn name(operation: SetOperation) -> &'static str {
    match operation {
        SetOperation::Intersect => "INTERSECT",
        SetOperation::IntersectAll => "INTERSECT ALL",
        SetOperation::Except => "EXCEPT",
        SetOperation::ExceptAll => "EXCEPT ALL",
    }
}

impl UserDefinedLogicalNodeCore for SetOperationNode {
    fn name(&self) -> &str {
        name(self.operation)
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.left, &self.right]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn fmt_for_explain(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(name(self.operation))
    }

    fn with_exprs_and_inputs(&self, _: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        match <[LogicalPlan; 2]>::try_from(inputs) {
            Ok([left, right]) => Ok(SetOperationNode::new(self.operation, left, right)),
            Err(inputs) => internal_err!("a set operation of {} inputs", inputs.len()),
        }
    }
}

/// The set operation of a logical plan node, if it is one.
pub fn as_set_operation(extension: &Extension) -> Option<&SetOperationNode> {
    extension.node.as_any().downcast_ref::<SetOperationNode>()
}

/// The plan from the SQL planner with set operations in place of the joins that DataFusion planned.
pub(crate) fn plan(plan: LogicalPlan) -> Result<LogicalPlan> {
    plan.transform_up_with_subqueries(|node| match node {
        // Before optimization, only these joins pair NULLs.
        LogicalPlan::Join(join)
            if join.null_equality == NullEquality::NullEqualsNull
                && matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti) =>
        {
            set_operation(join).map(Transformed::yes)
        }
        node => Ok(Transformed::no(node)),
    })
    .data()
}

fn set_operation(join: logical::Join) -> Result<LogicalPlan> {
    let is_intersect = join.join_type == JoinType::LeftSemi;
    let (left, operation) = match join.left.as_ref() {
        LogicalPlan::Distinct(logical::Distinct::All(input)) => {
            let operation =
                if is_intersect { SetOperation::Intersect } else { SetOperation::Except };
            (input.as_ref().clone(), operation)
        }
        left => {
            let operation =
                if is_intersect { SetOperation::IntersectAll } else { SetOperation::ExceptAll };
            (left.clone(), operation)
        }
    };
    let (left, right) = (typed(left)?, typed(join.right.as_ref().clone())?);
    let mut fields = Vec::with_capacity(left.schema().fields().len());
    for ((qualifier, field), other) in left.schema().iter().zip(right.schema().fields()) {
        let Some(common) = numbers::common(field.data_type(), other.data_type()) else {
            return plan_err!(
                "column \"{}\" of {} is {} here and {} there",
                field.name(),
                name(operation),
                field.data_type(),
                other.data_type()
            );
        };
        let field = field.as_ref().clone().with_data_type(common);
        fields.push((qualifier.cloned(), Arc::new(field)));
    }
    let schema = DFSchema::new_with_metadata(fields, Default::default())?;
    let left = named(coerce_plan_expr_for_schema(left, &schema)?, &schema)?;
    let right = coerce_plan_expr_for_schema(right, &schema)?;
    let node = Arc::new(SetOperationNode::new(operation, left, right));
    Ok(LogicalPlan::Extension(Extension { node }))
}

/// The plan with explicit types: before that, a UNION or CASE has the type of its first part. A set operation has them.
fn typed(plan: LogicalPlan) -> Result<LogicalPlan> {
    match plan {
        LogicalPlan::Extension(_) => Ok(plan),
        plan => TypeCoercion::new().analyze(plan, &OPTIONS),
    }
}

/// The plan with its columns named and qualified as in `schema`; a cast drops the qualifier.
fn named(plan: LogicalPlan, schema: &DFSchema) -> Result<LogicalPlan> {
    if plan.schema().columns() == schema.columns() {
        return Ok(plan);
    }
    let columns = plan.schema().columns().into_iter().zip(schema.iter());
    let named: Vec<Expr> = columns
        .map(|(column, (qualifier, field))| {
            Expr::Column(column).alias_qualified(qualifier.cloned(), field.name())
        })
        .collect();
    LogicalPlanBuilder::from(plan).project(named)?.build()
}

/// The plan with every set operation expanded to nodes that DataFusion runs.
pub(crate) fn expand(plan: LogicalPlan) -> Result<LogicalPlan> {
    plan.transform_up_with_subqueries(|node| match &node {
        LogicalPlan::Extension(extension) => match as_set_operation(extension) {
            Some(operation) => written_out(operation).map(Transformed::yes),
            None => Ok(Transformed::no(node)),
        },
        _ => Ok(Transformed::no(node)),
    })
    .data()
}

fn written_out(node: &SetOperationNode) -> Result<LogicalPlan> {
    let (join, counted) = match node.operation {
        SetOperation::Intersect => (JoinType::LeftSemi, false),
        SetOperation::IntersectAll => (JoinType::LeftSemi, true),
        SetOperation::Except => (JoinType::LeftAnti, false),
        SetOperation::ExceptAll => (JoinType::LeftAnti, true),
    };
    let left = copies(&node.left, counted, "__left")?;
    let right = copies(&node.right, counted, "__right")?;
    let keys = (left.schema().columns(), right.schema().columns());
    let names = node.schema.iter().map(|(qualifier, field)| (qualifier.cloned(), field.name()));
    let named: Vec<Expr> = keys
        .0
        .iter()
        .zip(names)
        .map(|(column, (qualifier, name))| {
            Expr::Column(column.clone()).alias_qualified(qualifier, name.as_str())
        })
        .collect();
    LogicalPlanBuilder::from(left)
        .join_detailed(right, join, keys, None, NullEquality::NullEqualsNull)?
        .project(named)?
        .build()
}

/// The rows with their columns under plain names: each once or, if `counted`, every copy with its number.
fn copies(plan: &LogicalPlan, counted: bool, side: &str) -> Result<LogicalPlan> {
    let columns = plan.schema().columns().into_iter().enumerate();
    let columns = columns.map(|(number, column)| Expr::Column(column).alias(format!("c{number}")));
    let rows = LogicalPlanBuilder::from(plan.clone()).project(columns)?;
    if !counted {
        return rows.distinct()?.alias(TableReference::bare(side))?.build();
    }
    let Some(row_number) = FUNCTIONS.window.get("row_number") else {
        return internal_err!("there is no row_number");
    };
    let all: Vec<Expr> = rows.schema().columns().into_iter().map(Expr::Column).collect();
    let function = WindowFunctionDefinition::WindowUDF(Arc::clone(row_number));
    let number =
        Expr::from(WindowFunction::new(function, Vec::new())).partition_by(all.clone()).build()?;
    let name = Column::from_name(number.schema_name().to_string());
    let rows = rows.window([number])?;
    let copy = Expr::Column(name).alias("copy");
    rows.project(all.into_iter().chain([copy]))?.alias(TableReference::bare(side))?.build()
}
