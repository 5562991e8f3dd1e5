//! Two lists for one value, as `a IN (1, 2) AND a IN (3)`, or `(a = 1 OR a = 2) AND a = 3`.
//!
//! DataFusion merges the lists. If they have no value in common it simplifies AND to false, and `NOT IN … OR NOT IN` to
//! true, even if the value is NULL. Under a NOT, or as a column, NULL is a different result. So this rule merges such pairs
//! first and keeps the NULL.

use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion_common::{DFSchema, Result, ScalarValue};
use datafusion_expr::execution_props::ExecutionProps;
use datafusion_expr::expr::InList;
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion_expr::{BinaryExpr, ColumnarValue, Expr, LogicalPlan, Operator, lit, when};
use datafusion_optimizer::AnalyzerRule;
use datafusion_physical_expr::create_physical_expr;

use crate::expressions::evaluation::one_row;

/// Simplifies such pairs if no value is in both lists. It runs after type coercion.
#[derive(Debug)]
pub struct DisjointLists;

impl AnalyzerRule for DisjointLists {
    fn name(&self) -> &str {
        "disjoint_lists"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|node| {
            let names = NamePreserver::new(&node);
            node.map_expressions(|expression| {
                let name = names.save(&expression);
                let decided = expression.transform_up(decided)?;
                Ok(decided.update_data(|expression| name.restore(expression)))
            })
        })
        .data()
    }
}

fn decided(expression: Expr) -> Result<Transformed<Expr>> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = &expression else {
        return Ok(Transformed::no(expression));
    };
    let truth = match op {
        Operator::And => false,
        Operator::Or => true,
        _ => return Ok(Transformed::no(expression)),
    };
    let (Some(left), Some(right)) = (Among::of(left), Among::of(right)) else {
        return Ok(Transformed::no(expression));
    };
    let is_decided = match (left.negated, right.negated) {
        // At least one of the two lists does not contain the value.
        (true, true) => truth && left.is_disjoint(&right),
        (false, false) => !truth && left.is_disjoint(&right),
        // One list contains the other.
        (true, false) if truth => left.is_within(&right),
        (false, true) if truth => right.is_within(&left),
        (true, false) => right.is_within(&left),
        (false, true) => left.is_within(&right),
    };
    if left.value != right.value || !is_decided {
        return Ok(Transformed::no(expression));
    }
    let unknown = left.value.clone().is_null();
    let decided = when(unknown, lit(ScalarValue::Boolean(None))).otherwise(lit(truth))?;
    Ok(Transformed::yes(decided))
}

/// Whether a value is in a list, however that is written.
struct Among<'a> {
    value: &'a Expr,
    list: Vec<ScalarValue>,
    negated: bool,
}

impl<'a> Among<'a> {
    fn of(expression: &'a Expr) -> Option<Self> {
        match expression {
            Expr::InList(InList { expr, list, negated }) => {
                let list = list.iter().map(constant).collect::<Option<_>>()?;
                Some(Self { value: expr, list, negated: *negated })
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => match op {
                Operator::Eq | Operator::NotEq => {
                    let (value, other) = match constant(right) {
                        Some(other) => (left, other),
                        None => (right, constant(left)?),
                    };
                    Some(Self { value, list: vec![other], negated: *op == Operator::NotEq })
                }
                Operator::Or | Operator::And => {
                    let (mut one, other) = (Self::of(left)?, Self::of(right)?);
                    let negated = *op == Operator::And;
                    let joins = one.negated == negated && other.negated == negated;
                    one.list.extend(other.list);
                    (joins && one.value == other.value).then_some(one)
                }
                _ => None,
            },
            _ => None,
        }
    }

    fn is_disjoint(&self, other: &Self) -> bool {
        self.list.iter().all(|value| !other.list.contains(value))
    }

    fn is_within(&self, outer: &Self) -> bool {
        self.list.iter().all(|value| outer.list.contains(value))
    }
}

/// The value of a constant that is neither NULL nor a floating point number.
fn constant(expression: &Expr) -> Option<ScalarValue> {
    let value = match expression {
        Expr::Literal(value, _) => value.clone(),
        Expr::Cast(_) => {
            let literal =
                expression.exists(|part| Ok(!matches!(part, Expr::Cast(_) | Expr::Literal(..))));
            if literal.is_ok_and(|has_others| has_others) {
                return None;
            }
            let nothing = DFSchema::empty();
            let (properties, context) = (ExecutionProps::new(), PhysicalPlanningContext::default());
            let physical =
                create_physical_expr(expression, &nothing, &properties, &context).ok()?;
            match physical.evaluate(&one_row()).ok()? {
                ColumnarValue::Scalar(value) => value,
                ColumnarValue::Array(values) => ScalarValue::try_from_array(&values, 0).ok()?,
            }
        }
        _ => return None,
    };
    // Zero has two signs.
    (!value.is_null() && !value.data_type().is_floating()).then_some(value)
}
