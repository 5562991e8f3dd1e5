//! The conditions of an ASOF join.

use std::sync::Arc;

use alluvium_sql_syntax::error::{Error, Position};
use datafusion_common::{DataFusionError, Result};
use datafusion_expr::expr_rewriter::normalize_col_with_schemas_and_ambiguity_check;
use datafusion_expr::planner::RelationPlannerContext;
use datafusion_expr::type_coercion::binary::BinaryTypeCoercer;
use datafusion_expr::{Expr, ExprSchemable, Extension, LogicalPlan, Operator};
use sqlparser::ast::{self, BinaryOperator};

use super::{AsofNode, compared, nearest};
use crate::subqueries::subquery::has_subquery;
use crate::type_name;

/// The conditions of a join of two plans, as they are found.
pub struct AsofConditions<'a> {
    left: &'a LogicalPlan,
    right: &'a LogicalPlan,
    equalities: Vec<Expr>,
    inequality: Option<Expr>,
}

impl<'a> AsofConditions<'a> {
    pub fn new(left: &'a LogicalPlan, right: &'a LogicalPlan) -> Self {
        Self { left, right, equalities: Vec::new(), inequality: None }
    }

    /// Adds the conjuncts of a condition, one of which may be the inequality.
    pub fn add_all(
        &mut self,
        condition: &ast::Expr,
        has_inequality: bool,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<()> {
        let (left, right) = (self.left.schema(), self.right.schema());
        let schema = left.join(right)?;
        let mut conjuncts = vec![condition];
        while let Some(conjunct) = conjuncts.pop() {
            match conjunct {
                ast::Expr::Nested(inner) => conjuncts.push(inner),
                // A function that returns BOOLEAN casts its definition.
                ast::Expr::Cast { expr, data_type, .. }
                    if is_boolean(data_type) && is_condition(expr) =>
                {
                    conjuncts.push(expr);
                }
                ast::Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
                    conjuncts.extend([right.as_ref(), left.as_ref()]);
                }
                conjunct => {
                    let planned = context.sql_to_expr(conjunct.clone(), &schema)?;
                    let planned = normalize_col_with_schemas_and_ambiguity_check(
                        planned,
                        &[&[left, right]],
                        &self.left.using_columns()?,
                    )?;
                    let at = Position::of(conjunct);
                    let had = self.inequality.is_some();
                    self.add(planned, at)?;
                    if !has_inequality && !had && self.inequality.is_some() {
                        let message = "the inequality of an ASOF JOIN with a MATCH_CONDITION stands there, \
                                       and not in ON";
                        return Err(wrong(message, at));
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds one.
    pub fn add(&mut self, condition: Expr, at: Option<Position>) -> Result<()> {
        let (left, right) = (self.left.schema(), self.right.schema());
        let has_subquery = has_subquery(&condition);
        let compared = compared(&condition, left, right).filter(|(_, operator, _)| {
            !has_subquery && (*operator == Operator::Eq || nearest(*operator).is_some())
        });
        let Some((one, operator, other)) = compared else {
            let message = "an ASOF JOIN compares columns of its two sides: by = or, once, by >=, >, <= or <. \
                           Other conditions on a side go into a subquery, SELECT … WHERE …";
            return Err(wrong(message, at));
        };
        let types = (one.get_type(left)?, other.get_type(right)?);
        let coerced = BinaryTypeCoercer::new(&types.0, &operator, &types.1).get_input_types();
        let (common, _) = coerced.map_err(|error| {
            DataFusionError::External(Box::new(Error::from_datafusion(&error).at(at)))
        })?;
        if operator == Operator::Eq {
            self.equalities.push(condition);
            return Ok(());
        }
        if self.inequality.is_some() {
            return Err(wrong("an ASOF JOIN has one inequality, that of its times", at));
        }
        if common.primitive_width().is_none() {
            let found = type_name(&common);
            let message = format!("an ASOF JOIN is by times or numbers, and this compares {found}");
            return Err(wrong(&message, at));
        }
        self.inequality = Some(condition);
        Ok(())
    }

    /// The join. Its conditions are at `at`.
    pub fn join(self, keeps_left: bool, at: Option<Position>) -> Result<LogicalPlan> {
        let Some(inequality) = self.inequality else {
            let message = "an ASOF JOIN needs an inequality of times, as a.ts >= b.ts";
            return Err(wrong(message, at));
        };
        let mut conditions = self.equalities;
        conditions.push(inequality);
        let (left, right) = (self.left.clone(), self.right.clone());
        let node = AsofNode::try_new(left, right, conditions, keeps_left)?;
        Ok(LogicalPlan::Extension(Extension { node: Arc::new(node) }))
    }
}

fn is_boolean(data_type: &ast::DataType) -> bool {
    matches!(data_type, ast::DataType::Bool | ast::DataType::Boolean)
}

/// Whether an expression is a comparison, or several, so that it is BOOLEAN already.
fn is_condition(expression: &ast::Expr) -> bool {
    use BinaryOperator::{And, Eq, Gt, GtEq, Lt, LtEq};
    match expression {
        ast::Expr::Nested(inner) => is_condition(inner),
        ast::Expr::Cast { expr, data_type, .. } => is_boolean(data_type) && is_condition(expr),
        ast::Expr::BinaryOp { op, .. } => matches!(op, And | Eq | Gt | GtEq | Lt | LtEq),
        _ => false,
    }
}

fn wrong(message: &str, at: Option<Position>) -> DataFusionError {
    DataFusionError::External(Box::new(Error::new(message, at)))
}
