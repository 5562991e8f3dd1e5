//! Whether an expression fails.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch};
use arrow::datatypes::{DataType, Schema};
use datafusion_common::{Result, internal_err};
use datafusion_expr::ColumnarValue;
use datafusion_physical_expr::PhysicalExpr;

use super::expression::Expression;

/// Whether an expression fails for a row. It never fails itself, and is never NULL.
///
/// Rows are looked at one by one only where one of them fails.
#[derive(Clone, Debug, Eq)]
pub(super) struct FailsExpr {
    expression: Expression,
}

impl FailsExpr {
    pub(super) fn new(expression: Expression) -> Self {
        Self { expression }
    }
}

impl PartialEq for FailsExpr {
    fn eq(&self, other: &Self) -> bool {
        self.expression.eq(&other.expression)
    }
}

impl Hash for FailsExpr {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.expression.hash(state);
    }
}

impl fmt::Display for FailsExpr {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "fails({})", self.expression)
    }
}

impl PhysicalExpr for FailsExpr {
    fn data_type(&self, _: &Schema) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn nullable(&self, _: &Schema) -> Result<bool> {
        Ok(false)
    }

    fn evaluate(&self, rows: &RecordBatch) -> Result<ColumnarValue> {
        let fails = |rows: &RecordBatch| self.expression.evaluate(rows).is_err();
        let each: BooleanArray = match fails(rows) {
            false => vec![false; rows.num_rows()].into(),
            true => (0..rows.num_rows()).map(|row| Some(fails(&rows.slice(row, 1)))).collect(),
        };
        Ok(ColumnarValue::Array(Arc::new(each) as ArrayRef))
    }

    fn children(&self) -> Vec<&Expression> {
        vec![&self.expression]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Expression>) -> Result<Expression> {
        match <[Expression; 1]>::try_from(children) {
            Ok([expression]) => Ok(Arc::new(Self { expression })),
            Err(children) => internal_err!("fails takes one expression, not {}", children.len()),
        }
    }

    fn fmt_sql(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("fails(")?;
        self.expression.fmt_sql(formatter)?;
        formatter.write_str(")")
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{AsArray, Int64Array};
    use arrow::datatypes::Field;
    use datafusion_expr::Operator;
    use datafusion_physical_expr::expressions::{BinaryExpr, Column, lit};

    use super::*;

    #[test]
    fn rows_are_told_apart_by_whether_they_fail() -> Result<()> {
        let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Int64, true)]));
        let a: Expression = Arc::new(Column::new("a", 0));
        let more = BinaryExpr::new(a, Operator::Plus, lit(1_i64)).with_fail_on_overflow(true);
        let fails = FailsExpr::new(Arc::new(more));
        for (values, expected) in [
            (vec![Some(1), None], vec![false, false]),
            (vec![Some(i64::MAX), Some(7), None], vec![true, false, false]),
            (vec![], vec![]),
        ] {
            let column = Arc::new(Int64Array::from(values)) as ArrayRef;
            let rows = RecordBatch::try_new(Arc::clone(&schema), vec![column])?;
            let found = fails.evaluate(&rows)?.into_array(rows.num_rows())?;
            let found: Vec<bool> = found.as_boolean().iter().flatten().collect();
            assert_eq!(found, expected);
        }
        Ok(())
    }
}
