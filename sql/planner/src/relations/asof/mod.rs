//! ASOF joins.
//!
//! DataFusion has none. `conditions` makes a node of our own of one, which views maintain. For plans that DataFusion runs,
//! `expand` replaces the node by windows over the rows of both sides in their common order.
mod conditions;
mod expand;

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use alluvium_dataflow::joins::asof_join::Nearest;
use alluvium_dataflow::rows::codec::KeyCodec;
use arrow::datatypes::DataType;
use datafusion_common::{Column, DFSchema, DFSchemaRef, JoinType, Result, internal_err};
use datafusion_expr::logical_plan::builder::build_join_schema;
use datafusion_expr::{
    BinaryExpr, Expr, Extension, LogicalPlan, Operator, UserDefinedLogicalNodeCore,
};

pub(crate) use self::conditions::AsofConditions;
pub(crate) use self::expand::expand;

/// An ASOF join in a logical plan. Its columns are those of both inputs.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct AsofNode {
    /// The rows that each have one row of the result.
    pub left: LogicalPlan,
    /// The rows that the nearest of is found among.
    pub right: LogicalPlan,
    /// Comparisons of a side's expressions with the other's: equalities and one other, so that they are coerced as those of
    /// other joins are.
    conditions: Vec<Expr>,
    /// Whether left rows without a match are kept.
    pub keeps_left: bool,
    schema: DFSchemaRef,
}

/// The operands of a join's conditions: expressions of the left side with expressions of the right one.
pub struct Compared {
    /// Pairs of expressions, of the left and the right side, that are equal.
    pub keys: Vec<(Expr, Expr)>,
    /// The times of both sides.
    pub times: (Expr, Expr),
    /// Which of the right rows is the nearest.
    pub nearest: Nearest,
}

impl AsofNode {
    fn try_new(
        left: LogicalPlan,
        right: LogicalPlan,
        conditions: Vec<Expr>,
        keeps_left: bool,
    ) -> Result<Self> {
        let kind = if keeps_left { JoinType::Left } else { JoinType::Inner };
        let schema = Arc::new(build_join_schema(left.schema(), right.schema(), &kind)?);
        Ok(Self { left, right, conditions, keeps_left, schema })
    }

    /// The operands of its conditions.
    pub fn compared(&self) -> Result<Compared> {
        let (mut keys, mut times) = (Vec::new(), None);
        for condition in &self.conditions {
            match compared(condition, self.left.schema(), self.right.schema()) {
                Some((left, Operator::Eq, right)) => keys.push((left, right)),
                Some((left, operator, right)) if let Some(nearest) = nearest(operator) => {
                    times = Some(((left, right), nearest));
                }
                _ => return internal_err!("an ASOF join does not compare its sides: {condition}"),
            }
        }
        match times {
            Some((times, nearest)) => Ok(Compared { keys, times, nearest }),
            None => internal_err!("an ASOF join without times"),
        }
    }

    /// The columns of the right side that decide between rows of one time.
    pub fn ties(&self) -> Vec<usize> {
        let fields = self.right.schema().fields().iter().enumerate();
        let sorts = |data_type: &DataType| KeyCodec::new(std::slice::from_ref(data_type)).is_ok();
        fields.filter(|(_, field)| sorts(field.data_type())).map(|(column, _)| column).collect()
    }
}

/// Which right rows are the nearest, if a left time compares like this with theirs.
fn nearest(operator: Operator) -> Option<Nearest> {
    let (later, or_equal) = match operator {
        Operator::GtEq => (false, true),
        Operator::Gt => (false, false),
        Operator::LtEq => (true, true),
        Operator::Lt => (true, false),
        _ => return None,
    };
    Some(Nearest { later, or_equal })
}

/// The two sides of a comparison of an expression of `left` with one of `right`, in this order.
fn compared(condition: &Expr, left: &DFSchema, right: &DFSchema) -> Option<(Expr, Operator, Expr)> {
    // Rewriting keeps the names of expressions by aliases.
    let condition = condition.clone().unalias_nested().data;
    let Expr::BinaryExpr(BinaryExpr { left: one, op, right: other }) = &condition else {
        return None;
    };
    let is_of = |expression: &Expr, schema: &DFSchema| {
        let columns = expression.column_refs();
        let is_there = |column: &&Column| schema.has_column(column);
        !columns.is_empty() && columns.iter().all(is_there)
    };
    if is_of(one, left) && is_of(other, right) {
        return Some((one.as_ref().clone(), *op, other.as_ref().clone()));
    }
    let turned = op.swap().filter(|_| is_of(one, right) && is_of(other, left))?;
    Some((other.as_ref().clone(), turned, one.as_ref().clone()))
}

impl PartialOrd for AsofNode {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        let key = |node: &Self| (node.left.clone(), node.right.clone(), node.keeps_left);
        key(self)
            .partial_cmp(&key(other))
            .filter(|order| order.is_ne())
            .or_else(|| self.conditions.partial_cmp(&other.conditions))
            .filter(|order| order.is_ne() || self == other)
    }
}

impl UserDefinedLogicalNodeCore for AsofNode {
    fn name(&self) -> &str {
        "AsofJoin"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.left, &self.right]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        self.conditions.clone()
    }

    fn fmt_for_explain(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.keeps_left { "LeftAsofJoin:" } else { "AsofJoin:" })?;
        self.conditions.iter().try_for_each(|condition| write!(formatter, " {condition}"))
    }

    fn with_exprs_and_inputs(
        &self,
        conditions: Vec<Expr>,
        inputs: Vec<LogicalPlan>,
    ) -> Result<Self> {
        match <[LogicalPlan; 2]>::try_from(inputs) {
            Ok([left, right]) => AsofNode::try_new(left, right, conditions, self.keeps_left),
            Err(inputs) => internal_err!("an ASOF join of {} inputs", inputs.len()),
        }
    }
}

/// The ASOF join of a logical plan node, if it is one.
pub fn as_asof_join(extension: &Extension) -> Option<&AsofNode> {
    extension.node.as_any().downcast_ref::<AsofNode>()
}
