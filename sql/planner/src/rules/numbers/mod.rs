//! Numbers: where types meet, and where a result does not fit its type.
//!
//! A number with a point is DECIMAL. DataFusion has habits with DECIMAL that neither Postgres nor DuckDB has:
//!
//! - beside DOUBLE, in `x > 0.5` or `COALESCE(x, 0.0)`, both become DECIMAL(30, 15), which few DOUBLE fit into. Here DOUBLE
//!   wins. And a quotient has few digits. [`meet`] casts before DataFusion chooses types;
//! - a cast to an integer cuts the fraction off, and a result of more than 38 digits passes for one of 38:
//!   [`ExactNumbers`] corrects these once the types are chosen.
mod double;
mod exact;
mod functions;
mod meet;

use arrow::datatypes::DataType;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{DFSchema, Result};
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::type_coercion::binary::{BinaryTypeCoercer, type_union_coercion};
use datafusion_expr::utils::merge_schema;
use datafusion_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan};

pub(crate) use self::double::literal as nearest_double;
pub use self::exact::ExactNumbers;
pub(crate) use self::exact::exact;
pub(crate) use self::functions::loses_fraction;
pub(crate) use self::meet::meet;
use crate::expressions::types::returned;

/// The types of the operands of an expression; `None` for one without a type, whose error comes later.
type Types = Vec<Option<DataType>>;

/// An expression that is changed, and its type if that is known.
type Change = (Transformed<Expr>, Option<DataType>);

/// Changes the expressions of a plan node, without its inputs, as [`change_up`] does. They keep their names.
fn change_node(
    node: LogicalPlan,
    change: &dyn Fn(Expr, &mut Types) -> Result<Change>,
) -> Result<Transformed<LogicalPlan>> {
    let schema = merge_schema(&node.inputs());
    let names = NamePreserver::new(&node);
    node.map_expressions(|expression| {
        if is_leaf(&expression) {
            return Ok(Transformed::no(expression));
        }
        let name = names.save(&expression);
        let changed = change_up(expression, &schema, change)?;
        Ok(changed.update_data(|expression| name.restore(expression)))
    })
}

/// Changes an expression from its leaves up. `change` gets each part with the types of its operands, and keeps both in
/// step; so each type is computed once.
fn change_up(
    expression: Expr,
    schema: &DFSchema,
    change: &dyn Fn(Expr, &mut Types) -> Result<Change>,
) -> Result<Transformed<Expr>> {
    let mut types: Types = Vec::new();
    expression.transform_up(|part| {
        let mut operands = 0;
        part.apply_children(|_| {
            operands += 1;
            Ok(TreeNodeRecursion::Continue)
        })?;
        let mut operands = types.split_off(types.len().saturating_sub(operands));
        let (changed, known) = change(part, &mut operands)?;
        types.push(known.or_else(|| type_of(&changed.data, &operands, schema)));
        Ok(changed)
    })
}

/// Whether an expression has no parts to change, as most of a wide SELECT and of long VALUES have not.
fn is_leaf(expression: &Expr) -> bool {
    matches!(expression, Expr::Column(_) | Expr::Literal(..))
}

/// The type that holds the values of two, as in a set operation.
pub(crate) fn common(left: &DataType, right: &DataType) -> Option<DataType> {
    match (double::as_double(left), double::as_double(right)) {
        (Some(double), None) if double::is_floating(right) => Some(double),
        (None, Some(double)) if double::is_floating(left) => Some(double),
        _ => type_union_coercion(left, right),
    }
}

fn type_of(expression: &Expr, operands: &Types, schema: &DFSchema) -> Option<DataType> {
    match (expression, operands.as_slice()) {
        (Expr::Alias(_) | Expr::Negative(_), [operand]) => operand.clone(),
        (Expr::BinaryExpr(BinaryExpr { op, .. }), [Some(left), Some(right)]) => {
            BinaryTypeCoercer::new(left, op, right).get_result_type().ok()
        }
        (Expr::BinaryExpr(_), _) => None,
        (Expr::ScalarFunction(call), operands) => {
            returned(call, &operands.iter().cloned().collect::<Option<Vec<_>>>()?)
        }
        _ => expression.get_type(schema).ok(),
    }
}
