//! Expressions as they are evaluated.

use std::sync::Arc;

use arrow::array::{BooleanArray, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema};
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::Operator;
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_expr::expressions::{BinaryExpr, Literal, NegativeExpr};

/// The same expression over rows of `schema`, with integer arithmetic that fails on overflow.
///
/// DataFusion's `+`, `-`, `*` and negation wrap around by default.
///
/// # Errors
/// If a node of the expression cannot be rebuilt over its children.
pub fn checked(
    expression: Arc<dyn PhysicalExpr>,
    schema: &Schema,
) -> Result<Arc<dyn PhysicalExpr>> {
    let checked = expression.transform_up(|node| {
        if let Some(binary) = node.downcast_ref::<BinaryExpr>()
            && matches!(binary.op(), Operator::Plus | Operator::Minus | Operator::Multiply)
        {
            return fail_on_overflow(binary.left(), *binary.op(), binary.right());
        }
        if let Some(negative) = node.downcast_ref::<NegativeExpr>() {
            let data_type = negative.arg().data_type(schema)?;
            if data_type.is_signed_integer() {
                let zero: Arc<dyn PhysicalExpr> =
                    Arc::new(Literal::new(ScalarValue::new_zero(&data_type)?));
                return fail_on_overflow(&zero, Operator::Minus, negative.arg());
            }
        }
        Ok(Transformed::no(node))
    })?;
    Ok(checked.data)
}

fn fail_on_overflow(
    left: &Arc<dyn PhysicalExpr>,
    operator: Operator,
    right: &Arc<dyn PhysicalExpr>,
) -> Result<Transformed<Arc<dyn PhysicalExpr>>> {
    let binary = BinaryExpr::new(Arc::clone(left), operator, Arc::clone(right));
    Ok(Transformed::yes(Arc::new(binary.with_fail_on_overflow(true)) as Arc<dyn PhysicalExpr>))
}

/// A row over which constants are evaluated.
pub fn one_row() -> RecordBatch {
    let schema = Arc::new(Schema::new(vec![Field::new("row", DataType::Boolean, false)]));
    RecordBatch::try_new(schema, vec![Arc::new(BooleanArray::from(vec![true]))])
        .expect("one column of one row of its type is a batch")
}
